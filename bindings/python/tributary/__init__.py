# SPDX-License-Identifier: BSD-3-Clause
"""Collectives on NumPy arrays, PyTorch CPU tensors and buffers, dense or compressed.

    import numpy as np, tributary as tb
    with tb.init() as comm:
        x = np.full(1000, comm.rank, np.float32)
        comm.allreduce(x, op="mean")

    trib-run -n 4 -- python3 sum.py
"""
from __future__ import annotations

from typing import Any

from ._comm import Comm, init
from ._errors import Aborted, Config, Error, Invalid, Mismatch, PeerLost, Timeout, Unsupported
from ._plan import Plan

__all__ = [
    "Aborted",
    "Comm",
    "Config",
    "Error",
    "Invalid",
    "Mismatch",
    "PeerLost",
    "Plan",
    "Timeout",
    "Unsupported",
    "from_mpi4py",
    "from_torch",
    "init",
]


def from_mpi4py(mpi: Any, **options: Any) -> Comm:
    """Create a communicator of the ranks of an mpi4py communicator, with its allgather as
    rendezvous. Collective.

    options  as of init(), other than rank, size and allgather
    """
    return init(mpi.Get_rank(), mpi.Get_size(), allgather=mpi.allgather, **options)


def from_torch(group: Any = None, **options: Any) -> Comm:
    """Create a communicator of the ranks of a torch.distributed process group, with
    all_gather_object as rendezvous. Collective.

    group    None: the default process group
    options  as of init(), other than rank, size and allgather
    """
    import torch.distributed as dist  # pylint: disable=import-outside-toplevel

    size = dist.get_world_size(group)

    def allgather(mine: bytes) -> Any:
        parts: Any = [None] * size
        gather: Any = dist.all_gather_object
        gather(parts, mine, group)
        return parts

    return init(dist.get_rank(group), size, allgather=allgather, **options)
