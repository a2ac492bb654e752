# SPDX-License-Identifier: BSD-3-Clause
"""Plans: collectives that are made once and started often."""
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
from ._calls import Call, Lent, whole
from ._errors import Error
from ._handles import Handle
from ._library import check, lib, wait

if TYPE_CHECKING:
    from ._comm import Comm

_STATE = "tributary plan"
_SIZE_MOST = 2**63 - 1
_MADE: Any = object()  # the array that the plan was made with
_NAME_MOST = 63  # TRIB_PLAN_NAME_MAX


def name_of(text: str, most: int = _NAME_MOST) -> str:
    """A text as a name that the library takes: one that is too long, or has other than
    printable ASCII characters, keeps its end, behind a hash of the whole of it. So plans
    of two texts do not draw the same random numbers."""
    if 0 < len(text) <= most and text.isascii() and text.isprintable():
        return text
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    end = text[-(most - len(digest) - 1):]
    return f"{digest}~" + "".join(c if c.isascii() and c.isprintable() else "?" for c in end)


class Plan(Handle):
    """Made by Comm.plan. It keeps what its codec holds back from start to start.

    Its arrays are the library's from start to the end of wait: they live as long, and
    are not resized meanwhile (a tensor that was given to a plan never again).

    `await plan` waits in an event loop for the start that is under way.
    """

    def __init__(self, comm: "Comm", handle: ctypes.c_void_p, call: Call,
                 arrays: Tuple[Any, Any], made: Lent) -> None:
        super().__init__(comm, handle, lib.trib_plan_free)
        self.count = made.count
        self._elements = call.input_length(made.count)
        self._call, self._arrays = call, arrays
        self._made = made.addresses  # those that trib_plan_start takes
        self._told = False  # the newest end
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._starts: Deque[Optional["asyncio.Future[None]"]] = deque()  # whose end is not told
        self._done: Optional["asyncio.Future[None]"] = None  # of the newest start

    def start(self, x: Any = _MADE, out: Any = None) -> "Plan":
        """Begin. x and out: other arrays than those it was made with, this time. They have
        the same lengths and element type, or it is a ValueError."""
        made = x is _MADE and out is None
        lent = self._call.lend(*self._arrays) if made else self._call.lend(
            self._arrays[0] if x is _MADE else x, out)
        self._listen()
        lent.begin(pinned=True)
        before, self._keep = self._keep, (*self._keep, lent)
        try:
            if lent.addresses == self._made:
                self._begin(lib.trib_plan_start, self.handle)
            else:
                self._begin(lib.trib_plan_start_with, self.handle, *lent.addresses)
        except Error:
            self._keep = before
            raise
        self._keep = (lent,)  # what was started before is over
        return self

    def _begin(self, call: Any, *arguments: Any) -> None:
        """Starts. The thread that has told the event loop of the last end may be on its way
        back into the library, which then says that the plan is busy."""
        told = self._loop is not None and not self._loop.is_closed()
        done = self._loop.create_future() if self._loop and self._loop is _running_loop() else None
        if told:
            self._starts.append(done)
        status, until = call(*arguments), time.monotonic() + 0.5
        while status == _ffi.TRIB_ERR_BUSY and self._told and time.monotonic() < until:
            time.sleep(1e-5)
            status = call(*arguments)
        if status < 0 and told:
            self._starts.pop()
        self._check(status)
        self._told, self._done = False, done

    def ready(self, first: int, count: int) -> None:
        """Elements [first, first + count) are final: of plans that are fed piecewise."""
        self._check(lib.trib_plan_ready(self.handle, whole("first", first, _SIZE_MOST),
                                        whole("count", count, _SIZE_MOST)))

    def test(self) -> bool:
        """True if the newest start is done."""
        kept = self._keep
        done = self._check(lib.trib_plan_test(self.handle)) == _ffi.TRIB_OK
        if done:
            self._release(kept)
        return done

    def wait(self) -> None:
        """Block until the newest start is done."""
        kept = self._keep
        wait(lib.trib_plan_wait, self.handle, comm=self.comm._handle)
        self._release(kept)

    def _release(self, kept: Tuple[Any, ...]) -> None:
        """What was started is over, unless another thread has started the plan again."""
        if self._keep is kept:
            self._keep = ()

    def run(self) -> None:
        """start and wait."""
        self.start().wait()

    def _listen(self) -> None:
        """Have the library tell the event loop of the end of starts, if one runs here."""
        loop = _running_loop()
        if loop is None or self._loop is loop:
            return
        soon, finish = loop.call_soon_threadsafe, weakref.WeakMethod(self._finish)

        def tell(_: Any, status: int) -> None:
            ended = finish()
            if ended is None:  # the plan is dropped, and Comm frees it
                return
            try:
                soon(ended, status)
            except RuntimeError:  # the loop is closed: nobody waits any more
                pass

        notified = _ffi.trib_done_fn(tell)
        self._check(lib.trib_plan_notify(self.handle, notified, None))
        self._loop, self._notified = loop, notified
        self._starts.clear()

    def _finish(self, status: int) -> None:
        self._told = True
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
            while not self.test():  # it was started outside of this loop
                yield from asyncio.sleep(0.0005).__await__()
            return
        done = self._done
        try:
            yield from asyncio.shield(done).__await__()  # one that is cancelled ends no other
        finally:
            if done.done():
                self._let_return()

    def _let_return(self) -> None:
        """The thread that has told the event loop of the end may be on its way back into the library, which until
        then says of most calls that the plan still runs."""
        until = time.monotonic() + 0.5
        while (self._handle is not None and time.monotonic() < until
               and lib.trib_plan_test(self._handle) == _ffi.TRIB_INPROGRESS):
            time.sleep(1e-5)

    def explain(self) -> str:
        """Which algorithm, chunk and codec were chosen, and why."""
        text = ctypes.create_string_buffer(4096)
        self._check(lib.trib_plan_explain(self.handle, text, len(text)))
        return text.value.decode()

    def awaits(self) -> str:
        """For what the newest start waits, and for which rank; "": it is done, or waits for nobody."""
        text = ctypes.create_string_buffer(256)
        self._check(lib.trib_plan_awaits(self.handle, text, len(text)))
        return text.value.decode(errors="replace")

    def sent(self) -> int:
        """Elements of its vector that this rank sent in the newest start."""
        mask, n = ctypes.POINTER(ctypes.c_ubyte)(), ctypes.c_size_t()
        self._check(lib.trib_plan_sent(self.handle, ctypes.byref(mask), ctypes.byref(n)))
        return n.value

    def absent(self) -> List[int]:
        """Of a plan with a quorum, for each rank: of how many elements the newest result
        lacks its contribution."""
        elements = (ctypes.c_size_t * self.comm.size)()
        self._check(lib.trib_plan_absent(self.handle, elements))
        return list(elements)

    def set_scale(self, prescale: float = 0.0, postscale: float = 0.0) -> None:
        """Other factors from the next start on, of a plan that was made with some. 0: not."""
        self._check(lib.trib_plan_set_scale(self.handle, prescale, postscale))

    def residual(self, first: int = 0, count: Optional[int] = None) -> Any:
        """What it holds back of elements [first, first + count), as a NumPy array."""
        import numpy  # pylint: disable=import-outside-toplevel

        first = whole("first", first, self._elements)
        rest = self._elements - first
        x = numpy.empty(rest if count is None else whole("count", count, rest),
                        dtype=numpy.float32)
        self._check(lib.trib_plan_residual_get(self.handle, first, x.size,
                                               x.ctypes.data_as(ctypes.c_void_p)))
        return x

    def set_residual(self, x: Any, first: int = 0) -> None:
        """Hold back this instead, from element `first` on: float32."""
        b = buffer_of(x)
        if b.dtype != _ffi.TRIB_F32:
            raise TypeError("residuals are of float32")
        first = whole("first", first, self._elements)
        whole("the number of elements", b.count, self._elements - first)
        self._check(lib.trib_plan_residual_set(self.handle, first, b.count,
                                               ctypes.c_void_p(b.address)))

    def state_dict(self) -> Dict[str, Any]:
        """What the plan keeps between starts, of this rank."""
        n = ctypes.c_size_t()
        self._check(lib.trib_plan_state_save(self.handle, None, 0, ctypes.byref(n)))
        state = ctypes.create_string_buffer(max(1, n.value))
        self._check(lib.trib_plan_state_save(self.handle, state, n.value, ctypes.byref(n)))
        return {"of": _STATE, "bytes": state.raw[: n.value]}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Go on from what state_dict gave."""
        if state.get("of") != _STATE:
            raise ValueError("that is no state of a tributary plan")
        data = state["bytes"]
        if not isinstance(data, bytes):
            raise TypeError(f"the state of a plan is bytes, and this is {type(data).__name__}")
        self._check(lib.trib_plan_state_load(self.handle, data, len(data)))


def _running_loop() -> Optional[asyncio.AbstractEventLoop]:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
