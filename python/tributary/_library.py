# SPDX-License-Identifier: BSD-3-Clause
"""The shared library, its functions declared; and Ctrl-C while it waits."""
from __future__ import annotations

import ctypes
import glob
import os
import signal
import threading
from types import FrameType
from typing import Any, Callable, List, Optional, Tuple, Union

from . import _errors, _ffi


_NAME = "libtributary.so.0"


def _installed() -> str:
    """The library that `make install` has put into the same tree, else that of the system."""
    here = os.path.dirname(os.path.abspath(__file__))
    for _ in range(4):
        here = os.path.dirname(here)
        if os.path.basename(here) == "lib":
            found = glob.glob(os.path.join(here, _NAME)) + glob.glob(
                os.path.join(here, "*-linux-*", _NAME))
            return found[0] if found else _NAME
    return _NAME


def path() -> str:
    """The file of the library that is open."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            if "/libtributary.so" in line:
                return line.split(maxsplit=5)[5].rstrip("\n")
    return str(lib._name)


_BACKEND = "_torch_backend.so"


def backend() -> Tuple[str, str]:
    """The module of the backend of torch.distributed, beside the library as `make install` puts it, or a build
    has it; else "" and why it is not there."""
    folder = os.path.dirname(path())
    for file in (os.path.join(folder, "tributary", _BACKEND), os.path.join(folder, _BACKEND)):
        if os.path.exists(file):
            return file, ""
    return "", (f"the backend tributary was not built: {_BACKEND} is not in {os.path.join(folder, 'tributary')}; "
                "install libtorch-dev and pybind11-dev, configure and make")


def _open() -> ctypes.CDLL:
    name = os.environ.get("TRIBUTARY_LIBRARY") or _installed()
    try:
        library = ctypes.CDLL(name)
    except OSError as why:
        raise ImportError(
            f"{name} cannot be opened ({why}): install libtributary, or name the file in "
            "TRIBUTARY_LIBRARY"
        ) from None
    for name, result, arguments in _ffi.FUNCTIONS:
        function = getattr(library, name, None)
        if function is not None:
            function.restype, function.argtypes = result, arguments
    return library


lib: Any = _open()

_Handler = Union[Callable[[int, Optional[FrameType]], Any], int, None]


class _Interrupts:
    """SIGINT while the main thread waits in the library: the signal's handler runs from the
    library's idle function, and what it raises ends the wait and is raised behind it."""

    def __init__(self) -> None:
        self.waiting = 0
        self.raised: List[BaseException] = []
        self.handler: _Handler = None

    def install(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        handler = signal.getsignal(signal.SIGINT)
        if handler is not None and handler != self.on_signal:
            self.handler = handler
            signal.signal(signal.SIGINT, self.on_signal)

    def on_signal(self, number: int, frame: Optional[FrameType]) -> None:
        if not callable(self.handler):
            if self.handler == signal.SIG_DFL:
                signal.signal(number, signal.SIG_DFL)
                os.kill(os.getpid(), number)
            return
        if not self.waiting:
            self.handler(number, frame)
            return
        try:
            self.handler(number, frame)
        except BaseException as why:  # pylint: disable=broad-except
            self.raised.append(why)

    def idle(self, _: Any) -> int:
        return 1 if self.raised and threading.current_thread() is threading.main_thread() else 0


interrupts = _Interrupts()
IDLE = _ffi.trib_idle_fn(interrupts.idle)


def last_error(comm: Any) -> str:
    text: bytes = lib.trib_last_error(comm) or b""
    return text.decode(errors="replace")


def check(status: int, comm: Any = None) -> int:
    """Raises what a status says, if it is an error; returns it."""
    if status >= 0:
        return status
    name = lib.trib_status_name(status).decode()
    scope = ("none", "op", "endpoint", "comm", "context")[lib.trib_status_scope(status)]
    raise _errors.CLASSES.get(status, _errors.Error)(last_error(comm), name, scope)


def wait(call: Callable[..., int], *arguments: Any, comm: Any = None) -> int:
    """Calls a function that may wait, so that Ctrl-C ends it."""
    if threading.current_thread() is not threading.main_thread():
        return check(call(*arguments), comm)
    interrupts.waiting += 1
    try:
        status = call(*arguments)
    finally:
        interrupts.waiting -= 1
    if interrupts.raised and not interrupts.waiting:
        why = interrupts.raised.pop()
        interrupts.raised.clear()
        raise why
    return check(status, comm)
