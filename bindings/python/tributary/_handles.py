# SPDX-License-Identifier: BSD-3-Clause
"""Base classes of objects that own a handle of the library."""
from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Callable, Optional, Tuple, Type

from ._errors import Error
from ._library import check

if TYPE_CHECKING:
    from ._comm import Comm


class Unique:
    """An object that cannot be copied or pickled: its handle is valid in this process only."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"a {type(self).__name__} belongs to this process and cannot be copied or "
                        "pickled: create another one, and load the state_dict() of this one if it "
                        "has one")


class Handle(Unique):
    """A plan or a group. Closing its communicator closes it."""

    _handle: Optional[ctypes.c_void_p] = None  # for __del__ if __init__ has raised

    def __init__(self, comm: "Comm", handle: ctypes.c_void_p, free: Callable[..., int]) -> None:
        self.comm = comm
        self._free = free
        self._keep: Tuple[Any, ...] = ()  # objects whose addresses the library has
        self._notified: Any = None  # callback that the library calls
        self._handle = handle
        comm._children.add(self)

    @property
    def handle(self) -> ctypes.c_void_p:
        """The handle, for calls of the C API. Raises ValueError if it is closed."""
        if self._handle is None:
            raise ValueError(f"the {type(self).__name__.lower()} is closed")
        return self._handle

    def _check(self, status: int) -> int:
        return check(status, self.comm._handle)

    def _text(self, call: Callable[..., int], room: int) -> str:
        """Return the text that a function of the library writes into a buffer of this size."""
        text = ctypes.create_string_buffer(room)
        self._check(call(self.handle, text, room))
        return text.value.decode(errors="replace")

    def _state(self, save: Callable[..., int]) -> bytes:
        """Return this rank's state, saved by a function of the library."""
        n = ctypes.c_size_t()
        self._check(save(self.handle, None, 0, ctypes.byref(n)))
        state = ctypes.create_string_buffer(max(1, n.value))
        self._check(save(self.handle, state, n.value, ctypes.byref(n)))
        return state.raw[: n.value]

    def close(self) -> None:
        """Free the handle; again has no effect. Raise Error (TRIB_ERR_BUSY), and free nothing,
        while an operation is pending."""
        if self._handle is not None:
            self._check(self._free(self._handle))
            self._handle, self._keep = None, ()

    def __del__(self) -> None:
        # May run on a thread that must not use the communicator: Comm frees the handle later.
        if self._handle is not None:
            self.comm._forgotten.append((self._free, self._handle, (self._keep, self._notified)))

    def __enter__(self) -> Any:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], *_: Any) -> None:
        try:
            self.close()
        except Error:
            if kind is None:
                raise  # else the exception of the block is the cause
