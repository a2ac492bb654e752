# SPDX-License-Identifier: BSD-3-Clause
"""The backend "tributary" of torch.distributed, a module in C++ for one release of torch."""
from __future__ import annotations

import importlib.machinery
import importlib.util
import os
from datetime import timedelta
from typing import Any, List

import torch
import torch.distributed as dist

from ._library import path as library_path

NAME = "tributary"
TORCH = "1.13"  # whose interface of process groups it has
_FILE = "_torch_backend.so"


def _places() -> List[str]:
    """Beside the library: as `make install` puts it, and as a build has it."""
    folder = os.path.dirname(library_path())
    return [os.path.join(folder, "tributary", _FILE), os.path.join(folder, _FILE)]


def _load() -> Any:
    version = str(torch.__version__)
    if not version.startswith(TORCH):
        raise ImportError(f"the backend tributary is for torch {TORCH}, and this is {version}: "
                          "take a backend of torch with tributary.torch.Hook, or Fed")
    for file in _places():
        if os.path.exists(file):
            loader = importlib.machinery.ExtensionFileLoader("_torch_backend", file)
            spec: Any = importlib.util.spec_from_loader("_torch_backend", loader)
            module = importlib.util.module_from_spec(spec)
            loader.exec_module(module)
            return module
    raise ImportError(f"the backend tributary was not built: {_FILE} is not in "
                      f"{os.path.dirname(_places()[0])}; install libtorch-dev and pybind11-dev, "
                      "configure and make")


_module: Any = None


def _create(store: Any, rank: int, size: int, timeout: timedelta) -> Any:
    global _module  # pylint: disable=global-statement
    if _module is None:
        _module = _load()
    return _module.create(store, rank, size, timeout.total_seconds())


def register() -> None:
    """Makes init_process_group("tributary") and new_group(backend="tributary") work."""
    backends: Any = dist.Backend
    if not hasattr(backends, NAME.upper()):
        backends.register_backend(NAME, _create)
