# SPDX-License-Identifier: BSD-3-Clause
"""as_gloo.py - checks of process_group.py for lists of tensors, sparse tensors and torch's profiler: results,
shapes and rejected arguments are the same as with Gloo."""
import torch
import torch.distributed as dist
from torch.autograd import profiler
from torch._C._distributed_c10d import (AllgatherOptions, AllreduceCoalescedOptions, AllreduceOptions,
                                        BroadcastOptions, ReduceOptions)

OPS = ("SUM", "PRODUCT", "MIN", "MAX")


def mine(i=0, *shape):
    generator = torch.Generator().manual_seed(10 * dist.get_rank() + i)
    return torch.rand(*(shape or (2, 3)), generator=generator)


def bits(i=0):
    return (mine(i) * 1000).to(torch.int32)


def reduced(group):
    """all_reduce of a list also reduces across the list: each tensor receives the result over all tensors."""
    for op in OPS:
        xs = [mine(i) for i in range(3)]
        options = AllreduceOptions()
        options.reduceOp = getattr(dist.ReduceOp, op)
        group.allreduce(xs, options).wait()
        yield op, xs
    for op in ("BAND", "BOR", "BXOR"):
        xs = [bits(i) for i in range(2)]
        options = AllreduceOptions()
        options.reduceOp = getattr(dist.ReduceOp, op)
        group.allreduce(xs, options).wait()
        yield op, xs
    xs = [mine(0, 4), mine(1, 2, 2)]
    group.allreduce_coalesced(xs, AllreduceCoalescedOptions()).wait()
    yield "coalesced", xs


def moved(group):
    for root in range(2):
        xs = [mine(0), mine(1), mine(2)]
        options = BroadcastOptions()
        options.rootRank, options.rootTensor = root, 1
        group.broadcast(xs, options).wait()
        yield f"broadcast {root}", xs
    outs = [[torch.zeros(2, 3) for _ in range(2 * group.size())] for _ in range(2)]
    work = group.allgather(outs, [mine(0), mine(1)])
    work.wait()
    yield "allgather", [x for out in outs for x in out]
    yield "its future", [x for out in work.get_future().value() for x in out]


def some(count, *row, like=torch.float32, of=40):
    """Return a sparse tensor with `count` elements, some with the same index."""
    where = (mine(7, count) * of).long().unsqueeze(0)
    return torch.sparse_coo_tensor(where, (mine(8, count, *row) * 100).to(like), (of, *row))


def sparse(group):
    for n, x in enumerate((some(5), some(0), some(3 + 30 * dist.get_rank(), 4), some(9, 2, 3),
                           some(4, like=torch.float64), some(4, like=torch.int64),
                           some(0 if dist.get_rank() else 7), some(6).to_dense().reshape(8, 5).to_sparse())):
        group.allreduce([x]).wait()
        yield f"sparse {n}", [x.is_sparse and x.to_dense()]
    xs = [some(3), some(5)]
    group.allreduce(xs).wait()
    yield "sparse list", [x.to_dense() for x in xs]


def refused(group):
    """Arguments that Gloo rejects are rejected."""
    def other(options, **values):
        for key, value in values.items():
            setattr(options, key, value)
        return options

    a, b = mine(0), mine(1)
    root = other(BroadcastOptions(), rootRank=0, rootTensor=2)
    for call in (lambda: group.allreduce([]), lambda: group.allreduce([a, mine(0, 4)]),
                 lambda: group.allreduce([a, a.double()]), lambda: group.allreduce([a, some(3)]),
                 lambda: group.broadcast([], BroadcastOptions()), lambda: group.broadcast([a, b], root),
                 lambda: group.broadcast([a, mine(0, 4)], BroadcastOptions()),
                 lambda: group.reduce([a, b], ReduceOptions()), lambda: group.allgather([], []),
                 lambda: group.allgather([[a] * group.size()] * 2, [a, b], AllgatherOptions()),
                 lambda: group.allgather([[a] * group.size()], [a, b]),
                 lambda: group.gather([[a] * group.size()], [a, b]),
                 lambda: group.scatter([a, b], [[a] * group.size()]),
                 lambda: group.allreduce([some(3)], other(AllreduceOptions(), reduceOp=dist.ReduceOp.MAX)),
                 lambda: group.broadcast([some(3)], BroadcastOptions()),
                 lambda: group.send([a, b], 1 - min(1, dist.get_rank()), 0)):
        try:
            call()
        except (RuntimeError, ValueError, TypeError):
            continue
        raise AssertionError(f"not refused by {group}: {call.__code__.co_firstlineno}, {call.__code__.co_consts}")


def shown(group, n):
    """Return the profiler's event names, without the backend's name, and the shapes of their inputs."""
    size = group.size()
    with profiler.profile(record_shapes=True) as seen:
        dist.all_reduce(mine(0), group=group)
        dist.broadcast(mine(0, 4), 0, group=group)
        dist.reduce(mine(0, 5), 0, group=group)
        dist.all_gather([mine(0, 6) for _ in range(size)], mine(0, 6), group=group)
        dist.gather(mine(0, 7), [mine(0, 7) for _ in range(size)] if n == 0 else None, 0, group=group)
        dist.scatter(mine(0, 8), [mine(0, 8) for _ in range(size)] if n == 0 else None, 0, group=group)
        dist.all_reduce_coalesced([mine(0, 3), mine(0, 2)], group=group)
        if n < 2:
            (dist.send if n == 0 else dist.recv)(mine(0, 9), 1 - n, group=group)
        dist.barrier(group)
    return sorted((e.name.split(":")[1], e.input_shapes) for e in seen.function_events
                  if e.name.startswith(("gloo:", "tributary:")) and "barrier" not in e.name)


def check(gloo):
    ours = dist.distributed_c10d._get_default_group()
    for way in (reduced, moved, sparse):
        for (name, got), (_, right) in zip(way(ours), way(gloo)):
            for a, b in zip(got, right):
                assert a.dtype == b.dtype and torch.allclose(a, b, rtol=1e-5), (way.__name__, name, a, b)
    strided = [mine(0), mine(1, 3, 2).t()]  # Gloo sums such tensors by position in memory
    right = strided[0] + strided[1]
    dist.all_reduce(right)
    ours.allreduce(strided).wait()
    assert all(torch.allclose(x, right) for x in strided), strided
    mean = some(5)
    right = mean.to_dense()
    dist.all_reduce(right)
    dist.all_reduce(mean, dist.ReduceOp.AVG)
    assert torch.allclose(mean.to_dense(), right / dist.get_world_size(), rtol=1e-5)
    refused(gloo)
    refused(ours)
    try:
        ours.allreduce([some(3, of=40 + dist.get_rank())]).wait()
        raise AssertionError("other shapes were not refused")
    except RuntimeError as e:
        assert "the same shape and type on all ranks" in str(e), e
    found, right = shown(ours, dist.get_rank()), shown(gloo, dist.get_rank())
    assert found == right, (found, right)
