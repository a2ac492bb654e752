# SPDX-License-Identifier: BSD-3-Clause
"""Exceptions for the library's error statuses."""
from __future__ import annotations

from typing import Dict, Type

from . import _ffi


class Error(RuntimeError):
    """A call of the library failed. The message is the library's, see trib_last_error(3).

    status  name of the status, such as "TRIB_ERR_TIMEOUT"
    scope   largest object that is unusable now: "op", "endpoint", "comm" or "context"
    """

    status: str = "TRIB_ERR_SYSTEM"
    scope: str = "op"

    def __init__(self, message: str, status: str = "", scope: str = "") -> None:
        super().__init__(message)
        self.status = status or type(self).status
        self.scope = scope or type(self).scope


class PeerLost(Error):
    """A rank has died or was stopped, or its host does not respond."""


class Timeout(Error):
    """An operation made no progress within its time limit."""


class Mismatch(Error):
    """Ranks passed different arguments to a collective."""


class Aborted(Error):
    """The communicator has failed or was aborted."""


class Config(Error):
    """A setting cannot be applied."""


class Unsupported(Error, ValueError):
    """No algorithm or codec supports the call."""


class Invalid(Error, ValueError):
    """An argument is invalid."""


CLASSES: Dict[int, Type[Error]] = {
    _ffi.TRIB_ERR_INVALID: Invalid,
    _ffi.TRIB_ERR_OVERLAP: Invalid,
    _ffi.TRIB_ERR_OVERFLOW: Invalid,
    _ffi.TRIB_ERR_CODEC: Invalid,
    _ffi.TRIB_ERR_UNSUPPORTED: Unsupported,
    _ffi.TRIB_ERR_PEER_LOST: PeerLost,
    _ffi.TRIB_ERR_TIMEOUT: Timeout,
    _ffi.TRIB_ERR_MISMATCH: Mismatch,
    _ffi.TRIB_ERR_ABORTED: Aborted,
    _ffi.TRIB_ERR_CONFIG: Config,
}
