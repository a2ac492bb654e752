# SPDX-License-Identifier: BSD-3-Clause
"""tensors.py - one rank: rejected tensors, and notifying autograd of tensors that the library writes."""
import copy
import gc
import sys
import warnings
import weakref

import torch
from torch import nn

import tributary as tb
from tributary.torch import Fed, Hook


def refused(kind, words, call, *arguments, **options):
    try:
        call(*arguments, **options)
    except kind as why:
        assert words in str(why), f"{words!r} is not in {str(why)!r}"
        return
    raise AssertionError(f"nothing was refused: {words}")


def odd_tensors():
    weights = torch.ones(4, requires_grad=True)
    short = torch.ones(1000)[10:500]
    short.storage().resize_(0)
    yield "graph", weights * 2
    yield "graph", (weights * 2).sum()
    yield "not contiguous", torch.ones(4, 3).t()
    yield "not contiguous", torch.ones(1).expand(5)
    yield "not contiguous", torch.ones(2, 3, 4, 4).to(memory_format=torch.channels_last)
    yield "layout", torch.ones(3).to_sparse()
    yield "meta", torch.ones(3, device="meta")
    yield "imaginary", torch.ones(3, dtype=torch.complex64)
    yield "imaginary", torch.ones(3, dtype=torch.complex64).conj()
    yield "negative", torch.ones(3, dtype=torch.complex64).conj().imag[:1]
    yield "quint8", torch.quantize_per_tensor(torch.zeros(3), 1.0, 0, torch.quint8)
    yield "resized", short
    yield "does not give", nn.parameter.UninitializedParameter()
    if hasattr(torch, "masked") and hasattr(torch.masked, "masked_tensor"):
        yield "of its own", torch.masked.masked_tensor(torch.ones(2), torch.tensor([True, False]))
    if hasattr(torch, "nested_tensor"):
        yield "of its own", torch.nested_tensor([torch.ones(2), torch.ones(3)])


def kinds(comm):
    for words, x in odd_tensors():
        refused(TypeError, words, comm.allreduce, x)
        refused(TypeError, words, comm.allgather, x)
        refused(TypeError, words, comm.plan, "allreduce", x)
        refused(TypeError, words, comm.plan, "allreduce", torch.ones(3), x)
    half = comm.size * (comm.size - 1) / 2
    for x in (torch.tensor(float(comm.rank)), nn.Parameter(torch.full((2, 3), float(comm.rank))),
              torch.arange(6.0)[2:4].fill_(comm.rank), torch.ones(3, 0), torch.full((1, 3), comm.rank).t(),
              torch.full((3,), comm.rank, dtype=torch.bfloat16)):
        assert comm.allreduce(x) is x and bool((x == half).all())
    part = (torch.ones(3, requires_grad=True) * 2)[:2]
    with torch.no_grad():
        assert comm.allreduce(part)[0] == 2 * comm.size
    mean = comm.allreduce(torch.tensor([1.0, 3.0]).mean(), op="mean")
    assert mean == 2


def told(comm):
    """If the library writes a tensor that autograd has saved, backward() raises an error."""
    x, w, out = torch.ones(3), torch.ones(3, requires_grad=True), torch.zeros(3)
    for write in (lambda: comm.allreduce(x), lambda: comm.broadcast(x), lambda: comm.allgather(out[:1], x[: comm.size]),
                  lambda: comm.plan("allreduce", x).run(), lambda: comm.plan("allreduce", out).start(out, x).wait()):
        loss = (w * x).sum()
        write()
        refused(RuntimeError, "inplace", loss.backward)
    loss = (w * x).sum()
    comm.allreduce(x, out)
    loss.backward()


def kept(comm, beside):
    """Memory of a started plan cannot be resized or freed. Rank 1 starts after rank 0 has tried to."""
    for dtype in (torch.float32, torch.bfloat16):
        x = torch.ones(1000, dtype=dtype)
        plan = comm.plan("allreduce", x)
        if comm.rank == 0:
            plan.start()
            other = x.detach()  # torch resizes a tensor before it raises the error
            refused(RuntimeError, "not resizable", other.resize_, 1000000)
            refused(TypeError, "resized", comm.allreduce, other)
            refused(RuntimeError, "not resizable", x.storage().resize_, 0)
            refused(ValueError, "element type must be", plan.start, x.double())
            mine, x.data = x.detach(), torch.zeros(1000, dtype=dtype)
        beside.barrier()
        if comm.rank != 0:
            plan.start()
            mine = x
        plan.wait()
        assert (mine == comm.size).all()
        x.fill_(comm.rank)
        plan.start().wait()  # at its current address
        assert (x == comm.size * (comm.size - 1) / 2).all()
        plan.close()
    x = torch.ones(100000)
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
        assert x[0] == comm.size


def copies(comm):
    model = nn.Linear(3, 3)
    model.plan = comm.plan("allreduce", torch.ones(3))
    for copied in (copy.deepcopy, lambda m: torch.save(m, "/dev/null")):
        refused(TypeError, "belongs to this process", copied, model)
    model.plan.close()


def closes(world):
    """Closing a communicator closes its Feds, also dropped ones; gradients stay valid."""
    comm = world.split(0)
    models = [nn.Linear(3, 3) for _ in range(2)]
    kept, dropped = (Fed(m, torch.optim.SGD(m.parameters(), lr=0.1), comm) for m in models)
    models[0](torch.ones(2, 3)).sum().backward()
    for copied in (copy.copy, copy.deepcopy):
        refused(TypeError, "belongs to this process", copied, kept)
    del dropped
    models.pop()
    gc.collect()
    comm.close()
    assert (models[0].weight.grad == 2).all()
    refused(ValueError, "closed", kept.explain)


class Bucket:
    """A bucket of DDP with two parameters that have the same gradient."""

    def __init__(self, parameters, gradient):
        self._parameters, self._flat = parameters, torch.cat([gradient, gradient])

    def buffer(self):
        return self._flat

    def parameters(self):
        return self._parameters

    def is_last(self):
        return True


def named(comm):
    """Parameters with the same start or end of the name get different random numbers."""
    long = "a_block_" * 12
    for one, two in (("first_" + long, "second_" + long), (long + "_first", long + "_second"), ("größe", "große")):
        model = nn.Module()
        for name in (one, two):
            model.register_parameter(name, nn.Parameter(torch.zeros(400)))
        hook = Hook(comm, "qsgd:bits=2", small_below=0, model=model)
        bucket = Bucket(list(model.parameters()), torch.randn(400, generator=torch.Generator().manual_seed(comm.rank)))
        sums = hook.on_bucket(bucket).wait()
        assert (sums[:400] != sums[400:]).float().mean() > 0.1, (one, two)
        state = hook.state_dict()
        assert list(state["parameters"]) == [one, two]
        hook.load_state_dict(state)


warnings.simplefilter("ignore")  # about prototype kinds of tensors
with tb.init() as world:
    with world.split(0) as second:
        kinds(world)
        told(world)
        kept(world, second)
        copies(world)
        named(world)
    closes(world)
print("all right", file=sys.stdout)
