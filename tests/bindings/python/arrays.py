# SPDX-License-Identifier: BSD-3-Clause
"""arrays.py - one rank: compare calls and plans on each kind of array with NumPy's results."""
import array
import asyncio
import sys

import numpy as np

import tributary as tb


def refused(kind, words, call, *arguments, **options):
    try:
        call(*arguments, **options)
    except kind as why:
        assert words in str(why), f"{words!r} is not in {str(why)!r}"
        return
    raise AssertionError(f"nothing was refused: {words}")


def contribution(rank, n, dtype):
    return (np.arange(n) % 5 + rank + 1).astype(dtype)


def everyone(comm, n, dtype):
    return np.stack([contribution(r, n, dtype) for r in range(comm.size)])


def calls(comm):
    whole = {"sum": np.sum, "min": np.min, "max": np.max, "prod": np.prod}
    for dtype in "f4 f8 f2 i1 i2 i4 i8 u1 u2 u4 u8".split():
        for n in (1, 7, 1000):
            x, every = contribution(comm.rank, n, dtype), everyone(comm, n, dtype)
            for op, fn in whole.items():
                y = np.zeros_like(x)
                assert comm.allreduce(x, y, op=op) is y
                assert (y == fn(every, axis=0).astype(dtype)).all(), (dtype, n, op)
            assert (comm.allgather(x) == every).all()
            got = comm.reduce(x.copy(), root=comm.size - 1)
            assert (got is None) == (comm.rank != comm.size - 1)
            assert got is None or (got == every.sum(axis=0).astype(dtype)).all()
            mine = x.copy()
            comm.broadcast(mine, root=comm.size - 1)
            assert (mine == every[-1]).all()
    x = np.arange(4 * comm.size, dtype=np.float64).reshape(2 * comm.size, 2) + comm.rank
    total = sum(np.arange(4 * comm.size).reshape(2 * comm.size, 2) + r for r in range(comm.size))
    assert (comm.reduce_scatter(x) == total[2 * comm.rank: 2 * comm.rank + 2]).all()
    y = np.repeat(np.arange(comm.size) + 10 * comm.rank, 2).reshape(comm.size, 2)
    assert (comm.alltoall(y)[:, 0] == 10 * np.arange(comm.size) + comm.rank).all()
    comm.barrier()


def kinds_of_arrays(comm):
    half = comm.size * (comm.size - 1) / 2
    a = array.array("d", [comm.rank, 1])
    comm.allreduce(a)
    assert list(a) == [half, comm.size]
    b = bytearray([comm.rank, 1])
    comm.allreduce(b, op="max")
    assert list(b) == [comm.size - 1, 1]
    x = np.ones((6, 4), np.float32)
    refused(TypeError, "not C-contiguous", comm.allreduce, x[:, 1])
    refused(TypeError, "native byte order", comm.allreduce, x.astype(">f4"))
    for dtype, words in (("c8", "real and imaginary"), ("g", "float64"), ("i4,f4", "one by one"), ("O", "object"),
                         ("U3", "cannot be summed"), ("M8[ns]", "datetime64")):
        refused(TypeError, words, comm.allreduce, np.zeros(3, dtype))
    refused(TypeError, "not C-contiguous", comm.allgather, np.asfortranarray(x))
    refused(TypeError, "format 'Zd'", comm.allreduce, memoryview(np.zeros(3, complex)))
    refused(TypeError, "neither", comm.allreduce, 3)
    frozen = np.ones(3)
    frozen.flags.writeable = False
    refused(TypeError, "read-only", comm.allreduce, frozen)
    refused(TypeError, "read-only", comm.allreduce, b"abc")
    refused(ValueError, "unknown operator", comm.allreduce, x, op="add")
    refused(tb.Error, "median", comm.allreduce, np.ones(3, "i4"), op="median")
    refused(ValueError, "elements", comm.allreduce, x, np.zeros(7, "f4"))
    refused(ValueError, "element type must be", comm.allreduce, x, np.zeros((6, 4)))
    refused(ValueError, "cannot be cut", comm.reduce_scatter, np.zeros(comm.size + 1))
    refused(tb.Invalid, "root", comm.broadcast, x, root=comm.size)
    z = comm.empty((3, 5))
    z[:] = comm.rank
    comm.allreduce(z, op="mean")
    assert (z == (comm.size - 1) / 2).all() and z.shape == (3, 5)


def plans(comm):
    n = 20000
    x = contribution(comm.rank, n, "f4")
    with comm.plan("allreduce", x.copy(), op="mean", codec="topk:ratio=0.01") as plan:
        plan.run()
        assert plan.sent() >= n // 100 and "topk" in plan.explain()
        kept = plan.residual()
        assert kept.shape == (n,) and np.abs(kept).sum() > 0
        state = plan.state_dict()
        plan.set_residual(np.zeros(n, np.float32))
        assert not plan.residual().any()
        plan.load_state_dict(state)
        assert (plan.residual() == kept).all()
    y = np.zeros_like(x)
    with comm.plan("allreduce", x, y) as plan:
        for _ in range(3):
            plan.start().wait()
            assert (y == everyone(comm, n, "f4").sum(axis=0)).all()
        other = np.full(n, comm.rank, np.float32)
        plan.start(other).wait()
        assert (other == comm.size * (comm.size - 1) / 2).all()
    with comm.plan("allreduce", x.copy(), feed="backward") as plan:
        plan.start()
        for first in (10000, 5000, 0):
            plan.ready(first, 10000 if first == 10000 else 5000)
        plan.wait()
    refused(ValueError, "unknown collective", comm.plan, "sum", x)
    refused(tb.Invalid, "", comm.plan, "allreduce", x, codec="nothing")


def unequal(world):
    """If lengths or types differ between ranks, all ranks get Mismatch and the communicator has failed."""
    for mine in (np.zeros(5 + world.rank), np.zeros(5, "f4" if world.rank else "i4")):
        with world.split(0) as comm:
            refused(tb.Mismatch, "disagree", comm.allreduce, mine)


async def waits(comm):
    x = np.ones(100000, np.float32)
    with comm.plan("allreduce", x) as plan:
        for turn in range(1, 4):
            plan.start()
            await plan
            assert x[0] == comm.size**turn
        plan.start()
        while not plan.test():
            await asyncio.sleep(0)
        assert plan.awaits() == ""
        if comm.size == 2:
            await goes_on(comm, plan)


async def goes_on(comm, plan):
    """The loop runs other tasks while one awaits a plan: rank 1 starts once rank 0 has named it."""
    with comm.split(0) as beside:
        if comm.rank == 1:
            beside.barrier()
            await plan.start()
            return
        waiter = asyncio.ensure_future(wait_for(plan))
        while True:
            await asyncio.sleep(0.001)
            if "rank 1 (host" in plan.awaits():
                break
        assert not waiter.done()
        beside.barrier()
        await waiter


async def wait_for(plan):
    await plan.start()


def parts(comm):
    with comm.split(comm.rank % 2, -comm.rank) as half:
        x = np.ones(3)
        half.allreduce(x)
        assert x[0] == half.size
    assert comm.split(-1) is None
    assert comm.stats()["operations"] > 0


with tb.init(config={"chunk": "32K"}) as world:
    calls(world)
    kinds_of_arrays(world)
    plans(world)
    asyncio.run(waits(world))
    unequal(world)
    parts(world)
    text = repr(world)
assert "closed" in repr(world) and "rank" in text
refused(ValueError, "closed", world.barrier)
print("all right", file=sys.stdout)
