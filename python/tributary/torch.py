# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch: a communication hook for DistributedDataParallel, and Fed, which needs no buckets.

    ddp.register_comm_hook(*Hook(comm, codec="topk:ratio=0.01"))

    step = Fed(model, torch.optim.SGD(model.parameters(), lr=0.1), comm, codec="int8")
    loss(model(x), y).backward()
    step.step()

Importing it also makes torch.distributed.init_process_group("tributary") work.
"""
from __future__ import annotations

import ctypes
import fnmatch
import weakref
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

import torch

from . import _backend, _ffi
from ._comm import Comm
from ._library import check, lib, wait
from ._plan import Plan, name_of

__all__ = ["Fed", "Hook"]

Policy = Sequence[Tuple[str, str]]

_backend.register()


def _codec_of(name: str, count: int, codec: str, policy: Policy, small: str,
              small_below: int) -> str:
    for pattern, text in policy:
        if fnmatch.fnmatchcase(name, pattern):
            return text
    return small if count < small_below else codec


@dataclass
class _Parameter:
    """What a hook keeps of a parameter: its plan, and so what the codec holds back."""

    name: str
    plan: Optional[Plan] = None
    loaded: Optional[Dict[str, Any]] = None  # a state for the plan, once it is made


@dataclass
class _Piece:
    """Neighbours in a bucket that are summed together, or one parameter with a codec."""

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

    Each parameter with a codec has a plan of its own, so what the codec holds back
    belongs to the parameter and not to a bucket: nothing is lost when DDP forms its
    buckets anew. Gradients are averaged. Several hooks, other sums and registering anew
    disturb nothing.

    comm         whose ranks are those of the DDP model, in their order
    codec        of parameters with at least `small_below` elements
    small        of the others; neighbours with the same one are summed together, if it
                 keeps nothing
    policy       pairs of a shell pattern and a codec, which come first: parameters are
                 named as in the model's named_parameters()
    start_step   steps before it are dense
    """

    def __init__(self, comm: Comm, codec: str = "none", *, small: str = "none",
                 small_below: int = 16384, policy: Policy = (), start_step: int = 0,
                 model: Optional[torch.nn.Module] = None) -> None:
        if policy and model is None:
            raise ValueError("a policy names parameters: give the model, too")
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
        """The two arguments of register_comm_hook."""
        return iter((self, _on_bucket))

    # ---- what belongs to parameters ---------------------------------------------------

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
            codec = "none" if dense else _with_columns(
                _codec_of(mine.name, count, self.codec, self.policy, self.small,
                          self.small_below), p)
            alone = codec not in ("none", "bf16", "f16")
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
            mine.plan = self.comm.plan("allreduce", part, op="mean", codec=piece.codec,
                                       name=name_of(mine.name))
            if mine.loaded is not None:
                mine.plan.load_state_dict(mine.loaded)
                mine.loaded = None
        return mine.plan

    def _dense_plan(self, piece: _Piece, part: torch.Tensor) -> Plan:
        """One that nothing of this step uses."""
        key = (piece.count, part.dtype, piece.codec)
        plans, used = self._dense.setdefault(key, []), self._in_use.get(key, 0)
        if used == len(plans):
            plans.append(self.comm.plan("allreduce", part, op="mean", codec=piece.codec))
        self._in_use[key] = used + 1
        return plans[used]

    # ---- a step -----------------------------------------------------------------------

    def on_bucket(self, bucket: Any) -> Any:
        """Starts the sums of a bucket. Its future is done once all of the step are: DDP
        waits for them behind the last one."""
        flat = bucket.buffer()
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
        """What the codecs hold back, by the names of parameters, of this rank."""
        plans = {p.name: p.plan.state_dict() for p in self._parameters.values() if p.plan}
        return {"step": self.step, "parameters": plans}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Go on from what state_dict gave; also before the first step."""
        self.step = state["step"]
        self._loaded = dict(state["parameters"])
        for p in self._parameters.values():
            mine = self._loaded.pop(p.name, None)
            if mine is not None and p.plan is not None:
                p.plan.load_state_dict(mine)
            elif mine is not None:
                p.loaded = mine


_SELECTS = ("topk", "dgc", "blocks", "randomk", "threshold")  # what goes with in_grad


def _on_bucket(hook: Hook, bucket: Any) -> Any:
    return hook.on_bucket(bucket)


_on_bucket.__annotations__ = {}  # DDP wants its own types there, or none


class Fed:
    """An optimizer whose gradients are summed as back-propagation makes them.

    The gradients of the model lie in memory that peers reach without a copy, behind each
    other; p.grad are views of it. There are no buckets of DDP's, and each parameter keeps
    what its codec holds back. All parameters are float32 on the CPU.

    codec, small, small_below, policy   as of Hook
    clip_norm   gradients are scaled so that their norm is at most that, once summed
    in_grad     of parameters whose codec selects (topk, dgc …) p.grad holds back what is
                not sent: backward() adds to it, step() takes from it what it sends and
                gives the optimizer the sums in other memory. That spares three passes
                over all gradients. zero_grad() is then needed before each backward(),
                and an optimizer may scale p.grad, but not add to it
    """

    def __init__(self, model: torch.nn.Module, optimizer: Any, comm: Comm,
                 codec: str = "none", *, small: str = "none", small_below: int = 16384,
                 policy: Policy = (), clip_norm: Optional[float] = None,
                 in_grad: bool = False) -> None:
        self.comm, self.optimizer, self.clip_norm = comm, optimizer, clip_norm
        named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
        for name, p in named:
            if p.dtype != torch.float32 or p.device.type != "cpu":
                raise TypeError(f"{name} is {p.dtype} on {p.device}: Fed sums float32 on the CPU")
        self._parameters = [p for _, p in named]
        self._flat = torch.from_numpy(comm.empty(sum(p.numel() for p in self._parameters)))
        self._syncing, self._begun = True, False
        self._sums = [flat.view_as(p) for flat, p in
                      zip(self._flat.split([p.numel() for p in self._parameters]),
                          self._parameters)]
        self._rests: Dict[int, torch.Tensor] = {}  # by index: p.grad until the sums come
        self._fed = [False] * len(named)
        tensors = (_ffi.trib_tensor_t * len(named))()
        for i, (name, p) in enumerate(named):
            text = _with_columns(_codec_of(name, p.numel(), codec, policy, small, small_below), p)
            tensors[i] = _ffi.trib_tensor_t(
                size=ctypes.sizeof(_ffi.trib_tensor_t), name=name.encode(),
                recv=self._sums[i].data_ptr(), count=p.numel(), dtype=_ffi.TRIB_F32, dims=p.dim(),
                codec=text.encode())
            if in_grad and text.replace("+", ":").split(":")[0] in _SELECTS:
                self._rests[i] = torch.zeros_like(p)
                tensors[i].send = self._rests[i].data_ptr()
                tensors[i].feedback = b"ef14:caller=1"
            p.grad = self._rests.get(i, self._sums[i])
        self._group: Optional[ctypes.c_void_p] = self._create(tensors)
        self._hooks = [self._on_gradient(i, p) for i, p in enumerate(self._parameters)]

    def _create(self, tensors: Any) -> ctypes.c_void_p:
        opts = _ffi.trib_group_opts_t(size=ctypes.sizeof(_ffi.trib_group_opts_t),
                                      op=_ffi.TRIB_MEAN, feed=_ffi.TRIB_FEED_BACKWARD)
        handle = ctypes.c_void_p()
        wait(lib.trib_group_create, self.comm.handle, tensors, len(tensors),
             ctypes.byref(opts), ctypes.byref(handle), comm=self.comm.handle)
        return handle

    def _check(self, status: int) -> int:
        return check(status, self.comm.handle)

    # ---- a step -----------------------------------------------------------------------

    def _on_gradient(self, i: int, p: torch.Tensor) -> Any:
        me = weakref.ref(self)

        def ready(*_: Any) -> None:
            fed = me()
            if fed is not None and fed._syncing:
                fed._ready(i)

        later: Any = getattr(p, "register_post_accumulate_grad_hook", None)
        if later is not None:
            return later(ready)
        node: Any = p.expand_as(p).grad_fn
        accumulator = node.next_functions[0][0]
        return accumulator, accumulator.register_hook(ready)

    def _ready(self, i: int) -> None:
        if i in self._rests and self._parameters[i].grad is not self._rests[i]:
            raise RuntimeError("p.grad is not the one of Fed with in_grad: call its zero_grad(), "
                               "and no other, between step() and backward()")
        if not self._begun:
            self._check(lib.trib_group_start(self._group))
            self._begun = True
        if not self._fed[i]:
            self._fed[i] = True
            self._check(lib.trib_group_ready(self._group, i))

    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """Wait for the sums, then the optimizer's step. A parameter that had no part in
        the step counts as one with a gradient of zeros."""
        for i in reversed(range(len(self._parameters))):
            self._ready(i)
        wait(lib.trib_group_wait, self._group, comm=self.comm.handle)
        self._begun, self._fed = False, [False] * len(self._parameters)
        for i in self._rests:
            self._parameters[i].grad = self._sums[i]
        if self.clip_norm is not None:
            flat: Any = self._flat
            norm = float(flat.norm())
            if norm > self.clip_norm:
                self._flat.mul_(self.clip_norm / norm)
        return self.optimizer.step(closure)

    def zero_grad(self, set_to_none: bool = False) -> None:
        """Clear the gradients, which stay where they are; with in_grad, back to what is held back."""
        if set_to_none:
            raise ValueError("the gradients lie in memory of the communicator, and stay there")
        if not self._rests:
            self._flat.zero_()
            return
        for i, p in enumerate(self._parameters):
            if i in self._rests:
                p.grad = self._rests[i]
            else:
                self._sums[i].zero_()

    def no_sync(self) -> "_NoSync":
        """`with fed.no_sync():` gradients are added up here, and summed in a later step."""
        return _NoSync(self)

    # ---- the rest ---------------------------------------------------------------------

    def state_dict(self) -> Dict[str, Any]:
        """The optimizer's, and what the codecs hold back, of this rank."""
        n = ctypes.c_size_t()
        self._check(lib.trib_group_state_save(self._group, None, 0, ctypes.byref(n)))
        state = ctypes.create_string_buffer(max(1, n.value))
        self._check(lib.trib_group_state_save(self._group, state, n.value, ctypes.byref(n)))
        return {"optimizer": self.optimizer.state_dict(), "group": state.raw[: n.value],
                "rests": {i: rest.clone() for i, rest in self._rests.items()}}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Go on from what state_dict gave."""
        self.optimizer.load_state_dict(state["optimizer"])
        data: bytes = state["group"]
        self._check(lib.trib_group_state_load(self._group, data, len(data)))
        for i, rest in state.get("rests", {}).items():
            self._rests[i].copy_(rest)

    def explain(self) -> str:
        """A line for each part that is summed by itself: tensors, bytes, codec."""
        text = ctypes.create_string_buffer(1 << 16)
        self._check(lib.trib_group_explain(self._group, text, len(text)))
        return text.value.decode()

    def close(self) -> None:
        """Free the group; before the communicator."""
        for h in self._hooks:
            (h[1] if isinstance(h, tuple) else h).remove()
        if self._group is not None:
            group, self._group = self._group, None
            self._check(lib.trib_group_free(group))


class _NoSync:
    def __init__(self, fed: Fed) -> None:
        self.fed = fed

    def __enter__(self) -> None:
        self.fed._syncing = False

    def __exit__(self, *_: Any) -> None:
        self.fed._syncing = True


def _with_columns(codec: str, p: torch.Tensor) -> str:
    """PowerSGD's matrix is the parameter's own, unless the text says otherwise."""
    if not codec.startswith("powersgd") or "columns=" in codec or p.dim() < 2:
        return codec
    columns = p.numel() // p.shape[0]
    return f"{codec}{',' if ':' in codec else ':'}columns={columns}"
