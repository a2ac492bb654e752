# SPDX-License-Identifier: BSD-3-Clause
"""Replicas of a model: compare their structure, and copy rank 0's values to all ranks."""
from __future__ import annotations

import hashlib
from typing import Any, Iterator, List, Sequence

import torch

from ._comm import Comm

_BATCH = 64 << 20  # most bytes of one broadcast, unless a single tensor has more


def check_replicas_match(comm: Comm, model: Any, buffers: bool) -> None:
    """Raise ValueError on all ranks unless the models have the same parameters (name, shape,
    type, requires_grad) and, if `buffers`, the same buffers. Collective."""
    named = [("parameter", n, tuple(p.shape), p.dtype, p.requires_grad)
             for n, p in model.named_parameters()]
    if buffers:
        named += [("buffer", n, tuple(b.shape), b.dtype, False) for n, b in model.named_buffers()]
    digest = hashlib.sha256(repr(named).encode()).digest()
    all_of_them = comm.allgather(torch.tensor(list(digest), dtype=torch.uint8))
    for rank in range(comm.size):
        if not torch.equal(all_of_them[rank], all_of_them[0]):
            raise ValueError(f"the models of ranks {rank} and 0 differ in names, shapes, types or "
                             "requires_grad of parameters or buffers")


def _bytes_of(t: Any) -> Any:
    return t.detach().resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8)


def _batches(tensors: Sequence[Any]) -> Iterator[List[Any]]:
    batch: List[Any] = []
    size = 0
    for t in tensors:
        count = t.numel() * t.element_size()
        if batch and size + count > _BATCH:
            yield batch
            batch, size = [], 0
        if count:
            batch.append(t)
            size += count
    if batch:
        yield batch


def broadcast(comm: Comm, tensors: Sequence[Any]) -> None:
    """Copy rank 0's values to all ranks, in place. Collective. For tensors of any type on the
    CPU."""
    with torch.no_grad():
        for batch in _batches(tensors):
            whole = torch.cat([_bytes_of(t) for t in batch])
            comm.broadcast(whole)
            if comm.rank == 0:
                continue
            parts: Any = whole.split([t.numel() * t.element_size() for t in batch])
            for t, part in zip(batch, parts):
                roots = part.clone().view(t.dtype).reshape(t.shape)
                if not torch.equal(t, roots):
                    t.copy_(roots)
