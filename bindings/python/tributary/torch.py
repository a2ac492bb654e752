# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch: a communication hook for DistributedDataParallel, and Fed, which replaces DDP.

    ddp.register_comm_hook(*Hook(comm, codec="topk:ratio=0.01"))

    step = Fed(model, torch.optim.SGD(model.parameters(), lr=0.1), comm, codec="int8")
    loss(model(x), y).backward()
    step.step()

Importing this module also registers the torch.distributed backend "tributary".
"""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import torch

from . import _backend
from ._comm import Comm
from ._fed import Fed
from ._plan import Plan, bytes_of_state, name_of
from ._policy import DENSE, Policy, codec_of, with_columns

__all__ = ["Fed", "Hook"]

_backend.register()


@dataclass
class _Parameter:
    """A hook's state of a parameter: its plan, which keeps the codec's residual."""

    name: str
    plan: Optional[Plan] = None
    loaded: Optional[Dict[str, Any]] = None  # to be loaded into the plan when it is created


@dataclass
class _Piece:
    """A part of a bucket that is summed by one plan: neighbors whose codec has no residual,
    or one parameter with its codec."""

    first: int
    count: int
    codec: str
    parameter: Optional[_Parameter] = None


@dataclass
class _Bucket:
    pieces: List[_Piece] = field(default_factory=list)
    future: Any = None
    tensor: Any = None
    started: List[Plan] = field(default_factory=list)


class Hook:
    """A communication hook for DistributedDataParallel: `register_comm_hook(*hook)`.

    Each parameter with a codec has its own plan, so a residual belongs to the parameter and
    not to a bucket: none is lost when DDP rebuilds its buckets. Gradients are averaged.
    Several hooks, other collectives on comm, and registering a hook again do no harm.

    comm         has the ranks of the DDP model, in the same order
    codec        for parameters with at least `small_below` elements
    small        for smaller parameters; neighbors with the same codec are summed together
                 if it has no residual
    policy       pairs of a shell pattern and a codec, which take precedence. Patterns match
                 the names of model.named_parameters(), so they require `model`
    start_step   steps before it are dense
    """

    def __init__(self, comm: Comm, codec: str = "none", *, small: str = "none",
                 small_below: int = 16384, policy: Policy = (), start_step: int = 0,
                 model: Optional[torch.nn.Module] = None) -> None:
        if policy and model is None:
            raise ValueError("a policy matches names of parameters: pass model=, too")
        self.comm, self.codec, self.small, self.small_below = comm, codec, small, small_below
        self.policy, self.start_step, self.step = policy, start_step, 0
        named = model.named_parameters() if model is not None else []
        self._names = {id(p): n for n, p in named}
        self._parameters: Dict[int, _Parameter] = {}
        self._loaded: Dict[str, Dict[str, Any]] = {}
        self._dense: Dict[Tuple[int, torch.dtype, str], List[Plan]] = {}
        self._in_use: Dict[Tuple[int, torch.dtype, str], int] = {}
        self._layouts: Dict[Any, List[_Piece]] = {}
        self._open: List[_Bucket] = []

    def __iter__(self) -> Iterator[Any]:
        """Yield the two arguments of register_comm_hook."""
        return iter((self, _on_bucket))

    # ---- plans of parameters ----------------------------------------------------------

    def _parameter(self, p: torch.Tensor) -> _Parameter:
        found = self._parameters.get(id(p))
        if found is None:
            name = self._names.get(id(p), f"parameter {len(self._parameters)}")
            name = name[len("module."):] if name.startswith("module.") else name
            found = _Parameter(name, loaded=self._loaded.pop(name, None))
            self._parameters[id(p)] = found
        return found

    def _layout(self, parameters: Sequence[torch.Tensor], dense: bool) -> List[_Piece]:
        key = (dense, *map(id, parameters))
        if key not in self._layouts:
            self._layouts[key] = list(self._pieces(parameters, dense))
        return self._layouts[key]

    def _pieces(self, parameters: Sequence[torch.Tensor], dense: bool) -> Iterator[_Piece]:
        at, piece = 0, None
        for p in parameters:
            mine, count = self._parameter(p), p.numel()
            codec = "none" if dense else with_columns(
                codec_of(mine.name, count, self.codec, self.policy, self.small,
                          self.small_below), p)
            alone = codec not in DENSE
            if piece is not None and (alone or piece.parameter or piece.codec != codec):
                yield piece
                piece = None
            if piece is None:
                piece = _Piece(at, 0, codec, mine if alone else None)
            piece.count += count
            at += count
        if piece is not None:
            yield piece

    def _plan_of(self, piece: _Piece, part: torch.Tensor) -> Plan:
        mine = piece.parameter
        if mine is None:
            return self._dense_plan(piece, part)
        if mine.plan is None:
            plan = self.comm.plan("allreduce", part, op="mean", codec=piece.codec,
                                  name=name_of(mine.name))
            if mine.loaded is not None:
                try:
                    plan.load_state_dict(mine.loaded)
                except BaseException:
                    plan.close()
                    raise
            mine.plan, mine.loaded = plan, None
        return mine.plan

    def _dense_plan(self, piece: _Piece, part: torch.Tensor) -> Plan:
        """Return a plan without a residual that this step does not use yet."""
        key = (piece.count, part.dtype, piece.codec)
        plans, used = self._dense.setdefault(key, []), self._in_use.get(key, 0)
        if used == len(plans):
            plans.append(self.comm.plan("allreduce", part, op="mean", codec=piece.codec))
        self._in_use[key] = used + 1
        return plans[used]

    # ---- a step -----------------------------------------------------------------------

    def on_bucket(self, bucket: Any) -> Any:
        """Start the sums of a bucket and return its future. The last bucket of a step waits
        for all sums and completes all futures; DDP waits for them only after that bucket."""
        flat = bucket.buffer().detach()  # has a graph after backward(create_graph=True)
        if flat.layout is not torch.strided:
            raise TypeError("Hook sums only dense gradients, but this bucket of DDP is sparse: use "
                            "sparse=False of nn.Embedding, or Fed, or DDP over the backend "
                            "tributary without a hook")
        b = _Bucket(self._layout(bucket.parameters(), self.step < self.start_step),
                    torch.futures.Future(), flat)
        for piece in b.pieces:
            part = flat[piece.first: piece.first + piece.count]
            b.started.append(self._plan_of(piece, part).start(part))
        self._open.append(b)
        if bucket.is_last():
            self._finish()
        return b.future

    def _finish(self) -> None:
        buckets, self._open = self._open, []
        self._in_use.clear()
        self.step += 1
        for b in buckets:
            try:
                for plan in b.started:
                    plan.wait()
            except BaseException as why:  # pylint: disable=broad-except
                b.future.set_exception(why if isinstance(why, Exception) else RuntimeError(why))
                if not isinstance(why, Exception):
                    raise
            else:
                b.future.set_result(b.tensor)

    # ---- checkpoints ------------------------------------------------------------------

    def state_dict(self) -> Dict[str, Any]:
        """Return this rank's codec states by parameter name, and the step number."""
        states = dict(self._loaded)
        for p in self._parameters.values():
            if p.plan is not None:
                states[p.name] = p.plan.state_dict()
            elif p.loaded is not None:
                states[p.name] = p.loaded
        return {"step": self.step, "parameters": states}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Continue from a state that state_dict() returned; also before the first step. A
        parameter without a state starts over. After an error nothing has changed."""
        step, states = state["step"], dict(state["parameters"])
        for given in states.values():
            bytes_of_state(given)
        self._load_plans(states)
        for p in self._parameters.values():
            p.loaded = states.pop(p.name, None)
            if p.plan is not None and p.loaded is None:
                p.plan.close()
                p.plan = None
            elif p.plan is not None:
                p.loaded = None
        self.step, self._loaded = step, states

    def _load_plans(self, states: Dict[str, Dict[str, Any]]) -> None:
        """Load states into all plans that exist, or into none."""
        plans = {p.name: p.plan for p in self._parameters.values() if p.plan is not None}
        before = {name: plan.state_dict() for name, plan in plans.items()}
        try:
            for name, plan in plans.items():
                if name in states:
                    plan.load_state_dict(states[name])
        except BaseException:
            for name, plan in plans.items():
                plan.load_state_dict(before[name])
            raise


def _on_bucket(hook: Hook, bucket: Any) -> Any:
    return hook.on_bucket(bucket)


_on_bucket.__annotations__ = {}  # DDP rejects annotations other than its own types
