# SPDX-License-Identifier: BSD-3-Clause
"""Plans: collectives that are made once and started often."""
from __future__ import annotations

import asyncio
import ctypes
import time
from typing import TYPE_CHECKING, Any, Dict, Generator, Optional

from . import _ffi
from ._buffers import buffer_of
from ._library import check, lib, wait

if TYPE_CHECKING:
    from ._comm import Comm

_STATE = "tributary plan"


class Plan:
    """Made by Comm.plan. It keeps what its codec holds back from start to start.

    `await plan` waits in an event loop for the start that is under way.
    """

    def __init__(self, comm: "Comm", handle: ctypes.c_void_p, keep: Any, count: int) -> None:
        self.comm = comm
        self.count = count
        self._handle: Optional[ctypes.c_void_p] = handle
        self._keep = keep  # the arrays, as the library has their addresses
        self._notified: Any = None
        self._told = False  # the newest end
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._done: Optional["asyncio.Future[None]"] = None

    @property
    def handle(self) -> ctypes.c_void_p:
        """The trib_plan_t, for calls of the C API."""
        if self._handle is None:
            raise ValueError("the plan is closed")
        return self._handle

    def _check(self, status: int) -> int:
        return check(status, self.comm._handle)

    def start(self, x: Any = None, out: Any = None) -> "Plan":
        """Begin. x and out: other arrays than those it was made with, this time."""
        self._listen()
        if self._loop is not None and not self._loop.is_closed():
            self._done = self._loop.create_future()
        if x is None and out is None:
            self._begin(lib.trib_plan_start, self.handle)
            return self
        to = buffer_of(x if out is None else out, writable=True)
        send = None if out is None else buffer_of(x)
        self._keep = (*self._keep[:2], to, send)
        self._begin(lib.trib_plan_start_with, self.handle, send.address if send else None,
                    to.address)
        return self

    def _begin(self, call: Any, *arguments: Any) -> None:
        """Starts. The thread that has told the event loop of the last end may be on its way
        back into the library, which then says that the plan is busy."""
        status, until = call(*arguments), time.monotonic() + 0.5
        while status == _ffi.TRIB_ERR_BUSY and self._told and time.monotonic() < until:
            time.sleep(1e-5)
            status = call(*arguments)
        self._told = False
        self._check(status)

    def ready(self, first: int, count: int) -> None:
        """Elements [first, first + count) are final: of plans that are fed piecewise."""
        self._check(lib.trib_plan_ready(self.handle, first, count))

    def test(self) -> bool:
        """True if the newest start is done."""
        return self._check(lib.trib_plan_test(self.handle)) == _ffi.TRIB_OK

    def wait(self) -> None:
        """Block until the newest start is done."""
        wait(lib.trib_plan_wait, self.handle, comm=self.comm._handle)

    def run(self) -> None:
        """start and wait."""
        self.start().wait()

    def _listen(self) -> None:
        """Have the library tell the event loop of the end of starts, if one runs here."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        if self._loop is loop:
            return

        def tell(_: Any, status: int) -> None:
            try:
                loop.call_soon_threadsafe(self._finish, status)
            except RuntimeError:  # the loop is closed: nobody waits any more
                pass

        notified = _ffi.trib_done_fn(tell)
        self._check(lib.trib_plan_notify(self.handle, notified, None))
        self._loop, self._notified = loop, notified

    def _finish(self, status: int) -> None:
        self._told = True
        done, self._done = self._done, None
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
            yield from done.__await__()
        finally:
            if done.done() and not done.cancelled():
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

    def residual(self, first: int = 0, count: Optional[int] = None) -> Any:
        """What it holds back of elements [first, first + count), as a NumPy array."""
        import numpy  # pylint: disable=import-outside-toplevel

        x = numpy.empty(self.count - first if count is None else count, dtype=numpy.float32)
        self._check(lib.trib_plan_residual_get(self.handle, first, x.size,
                                               x.ctypes.data_as(ctypes.c_void_p)))
        return x

    def set_residual(self, x: Any, first: int = 0) -> None:
        """Hold back this instead, from element `first` on: float32."""
        b = buffer_of(x)
        if b.dtype != _ffi.TRIB_F32:
            raise TypeError("residuals are of float32")
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
        data: bytes = state["bytes"]
        self._check(lib.trib_plan_state_load(self.handle, data, len(data)))

    def close(self) -> None:
        """Free it, once no start is under way."""
        if self._handle is not None:
            handle, self._handle = self._handle, None
            self._check(lib.trib_plan_free(handle))

    def __del__(self) -> None:
        # Any thread may come here, also one that is not the communicator's.
        if self._handle is not None:
            self.comm._forgotten.append(self._handle)

    def __enter__(self) -> "Plan":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
