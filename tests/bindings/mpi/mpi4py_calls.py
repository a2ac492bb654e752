# SPDX-License-Identifier: BSD-3-Clause
"""Call mpi4py's reductions, data movement and pickled objects. The sums are exact in any order of additions."""
import sys

import numpy as np
from mpi4py import MPI


def of_size(world, n):
    mine = np.arange(n, dtype="f8") + world.rank
    total = np.empty_like(mine)
    world.Allreduce(mine, total, MPI.SUM)
    world.Allreduce(MPI.IN_PLACE, mine, MPI.MAX)
    same = total.copy()  # mpi4py does not keep it until the request completes
    request = world.Iallreduce(same, total, MPI.MIN)
    world.Bcast(mine, root=n % world.size)
    request.Wait()
    every = np.empty((world.size, n), dtype="f8")
    world.Allgather(total, every)
    return int(total.sum()), int(mine.sum()), int(every.sum())


def objects(world):
    words = world.allreduce([f"of {world.rank}"], op=MPI.SUM)
    least = world.allreduce((world.rank * 7 % 5, world.rank), op=MPI.MINLOC)
    return words, least, world.bcast({"root": world.rank}, root=world.size - 1)


def main():
    world = MPI.COMM_WORLD
    for n in (1, 7, 1000, 100_000):
        for _ in range(int(sys.argv[1])):
            sums = of_size(world, n)
        if world.rank == 0:
            print("numbers", n, *sums)
    half = world.Split(world.rank % 2, -world.rank)
    sums, said = of_size(half, 50), objects(world)
    world.Barrier()
    half.Free()
    if world.rank == 0:
        print("numbers", *sums, *said)


main()
