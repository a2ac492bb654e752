# SPDX-License-Identifier: BSD-3-Clause
"""Communicators."""
from __future__ import annotations

import ctypes
import weakref
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Type, Union

from . import _ffi
from ._buffers import Buffer, buffer_of, empty_like
from ._library import IDLE, check, interrupts, lib, wait
from ._plan import Plan

OPS: Dict[str, int] = {
    "sum": _ffi.TRIB_SUM,
    "mean": _ffi.TRIB_MEAN,
    "min": _ffi.TRIB_MIN,
    "max": _ffi.TRIB_MAX,
    "prod": _ffi.TRIB_PROD,
    "median": _ffi.TRIB_MEDIAN,
    "trimmed-mean": _ffi.TRIB_TRIMMED_MEAN,
    "clipped-mean": _ffi.TRIB_CLIPPED_MEAN,
    "band": _ffi.TRIB_BAND,
    "bor": _ffi.TRIB_BOR,
    "bxor": _ffi.TRIB_BXOR,
    "land": _ffi.TRIB_LAND,
    "lor": _ffi.TRIB_LOR,
    "lxor": _ffi.TRIB_LXOR,
}
COLLECTIVES: Dict[str, int] = {
    "allreduce": _ffi.TRIB_ALLREDUCE,
    "reduce": _ffi.TRIB_REDUCE,
    "broadcast": _ffi.TRIB_BROADCAST,
    "allgather": _ffi.TRIB_ALLGATHER,
    "reduce_scatter": _ffi.TRIB_REDUCE_SCATTER,
    "gather": _ffi.TRIB_GATHER,
    "scatter": _ffi.TRIB_SCATTER,
    "alltoall": _ffi.TRIB_ALLTOALL,
    "scan": _ffi.TRIB_SCAN,
    "exscan": _ffi.TRIB_EXSCAN,
}


def op_of(op: Union[str, int]) -> int:
    """The number of an operator by its name."""
    if isinstance(op, int):
        return op
    if op not in OPS:
        raise ValueError(f"no operator is called {op!r}: {', '.join(OPS)}")
    return OPS[op]


def _text(value: Optional[str]) -> Optional[bytes]:
    return None if value is None else value.encode()


def _config(settings: Optional[Mapping[str, object]]) -> Optional[bytes]:
    if not settings:
        return None
    return ";".join(f"{k}={v}" for k, v in settings.items()).encode()


class Comm:
    """Ranks that sum together. `with tributary.init() as comm` frees it at the end.

    One thread at a time may use it, except that any thread may wait for plans.
    """

    def __init__(self, handle: ctypes.c_void_p, keep: Any = None) -> None:
        self._handle: Optional[ctypes.c_void_p] = handle
        self._keep = keep
        self._plans: "weakref.WeakSet[Plan]" = weakref.WeakSet()
        self._forgotten: List[ctypes.c_void_p] = []  # plans that were not closed
        self.rank: int = lib.trib_rank(handle)
        self.size: int = lib.trib_size(handle)

    @property
    def handle(self) -> ctypes.c_void_p:
        """The trib_comm_t, for calls of the C API."""
        if self._handle is None:
            raise ValueError("the communicator is closed")
        return self._handle

    def close(self) -> None:
        """Leave the other ranks. Plans of it are freed."""
        if self._handle is None:
            return
        self._close_plans()
        handle, self._handle = self._handle, None
        wait(lib.trib_free_comm, handle)

    def _close_plans(self) -> None:
        for plan in list(self._plans):
            plan.close()
        self._free_forgotten()

    def _free_forgotten(self) -> None:
        """Frees plans of which only the garbage collector knew; busy ones later."""
        plans, self._forgotten = self._forgotten, []
        for handle in plans:
            if lib.trib_plan_free(handle) == _ffi.TRIB_ERR_BUSY:
                self._forgotten.append(handle)

    def __enter__(self) -> "Comm":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], *_: Any) -> None:
        if kind is None:
            self.close()
        elif self._handle is not None:
            # Peers may be anywhere: they are told, and nobody waits for them.
            lib.trib_comm_abort(self._handle, f"rank {self.rank}: {kind.__name__}".encode())
            try:
                self._close_plans()
            except Exception:  # pylint: disable=broad-except
                pass  # what was raised before says more
            handle, self._handle = self._handle, None
            lib.trib_free_comm(handle)

    def __repr__(self) -> str:
        state = "" if self._handle is not None else ", closed"
        return f"<tributary.Comm rank {self.rank} of {self.size}{state}>"

    # ---- calls that block -------------------------------------------------------------

    def allreduce(self, x: Any, out: Any = None, op: Union[str, int] = "sum") -> Any:
        """The sum over all ranks, or what op says: in place, or into out. Returns it."""
        to = buffer_of(x if out is None else out, writable=True)
        send = None if out is None else self._alike(x, to, to.count)
        wait(lib.trib_allreduce, self.handle, send, to.address, to.count, to.dtype, op_of(op),
             comm=self._handle)
        return x if out is None else out

    def reduce(self, x: Any, out: Any = None, op: Union[str, int] = "sum", root: int = 0) -> Any:
        """allreduce whose result goes to root alone; returns it there, elsewhere None."""
        if self.rank != root:
            b = buffer_of(x)
            wait(lib.trib_reduce, self.handle, b.address, None, b.count, b.dtype, op_of(op), root,
                 comm=self._handle)
            return None
        to = buffer_of(x if out is None else out, writable=True)
        send = None if out is None else self._alike(x, to, to.count)
        wait(lib.trib_reduce, self.handle, send, to.address, to.count, to.dtype, op_of(op), root,
             comm=self._handle)
        return x if out is None else out

    def broadcast(self, x: Any, root: int = 0) -> Any:
        """x of root on all ranks, in place. Returns x."""
        b = buffer_of(x, writable=True)
        wait(lib.trib_broadcast, self.handle, b.address, b.count, b.dtype, root,
             comm=self._handle)
        return x

    def allgather(self, x: Any, out: Any = None) -> Any:
        """x of all ranks, by rank: an array of shape (size, *x.shape)."""
        b = buffer_of(x)
        out = empty_like(x, (self.size, *b.shape)) if out is None else out
        to = buffer_of(out, writable=True)
        self._fits(b, to, self.size)
        wait(lib.trib_allgather, self.handle, b.address, to.address, b.count, b.dtype,
             comm=self._handle)
        return out

    def reduce_scatter(self, x: Any, out: Any = None, op: Union[str, int] = "sum") -> Any:
        """Block `rank` of the sum of x, whose first axis is cut into `size` blocks."""
        b = buffer_of(x)
        if not b.shape or b.shape[0] % self.size:
            raise ValueError(f"the first axis of {b.shape} cannot be cut into {self.size} blocks")
        out = empty_like(x, (b.shape[0] // self.size, *b.shape[1:])) if out is None else out
        to = buffer_of(out, writable=True)
        self._fits(to, b, self.size)
        wait(lib.trib_reduce_scatter, self.handle, b.address, to.address, to.count, b.dtype,
             op_of(op), comm=self._handle)
        return out

    def alltoall(self, x: Any, out: Any = None) -> Any:
        """Block q of x goes to rank q; block r of the result is of rank r."""
        b = buffer_of(x)
        if not b.shape or b.shape[0] % self.size:
            raise ValueError(f"the first axis of {b.shape} cannot be cut into {self.size} blocks")
        out = empty_like(x, b.shape) if out is None else out
        to = buffer_of(out, writable=True)
        self._fits(b, to, 1)
        wait(lib.trib_alltoall, self.handle, b.address, to.address, b.count // self.size, b.dtype,
             comm=self._handle)
        return out

    def barrier(self) -> None:
        """Wait until all ranks are here."""
        wait(lib.trib_barrier, self.handle, comm=self._handle)

    # ---- the rest ---------------------------------------------------------------------

    def split(self, color: int, key: int = 0) -> Optional["Comm"]:
        """A communicator of the ranks that give the same color; None if it is negative."""
        handle = ctypes.c_void_p()
        wait(lib.trib_split, self.handle, color, key, ctypes.byref(handle), comm=self._handle)
        return Comm(handle, self._keep) if handle.value else None

    def empty(self, shape: Union[int, Tuple[int, ...]], dtype: Any = "float32") -> Any:
        """A NumPy array in memory that peers reach without a copy. It ends with the
        communicator; an array that lives longer must not be touched then."""
        import numpy  # pylint: disable=import-outside-toplevel

        lengths = (shape,) if isinstance(shape, int) else tuple(shape)
        wanted = numpy.dtype(dtype)
        count = int(numpy.prod(lengths, dtype=numpy.int64))
        pointer = ctypes.c_void_p()
        check(lib.trib_alloc(self.handle, max(1, count * wanted.itemsize), ctypes.byref(pointer)),
              self._handle)
        raw = (ctypes.c_char * max(1, count * wanted.itemsize)).from_address(pointer.value or 0)
        address = pointer.value
        comm = weakref.ref(self)

        def give_back() -> None:
            owner = comm()
            if owner is not None and owner._handle is not None:
                lib.trib_free(owner._handle, ctypes.c_void_p(address))

        weakref.finalize(raw, give_back)
        view: Any = raw
        return numpy.frombuffer(view, dtype=wanted, count=count).reshape(lengths)

    def plan(self, collective: str, x: Any, out: Any = None, *, op: Union[str, int] = "sum",
             codec: Optional[str] = None, feedback: Optional[str] = None,
             algorithm: Optional[str] = None, feed: str = "whole", root: int = 0,
             name: Optional[str] = None, chunk: int = 0, seed: int = 0,
             timeout_ms: int = 0) -> Plan:
        """A collective that is made once and started often: see trib_plan_create(3)."""
        if collective not in COLLECTIVES:
            raise ValueError(f"no plan is called {collective!r}: {', '.join(COLLECTIVES)}")
        feeds: List[str] = ["whole", "forward", "backward"]
        if feed not in feeds:
            raise ValueError(f"feed {feed!r} is unknown: {', '.join(feeds)}")
        to = buffer_of(x if out is None else out, writable=True)
        send = None if out is None else buffer_of(x)
        counted = to if collective in ("allreduce", "reduce", "broadcast", "scan", "exscan") else (
            to if collective in ("reduce_scatter", "scatter") and send else send or to)
        count = counted.count
        if send is None and collective not in ("allreduce", "reduce", "broadcast", "scan",
                                               "exscan"):
            count //= self.size
        d = _ffi.trib_desc_t(
            size=ctypes.sizeof(_ffi.trib_desc_t), send=send.address if send else None,
            recv=to.address, count=count, dtype=to.dtype, op=op_of(op), root=root,
            codec=_text(codec), feedback=_text(feedback), algorithm=_text(algorithm),
            chunk=chunk, feed=feeds.index(feed), name=_text(name), seed=seed,
            timeout_ms=timeout_ms)
        self._free_forgotten()
        handle = ctypes.c_void_p()
        check(lib.trib_plan_create(self.handle, COLLECTIVES[collective], ctypes.byref(d),
                                   ctypes.byref(handle)), self._handle)
        plan = Plan(self, handle, (x, out, to, send), count)
        self._plans.add(plan)
        return plan

    def stats(self) -> Dict[str, int]:
        """What the communicator has done, and what it holds: see trib_stats(3)."""
        s = _ffi.trib_stats_t(size=ctypes.sizeof(_ffi.trib_stats_t))
        check(lib.trib_stats(self.handle, ctypes.byref(s)), self._handle)
        return {n: getattr(s, n) for n, *_ in s._fields_ if n != "size"}

    def _alike(self, x: Any, to: Buffer, count: int) -> int:
        b = buffer_of(x)
        if b.dtype != to.dtype or b.count != count:
            raise ValueError(f"the input has {b.count} elements and the result {count}, or of "
                             "another type")
        return b.address

    @staticmethod
    def _fits(short: Buffer, whole: Buffer, times: int) -> None:
        if short.dtype != whole.dtype or short.count * times != whole.count:
            raise ValueError(f"{short.count} elements by {times} do not make {whole.count}, or "
                             "are of another type")


class _Exchange:
    """An all-gather of the caller's, as trib_init wants it."""

    def __init__(self, fn: Callable[[bytes], List[bytes]]) -> None:
        self.fn = fn
        self.raised: Optional[BaseException] = None
        self.callback = _ffi.trib_allgather_fn(self.call)

    def call(self, _: Any, given: Any, out: Any, count: int) -> int:
        try:
            parts = self.fn(ctypes.string_at(given, count))
            ctypes.memmove(out, b"".join(parts), count * len(parts))
            return 0
        except BaseException as why:  # pylint: disable=broad-except
            self.raised = why
            return 1


def init(rank: Optional[int] = None, size: Optional[int] = None, root: Optional[str] = None,
         config: Optional[Mapping[str, object]] = None, *, many_threads: bool = False,
         allgather: Optional[Callable[[bytes], List[bytes]]] = None) -> Comm:
    """Join the other ranks: as the launcher, TRIB_*, or the arguments say.

    config     settings, such as {"chunk": "64K"}: see trib-info --config
    allgather  by which the ranks meet, instead of root: gets bytes and returns those of
               all ranks, by rank
    """
    exchange = _Exchange(allgather) if allgather else None
    opts = _ffi.trib_opts_t(
        size=ctypes.sizeof(_ffi.trib_opts_t), rank_plus_1=0 if rank is None else rank + 1,
        ranks=size or 0, root=_text(root), config=_config(config), idle=IDLE,
        threads=_ffi.TRIB_THREADS_MANY if many_threads else _ffi.TRIB_THREADS_ONE)
    if exchange:
        opts.allgather = exchange.callback
    interrupts.install()
    handle = ctypes.c_void_p()
    try:
        wait(lib.trib_init, ctypes.byref(opts), ctypes.byref(handle))
    except Exception:
        if exchange and exchange.raised:
            raise exchange.raised from None
        raise
    return Comm(handle, (opts, exchange))

