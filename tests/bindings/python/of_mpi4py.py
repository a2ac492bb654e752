# SPDX-License-Identifier: BSD-3-Clause
"""of_mpi4py.py - one rank of mpirun: communicators of all mpi4py ranks, and of some of them."""
import numpy as np
from mpi4py import MPI

import tributary as tb

world = MPI.COMM_WORLD
with tb.from_mpi4py(world) as comm:
    assert (comm.rank, comm.size) == (world.Get_rank(), world.Get_size())
    x = np.arange(1000.0) * (comm.rank + 1)
    y = x.copy()
    comm.allreduce(x)
    world.Allreduce(MPI.IN_PLACE, y)
    assert np.array_equal(x, y)
    half = world.Split(comm.rank % 2, -comm.rank)  # in the reverse order
    with tb.from_mpi4py(half) as part:
        assert part.rank == half.Get_rank() and part.size == half.Get_size()
        ranks = part.allgather(np.array([comm.rank]))[:, 0].tolist()
        assert ranks == half.allgather(comm.rank)
name = MPI.Get_library_version().split(",")[0]
print(f"all right {name}\n", end="")  # one write, because other ranks also print
