# SPDX-License-Identifier: BSD-3-Clause
"""The torch.distributed backend "tributary": a C++ extension for one release of torch."""
from __future__ import annotations

import atexit
import importlib.machinery
import importlib.util
import os
import sys
from datetime import timedelta
from multiprocessing import util
from typing import Any

import torch
import torch.distributed as dist

from ._library import backend

NAME = "tributary"
TORCH = "1.13"  # the release whose c10d::ProcessGroup the extension implements


def _load() -> Any:
    version = str(torch.__version__)
    if not version.startswith(TORCH):
        raise ImportError(f"the backend tributary supports only torch {TORCH}, not {version}: "
                          "use a backend of torch with tributary.torch.Hook, or use Fed")
    file, why = backend()
    if not file:
        raise ImportError(why)
    loader = importlib.machinery.ExtensionFileLoader("_torch_backend", file)
    spec: Any = importlib.util.spec_from_loader("_torch_backend", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


_module: Any = None
_ends_in = 0  # pid of the process whose exit handlers include _end


def _end() -> None:
    """Wait for the pending operations of all groups, or abort them if an exception ends the
    program. In a child of multiprocessing that exception is still in sys.exc_info() here."""
    raised = hasattr(sys, "last_type") or sys.exc_info()[0] not in (None, SystemExit)
    _module.end_all(raised)


def _create(store: Any, rank: int, size: int, timeout: timedelta) -> Any:
    global _module, _ends_in  # pylint: disable=global-statement
    if _module is None:
        _module = _load()
        atexit.register(_end)
    if _ends_in != os.getpid():
        _ends_in = os.getpid()
        util.Finalize(None, _end, exitpriority=0)  # multiprocessing children skip atexit
    return _module.create(store, rank, size, timeout.total_seconds())


def register() -> None:
    """Register the backend with torch.distributed, for init_process_group and new_group."""
    backends: Any = dist.Backend
    if not hasattr(backends, NAME.upper()):
        backends.register_backend(NAME, _create)
