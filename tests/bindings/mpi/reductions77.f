! SPDX-License-Identifier: BSD-3-Clause
! Two reductions through mpif.h.
      program reductions
      implicit none
      include 'mpif.h'
      integer error, rank, ranks, i
      double precision x(1000), y(1000)
      real z(8)
      call MPI_Init(error)
      call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
      call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
      do i = 1, 1000
        x(i) = rank
      end do
      do i = 1, 8
        z(i) = rank
      end do
      call MPI_Allreduce(x, y, 1000, MPI_DOUBLE_PRECISION, MPI_SUM,
     &                   MPI_COMM_WORLD, error)
      call MPI_Allreduce(MPI_IN_PLACE, z, 8, MPI_REAL, MPI_MAX,
     &                   MPI_COMM_WORLD, error)
      do i = 1, 1000
        if (y(i) .ne. ranks * (ranks - 1) / 2)
     &    call MPI_Abort(MPI_COMM_WORLD, 1, error)
      end do
      if (z(8) .ne. ranks - 1) call MPI_Abort(MPI_COMM_WORLD, 1, error)
      if (rank .eq. 0) print '(a)', 'wrong 0'
      call MPI_Finalize(error)
      end
