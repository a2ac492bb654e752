# SPDX-License-Identifier: BSD-3-Clause
"""loaders.py - one rank: data loader processes, forked and spawned, while the rank has a plan."""
import os
import sys

import torch
from torch.utils.data import DataLoader, Dataset

import tributary as tb

torch.set_num_threads(1)


class Numbers(Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, i):
        return torch.full((100,), float(i))


def in_child(comm):
    """A forked child that uses the communicator gets an error."""
    child = os.fork()
    if child == 0:
        try:
            comm.allreduce(torch.ones(10))
        except tb.Error as why:
            os._exit(0 if "forked" in str(why) else 2)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


def main():
    with tb.init() as comm:
        x = torch.ones(5000)
        plan = comm.plan("allreduce", x, codec="bf16")
        for way in ("fork", "spawn" if comm.rank == 0 else "fork"):  # spawned ones import torch
            seen = 0
            for batch in DataLoader(Numbers(), batch_size=4, num_workers=1,
                                    multiprocessing_context=way):
                seen += float(batch.sum())
                x.fill_(1)
                plan.run()
                assert float(x.max()) == comm.size
            assert seen == 100 * 66, (way, seen)
        in_child(comm)
        assert float(comm.allreduce(torch.ones(1))) == comm.size
        plan.close()
    print("all right")


if __name__ == "__main__":  # spawned children import this file
    main()
    sys.stdout.flush()
