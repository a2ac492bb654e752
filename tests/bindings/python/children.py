# SPDX-License-Identifier: BSD-3-Clause
"""children.py FOLDER - ranks are children of multiprocessing, which do not run atexit functions. If a rank returns,
its started all-reduce completes; if it raises, the other rank gets an error."""
import multiprocessing
import sys
import time

import torch
import torch.distributed as dist

import tributary.torch  # the backend


def rank_of(rank, folder, raises):
    torch.set_num_threads(1)
    dist.init_process_group("tributary", init_method=f"file://{folder}/{raises}", rank=rank, world_size=2)
    x = torch.full((100000,), 1.0 + rank)
    if rank == 0:
        dist.all_reduce(x, async_op=True)
        if raises:
            sys.stderr.close()
            raise ValueError("a fault")
        return
    time.sleep(0.3)  # the other has returned by now, unless something blocks it
    try:
        dist.all_reduce(x)
    except tributary.Error:
        assert raises
    else:
        assert torch.equal(x, torch.full((100000,), 3.0))


context = multiprocessing.get_context("fork")
for fault in (False, True):
    ranks = [context.Process(target=rank_of, args=(r, sys.argv[1], fault)) for r in range(2)]
    for child in ranks:
        child.start()
    for child in ranks:
        child.join()
    assert [child.exitcode for child in ranks] == [int(fault), 0], [child.exitcode for child in ranks]
print("all right")
