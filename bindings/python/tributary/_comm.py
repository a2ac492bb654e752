# SPDX-License-Identifier: BSD-3-Clause
"""Communicators: the ranks that run collectives together, and the blocking calls."""
from __future__ import annotations

import ctypes
import dataclasses
import functools
import weakref
from typing import (Any, Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple, Type,
                    Union)

from . import _ffi
from ._buffers import array_of, buffer_of, empty_like, result_of
from ._calls import Call, whole
from ._handles import Handle, Unique
from ._library import IDLE, check, lib, wait
from ._plan import Plan


def _numbers(names: str) -> Dict[str, int]:
    """Return the library's numbers of operators or collectives, by name."""
    return {n: getattr(_ffi, f"TRIB_{n.upper().replace('-', '_')}") for n in names.split()}


OPS = _numbers("sum mean min max prod median trimmed-mean clipped-mean band bor bxor land lor lxor")
COLLECTIVES = _numbers("allreduce reduce broadcast allgather reduce_scatter gather scatter alltoall "
                       "scan exscan")

_INT_MOST = 2**31 - 1
_SIZE_MOST = 2**63 - 1

# Open communicators. The set keeps them alive if the program drops them, because the library
# has addresses of their options and callbacks until they are closed.
_open: Set["Comm"] = set()


def op_of(op: Union[str, int]) -> int:
    """Return the number of an operator, which is given by name or number."""
    if isinstance(op, int):
        return whole("op", op, _ffi.TRIB_OP_COUNT - 1)
    if op not in OPS:
        raise ValueError(f"unknown operator {op!r}: use one of {', '.join(OPS)}")
    return OPS[op]


def _parameter_of(op: int, parameter: float) -> float:
    """Return parameter=. Raise ValueError if the operator takes none, or needs another one."""
    if op == _ffi.TRIB_CLIPPED_MEAN and not parameter > 0:
        raise ValueError("op clipped-mean needs the largest magnitude of an element: pass it as "
                         "parameter=, above 0")
    if parameter and op not in (_ffi.TRIB_CLIPPED_MEAN, _ffi.TRIB_TRIMMED_MEAN):
        raise ValueError("parameter= is only for op trimmed-mean and clipped-mean")
    return parameter


def _refuse(options: Mapping[str, Any]) -> None:
    """Raise TypeError for options of a blocking call that only plans have."""
    for name in options:
        raise TypeError(f"{name}= is not for a blocking call: if plans have this option, create a "
                        "plan by Comm.plan and start it each time")


def _counts(name: str, counts: Optional[Sequence[int]]) -> Optional[Tuple[int, ...]]:
    return None if counts is None else tuple(whole(name, n, _SIZE_MOST) for n in counts)


def _array_of_counts(counts: Optional[Sequence[int]]) -> Any:
    return None if counts is None else (ctypes.c_size_t * len(counts))(*counts)


def _text(value: Optional[str]) -> Optional[bytes]:
    if value is not None and "\0" in value:
        raise ValueError(f"{value!r} contains a NUL character")
    return None if value is None else value.encode()


def _config(settings: Optional[Mapping[str, object]]) -> Optional[bytes]:
    if not settings:
        return None
    return _text(";".join(f"{k}={v}" for k, v in settings.items()))


class Comm(Unique):
    """A group of ranks that run collectives together; init() creates the first one.

    `with tributary.init() as comm` closes it at the end. If an exception leaves the block,
    the communicator is aborted instead: the calls of all other ranks raise an error.

    Only one thread at a time may use it, but any thread may test and wait for its plans.
    With init(many_threads=True) any thread may make any call. All ranks make the collective
    calls of a communicator in the same order, with arrays of the same length and element
    type; otherwise all ranks raise Mismatch. A failed call raises a subclass of Error.

    rank  number of this rank, from 0
    size  number of ranks
    """

    def __init__(self, handle: ctypes.c_void_p, keep: Any = None) -> None:
        self._handle: Optional[ctypes.c_void_p] = handle
        self._keep = keep
        self._children: "weakref.WeakSet[Handle]" = weakref.WeakSet()
        # Handles dropped without close(): free function, handle, objects that they use.
        self._forgotten: List[Tuple[Callable[..., int], ctypes.c_void_p, Any]] = []
        self._calls: Dict[Tuple[str, int], Call] = {}  # of blocking calls, by name and root
        _open.add(self)
        self.rank: int = lib.trib_rank(handle)
        self.size: int = lib.trib_size(handle)

    @property
    def handle(self) -> ctypes.c_void_p:
        """The trib_comm_t, for calls of the C API. Raises ValueError if it is closed."""
        if self._handle is None:
            raise ValueError("the communicator is closed")
        return self._handle

    def close(self) -> None:
        """Disconnect from the other ranks and free the communicator with its plans, groups
        and memory. Blocks until no peer depends on this rank. Again has no effect."""
        if self._handle is None:
            return
        for child in list(self._children):
            child.close()
        self._free_forgotten()
        handle, self._handle = self._handle, None
        _open.discard(self)
        wait(lib.trib_free_comm, handle)

    def _free_forgotten(self) -> None:
        """Free handles that were dropped without close(). Busy ones stay for the next call."""
        for _ in range(len(self._forgotten)):  # __del__ may append on another thread
            free, handle, keep = self._forgotten.pop(0)
            if free(handle) == _ffi.TRIB_ERR_BUSY:
                self._forgotten.append((free, handle, keep))

    def __enter__(self) -> "Comm":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], *_: Any) -> None:
        if kind is None:
            self.close()
        elif self._handle is not None:
            # Peers may be in any call: notify them, and do not wait for them.
            lib.trib_comm_abort(self._handle, f"rank {self.rank}: {kind.__name__}".encode())
            for child in list(self._children):
                try:
                    child.close()
                except Exception:  # pylint: disable=broad-except
                    pass  # the exception of the block is the cause
            self._free_forgotten()
            handle, self._handle = self._handle, None
            if lib.trib_free_comm(handle) != _ffi.TRIB_ERR_BUSY:
                _open.discard(self)

    def __repr__(self) -> str:
        state = "" if self._handle is not None else ", closed"
        return f"<tributary.Comm rank {self.rank} of {self.size}{state}>"

    # ---- blocking calls ---------------------------------------------------------------

    def _call(self, name: str, root: int = 0) -> Call:
        call = self._calls.get((name, root))
        if call is None:
            call = Call(name, self.rank, self.size, whole("root", root, _INT_MOST, -_INT_MOST))
            self._calls[name, root] = call
        return call

    def allreduce(self, x: Any, out: Any = None, op: Union[str, int] = "sum", *,
                  parameter: float = 0.0, name: Optional[str] = None, **more: Any) -> Any:
        """Reduce x over all ranks; every rank gets the result, in place or in out.

        Returns out or x. A NumPy scalar cannot be changed, so it returns a new scalar.
        op         name or number of the operator: sum mean min max prod median trimmed-mean
                   clipped-mean band bor bxor land lor lxor
        parameter  clipped-mean: largest magnitude of an element, above 0; trimmed-mean:
                   fraction of contributions dropped at each end
        name       of the vector, for which a configured codec keeps its state from call to
                   call: see trib_allreduce_named(3)
        """
        _refuse(more)
        array = array_of(x) if out is None else x
        args = self._call("allreduce").check_arguments(array, out)
        number = op_of(op)
        if _parameter_of(number, parameter):
            if name is not None:
                raise ValueError("parameter= together with name= needs a plan: see Comm.plan")
            self._run_once("allreduce", array, out, op=op, parameter=parameter)
        elif name is not None:
            args.begin()
            wait(lib.trib_allreduce_named, self.handle, _text(name), *args.addresses, args.count,
                 args.dtype, number, comm=self._handle)
        else:
            args.begin()
            wait(lib.trib_allreduce, self.handle, *args.addresses, args.count, args.dtype,
                 number, comm=self._handle)
        return result_of(array, x) if out is None else out

    def reduce(self, x: Any, out: Any = None, op: Union[str, int] = "sum", root: int = 0, *,
               parameter: float = 0.0, **more: Any) -> Any:
        """Reduce x over all ranks, with the result only on root, in place or in out. Return
        it there, and None on the other ranks. Other arguments as in allreduce."""
        _refuse(more)
        array = array_of(x) if out is None else x
        call = self._call("reduce", root)
        args, number = call.check_arguments(array, out), op_of(op)
        if _parameter_of(number, parameter):
            self._run_once("reduce", array, out, op=op, parameter=parameter, root=root)
        else:
            args.begin()
            wait(lib.trib_reduce, self.handle, *args.addresses, args.count, args.dtype, number,
                 call.root, comm=self._handle)
        if not call.receives:
            return None
        return result_of(array, x) if out is None else out

    def broadcast(self, x: Any, root: int = 0) -> Any:
        """Copy x of root to x of all ranks. Return x, or a new scalar for a NumPy scalar."""
        array = array_of(x)
        call = self._call("broadcast", root)
        args = call.check_arguments(array)
        args.begin()
        wait(lib.trib_broadcast, self.handle, args.addresses[1], args.count, args.dtype, call.root,
             comm=self._handle)
        return result_of(array, x)

    def allgather(self, x: Any, out: Any = None) -> Any:
        """Gather x of all ranks on every rank. Return out, by default a new array of shape
        (size, *x.shape), ordered by rank."""
        b = buffer_of(x)
        out = empty_like(x, b, (self.size, *b.shape)) if out is None else out
        args = self._call("allgather").check_arguments(x, out)
        args.begin()
        wait(lib.trib_allgather, self.handle, *args.addresses, args.count, args.dtype,
             comm=self._handle)
        return out

    def reduce_scatter(self, x: Any, out: Any = None, op: Union[str, int] = "sum", *,
                       parameter: float = 0.0, **more: Any) -> Any:
        """Reduce x over all ranks and return block `rank` of the result, in out or in a new
        array. The first axis of x is cut into `size` blocks; ValueError if it cannot be."""
        _refuse(more)
        b = buffer_of(x)
        rows = self._cut(b.shape)
        out = empty_like(x, b, (rows, *b.shape[1:])) if out is None else out
        args = self._call("reduce_scatter").check_arguments(x, out)
        number = op_of(op)
        if _parameter_of(number, parameter):
            self._run_once("reduce_scatter", x, out, op=op, parameter=parameter)
            return out
        args.begin()
        wait(lib.trib_reduce_scatter, self.handle, *args.addresses, args.count, args.dtype, number,
             comm=self._handle)
        return out

    def alltoall(self, x: Any, out: Any = None) -> Any:
        """Send block q of x to rank q, and receive block r of the result from rank r. The
        first axis is cut into `size` blocks. Return out, by default a new array like x."""
        b = buffer_of(x)
        self._cut(b.shape)
        out = empty_like(x, b, b.shape) if out is None else out
        args = self._call("alltoall").check_arguments(x, out)
        args.begin()
        wait(lib.trib_alltoall, self.handle, *args.addresses, args.count, args.dtype,
             comm=self._handle)
        return out

    def _cut(self, shape: Tuple[int, ...]) -> int:
        """Return the rows per block of an array of this shape."""
        if not shape or shape[0] % self.size:
            raise ValueError(f"the first axis of shape {shape} cannot be cut into {self.size} "
                             "blocks")
        return shape[0] // self.size

    def _run_once(self, collective: str, x: Any, out: Any, **options: Any) -> None:
        """Run a collective that lacks a blocking call in the C API, by a temporary plan. Not
        for codecs with state, which the plan's end would discard."""
        with self.plan(collective, x, out, codec="none", **options) as plan:
            plan.run()

    def barrier(self) -> None:
        """Block until all ranks have called it."""
        wait(lib.trib_barrier, self.handle, comm=self._handle)

    # ---- communicators, memory, plans, statistics -------------------------------------

    def split(self, color: int, key: int = 0) -> Optional["Comm"]:
        """Create a communicator of the ranks that pass the same color, sorted by key, then
        by rank. Return None if color is negative. Collective over this communicator."""
        handle = ctypes.c_void_p()
        wait(lib.trib_split, self.handle, whole("color", color, _INT_MOST, -_INT_MOST),
             whole("key", key, _INT_MOST, -_INT_MOST), ctypes.byref(handle), comm=self._handle)
        return Comm(handle, self._keep) if handle.value else None

    def empty(self, shape: Union[int, Tuple[int, ...]], dtype: Any = "float32") -> Any:
        """Return a NumPy array of zeros in memory that peers access without a copy.

        Closing the communicator frees the memory: do not access the array after that."""
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
            if owner is None or owner._handle is None:
                return
            free = functools.partial(lib.trib_free, owner._handle)
            if free(address) == _ffi.TRIB_ERR_BUSY:  # a plan is running
                owner._forgotten.append((free, ctypes.c_void_p(address), None))

        weakref.finalize(raw, give_back)
        view: Any = raw
        return numpy.frombuffer(view, dtype=wanted, count=count).reshape(lengths)

    def plan(self, collective: str, x: Any, out: Any = None, *, op: Union[str, int] = "sum",
             parameter: float = 0.0, codec: Optional[str] = None, feedback: Optional[str] = None,
             algorithm: Optional[str] = None, quorum: Optional[str] = None, feed: str = "whole",
             root: int = 0, name: Optional[str] = None, chunk: int = 0, seed: int = 0,
             send_counts: Optional[Sequence[int]] = None,
             recv_counts: Optional[Sequence[int]] = None, prescale: float = 0.0,
             postscale: float = 0.0, weighted: bool = False, timeout_ms: int = 0) -> Plan:
        """Create a plan: a collective that is created once and started often. Options
        are fields of trib_desc_t, see trib_plan_create(3). All ranks create the same plan.

        collective  allreduce reduce broadcast allgather reduce_scatter gather scatter
                    alltoall scan exscan
        x, out      input and result, kept alive by the plan. out None: in place, so x has
                    the length of the longer one. In scatter and gather x or out may be None
                    on a rank that sends or receives nothing
        feed        "whole": start() passes all of x; "forward", "backward": Plan.ready()
                    marks elements as final, beginning with the first or the last
        """
        if collective not in COLLECTIVES:
            raise ValueError(f"unknown collective {collective!r}: use one of "
                             f"{', '.join(COLLECTIVES)}")
        feeds: List[str] = ["whole", "forward", "backward"]
        if feed not in feeds:
            raise ValueError(f"unknown feed {feed!r}: use one of {', '.join(feeds)}")
        call = dataclasses.replace(
            self._call(collective, root), send_counts=_counts("send_counts", send_counts),
            recv_counts=_counts("recv_counts", recv_counts))
        call.check_counts()
        made = call.check_arguments(x, out)
        number = op_of(op)
        d = _ffi.trib_desc_t(
            size=ctypes.sizeof(_ffi.trib_desc_t), send=made.addresses[0], recv=made.addresses[1],
            count=made.count, dtype=made.dtype, op=number,
            parameter=_parameter_of(number, parameter), root=call.root, codec=_text(codec),
            feedback=_text(feedback), algorithm=_text(algorithm), quorum=_text(quorum),
            chunk=whole("chunk", chunk, _SIZE_MOST), feed=feeds.index(feed), name=_text(name),
            seed=whole("seed", seed, 2**64 - 1), send_counts=_array_of_counts(call.send_counts),
            recv_counts=_array_of_counts(call.recv_counts), prescale=prescale,
            postscale=postscale, weighted=bool(weighted),
            timeout_ms=whole("timeout_ms", timeout_ms, _INT_MOST, -_INT_MOST))
        self._free_forgotten()
        handle = ctypes.c_void_p()
        check(lib.trib_plan_create(self.handle, COLLECTIVES[collective], ctypes.byref(d),
                                   ctypes.byref(handle)), self._handle)
        return Plan(self, handle, dataclasses.replace(call, count=made.count, dtype=made.dtype),
                    (x, out), made)

    def stats(self) -> Dict[str, int]:
        """Return the counters of trib_stats(3) by name: operations, bytes, times in ns."""
        s = _ffi.trib_stats_t(size=ctypes.sizeof(_ffi.trib_stats_t))
        check(lib.trib_stats(self.handle, ctypes.byref(s)), self._handle)
        return {n: getattr(s, n) for n, *_ in s._fields_ if n != "size"}


class _Exchange:
    """Adapter from the caller's all-gather of bytes to the callback of trib_init."""

    def __init__(self, fn: Callable[[bytes], List[bytes]], size: Optional[int]) -> None:
        self.fn, self.size = fn, size
        self.raised: Optional[BaseException] = None
        self.callback = _ffi.trib_allgather_fn(self.call)

    def call(self, _: Any, given: Any, out: Any, count: int) -> int:
        try:
            parts = [bytes(part) for part in self.fn(ctypes.string_at(given, count))]
            if len(parts) != self.size or any(len(part) != count for part in parts):
                raise ValueError(f"allgather returned {[len(part) for part in parts]} bytes; it "
                                 f"must return {count} bytes of each of {self.size} ranks")
            ctypes.memmove(out, b"".join(parts), count * len(parts))
            return 0
        except BaseException as why:  # pylint: disable=broad-except
            self.raised = why
            return 1


def init(rank: Optional[int] = None, size: Optional[int] = None, root: Optional[str] = None,
         config: Optional[Mapping[str, object]] = None, *, many_threads: bool = False,
         allgather: Optional[Callable[[bytes], List[bytes]]] = None) -> Comm:
    """Join the job and create a communicator of all its ranks. Blocks until all have joined.

    rank, size    None: from TRIB_RANK and TRIB_SIZE, or the launcher
    root          "host:port" for the rendezvous; None: from TRIB_ROOT, or the launcher
    config        settings that override all others, such as {"chunk": "64K"}: see
                  trib-info --config
    many_threads  any thread may call the communicator at any time
    allgather     replaces root as rendezvous: takes bytes and returns a list of the bytes
                  of all ranks, by rank. Needs rank and size
    """
    if allgather and (rank is None or size is None):
        raise ValueError("allgather= requires rank and size")
    exchange = _Exchange(allgather, size) if allgather else None
    opts = _ffi.trib_opts_t(
        size=ctypes.sizeof(_ffi.trib_opts_t),
        rank_plus_1=0 if rank is None else whole("rank", rank, _INT_MOST - 1) + 1,
        ranks=0 if size is None else whole("size", size, _INT_MOST), root=_text(root),
        config=_config(config), idle=IDLE,
        threads=_ffi.TRIB_THREADS_MANY if many_threads else _ffi.TRIB_THREADS_ONE)
    if exchange:
        opts.allgather = exchange.callback
    handle = ctypes.c_void_p()
    try:
        wait(lib.trib_init, ctypes.byref(opts), ctypes.byref(handle))
    except Exception:
        if exchange and exchange.raised:
            raise exchange.raised from None
        raise
    return Comm(handle, (opts, exchange))

