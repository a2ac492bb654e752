# SPDX-License-Identifier: BSD-3-Clause
"""The choice of a codec for each parameter, for Hook and Fed."""
from __future__ import annotations

import fnmatch
import os
import warnings
from typing import Any, Optional, Sequence, Tuple

from ._comm import Comm

Policy = Sequence[Tuple[str, str]]

DENSE = ("none", "bf16", "f16")  # have no residual, so that neighbors can share a sum


def codec_of(name: str, count: int, codec: str, policy: Policy, small: str,
             small_below: int) -> str:
    """Return a parameter's codec: of the first pattern that matches, else by its size."""
    for pattern, text in policy:
        if fnmatch.fnmatchcase(name, pattern):
            return text
    return small if count < small_below else codec


def with_columns(codec: str, p: Any) -> str:
    """Return the codec; powersgd without columns= gets the parameter's own matrix shape."""
    if not codec.startswith("powersgd") or "columns=" in codec or p.dim() < 2:
        return codec
    columns = p.numel() // p.shape[0]
    return f"{codec}{',' if ':' in codec else ':'}columns={columns}"


def warn_of_momentum_twice(optimizer: Any, feedback: Optional[str], comm: Comm) -> None:
    """Warn if both the feedback and the optimizer have momentum: steps are then
    1 / (1 - M) times too large."""
    text = feedback if feedback is not None else _configured(comm)
    if not text.startswith("ef14") or "momentum=" not in text:
        return
    if any(group.get("momentum") for group in optimizer.param_groups):
        warnings.warn(f"momentum is applied twice, by the feedback {text} and by the optimizer "
                      f"{type(optimizer).__name__}: set the optimizer's momentum to 0",
                      stacklevel=3)


def _configured(comm: Comm) -> str:
    """Return the configured feedback, from config= of init() or TRIB_FEEDBACK; else ""."""
    options = comm._keep[0] if isinstance(comm._keep, tuple) else None
    for setting in (getattr(options, "config", None) or b"").decode().split(";"):
        key, _, value = setting.partition("=")
        if key.strip() == "feedback":
            return value.strip()
    return os.environ.get("TRIB_FEEDBACK", "")
