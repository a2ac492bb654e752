# SPDX-License-Identifier: BSD-3-Clause
"""process_group.py WAY FOLDER - one rank: torch.distributed on the backend tributary.

all     each collective; DDP and ZeroRedundancyOptimizer compared with Gloo; groups; futures
lost    the last rank first arrives too late, then kills itself: the errors on the other ranks name it
"""
import ctypes
import os
import signal
import sys
import threading
import time
import warnings
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP

import as_gloo
import collectives
import tributary as tb
import tributary.torch  # the backend
import ways_of_ddp

torch.set_num_threads(1)
warnings.simplefilter("ignore")
RANK, SIZE = int(os.environ["TRIB_RANK"]), int(os.environ["TRIB_SIZE"])


def raises(kind, words, call, *arguments, **options):
    try:
        call(*arguments, **options)
    except kind as why:
        assert words in str(why), why
        return why
    raise AssertionError(f"no {kind} was raised: {words}")


def mine(*shape, dtype=torch.float32, rank=RANK):
    count = int(torch.tensor(shape).prod())
    return (torch.arange(count).reshape(shape) + 100 * rank).to(dtype)


def total(*shape, dtype=torch.float32):
    return sum(mine(*shape, dtype=dtype, rank=r) for r in range(SIZE))


def reductions():
    for dtype in (torch.float32, torch.float64, torch.int32, torch.int64, torch.int16):
        x = mine(3, 5, dtype=dtype)
        dist.all_reduce(x)
        assert torch.equal(x, total(3, 5, dtype=dtype)), dtype
    for op, combined in ((dist.ReduceOp.MAX, 100.0 * (SIZE - 1)), (dist.ReduceOp.MIN, 0.0),
                         (dist.ReduceOp.AVG, 50.0 * (SIZE - 1))):
        x = mine(4)
        dist.all_reduce(x, op)
        assert torch.equal(x, mine(4, rank=0) + combined), op
    x = torch.tensor([1 << RANK | 64])
    dist.all_reduce(x, dist.ReduceOp.BOR)
    assert int(x) == (1 << SIZE) - 1 | 64
    x = mine(4, 6).t()  # not contiguous
    dist.all_reduce(x)
    assert torch.equal(x, total(4, 6).t())
    x = torch.complex(mine(4), mine(4) + 1)
    dist.all_reduce(x)
    assert torch.equal(x, torch.complex(total(4), total(4) + SIZE))
    several = [mine(3), mine(2, 2)]
    dist.all_reduce_coalesced(several)
    assert torch.equal(several[0], total(3)) and torch.equal(several[1], total(2, 2))
    x = mine(9)
    dist.reduce(x, SIZE - 1)
    assert torch.equal(x, total(9) if RANK == SIZE - 1 else mine(9))
    out = torch.empty(2, 3)
    dist.reduce_scatter(out, [mine(2, 3) + k for k in range(SIZE)])
    assert torch.equal(out, total(2, 3) + SIZE * RANK)
    dist.reduce_scatter_tensor(out, torch.cat([mine(2, 3) + k for k in range(SIZE)]))
    assert torch.equal(out, total(2, 3) + SIZE * RANK)


def moves():
    x = mine(5).bool() if RANK else torch.tensor([True, False, True, True, False])
    dist.broadcast(x, 0)
    assert x.tolist() == [True, False, True, True, False]
    outs = [torch.empty(2, 2) for _ in range(SIZE)]
    dist.all_gather(outs, mine(2, 2))
    assert all(torch.equal(o, mine(2, 2, rank=r)) for r, o in enumerate(outs))
    out = torch.empty(SIZE * 2, 3)
    dist.all_gather_into_tensor(out, mine(2, 3))
    assert torch.equal(out, torch.cat([mine(2, 3, rank=r) for r in range(SIZE)]))
    objects = [None] * SIZE
    dist.all_gather_object(objects, {"rank": RANK, "text": "x" * (10 + RANK)})
    assert [o["rank"] for o in objects] == list(range(SIZE))
    outs = [torch.empty(3) for _ in range(SIZE)] if RANK == 1 else None
    dist.gather(mine(3), outs, dst=1)
    assert RANK != 1 or all(torch.equal(o, mine(3, rank=r)) for r, o in enumerate(outs))
    out = torch.empty(3)
    dist.scatter(out, [mine(3, rank=r) for r in range(SIZE)] if RANK == 0 else None, src=0)
    assert torch.equal(out, mine(3))
    out, x = torch.empty(2 * SIZE), mine(2 * SIZE)
    dist.all_to_all_single(out, x)
    assert torch.equal(out.reshape(SIZE, 2)[SIZE - 1],
                       mine(2 * SIZE, rank=SIZE - 1).reshape(SIZE, 2)[RANK])
    mine_of = [RANK + k for k in range(SIZE)]  # rows to rank k
    x = torch.full((sum(mine_of), 2), float(RANK))
    out = torch.empty(sum(mine_of), 2)
    dist.all_to_all_single(out, x, mine_of, mine_of)
    assert out[:, 0].tolist() == [float(k) for k in range(SIZE) for _ in range(RANK + k)]
    outs = [torch.empty(1 + k + RANK) for k in range(SIZE)]
    dist.all_to_all(outs, [torch.full((1 + k + RANK,), float(RANK)) for k in range(SIZE)])
    assert all((o == k).all() for k, o in enumerate(outs))
    dist.barrier()


def messages():
    to, source = (RANK + 1) % SIZE, (RANK - 1) % SIZE
    got = torch.empty(3000)
    works = [dist.irecv(got, source), dist.isend(mine(3000), to)]
    x = torch.ones(1)
    dist.all_reduce(x)  # a pending receive does not block a sum
    for work in works:
        work.wait()
    assert torch.equal(got, mine(3000, rank=source))
    if RANK == 0:
        dist.send(torch.tensor([7.0]), 1, tag=5)
    elif RANK == 1:
        x = torch.zeros(1)
        dist.recv(x, 0, tag=5)
        assert float(x) == 7
    dist.barrier()


def unpaced():
    """Starting many collectives does not block: rank 0 then sends a message, and rank 1 starts none before it arrives."""
    def under_way(call):
        if RANK == 1:
            dist.recv(torch.ones(1), 0, tag=1)
        works = call()
        if RANK == 0:
            dist.send(torch.ones(1), 1, tag=1)
        for work in works:
            work.wait()

    xs = [torch.ones(2) for _ in range(9)] + [torch.ones(k) for k in range(3, 70)]
    under_way(lambda: [dist.all_reduce(x, async_op=True) for x in xs] + [dist.barrier(async_op=True) for _ in range(5)])
    assert all(bool((x == SIZE).all()) for x in xs)
    outs = [[[torch.zeros(1) for _ in range(SIZE)] for _ in range(5)] for _ in range(2)]
    under_way(lambda: [dist.all_gather(outs[0][k], torch.full((1,), float(RANK + k)), async_op=True) for k in range(5)] +
              [dist.all_to_all(outs[1][k], [torch.full((1,), float(RANK + k))] * SIZE, async_op=True) for k in range(5)])
    assert all(float(x) == r + k for part in outs for k, out in enumerate(part) for r, x in enumerate(out))
    wide = [[torch.zeros(3) for _ in range(6)] for _ in range(SIZE)]  # a work with more steps than there are plans
    under_way(lambda: [dist.group.WORLD.allgather_coalesced(wide, [torch.full((3,), 10.0 * RANK + k) for k in range(6)])])
    assert all(float(x[0]) == 10 * r + k for r, out in enumerate(wide) for k, x in enumerate(out))
    rows = [torch.sparse_coo_tensor([[0, RANK + 1]], torch.ones(2), (SIZE + 1,)) for _ in range(3)]
    x = torch.ones(1)  # its sum starts after the steps that a sparse one starts once it knows the lengths
    under_way(lambda: [dist.all_reduce(r, async_op=True) for r in rows] + [dist.all_reduce(x, async_op=True)])
    assert float(x) == SIZE and all(r.to_dense().tolist() == [float(SIZE)] + [1.0] * SIZE for r in rows)
    many = [torch.full((1,), float(k)) for k in range(40)]
    under_way(lambda: [dist.isend(m, 1) for m in many] if RANK == 0 else
              [dist.irecv(m, 0) for m in many] if RANK == 1 else [])
    assert [float(m) for m in many] == list(range(40))


def callbacks():
    """More callbacks than the group's initial threads wait for the result of a later all-reduce."""
    gate, held = threading.Event(), []

    def wait(future):
        if threading.current_thread() is not threading.main_thread():  # it is, if the sum ended first
            held.append(gate.wait())
        return future.value()

    if RANK == 1:
        dist.recv(torch.ones(1), 0)
    waiting = [dist.all_reduce(torch.ones(1), async_op=True).get_future().then(wait) for _ in range(20)]
    if RANK == 0:
        dist.send(torch.ones(1), 1)
    for _ in range(3):
        dist.all_reduce(torch.ones(1))
    gate.set()
    assert all(float(future.wait()[0]) == SIZE for future in waiting)
    assert RANK != 0 or len(held) == 20


def futures():
    """A callback of a future waits for another all-reduce; many all-reduces run concurrently."""
    x = torch.ones(4)
    first = dist.all_reduce(x, async_op=True).get_future()
    chained = first.then(lambda f: dist.all_reduce(f.value()[0], async_op=True).get_future().wait())
    assert torch.equal(chained.wait()[0], torch.full((4,), float(SIZE * SIZE)))
    many = [torch.full((k + 1,), float(RANK + k)) for k in range(90)]
    works = [dist.all_reduce(m, async_op=True) for m in many]
    for k, (work, m) in enumerate(zip(works, many)):
        work.wait()
        assert work.is_completed()
        assert torch.equal(m, torch.full((k + 1,), float(sum(r + k for r in range(SIZE)))))
    for _ in range(100):  # a completed work has its value
        work = dist.all_reduce(torch.ones(1), async_op=True)
        while not work.is_completed():
            pass
        assert float(work.get_future().value()[0]) == SIZE


def groups():
    even = dist.new_group(list(range(0, SIZE, 2)), backend="tributary")
    pairs = [dist.new_group([r, (r + 1) % SIZE], backend="tributary") for r in range(SIZE - 1)]
    x = mine(6)
    dist.all_reduce(x, group=even)
    assert torch.equal(x, sum(mine(6, rank=r) for r in range(0, SIZE, 2)) if RANK % 2 == 0
                       else mine(6))
    for r, pair in enumerate(pairs):
        if RANK in (r, r + 1):
            x = mine(6)
            dist.all_reduce(x, group=pair)
            assert torch.equal(x, mine(6, rank=r) + mine(6, rank=r + 1))
    x = torch.ones(2)
    threads = [threading.Thread(target=dist.all_reduce, args=(x[k: k + 1],), kwargs={"group": g})
               for k, g in enumerate((even, None)) if g is None or RANK % 2 == 0]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert float(x[1]) == SIZE
    dist.destroy_process_group(even)


def losses(group, zero=False):
    torch.manual_seed(5)
    model = DDP(nn.Sequential(nn.Linear(30, 200), nn.BatchNorm1d(200), nn.ReLU(),
                              nn.Linear(200, 50), nn.ReLU(), nn.Linear(50, 10)),
                process_group=group, bucket_cap_mb=0.02)
    optimizer = (ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam,
                                         process_group=group, lr=0.01) if zero
                 else torch.optim.Adam(model.parameters(), lr=0.01))
    curve = []
    g = torch.Generator().manual_seed(RANK)
    for _ in range(8):
        x, y = torch.randn(16, 30, generator=g), torch.randint(10, (16,), generator=g)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        curve.append(float(loss))
    return torch.tensor(curve)


def training():
    gloo = dist.new_group(backend="gloo")
    for zero in (False, True):
        ours, theirs = losses(None, zero), losses(gloo, zero)
        if SIZE == 2:  # more are added in another order than Gloo's
            assert torch.equal(ours, theirs), (ours, theirs)
        assert torch.allclose(ours, theirs, atol=1e-5), (ours, theirs)
    as_gloo.check(gloo)
    ways_of_ddp.check(gloo)


def refusals():
    raises(RuntimeError, "sparse=False", dist.broadcast,
           torch.ones(3).to_sparse(), 0)
    raises(RuntimeError, "of the same length", dist.all_gather,
           [torch.ones(2) for _ in range(SIZE)], torch.ones(3))
    raises(RuntimeError, "recvAnysource", dist.recv, torch.ones(1))
    raises(RuntimeError, "PREMUL_SUM", dist.all_reduce, torch.ones(1),
           dist._make_nccl_premul_sum(2.0))
    why = raises(RuntimeError, "", dist.all_reduce, torch.ones(3), dist.ReduceOp.BAND)
    assert isinstance(why, tb.Invalid), type(why)
    outs = [torch.empty(SIZE, dtype=torch.int32) for _ in range(SIZE)]
    raises(RuntimeError, "of the same type", dist.group.WORLD.alltoall, outs, [torch.ones(SIZE)] * SIZE)
    raises(RuntimeError, "not one on meta", dist.all_to_all_single,
           torch.ones(SIZE, device="meta"), torch.ones(SIZE, device="meta"))


def interrupted(call, *arguments, **options):
    """Check that SIGINT ends a call within 200 ms; on a busy machine, in one of 10 tries."""
    for _ in range(10):
        threading.Timer(0.06, os.kill, (os.getpid(), signal.SIGINT)).start()
        began = time.monotonic()
        raises(KeyboardInterrupt, "", call, *arguments, **options)
        if time.monotonic() - began < 0.26:
            return
    raise AssertionError("each took more than 200 ms")


def stopped():
    """The last rank stops itself by SIGSTOP. A rank that waits for it gets Timeout after the limit of its wait, can be
    interrupted, and completes its operations after SIGCONT."""
    pids = [None] * SIZE
    dist.all_gather_object(pids, os.getpid())
    dist.barrier()
    works = []
    if RANK == 0:
        works = [dist.all_reduce(torch.ones(2), async_op=True), dist.irecv(torch.ones(1), SIZE - 1)]
        for work in works:
            why = raises(tb.Timeout, "within 60 ms", work.wait, timedelta(milliseconds=60))
            assert f"rank {SIZE - 1}" in str(why), why
        interrupted(works[0].wait)
        works += [dist.all_reduce(torch.ones(2), async_op=True) for _ in range(4)]
        interrupted(works[-1].wait)  # of the fifth sum, which starts after the first has ended
        os.kill(pids[-1], signal.SIGCONT)
    elif RANK == SIZE - 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    if RANK != 0:
        works = [dist.all_reduce(torch.ones(2), async_op=True) for _ in range(5)]
    if RANK == SIZE - 1:
        works.append(dist.isend(torch.ones(1), 0))
    for work in works:
        work.wait()


def no_second_start():
    """If the second of two all-gathers fails to start, the first completes and its memory stays valid until then."""
    fail = getattr(ctypes.CDLL(None), "fail_start", None)
    if fail is None:
        return
    ours = dist.group.WORLD
    for _ in range(5):  # a plan that stayed busy would stop the fifth
        outs = [[torch.empty(30000), torch.empty(1)] for _ in range(SIZE)]
        fail(2)
        raises(RuntimeError, "", lambda: ours.allgather_coalesced(outs, [torch.ones(30000), torch.ones(1)]).wait())
    ours.allgather_coalesced(outs, [torch.ones(30000), torch.ones(1)]).wait()
    assert all(bool(o.all()) for out in outs for o in out)


def two_threads():
    """A thread that waits for a message does not delay other messages."""
    x = torch.zeros(1)
    if RANK == 0:
        first = dist.irecv(x, 1)
        thread = threading.Thread(target=first.wait)
        thread.start()
        time.sleep(0.05)
        assert not first.is_completed()
        dist.send(torch.ones(1), 1)
        thread.join()
    elif RANK == 1:
        dist.recv(x, 0)
        dist.send(x, 0)
    assert float(x) == (RANK < 2)


def other_types():
    """Ranks whose tensors have different types of the same size get an error."""
    mine = torch.ones(4, dtype=torch.int32 if RANK else torch.float32)
    for call in (lambda g: dist.broadcast(mine, 0, group=g),
                 lambda g: dist.all_gather([torch.empty_like(mine) for _ in range(SIZE)], mine, group=g),
                 lambda g: dist.all_to_all_single(torch.ones(SIZE).to(mine.dtype), torch.ones(SIZE).to(mine.dtype), group=g)):
        try:
            call(dist.new_group())
        except RuntimeError as why:
            assert isinstance(why, (tb.Mismatch, tb.Aborted)), repr(why)
        else:
            assert RANK == 0  # it may have sent everything before the error arrives
    group = dist.new_group()
    if RANK == 0:
        dist.isend(mine, 1, group=group)
    elif RANK == 1:
        why = raises(RuntimeError, "f32", dist.recv, mine, 0, group=group)
        assert isinstance(why, tb.Mismatch), repr(why)
    dist.barrier()


def odd_memory():
    """The memory of a tensor is not as its metadata says, or is replaced during an operation."""
    cut = torch.ones(100000)
    cut.storage().resize_(40)
    for x, words in ((cut, "resized to 160 bytes"), (torch.eye(3).to_sparse_csr(), "SparseCsr"),
                     (torch.ones(3).to_mkldnn(), "Mkldnn")):
        for call in (dist.all_reduce, lambda x: dist.broadcast(x, 0), lambda x: dist.isend(x, (RANK + 1) % SIZE)):
            raises(RuntimeError, words, call, x)
    raises(RuntimeError, "a multiple of the number of ranks", dist.all_to_all_single, torch.ones(2 * SIZE - 1),
           torch.ones(2 * SIZE - 1))
    group = dist.new_group()
    if RANK != 0:
        dist.barrier()
    x = torch.ones(100000)
    work = dist.all_reduce(x, group=group, async_op=True)
    if RANK == 0:
        x.set_(torch.zeros(3))
        others = [torch.zeros(100000) for _ in range(4)]
        dist.barrier()
    work.wait()
    assert RANK or not any(bool(o.any()) for o in others)


def outlived():
    """A group can be destroyed while its works still exist, and a callback may hold its last reference."""
    group = dist.new_group()
    to, source = (RANK + 1) % SIZE, (RANK - 1) % SIZE
    works = [dist.irecv(torch.ones(1), source, group=group), dist.isend(torch.ones(1), to, group=group)]
    for k in range(2):
        works[k].wait()
    works = works if RANK == 0 else []
    dist.destroy_process_group(group)
    del group
    dist.barrier()  # all ranks have left
    assert all(work.is_completed() for work in works)
    group = dist.new_group()
    dist.all_reduce(torch.ones(1), group=group)
    before = len(os.listdir("/proc/self/task"))
    dist.destroy_process_group(group)
    del group
    assert len(os.listdir("/proc/self/task")) < before  # the group has ended, with its threads
    group, left = dist.new_group(), threading.Event()

    def last(future, held=group):
        if threading.current_thread() is not threading.main_thread():
            left.wait()
        del held
        return future.value()

    future = dist.all_reduce(torch.ones(1), group=group, async_op=True).get_future().then(last)
    dist.destroy_process_group(group)
    del group, last
    left.set()
    assert float(future.wait()[0]) == SIZE


def gradients():
    """Results can be written to parameters and to tensors of inference mode, without autograd history."""
    p = nn.Parameter(torch.ones(3, 2).t())
    several = [nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(2))]
    dist.all_reduce(p)
    dist.all_reduce_coalesced(several)
    outs = [nn.Parameter(torch.zeros(2, 3)) for _ in range(SIZE)]
    dist.all_gather(outs, p)
    for x in (p, *several, *outs):
        assert x.requires_grad and x.is_leaf and bool((x == SIZE).all()), x
    with torch.inference_mode():
        outs = [torch.zeros(2) for _ in range(SIZE)]
        dist.all_gather(outs, torch.ones(2))
        x = torch.ones(3, 2).t()
        dist.all_reduce(x)
    assert bool((x == SIZE).all()) and all(bool(o.all()) for o in outs)


def join(folder, name="meet"):
    dist.init_process_group("tributary", init_method=f"file://{folder}/{name}", rank=RANK,
                            world_size=SIZE, timeout=timedelta(seconds=60))


def everything(folder):
    join(folder)
    for check in (reductions, moves, messages, unpaced, callbacks, futures, groups, training, refusals, two_threads,
                  other_types, odd_memory, outlived, gradients, stopped,
                  no_second_start, collectives.short):
        check()
    dist.destroy_process_group()


def late():
    """The timeout of a group also limits its rendezvous: the last rank arrives after it."""
    group = dist.new_group(timeout=timedelta(seconds=4))
    if RANK == SIZE - 1:
        time.sleep(6)
        return
    why = raises(RuntimeError, f"of rank {SIZE - 1} ", dist.all_reduce, torch.ones(3), group=group)
    assert isinstance(why, tb.Timeout) and why.scope == "comm", repr(why)


def lost(folder):
    join(folder)
    dist.all_reduce(torch.ones(3))
    late()
    dist.destroy_process_group()
    join(folder, name="again")
    model = DDP(nn.Linear(10, 10))
    for step in range(100):
        if step == 3 and RANK == SIZE - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            model(torch.ones(2, 10)).sum().backward()
        except RuntimeError as why:
            assert f"rank {SIZE - 1} " in str(why) and "lost" in str(why), why
            return
    raise AssertionError("nothing was raised")


{"all": everything, "lost": lost}[sys.argv[1]](sys.argv[2])
print("all right")
sys.stdout.flush()
if sys.argv[1] != "all":
    os._exit(0)
