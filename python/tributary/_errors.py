# SPDX-License-Identifier: BSD-3-Clause
"""Errors of the library as exceptions."""
from __future__ import annotations

from typing import Dict, Type

from . import _ffi


class Error(RuntimeError):
    """A call of the library failed: the message is its sentence.

    status  the name, such as "TRIB_ERR_TIMEOUT"
    scope   the largest thing that is broken: "op", "endpoint", "comm" or "context"
    """

    status: str = "TRIB_ERR_SYSTEM"
    scope: str = "op"

    def __init__(self, message: str, status: str = "", scope: str = "") -> None:
        super().__init__(message)
        self.status = status or type(self).status
        self.scope = scope or type(self).scope


class PeerLost(Error):
    """A rank has died, was stopped, or its host is silent."""


class Timeout(Error):
    """Nothing has moved for too long."""


class Mismatch(Error):
    """Ranks gave different arguments."""


class Aborted(Error):
    """The communicator has failed, or was given up."""


class Config(Error):
    """A setting cannot be applied."""


class Unsupported(Error, ValueError):
    """No algorithm or codec does that."""


class Invalid(Error, ValueError):
    """An argument is not valid."""


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
