# SPDX-License-Identifier: BSD-3-Clause
"""The shared library with its functions declared, and signal handling while it waits."""
from __future__ import annotations

import ctypes
import glob
import os
import sys
import threading
from typing import Any, Callable, List, Tuple

from . import _errors, _ffi


_NAME = "libtributary.so.0"


def _installed() -> str:
    """Return the library that `make install` has put into the tree of this package, else the
    name that the dynamic linker searches for."""
    here = os.path.dirname(os.path.abspath(__file__))
    for _ in range(4):
        here = os.path.dirname(here)
        if os.path.basename(here) == "lib":
            found = glob.glob(os.path.join(here, _NAME)) + glob.glob(
                os.path.join(here, "*-linux-*", _NAME))
            return found[0] if found else _NAME
    return _NAME


def path() -> str:
    """Return the file of the open library."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            if "/libtributary.so" in line:
                return line.split(maxsplit=5)[5].rstrip("\n")
    return str(lib._name)


_BACKEND = "_torch_backend.so"


def backend() -> Tuple[str, str]:
    """Return the file of the torch.distributed extension and "", or "" and why it is missing.
    It is searched for next to the library: as installed, and as in a build folder."""
    folder = os.path.dirname(path())
    for file in (os.path.join(folder, "tributary", _BACKEND), os.path.join(folder, _BACKEND)):
        if os.path.exists(file):
            return file, ""
    return "", (f"the backend tributary was not built: {os.path.join(folder, 'tributary')} has no "
                f"{_BACKEND}; install libtorch-dev and pybind11-dev, then configure and make")


def _open() -> ctypes.CDLL:
    name = os.environ.get("TRIBUTARY_LIBRARY") or _installed()
    try:
        library = ctypes.CDLL(name)
    except OSError as why:
        raise ImportError(
            f"cannot open {name} ({why}): install libtributary, or set TRIBUTARY_LIBRARY to its "
            "file"
        ) from None
    for name, result, arguments in _ffi.FUNCTIONS:
        function = getattr(library, name, None)
        if function is not None:
            function.restype, function.argtypes = result, arguments
    return library


lib: Any = _open()


class _Interrupts:
    """Runs signal handlers while the main thread waits in the library.

    The library calls idle(), and Python then runs pending handlers. ctypes passes an exception
    of a handler only to sys.unraisablehook, which is therefore replaced during a wait: the
    exception ends the wait, and wait() raises it."""

    def __init__(self) -> None:
        self.waiting = 0
        self.raised: List[BaseException] = []
        self.hook: Callable[[Any], Any] = sys.unraisablehook

    def begin(self) -> None:
        if not self.waiting:
            self.hook, sys.unraisablehook = sys.unraisablehook, self.on_unraisable
        self.waiting += 1

    def end(self) -> None:
        self.waiting -= 1
        if not self.waiting:
            sys.unraisablehook = self.hook

    def on_unraisable(self, unraisable: Any) -> None:
        if unraisable.object == self.idle and unraisable.exc_value is not None:
            self.raised.append(unraisable.exc_value)
        else:
            self.hook(unraisable)

    def idle(self, _: Any) -> int:
        return 1 if self.raised and threading.current_thread() is threading.main_thread() else 0


interrupts = _Interrupts()
IDLE = _ffi.trib_idle_fn(interrupts.idle)


def last_error(comm: Any) -> str:
    text: bytes = lib.trib_last_error(comm) or b""
    return text.decode(errors="replace")


def check(status: int, comm: Any = None) -> int:
    """Return a status, or raise its exception with the library's message if it is an error.

    comm  handle of the communicator that failed; None: of a call without a communicator
    """
    if status >= 0:
        return status
    name = lib.trib_status_name(status).decode()
    scope = ("none", "op", "endpoint", "comm", "context")[lib.trib_status_scope(status)]
    raise _errors.CLASSES.get(status, _errors.Error)(last_error(comm), name, scope)


def wait(call: Callable[..., int], *arguments: Any, comm: Any = None) -> int:
    """Call a function of the library that may block, and check its status. On the main thread
    an exception of a signal handler, such as KeyboardInterrupt, ends the call and is raised."""
    if threading.current_thread() is not threading.main_thread():
        return check(call(*arguments), comm)
    interrupts.begin()
    try:
        status = call(*arguments)
    finally:
        interrupts.end()
    if interrupts.raised and not interrupts.waiting:
        why = interrupts.raised.pop()
        interrupts.raised.clear()
        raise why
    return check(status, comm)
