! SPDX-License-Identifier: BSD-3-Clause
! Two reductions through the module mpi_f08.
program reductions
  use mpi_f08
  implicit none
  integer :: rank, ranks
  double precision :: x(1000), y(1000)
  real :: z(8)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  x = rank
  z = rank
  call MPI_Allreduce(x, y, 1000, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
  call MPI_Allreduce(MPI_IN_PLACE, z, 8, MPI_REAL, MPI_MAX, MPI_COMM_WORLD)
  if (any(y /= ranks * (ranks - 1) / 2) .or. any(z /= ranks - 1)) call MPI_Abort(MPI_COMM_WORLD, 1)
  if (rank == 0) print '(a)', 'wrong 0'
  call MPI_Finalize()
end program
