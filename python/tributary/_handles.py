# SPDX-License-Identifier: BSD-3-Clause
"""What the library has made for a communicator, and memory that it may use until that ends."""
from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Callable, Optional, Tuple, Type

from ._errors import Error
from ._library import check

if TYPE_CHECKING:
    from ._comm import Comm


class Unique:
    """Something of this process: there is no second one of it, here or elsewhere."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"a {type(self).__name__} belongs to this process, and cannot be copied or "
                        "pickled: make another one, and give it the state_dict() of this one if "
                        "it has one")


class Handle(Unique):
    """A plan or a group. The end of the communicator closes it."""

    _handle: Optional[ctypes.c_void_p] = None  # also where __init__ has failed

    def __init__(self, comm: "Comm", handle: ctypes.c_void_p, free: Callable[..., int]) -> None:
        self.comm = comm
        self._free = free
        self._keep: Tuple[Any, ...] = ()  # of which the library has addresses
        self._notified: Any = None  # a function that the library calls
        self._handle = handle
        comm._children.add(self)

    @property
    def handle(self) -> ctypes.c_void_p:
        """The handle of the C API."""
        if self._handle is None:
            raise ValueError(f"the {type(self).__name__.lower()} is closed")
        return self._handle

    def _check(self, status: int) -> int:
        return check(status, self.comm._handle)

    def close(self) -> None:
        """Free it, once nothing of it is under way."""
        if self._handle is not None:
            self._check(self._free(self._handle))
            self._handle, self._keep = None, ()

    def __del__(self) -> None:
        # Any thread may come here, also one that is not the communicator's.
        if self._handle is not None:
            self.comm._forgotten.append((self._free, self._handle, (self._keep, self._notified)))

    def __enter__(self) -> Any:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], *_: Any) -> None:
        try:
            self.close()
        except Error:
            if kind is None:
                raise  # else what was raised before says more
