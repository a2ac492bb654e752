# SPDX-License-Identifier: BSD-3-Clause
"""Plans: collectives that are created once and started often."""
from __future__ import annotations

import asyncio
import ctypes
import hashlib
import time
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any, Deque, Dict, Generator, List, Optional, Tuple

from . import _ffi
from ._buffers import buffer_of
from ._calls import Arguments, Call, whole
from ._errors import Error
from ._handles import Handle
from ._library import check, lib, wait

if TYPE_CHECKING:
    from ._comm import Comm

_STATE = "tributary plan"
_SIZE_MOST = 2**63 - 1
_MADE: Any = object()  # stands for the array that the plan was created with
_NAME_MOST = 63  # TRIB_PLAN_NAME_MAX


def name_of(text: str, most: int = _NAME_MOST) -> str:
    """Return text as a name that the library accepts, of at most `most` characters.

    If text is too long or not printable ASCII, the name is a hash of the whole text, then its
    end. Random draws depend on the name, so different texts must get different names."""
    if 0 < len(text) <= most and text.isascii() and text.isprintable():
        return text
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    end = text[-(most - len(digest) - 1):]
    return f"{digest}~" + "".join(c if c.isascii() and c.isprintable() else "?" for c in end)


class Plan(Handle):
    """A collective that can be started often; Comm.plan creates it. It keeps the residual
    and other state of its codec from start to start.

    The library uses the arrays from start() until wait() returns. The plan keeps them alive,
    and they cannot be resized in that time; a tensor cannot be resized after it either.
    All ranks start the plans of a communicator in the same order. Only one thread at a time
    may use a plan.

    `await plan` waits for the newest start, if start() was called in an event loop.
    """

    def __init__(self, comm: "Comm", handle: ctypes.c_void_p, call: Call,
                 arrays: Tuple[Any, Any], made: Arguments) -> None:
        super().__init__(comm, handle, lib.trib_plan_free)
        self.count = made.count
        self._elements = call.input_length(made.count)
        self._call, self._arrays = call, arrays
        self._made = made.addresses  # used by trib_plan_start
        self._notified_end = False  # _finish has run for the newest start
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        # Starts for which _finish has not run yet; None: not started in the event loop.
        self._starts: Deque[Optional["asyncio.Future[None]"]] = deque()
        self._done: Optional["asyncio.Future[None]"] = None  # of the newest start

    def start(self, x: Any = _MADE, out: Any = None) -> "Plan":
        """Start the collective and return the plan, without blocking.

        x, out  arrays to use in this start only. Raises ValueError unless they have the
                length and element type that the plan was created for
        Raises Error (TRIB_ERR_BUSY) if the previous start is still running."""
        made = x is _MADE and out is None
        x, out = self._arrays if made else (self._arrays[0] if x is _MADE else x, out)
        args = self._call.check_arguments(x, out)
        self._listen()
        args.begin(pinned=True)
        before, self._keep = self._keep, (*self._keep, args)
        try:
            if args.addresses == self._made:
                self._begin(lib.trib_plan_start, self.handle)
            else:
                self._begin(lib.trib_plan_start_with, self.handle, *args.addresses)
        except Error:
            self._keep = before
            raise
        self._keep = (args,)  # the previous start has ended
        return self

    def _begin(self, call: Any, *arguments: Any) -> None:
        """Call a start function. Retry for up to 0.5 s if the plan is busy although its end
        was notified: it stays busy until the notifying thread has left the callback."""
        notifies = self._loop is not None and not self._loop.is_closed()
        done = self._loop.create_future() if self._loop and self._loop is _running_loop() else None
        if notifies:
            self._starts.append(done)
        status, until = call(*arguments), time.monotonic() + 0.5
        while status == _ffi.TRIB_ERR_BUSY and self._notified_end and time.monotonic() < until:
            time.sleep(1e-5)
            status = call(*arguments)
        if status < 0 and notifies:
            self._starts.pop()
        self._check(status)
        self._notified_end, self._done = False, done

    def ready(self, first: int, count: int) -> None:
        """Mark elements [first, first + count) of the input as final, after start(). For plans
        with feed "forward" or "backward"."""
        self._check(lib.trib_plan_ready(self.handle, whole("first", first, _SIZE_MOST),
                                        whole("count", count, _SIZE_MOST)))

    def test(self) -> bool:
        """Return whether the newest start is done, without blocking. Raise its error."""
        kept = self._keep
        done = self._check(lib.trib_plan_test(self.handle)) == _ffi.TRIB_OK
        if done:
            self._release(kept)
        return done

    def wait(self) -> None:
        """Block until the newest start is done. Raise its error."""
        kept = self._keep
        wait(lib.trib_plan_wait, self.handle, comm=self.comm._handle)
        self._release(kept)

    def _release(self, kept: Tuple[Any, ...]) -> None:
        """Drop the arrays of a start that is done, unless another thread has started again."""
        if self._keep is kept:
            self._keep = ()

    def run(self) -> None:
        """Start the collective and block until it is done."""
        self.start().wait()

    def _listen(self) -> None:
        """Have the library notify the event loop, if one runs here, when a start is done."""
        loop = _running_loop()
        if loop is None or self._loop is loop:
            return
        soon, finish = loop.call_soon_threadsafe, weakref.WeakMethod(self._finish)

        def tell(_: Any, status: int) -> None:
            ended = finish()
            if ended is None:  # the plan was dropped; Comm frees its handle
                return
            try:
                soon(ended, status)
            except RuntimeError:  # the loop is closed: nothing awaits the plan
                pass

        notified = _ffi.trib_done_fn(tell)
        self._check(lib.trib_plan_notify(self.handle, notified, None))
        self._loop, self._notified = loop, notified
        self._starts.clear()

    def _finish(self, status: int) -> None:
        self._notified_end = True
        done = self._starts.popleft() if self._starts else None
        if done is None or done.done():
            return
        try:
            self._check(status)
        except Exception as why:  # pylint: disable=broad-except
            done.set_exception(why)
        else:
            done.set_result(None)

    def __await__(self) -> Generator[Any, None, None]:
        if self._loop is not asyncio.get_running_loop() or self._done is None:
            while not self.test():  # started outside of this loop
                yield from asyncio.sleep(0.0005).__await__()
            return
        done = self._done
        try:
            yield from asyncio.shield(done).__await__()  # cancelling one await ends no other
        finally:
            if done.done():
                self._let_return()

    def _let_return(self) -> None:
        """Wait up to 0.5 s until the notifying thread has left the callback. Until then most
        calls on the plan fail with TRIB_ERR_BUSY."""
        until = time.monotonic() + 0.5
        while (self._handle is not None and time.monotonic() < until
               and lib.trib_plan_test(self._handle) == _ffi.TRIB_INPROGRESS):
            time.sleep(1e-5)

    def explain(self) -> str:
        """Return the algorithm, chunk size and codec of the plan, and why they were chosen."""
        return self._text(lib.trib_plan_explain, 4096)

    def awaits(self) -> str:
        """Return the data and the rank that the newest start waits for; "" if it is done or
        waits for no rank. See trib_plan_awaits(3)."""
        return self._text(lib.trib_plan_awaits, 256)

    def sent(self) -> int:
        """Return the number of elements that this rank sent in the newest start. For codecs
        that select elements, such as topk."""
        mask, n = ctypes.POINTER(ctypes.c_ubyte)(), ctypes.c_size_t()
        self._check(lib.trib_plan_sent(self.handle, ctypes.byref(mask), ctypes.byref(n)))
        return n.value

    def absent(self) -> List[int]:
        """Return, for each rank, the number of elements of the newest result that lack its
        contribution. For plans with a quorum; see trib_plan_absent(3)."""
        elements = (ctypes.c_size_t * self.comm.size)()
        self._check(lib.trib_plan_absent(self.handle, elements))
        return list(elements)

    def set_scale(self, prescale: float = 0.0, postscale: float = 0.0) -> None:
        """Set the factors of all later starts, for a plan that was created with prescale,
        postscale or weighted. See trib_plan_set_scale(3)."""
        self._check(lib.trib_plan_set_scale(self.handle, prescale, postscale))

    def residual(self, first: int = 0, count: Optional[int] = None) -> Any:
        """Return the codec's residual of elements [first, first + count), by default to the
        end, as a NumPy array of float32."""
        import numpy  # pylint: disable=import-outside-toplevel

        first = whole("first", first, self._elements)
        rest = self._elements - first
        x = numpy.empty(rest if count is None else whole("count", count, rest),
                        dtype=numpy.float32)
        self._check(lib.trib_plan_residual_get(self.handle, first, x.size,
                                               x.ctypes.data_as(ctypes.c_void_p)))
        return x

    def set_residual(self, x: Any, first: int = 0) -> None:
        """Replace the codec's residual from element `first` on by x, which is float32."""
        b = buffer_of(x)
        if b.dtype != _ffi.TRIB_F32:
            raise TypeError("a residual is float32")
        first = whole("first", first, self._elements)
        whole("the number of elements", b.count, self._elements - first)
        self._check(lib.trib_plan_residual_set(self.handle, first, b.count,
                                               ctypes.c_void_p(b.address)))

    def state_dict(self) -> Dict[str, Any]:
        """Return this rank's state of the plan, for a checkpoint; see trib_plan_state_save(3)."""
        return {"of": _STATE, "bytes": self._state(lib.trib_plan_state_save)}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Continue from a state that state_dict() returned. All ranks load theirs."""
        data = bytes_of_state(state)
        self._check(lib.trib_plan_state_load(self.handle, data, len(data)))


def bytes_of_state(state: Dict[str, Any]) -> bytes:
    """Return the bytes of a plan's state_dict(). Raise ValueError or TypeError if it is none."""
    if state.get("of") != _STATE:
        raise ValueError("this is not the state of a tributary plan")
    data = state["bytes"]
    if not isinstance(data, bytes):
        raise TypeError(f"the state of a plan is bytes, not {type(data).__name__}")
    return data


def _running_loop() -> Optional[asyncio.AbstractEventLoop]:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
