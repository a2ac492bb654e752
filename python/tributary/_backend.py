# SPDX-License-Identifier: BSD-3-Clause
"""The backend "tributary" of torch.distributed, a module in C++ for one release of torch."""
from __future__ import annotations

import atexit
import importlib.machinery
import importlib.util
import sys
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from ._library import backend

NAME = "tributary"
TORCH = "1.13"  # whose interface of process groups it has


def _load() -> Any:
    version = str(torch.__version__)
    if not version.startswith(TORCH):
        raise ImportError(f"the backend tributary is for torch {TORCH}, and this is {version}: "
                          "take a backend of torch with tributary.torch.Hook, or Fed")
    file, why = backend()
    if not file:
        raise ImportError(why)
    loader = importlib.machinery.ExtensionFileLoader("_torch_backend", file)
    spec: Any = importlib.util.spec_from_loader("_torch_backend", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


_module: Any = None


def _end() -> None:
    """What is under way is waited for, unless an exception ends the program."""
    _module.end_all(hasattr(sys, "last_type"))


def _create(store: Any, rank: int, size: int, timeout: timedelta) -> Any:
    global _module  # pylint: disable=global-statement
    if _module is None:
        _module = _load()
        atexit.register(_end)
    return _module.create(store, rank, size, timeout.total_seconds())


def register() -> None:
    """Makes init_process_group("tributary") and new_group(backend="tributary") work."""
    backends: Any = dist.Backend
    if not hasattr(backends, NAME.upper()):
        backends.register_backend(NAME, _create)
