# SPDX-License-Identifier: BSD-3-Clause
"""collectives.py FOLDER - one rank: each collective of torch.distributed, by element type, operator and shape of the
tensors, over the backend tributary. The result is what torch computes from all ranks' inputs, and the same as Gloo's
where Gloo supports the call. The lists below name the calls that fail, with their error messages. process_group.py
runs a part of the types and shapes."""
import os
import sys
import warnings
from datetime import timedelta
from functools import reduce as fold

import torch
import torch.distributed as dist

import tributary.torch  # the backend

torch.set_num_threads(1)
warnings.simplefilter("ignore")
RANK, SIZE = int(os.environ["TRIB_RANK"]), int(os.environ["TRIB_SIZE"])
LAST = SIZE - 1
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
TYPES = [torch.bool, *INTEGERS, *FLOATS, torch.complex64, torch.complex128]
SHAPES = {
    "a vector": lambda t: t(7),
    "no dimension": lambda t: t(),
    "empty": lambda t: t(3, 0),
    "not contiguous": lambda t: t(3, 8)[:, ::2],
    "transposed": lambda t: t(4, 3).t(),
    "long": lambda t: t(70001),
}
OPERATORS = {
    "SUM": lambda xs: fold(torch.add, xs),
    "AVG": lambda xs: (fold(torch.add, [x.double() if not x.is_complex() else x for x in xs]) / SIZE),
    "PRODUCT": lambda xs: fold(torch.mul, xs),
    "MIN": lambda xs: fold(torch.minimum, xs),
    "MAX": lambda xs: fold(torch.maximum, xs),
    "BAND": lambda xs: fold(torch.bitwise_and, xs),
    "BOR": lambda xs: fold(torch.bitwise_or, xs),
    "BXOR": lambda xs: fold(torch.bitwise_xor, xs),
    "PREMUL_SUM": None,
}
# Limits of Gloo in torch 1.13: types, shapes and operators that work, and calls that it lacks.
GLOO_TYPES = [torch.uint8, torch.int8, torch.int32, torch.int64, torch.float16, torch.float32, torch.float64]
GLOO_SHAPES = ["a vector", "no dimension", "transposed", "long"]
GLOO_OPERATORS = ["SUM", "PRODUCT", "MIN", "MAX"]
NOT_GLOO = ["reduce_scatter", "reduce_scatter_tensor", "all_gather_into_tensor", "all_to_all"]


def numbers(dtype, *shape, rank=RANK):
    """Return small numbers, whose sums and products are exact in all types."""
    count = 1
    for length in shape:
        count *= length
    x = ((torch.arange(count) * 7 + 3 * rank) % 4 + 1).reshape(shape)
    if dtype == torch.bool:
        return x > 2
    return torch.complex(x.double(), x.double() + 1).to(dtype) if dtype.is_complex else x.to(dtype)


def refusal(op, dtype):
    """Return words of the error message if an operator does not support a type."""
    if op == "PREMUL_SUM":
        return "PREMUL_SUM"
    if dtype.is_complex and op not in ("SUM", "AVG"):
        return "complex"
    if dtype in FLOATS and op in ("BAND", "BOR", "BXOR"):
        return "supports integers and bool"
    if dtype == torch.bool and op == "AVG":
        return "not support bool"
    return None


class Case:
    """A type, a shape and an operator, in a group."""

    def __init__(self, group, dtype, make, op="SUM"):
        self.group, self.dtype, self.make, self.name = group, dtype, make, op
        self.op = (dist._make_nccl_premul_sum(2.0) if op == "PREMUL_SUM" else getattr(dist.ReduceOp, op))

    def of(self, rank, k=0):
        """Return the k-th input of a rank."""
        return self.make(lambda *shape: numbers(self.dtype, *shape, rank=rank + 2 * k))

    def mine(self, k=0):
        return self.of(RANK, k)

    def place(self):
        return torch.zeros_like(self.mine())

    def inputs(self):
        """Return one input per rank."""
        return [self.mine(k) for k in range(SIZE)]

    def summed(self, k=0):
        return OPERATORS[self.name]([self.of(r, k) for r in range(SIZE)])

    def all_reduce(self):
        x = self.mine()
        dist.all_reduce(x, self.op, group=self.group)
        return [x], lambda: [self.summed()]

    def all_reduce_coalesced(self):
        xs = [self.mine(), self.mine(1)]
        dist.all_reduce_coalesced(xs, self.op, group=self.group)
        return xs, lambda: [self.summed(), self.summed(1)]

    def reduce(self):
        x = self.mine()
        dist.reduce(x, LAST, self.op, group=self.group)
        return ([x], lambda: [self.summed()]) if RANK == LAST else ([], lambda: [])

    def reduce_scatter(self):
        x = self.place()
        dist.reduce_scatter(x, self.inputs(), self.op, group=self.group)
        return [x], lambda: [self.summed(RANK)]

    def reduce_scatter_tensor(self):
        x = self.place()
        dist.reduce_scatter_tensor(x, torch.stack(self.inputs()), self.op, group=self.group)
        return [x], lambda: [self.summed(RANK)]

    def broadcast(self):
        x = self.mine()
        dist.broadcast(x, LAST, group=self.group)
        return [x], lambda: [self.of(LAST)]

    def all_gather(self):
        xs = [self.place() for _ in range(SIZE)]
        dist.all_gather(xs, self.mine(), group=self.group)
        return xs, lambda: [self.of(r) for r in range(SIZE)]

    def all_gather_coalesced(self):
        lists = [[self.place(), self.place()] for _ in range(SIZE)]
        self.group.allgather_coalesced(lists, [self.mine(), self.mine(1)]).wait()
        return sum(lists, []), lambda: sum(([self.of(r), self.of(r, 1)] for r in range(SIZE)), [])

    def all_gather_into_tensor(self):
        x = torch.stack([self.place() for _ in range(SIZE)])
        dist.all_gather_into_tensor(x, self.mine(), group=self.group)
        return [x], lambda: [torch.stack([self.of(r) for r in range(SIZE)])]

    def gather(self):
        xs = [self.place() for _ in range(SIZE)] if RANK == LAST else None
        dist.gather(self.mine(), xs, dst=LAST, group=self.group)
        return (xs, lambda: [self.of(r) for r in range(SIZE)]) if xs else ([], lambda: [])

    def scatter(self):
        x = self.place()
        dist.scatter(x, self.inputs() if RANK == LAST else None, src=LAST, group=self.group)
        return [x], lambda: [self.of(LAST, RANK)]

    def all_to_all(self):
        xs = [self.place() for _ in range(SIZE)]
        dist.all_to_all(xs, self.inputs(), group=self.group)
        return xs, lambda: [self.of(r, RANK) for r in range(SIZE)]

    def all_to_all_single(self):
        x = torch.stack([self.place() for _ in range(SIZE)])
        dist.all_to_all_single(x, torch.stack(self.inputs()), group=self.group)
        return [x], lambda: [torch.stack([self.of(r, RANK) for r in range(SIZE)])]

    def messages(self):
        x = self.place()
        works = dist.batch_isend_irecv([
            dist.P2POp(dist.isend, self.mine(), (RANK + 1) % SIZE, self.group),
            dist.P2POp(dist.irecv, x, (RANK - 1) % SIZE, self.group)])
        for work in works:
            work.wait()
        return [x], lambda: [self.of((RANK - 1) % SIZE)]


REDUCTIONS = ["all_reduce", "all_reduce_coalesced", "reduce", "reduce_scatter", "reduce_scatter_tensor"]
MOVES = ["broadcast", "all_gather", "all_gather_coalesced", "all_gather_into_tensor", "gather", "scatter",
         "all_to_all", "all_to_all_single", "messages"]


def same(case, got, expected):
    """Return true if all tensors are equal; a mean of integers may be rounded up or down."""
    for x, y in zip(got, expected, strict=True):
        if x.shape != y.shape:
            return False
        if case.name == "AVG":
            near = 1 if case.dtype in INTEGERS else 1e-2 if case.dtype == torch.bfloat16 else 2e-3
            if not torch.allclose(x.to(y.dtype), y, rtol=0, atol=near):
                return False
        elif not torch.equal(x.resolve_conj(), y.to(x.dtype).resolve_conj()):
            return False
    return True


def checked(what, group, gloo, dtype, shape, op):
    where = f"{what} of {dtype}, {shape}, {op}, rank {RANK}"
    case = Case(group, dtype, SHAPES[shape], op)
    refused = refusal(op, dtype) if what in REDUCTIONS else None
    try:
        got, expected = getattr(case, what)()
    except (RuntimeError, ValueError) as why:
        assert refused and refused in str(why), f"{where}: {why}"
        return 0
    assert not refused, f"{where} was not refused"
    assert same(case, got, expected()), f"{where}: {got}, not {expected()}"
    if (not gloo or what in NOT_GLOO or dtype not in GLOO_TYPES or shape not in GLOO_SHAPES or op not in GLOO_OPERATORS
            or what in ("gather", "messages") and shape == "transposed"):
        return 1
    assert same(case, getattr(Case(gloo, dtype, SHAPES[shape], op), what)()[0], got), f"{where}: not as Gloo"
    return 1


def sweep(types, shapes, gloo=None):
    done = 0
    for dtype in types:
        for shape in shapes:
            for what in MOVES:
                done += checked(what, dist.group.WORLD, gloo, dtype, shape, "SUM")
            for what in REDUCTIONS:
                for op in OPERATORS if shape != "long" else ("SUM", "AVG"):
                    done += checked(what, dist.group.WORLD, gloo, dtype, shape, op)
    return done


def short():
    sweep([torch.bool, torch.bfloat16], ["not contiguous"])
    sweep([torch.complex64], ["empty"])


if __name__ == "__main__":
    dist.init_process_group("tributary", init_method=f"file://{os.path.abspath(sys.argv[1])}", rank=RANK,
                            world_size=SIZE, timeout=timedelta(seconds=60))
    print(f"all right: {sweep(TYPES, SHAPES, dist.new_group(backend='gloo'))} results", flush=True)
    dist.destroy_process_group()
