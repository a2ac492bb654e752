# SPDX-License-Identifier: BSD-3-Clause
"""buffers.py - one rank: calls and plans reject unsuitable arrays, do not write beyond the end of an array, and
keep its memory alive while the library uses it."""
import array
import asyncio
import copy
import ctypes
import gc
import mmap
import pickle
import sys
import weakref

import numpy as np

import tributary as tb

GUARD = 7


def refused(kind, words, call, *arguments, **options):
    try:
        call(*arguments, **options)
    except kind as why:
        assert words in str(why), f"{words!r} is not in {str(why)!r}"
        return
    raise AssertionError(f"nothing was refused: {words}")


def guarded(n, dtype="f4"):
    """Return an array of n elements, and the guard elements after it, which must not change."""
    whole = np.full(n + 400, GUARD, dtype)
    return whole[:n], whole[n:]


class Interface:
    """An object whose memory is freed as soon as it is described, as for NumPy's scalars."""

    @property
    def __array_interface__(self):
        return np.ones(3).__array_interface__


class Proxy:
    """An object that returns a copy as an array, as a column of a table does."""

    def __array__(self, *_, **__):
        return np.ones(3)


def odd_arrays():
    """Yield (words of the error message, an array that cannot receive a result)."""
    frozen = np.ones(6)
    frozen.flags.writeable = False
    spread = np.lib.stride_tricks
    yield "masked", np.ma.array([1.0, 2.0], mask=[0, 1])
    yield "masked", np.ma.masked
    yield "native byte order", np.ones(3, ">f8")
    yield "one by one", np.zeros(3, "i4,f4")
    yield "one by one", np.rec.array([(1, 2.0)])
    yield "object", np.zeros(3, object)
    yield "C-contiguous", np.ones(6)[::-1]
    yield "C-contiguous", np.ones(6)[::2]
    yield "C-contiguous", np.ones((2, 3)).T
    yield "C-contiguous", np.broadcast_to(np.ones(1), (5,))
    yield "C-contiguous", spread.as_strided(np.ones(1), (5,), (0,), writeable=True)
    yield "C-contiguous", spread.sliding_window_view(np.ones(6), 3, writeable=True)
    yield "not aligned", np.zeros(33, "u1")[1:].view("f4")
    yield "read-only", frozen
    yield "read-only", b"12345678"
    yield "read-only", memoryview(bytearray(8)).toreadonly()
    yield "C-contiguous", memoryview(array.array("d", [1, 2, 3, 4]))[::2]
    yield "format", memoryview(np.zeros(3, "c16"))
    yield "format", (ctypes.c_double.__ctype_be__ * 2)()
    yield "format", array.array("u", "ab")
    yield "asarray", Interface()
    yield "asarray", Proxy()
    yield "neither", [1.0, 2.0]
    yield "neither", 3.0
    yield "neither", None
    yield "neither", "text"
    released = memoryview(bytearray(8))
    released.release()
    yield "no buffer", released


def kinds(comm):
    for words, x in odd_arrays():
        refused(TypeError, words, comm.allreduce, x)
        refused(TypeError, words, comm.broadcast, x)
        refused(TypeError, words, comm.plan, "allreduce", x)
        with comm.plan("allreduce", np.ones(3)) as plan:
            refused(TypeError, words, plan.start, x)
            refused(TypeError, words, plan.start, x, x)
    for x in (np.float64(3), np.mean([1.0, 2.0]), np.int8(3), np.bool_(True)):
        refused(TypeError, "read-only", comm.allreduce, np.ones(()), x)
        refused(TypeError, "read-only", comm.plan, "allreduce", x)
        refused(TypeError, "read-only", comm.allgather, np.ones(3), x)
    wide = (ctypes.c_longlong * 2)(comm.rank, 1)  # the format is "l" or "q", depending on the platform, with 8 bytes
    half = comm.size * (comm.size - 1) // 2
    comm.allreduce(wide)
    assert list(wide) == [half, comm.size]
    for x in (np.matrix([[comm.rank, 1.0]]), np.array([comm.rank, 1.0]).view(Subclass),
              memoryview(bytearray(np.array([comm.rank, 1.0]).tobytes())).cast("d"), mapped(comm)):
        assert comm.allreduce(x) is x
        assert np.asarray(x).ravel()[:2].tolist() == [half, comm.size]
    one = ctypes.c_double(comm.rank)
    comm.allreduce(one)
    assert one.value == half
    zero = np.array(comm.rank, "f4")
    assert comm.allreduce(zero) is zero and zero == half
    assert comm.allgather(bytearray([comm.rank])).tolist() == [[r] for r in range(comm.size)]


class Subclass(np.ndarray):
    pass


def mapped(comm):
    """Return an array in a page mapped by the program."""
    page = mmap.mmap(-1, 4096)
    x = np.frombuffer(page, "f8")
    x[:2] = comm.rank, 1
    return x


def empty(comm):
    for x in (np.zeros(0, "f4"), np.zeros((3, 0)), np.zeros((0, 3))[:, ::-1], bytearray(), array.array("f"),
              memoryview(bytearray()).cast("f")):
        assert comm.allreduce(x) is x and comm.broadcast(x) is x
        assert np.asarray(comm.allgather(x)).size == 0
        with comm.plan("allreduce", x) as plan:
            plan.run()
            plan.start(x).wait()


def scalars(comm):
    """The sum of NumPy scalars is a scalar, and the inputs do not change."""
    n = comm.size
    for kind in (np.float64, np.float32, np.float16, np.int8, np.int64, np.uint16):
        x = kind(comm.rank + 1)
        for op, right in (("sum", n * (n + 1) / 2), ("max", n)):
            y = comm.allreduce(x, op=op)
            assert type(y) is kind and y == right and x == comm.rank + 1, (kind, y)
        assert type(comm.broadcast(x, root=1)) is kind and comm.broadcast(x, root=1) == 2
        y = comm.reduce(x, root=1)
        assert (y is None) if comm.rank != 1 else (type(y) is kind and y == n * (n + 1) / 2)
        assert comm.allgather(x).tolist() == list(range(1, n + 1)) and comm.allgather(x).dtype == kind
        out = np.zeros((), kind)
        assert comm.allreduce(x, out) is out and out == n * (n + 1) / 2
        plan = comm.plan("allreduce", x, out)  # the plan keeps a copy of x
        del x
        junk = [np.full((), 9, kind) for _ in range(100)]
        out[...] = 0
        plan.run()
        assert out == n * (n + 1) / 2 and junk
        plan.close()
    losses = np.array([1.0, 3.0])
    assert comm.allreduce(losses.mean() + comm.rank, op="mean") == 2 + (n - 1) / 2
    for x, words in ((np.complex64(1), "imaginary"), (np.str_("a"), "summed"), (np.longdouble(1), "float64"),
                     (np.datetime64(1, "s"), "summed"), (np.zeros(1, "i4,f4")[0], "one by one")):
        refused(TypeError, words, comm.allreduce, x)
    refused(ValueError, "cannot be cut", comm.alltoall, np.float64(1))


def lengths(comm):
    """Every collective rejects arrays that are too short, too long or of another type, in calls, plans and starts."""
    n, r = comm.size, comm.rank
    blocks = {"allreduce": (1, 1), "reduce": (1, 1), "broadcast": (1, 1), "scan": (1, 1), "exscan": (1, 1),
              "allgather": (1, n), "reduce_scatter": (n, 1), "gather": (1, n), "scatter": (n, 1), "alltoall": (n, n)}
    for name, (given, got) in blocks.items():
        for root in (0, n - 1):
            options = {"root": root} if name in ("reduce", "broadcast", "gather", "scatter") else {}
            sends = name not in ("broadcast", "scatter") or r == root
            receives = name not in ("reduce", "gather") or r == root
            x, out = guarded(6 * given)[0], guarded(6 * got)[0]
            call = getattr(comm, name, None) if name in ("allgather", "reduce_scatter", "alltoall", "allreduce") else None
            with comm.plan(name, x, out, **options) as plan:
                wrong = []
                if sends:
                    wrong += [(x[:-1], out), (x.astype("f8"), out), (x.view("i4"), out), (np.zeros(6 * given + 1, "f4"), out)]
                if receives:
                    wrong += [(x, out[:-1]), (x, out[:0]), (x, out.astype("f8")), (x, np.zeros(6 * got * n + 6, "f4"))]
                for a, b in wrong:
                    refused(ValueError, "", plan.start, a, b)
                    if sends and receives:
                        refused(ValueError, "", comm.plan, name, a, b, **options)
                    if call:
                        refused(ValueError, "", call, a, b)
                refused(ValueError, "", plan.start, np.zeros(6 * n * max(given, got) + 1, "f4"))
                plan.run()  # rejected calls have changed nothing
                plan.start(x.copy(), out.copy()).wait()
    for name in ("alltoall", "reduce_scatter", "allgather"):
        refused(ValueError, "cannot be cut", comm.plan, name, np.zeros(n + 1, "f4"))
    x = np.ones(4 * n)
    refused(tb.Invalid, "overlap", comm.allreduce, x[1:], x[:-1])
    refused(tb.Invalid, "overlap", comm.alltoall, x[:-n], x[n:])
    refused(tb.Invalid, "overlap", comm.plan("allreduce", x[1:], x[:-1]).run)
    for wrong in (-1, n, 2**32, 2**70):
        refused(ValueError, "root", comm.broadcast, x, root=wrong)
    refused(ValueError, "chunk", comm.plan, "allreduce", x, chunk=-1)
    refused(ValueError, "op", comm.allreduce, x, op=2**32)
    refused(ValueError, "NUL character", comm.plan, "allreduce", x, name="a\0b")
    with comm.plan("allreduce", np.ones(9, "f4"), codec="topk:k=1", feed="backward") as plan:
        refused(ValueError, "first", plan.ready, -1, 1)
        refused(ValueError, "count", plan.ready, 0, -1)
        refused(ValueError, "first", plan.residual, 10)
        refused(ValueError, "count", plan.residual, 5, 5)
        refused(ValueError, "number of elements", plan.set_residual, np.zeros(9, "f4"), 1)
        refused(TypeError, "bytes", plan.load_state_dict, {"of": "tributary plan", "bytes": "text"})


def results(comm):
    """Plans of every collective, in place or not and with counts, write the right result and nothing after it."""
    n, r = comm.size, comm.rank
    counts = [2 * q + 1 for q in range(n)]
    starts = np.cumsum([0, *counts])

    def check(name, x, out, right, **options):
        got, behind = guarded(len(out) if out is not None else len(x))
        got[:] = out if out is not None else x
        with comm.plan(name, *((x, got) if out is not None else (got,)), **options) as plan:
            plan.run()
        assert right is None or (got[: len(right)] == right).all(), (name, got, right)
        assert (behind == GUARD).all(), name

    f = lambda *parts: np.concatenate([np.asarray(p, "f4").ravel() for p in parts])  # noqa: E731
    ones = np.ones(3, "f4")
    every = f(*[ones * q for q in range(n)])
    check("allgather", ones * r, np.zeros(3 * n), every)
    mine = np.zeros(3 * n, "f4")
    mine[3 * r: 3 * r + 3] = r
    check("allgather", mine, None, every)
    check("alltoall", f(*[ones * (q + 10 * r) for q in range(n)]), np.zeros(3 * n),
          f(*[ones * (r + 10 * q) for q in range(n)]))
    check("alltoall", f(*[ones * (q + 10 * r) for q in range(n)]), None, f(*[ones * (r + 10 * q) for q in range(n)]))
    check("reduce_scatter", every, np.zeros(3), ones * r * n)
    check("gather", ones * r, np.zeros(3 * n), every if r == 1 else np.zeros(3 * n), root=1)
    check("gather", mine if r == 1 else ones * r, None, every if r == 1 else ones * r, root=1)
    check("scatter", every, np.zeros(3), ones * r, root=1)
    check("scatter", every if r == 1 else np.zeros(3), None, None if r == 1 else ones * r, root=1)
    check("broadcast", ones * r, np.zeros(3), ones, root=1)
    check("reduce", ones, np.zeros(3), ones * n if r == 1 else np.zeros(3), root=1)
    check("scan", ones, np.zeros(3), ones * (r + 1))
    uneven = f(*[np.full(c, q) for q, c in enumerate(counts)])
    check("allgather", np.full(counts[r], r, "f4"), np.zeros(len(uneven)), uneven, recv_counts=counts)
    check("reduce_scatter", uneven, np.zeros(counts[r]), np.full(counts[r], r * n), send_counts=counts)
    check("gather", np.full(counts[r], r, "f4"), np.zeros(len(uneven)), uneven if r == 1 else None, root=1,
          recv_counts=counts)
    check("scatter", uneven, np.zeros(counts[r]), np.full(counts[r], r), root=1, send_counts=counts)
    check("alltoall", uneven, np.zeros(counts[r] * n), np.full(counts[r] * n, r), send_counts=counts,
          recv_counts=[counts[r]] * n)
    assert starts[-1] == len(uneven)
    if r != 1:  # a rank's unused arguments are not checked
        comm.plan("scatter", None, np.zeros(3, "f4"), root=1).run()
        comm.plan("gather", ones, None, root=1).run()
    else:
        comm.plan("scatter", every, np.zeros(3, "f4"), root=1).run()
        comm.plan("gather", ones, np.zeros(3 * n, "f4"), root=1).run()
    x = np.zeros(9, "f4")
    refused(ValueError, "takes recv_counts", comm.plan, "allgather", x, x.copy(), send_counts=counts)
    refused(ValueError, "takes no counts", comm.plan, "allreduce", x, send_counts=counts)
    refused(ValueError, "counts for", comm.plan, "allgather", x, x.copy(), recv_counts=[1] * (n + 1))
    refused(ValueError, "send_counts is -1", comm.plan, "reduce_scatter", x, x.copy(), send_counts=[-1] * n)
    refused(ValueError, "elements", comm.plan, "allgather", x, x.copy(), recv_counts=counts)


def options(comm):
    n = comm.size
    x = np.array([comm.rank, 100.0 * comm.rank])
    clipped = sum(min(100 * q, 50) for q in range(n)) / n
    assert comm.allreduce(x.copy(), op="clipped-mean", parameter=50)[1] == clipped
    got = comm.reduce(x.copy(), op="clipped-mean", parameter=50, root=1)
    assert got is None or got[1] == clipped
    assert comm.reduce_scatter(np.repeat(x, n), op="clipped-mean", parameter=50).size == 2
    assert comm.allreduce(x[1], op="clipped-mean", parameter=50) == clipped
    y = np.zeros(2)
    with comm.plan("allreduce", x, y, op="trimmed-mean", parameter=0.49) as plan:
        plan.run()
        assert n != 3 or y[1] == 100
    for call in (comm.allreduce, comm.reduce, comm.reduce_scatter):
        refused(ValueError, "pass it as parameter=", call, np.ones(n), op="clipped-mean")
        refused(ValueError, "trimmed-mean", call, np.ones(n), parameter=0.1)
        refused(TypeError, "codec= is not for a blocking call", call, np.ones(n), codec="int8")
    refused(ValueError, "pass it as parameter=", comm.plan, "allreduce", x, op="clipped-mean")
    z = np.ones(5, "f4")
    for step in range(1, 4):
        assert comm.allreduce(z, name="layer")[0] == n**step
    refused(tb.Invalid, "layer", comm.allreduce, np.ones(6, "f4"), name="layer")
    with comm.plan("allreduce", np.ones(4), y4 := np.zeros(4), prescale=2, postscale=0.5, quorum="all") as plan:
        plan.run()
        assert (y4 == n).all() and plan.absent() == [0] * n
        plan.set_scale(4, 0.5)
        plan.run()
        assert (y4 == 2 * n).all()
    with comm.plan("allreduce", np.full(2, comm.rank + 1.0), y, op="mean", prescale=comm.rank + 1, weighted=True) as plan:
        plan.run()
        assert np.allclose(y, sum((q + 1) ** 2 for q in range(n)) / sum(range(1, n + 1))), y


def kept(comm, beside):
    """Memory of a started plan cannot be resized or freed. Rank 1 starts after rank 0 has tried to."""
    a, b, c = array.array("d", [1, 2]), bytearray(16), np.ones(2)
    for x, resize in ((a, lambda: a.append(1)), (b, lambda: b.extend(b"more")),
                      (c, lambda: c.resize(9000, refcheck=False))):
        plan = comm.plan("allreduce", x)
        if comm.rank == 0:
            plan.start()
            refused((BufferError, ValueError), "", resize)
            refused(tb.Error, "wait", plan.start, x)
            refused(ValueError, "elements", plan.start, np.ones(7, "f4"))
            refused(tb.Error, "wait", plan.close)
        beside.barrier()
        if comm.rank != 0:
            plan.start()
        plan.wait()
        if x is not c:
            resize()  # the caller may resize it again
            refused(ValueError, "elements", plan.start)
        plan.close()
    forgotten(comm, beside)


def forgotten(comm, beside):
    """An array and its plan stay alive during an operation if the program drops both."""
    x = np.ones(100000)
    there = weakref.ref(x)
    plan = comm.plan("allreduce", x)
    if comm.rank == 0:
        plan.start()
        del plan, x
        gc.collect()
        assert there() is not None
    beside.barrier()
    if comm.rank != 0:
        plan.run()
        plan.close()
        assert x[0] == comm.size
    else:
        comm.barrier()
        comm.plan("allreduce", np.ones(1)).close()
        assert there() is None
        return
    comm.barrier()


def copies(comm):
    with comm.plan("allreduce", np.ones(3)) as plan:
        for x in (plan, comm, [plan], {"plan": plan}):
            for copied in (copy.copy, copy.deepcopy, pickle.dumps):
                if copied is not copy.copy or x in (plan, comm):
                    refused(TypeError, "belongs to this process", copied, x)


async def awaited(comm):
    """Each await is of its own start, and a start that was refused has none."""
    x = np.ones(1000)
    with comm.plan("allreduce", x) as plan:
        for _ in range(20):
            plan.start()
            plan.wait()
            plan.start()  # the loop has not yet been notified of the first end
            refused((ValueError, tb.Error), "", plan.start, np.ones(3))
            await plan
            assert plan.test()
            x[:] = 1
        refused(ValueError, "elements", plan.start, np.ones(3))
        await asyncio.wait_for(wait_for(plan), 20)


async def wait_for(plan):
    await plan


async def cancelled(comm, beside):
    """A task that is cancelled ends no other wait for the plan, nor a later one."""
    x = np.ones(1000)
    with comm.plan("allreduce", x) as plan:
        if comm.rank == 0:
            plan.start()
            tasks = [asyncio.create_task(wait_for(plan)) for _ in range(2)]
            await asyncio.sleep(0)
            tasks[0].cancel()
            await asyncio.wait(tasks[:1])
            assert tasks[0].cancelled() and not tasks[1].done()
        beside.barrier()
        if comm.rank != 0:
            plan.start()
        else:
            await tasks[1]
        await plan
        assert x[0] == comm.size and plan.test()


async def dropped(comm, beside):
    """The library tells the end of starts whose plans nobody knows any more."""
    if comm.rank == 0:
        for _ in range(8):
            comm.plan("allreduce", np.ones(1000)).start()
        gc.collect()
        others = [ctypes.CFUNCTYPE(None)(gc.collect) for _ in range(8)]  # reuse the memory of their callbacks
    beside.barrier()
    if comm.rank != 0:
        plans = [comm.plan("allreduce", np.ones(1000)) for _ in range(8)]
        for plan in plans:
            await plan.start()
            plan.close()
    comm.barrier()
    if comm.rank == 0:
        assert len(others) == 8


def exchanges():
    """The caller's all-gather returns too few or too many bytes."""
    for returned in (lambda b: [b], lambda b: [b] * 3, lambda b: [b, b + b"more"], lambda b: [b, b""]):
        refused(ValueError, "bytes of each of 2 ranks", tb.init, 0, 2, allgather=returned)
    refused(ValueError, "rank and size", tb.init, allgather=lambda b: [b])
    for rank in (-1, 2**31):
        refused(ValueError, "rank is", tb.init, rank, 2, "127.0.0.1:1")


def given_back(comm, beside):
    """The communicator's memory that the program drops while a plan runs is freed after the run."""
    before = comm.stats()["shared_bytes"]
    a, x = comm.empty(1 << 20), np.ones(3)
    plan = comm.plan("allreduce", x)
    if comm.rank == 0:
        plan.start()
    del a
    beside.barrier()
    if comm.rank != 0:
        plan.start()
    plan.wait()
    plan.close()
    comm.plan("allreduce", x).close()
    assert comm.stats()["shared_bytes"] <= before + (1 << 20), comm.stats()


def closes(world):
    """A communicator closes its plans; a closed one holds no references."""
    comm = world.split(0)
    there = weakref.ref(comm)
    plans = [comm.plan("allreduce", np.ones(3)) for _ in range(3)]
    plans[0].run()
    plans.pop()
    comm.close()
    refused(ValueError, "closed", plans[0].start)
    del comm, plans
    gc.collect()
    assert there() is None


exchanges()
with tb.init() as world:
    with world.split(0) as second:
        kinds(world)
        empty(world)
        scalars(world)
        lengths(world)
        results(world)
        options(world)
        kept(world, second)
        given_back(world, second)
        copies(world)
        asyncio.run(awaited(world))
        asyncio.run(cancelled(world, second))
        asyncio.run(dropped(world, second))
    closes(world)
print("all right", file=sys.stdout)
