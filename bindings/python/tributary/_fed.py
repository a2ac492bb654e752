# SPDX-License-Identifier: BSD-3-Clause
"""Fed: sums gradients during back-propagation, without DDP's buckets."""
from __future__ import annotations

import ctypes
import sys
import weakref
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional

import torch

from . import _ffi
from ._comm import Comm
from ._gradient import Gradient
from ._handles import Handle
from ._library import lib, wait
from ._plan import name_of
from ._policy import DENSE, Policy, codec_of, warn_of_momentum_twice, with_columns
from ._replicas import broadcast, check_replicas_match

_SELECTS = ("topk", "dgc", "blocks", "randomk", "threshold")  # codecs for in_grad
_NAME_MOST = 255  # TRIB_TENSOR_NAME_MAX
_TURN = 1024  # ranks compare their step numbers modulo this

# The Fed whose sums are pending on a communicator.
_under_way: "weakref.WeakKeyDictionary[Comm, weakref.ref[Fed]]" = weakref.WeakKeyDictionary()
# The open Fed of a parameter, by its id.
_owners: "weakref.WeakValueDictionary[int, Fed]" = weakref.WeakValueDictionary()


class Fed(Handle):
    """A wrapper of an optimizer that averages gradients over all ranks during backward().

    When backward() returns, each p.grad is the mean over all ranks, as with
    DistributedDataParallel, and may be clipped or inspected before step(). The sum of a
    parameter starts as soon as its gradient is final. Gradients lie in memory that peers
    access without a copy. There are no buckets, and each parameter keeps the residual of its
    codec. All parameters are float32 on the CPU.

    The constructor copies rank 0's parameters and buffers to all ranks. All ranks call
    backward(), outside of no_sync(), and step() equally often. A parameter without a gradient
    on one rank counts as zeros there; if no rank has one, p.grad stays None.

    codec, small, small_below, policy   as in Hook
    feedback    error feedback of lossy codecs, such as "ef14:momentum=0.9"; None: as
                configured
    clip_norm   largest norm of all gradients together; larger ones are scaled after the sum
    in_grad     for parameters whose codec selects elements (topk, dgc, …): p.grad is the
                residual. backward() adds to it and removes the elements that it sends; the
                sums lie in other memory. This saves three passes over all gradients if
                zero_grad() of Fed is called before each backward(). The optimizer may
                scale p.grad but not add to it
    broadcast_buffers   each step() copies rank 0's buffers to all ranks
    """

    def __init__(self, model: torch.nn.Module, optimizer: Any, comm: Comm,
                 codec: str = "none", *, small: str = "none", small_below: int = 16384,
                 policy: Policy = (), clip_norm: Optional[float] = None,
                 in_grad: bool = False, feedback: Optional[str] = None,
                 broadcast_buffers: bool = True) -> None:
        self.model, self.optimizer, self.clip_norm = model, optimizer, clip_norm
        self.broadcast_buffers = broadcast_buffers
        named = _trainable(model)
        counts = [1 + len(named)] + [p.numel() for _, p in named]
        self._memory = comm.empty(sum(counts))
        self._memory[:] = 0
        # One tensor per parameter, so that each has its own version counter.
        parts, at = [], 0
        for count in counts:
            parts.append(torch.from_numpy(self._memory[at: at + count]))
            at += count
        self._control = parts[0]  # step number, then 1 per parameter with a gradient, else 0
        self._syncing, self._begun, self._summed, self._queued = True, False, False, False
        self._steps, self._waiting = 0, list[int]()
        self._gradients: List[Gradient] = []
        for i, (name, p) in enumerate(named):
            text = with_columns(codec_of(name, p.numel(), codec, policy, small, small_below), p)
            holds_back = in_grad and text.replace("+", ":").split(":")[0] in _SELECTS
            self._gradients.append(Gradient(i + 1, name, p, parts[i + 1].view(p.shape), text,
                                            torch.zeros(p.shape, dtype=torch.float32) if holds_back else None))
        self._known = {id(p) for _, p in named}
        if any(g.codec not in DENSE and g.residual is None for g in self._gradients):
            warn_of_momentum_twice(optimizer, feedback, comm)
        elif feedback is not None:
            raise ValueError(f"feedback {feedback!r} has no effect: no parameter has a codec that "
                             "uses it (with in_grad, selecting codecs have their own feedback)")
        super().__init__(comm, self._create(comm, feedback), lib.trib_group_free)
        self._keep = (self._memory, [g.residual for g in self._gradients])
        try:
            check_replicas_match(comm, model, broadcast_buffers)
            broadcast(comm, list(model.parameters()) + self._buffers())
        except BaseException:
            self.close()
            raise
        for g in self._gradients:
            self._hook(g)
            _owners[id(g.parameter)] = self

    def _create(self, comm: Comm, feedback: Optional[str]) -> ctypes.c_void_p:
        size = ctypes.sizeof(_ffi.trib_tensor_t)
        base, at = self._memory.ctypes.data, self._control.numel()
        tensors = (_ffi.trib_tensor_t * (1 + len(self._gradients)))()
        tensors[0] = _ffi.trib_tensor_t(size=size, name=b"(which gradients exist)", recv=base,
                                        count=at, dtype=_ffi.TRIB_F32, dims=1, codec=b"none")
        for g in self._gradients:
            tensors[g.index] = _ffi.trib_tensor_t(
                size=size, name=name_of(g.name, _NAME_MOST).encode(), recv=base + 4 * at,
                count=g.sums.numel(), dtype=_ffi.TRIB_F32, dims=g.sums.dim(), codec=g.codec.encode())
            at += g.sums.numel()
            if g.residual is not None:
                tensors[g.index].send = g.residual.data_ptr()
                tensors[g.index].feedback = b"ef14:caller=1"
            elif feedback is not None and g.codec not in DENSE:
                tensors[g.index].feedback = feedback.encode()
        opts = _ffi.trib_group_opts_t(size=ctypes.sizeof(_ffi.trib_group_opts_t),
                                      op=_ffi.TRIB_MEAN, feed=_ffi.TRIB_FEED_BACKWARD)
        handle = ctypes.c_void_p()
        wait(lib.trib_group_create, comm.handle, tensors, len(tensors), ctypes.byref(opts),
             ctypes.byref(handle), comm=comm.handle)
        return handle

    def _buffers(self) -> List[Any]:
        if not self.broadcast_buffers:
            return []
        for name, b in self.model.named_buffers():
            if b.layout is not torch.strided or b.device.type != "cpu":
                raise TypeError(f"the buffer {name} is {b.layout} on {b.device}, which Fed cannot "
                                "broadcast: set broadcast_buffers=False")
        return list(self.model.buffers())

    # ---- back-propagation -------------------------------------------------------------

    def _hook(self, g: Gradient) -> None:
        """Have _before and _after called around each accumulation into p.grad."""
        me = weakref.ref(self)

        def before(_: Any) -> None:
            fed = me()
            if fed is not None:
                fed._before(g)

        def after(*_: Any) -> None:
            fed = me()
            if fed is not None:
                fed._after(g)

        for h in g.hooks:
            h.remove()
        p = g.parameter
        later: Any = getattr(p, "register_post_accumulate_grad_hook", None)
        if later is not None:
            g.hooks = (p.register_hook(before), later(after))
            return
        with torch.enable_grad():
            node: Any = p.expand_as(p).grad_fn
        accumulator = node.next_functions[0][0]
        # The parameter holds only a weak reference to its accumulator: keep it alive.
        g.hooks = (p.register_hook(before), _Kept(accumulator, accumulator.register_hook(after)))

    def _before(self, g: Gradient) -> None:
        if g.submitted:
            self._refuse(
                f"{g.name} gets a second gradient while its first is being summed, as from a "
                "reentrant checkpoint of a layer that is used twice: pass use_reentrant=False to "
                "checkpoint(), or run this backward() under no_sync(), and step() sums")
        if g.residual is not None and g.lies_in(g.residual) and g.residual._version != g.version:
            self._refuse(
                f"p.grad of {g.name} is the codec's residual, because of in_grad, and was written "
                "to: clear it only by zero_grad() of Fed")
        g.pending = True

    def _after(self, g: Gradient) -> None:
        g.pending, self._summed = False, False
        if not self._syncing:
            g.version, g.added = g.memory._version, True
            return
        if g.parameter.grad.requires_grad:
            self._refuse(
                f"the gradient of {g.name} has a graph, which a sum over ranks cannot keep: use "
                "torch.autograd.grad(create_graph=True), or backward(create_graph=True) under "
                "no_sync()")
        try:
            g.collect()
        except TypeError:
            self._finish()  # raises the same error
            raise
        g.version, g.submitted = g.memory._version, True
        if self._begin():
            self._check(lib.trib_group_ready(self.handle, g.index))
        else:
            self._waiting.append(g.index)
        if not self._queued:
            self._queued = True
            torch.autograd.Variable._execution_engine.queue_callback(self._backward_ends)

    def _refuse(self, why: str) -> None:
        """Wait for the sums, so that the communicator stays usable, then raise RuntimeError."""
        self._finish()
        raise RuntimeError(why)

    def _begin(self) -> bool:
        """Start the sums unless they are pending. Return False, and start none, if another Fed
        has sums pending on the communicator."""
        if self._begun:
            return True
        other = _under_way.get(self.comm)
        if other is not None and other() is not None:
            return False
        self._check(lib.trib_group_start(self.handle))
        self._begun, _under_way[self.comm] = True, weakref.ref(self)
        return True

    def _backward_ends(self) -> None:
        """Finish the sums, unless this backward() runs inside another one, as in a reentrant
        checkpoint, and gradients are still missing."""
        self._queued = False
        if not _nested() or all(g.submitted for g in self._gradients):
            self._finish()

    def _finish(self) -> None:
        """Wait for the sums, and make p.grad show them."""
        self._queued = False
        changed = [g.name for g in self._gradients if g.submitted and g.changed()]
        if not self._begin():
            raise RuntimeError("another Fed has sums pending on this communicator: call its "
                               "step() or wait() first")
        why = self._submit_remaining()
        try:
            wait(lib.trib_group_wait, self.handle, comm=self.comm.handle)
        except Exception:  # the step has failed; after a KeyboardInterrupt it is pending
            self._end()
            raise
        self._end()
        if why is not None:
            raise why
        self._take(changed)

    def _submit_remaining(self) -> Optional[TypeError]:
        """Mark the remaining gradients as ready. One that cannot be summed counts as zeros;
        return its error."""
        has, refused = [0.0] * len(self._gradients), None
        for index in self._waiting:
            self._check(lib.trib_group_ready(self.handle, index))
        for k in reversed(range(len(has))):
            g = self._gradients[k]
            if g.submitted:
                has[k] = 1.0
                continue
            try:
                has[k] = 1.0 if g.collect() or g.may_have_residual else 0.0
            except TypeError as why:
                refused = why
                g.memory.zero_()
            self._check(lib.trib_group_ready(self.handle, g.index))
            g.submitted = True
        self._control.copy_(torch.tensor([float(self._steps % _TURN), *has]))
        self._check(lib.trib_group_ready(self.handle, 0))
        self._waiting.clear()
        return refused

    def _end(self) -> None:
        self._begun = False
        _under_way.pop(self.comm, None)
        for g in self._gradients:
            g.submitted = g.added = False
            if g.pending:  # _after did not run, because the parameter has a new accumulator
                g.pending = False
                self._hook(g)

    def _take(self, changed: List[str]) -> None:
        steps, *used = self._control.tolist()
        if abs(steps - self._steps % _TURN) > 0.4 / self.comm.size:
            raise RuntimeError(
                f"the ranks are at different steps, this one at {self._steps}: all ranks must call "
                "backward(), outside of no_sync(), and step() equally often")
        for g, of_any in zip(self._gradients, used):
            if of_any:
                g.show(g.sums)
                g.may_have_residual = g.codec not in DENSE
            if g.residual is not None:
                g.version = g.residual._version
        if changed:
            raise RuntimeError(
                f"p.grad of {changed[0]} was changed while it was being summed, and its sum is "
                "wrong: call wait() before you clear, clip or replace gradients")
        self._summed = True

    # ---- a step -----------------------------------------------------------------------

    def wait(self) -> None:
        """Block until the sums of this step are done, without the optimizer's step.
        Collective.

        backward() normally does this itself. Call wait() before you change gradients if
        backward() ran only under no_sync() or in reentrant checkpoints, and before
        zero_grad() if backward() has raised."""
        if not self._summed:
            self._finish()

    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """Finish the sums, then run the optimizer's step, and return its result. Collective.

        The optimizer may call the closure several times. Each call sums gradients and
        returns the mean loss of all ranks, so that the optimizers of all ranks decide alike."""
        if closure is not None:
            given = closure

            def summing() -> Any:
                loss = given()
                self._prepare()
                return self._mean(loss)

            return self.optimizer.step(summing)
        self._prepare()
        return self.optimizer.step()

    def _prepare(self) -> None:
        """Do everything that precedes the optimizer's step: sum, clip, broadcast buffers."""
        self.wait()
        self._refuse_others()
        if self.clip_norm is not None:
            grads = [g.parameter.grad for g in self._gradients if g.parameter.grad is not None]
            norm = float(torch.stack([grad.norm() for grad in grads]).norm()) if grads else 0.0
            if norm > self.clip_norm:
                for grad in grads:
                    grad.mul_(self.clip_norm / norm)
        broadcast(self.comm, self._buffers())
        self._summed = False
        self._steps += 1

    def _refuse_others(self) -> None:
        for group in self.optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None and id(p) not in self._known:
                    name = next((n for n, q in self.model.named_parameters() if q is p),
                                f"of shape {tuple(p.shape)}, which is not in the model")
                    raise RuntimeError(
                        f"the optimizer has a gradient of the parameter {name} that Fed does not "
                        "sum, because it was added, replaced or given requires_grad later: close() "
                        "this Fed and create a new one")

    def _mean(self, loss: Any) -> Any:
        known = isinstance(loss, (int, float)) or (
            isinstance(loss, torch.Tensor) and loss.numel() == 1 and not loss.is_complex())
        mean = torch.tensor([float(loss) if known else 0.0], dtype=torch.float64)
        self.comm.allreduce(mean, op="mean")
        if not known:
            return loss
        if isinstance(loss, torch.Tensor):
            return mean.to(loss.dtype).reshape(loss.shape)
        return float(mean)

    @property
    def param_groups(self) -> Any:
        """The optimizer's param_groups: torch's GradScaler accepts a Fed as an optimizer."""
        return self.optimizer.param_groups

    def zero_grad(self, set_to_none: bool = False) -> None:
        """Clear the gradients in place, or set them to None. With in_grad, p.grad becomes the
        residual. Raise RuntimeError while sums are pending."""
        if self._begun or self._waiting:
            raise RuntimeError("sums of gradients are pending, because backward() has raised or "
                               "leaves them to step(): call wait() on all ranks before zero_grad()")
        kept = [g.name for g in self._gradients if g.residual is not None and g.added]
        if kept:
            raise RuntimeError(f"p.grad of {kept[0]} is the codec's residual, because of in_grad, "
                               "and backward() under no_sync() has added to it: sum it by step()")
        self._summed = False
        if not set_to_none:
            self._memory[:] = 0
        for g in self._gradients:
            if g.residual is not None:
                g.version = g.residual._version
                if g.parameter.grad is not None:
                    g.show(g.residual)
            elif set_to_none or not g.lies_in(g.sums):
                g.parameter.grad = None

    def no_sync(self) -> "_NoSync":
        """Return a context: in `with fed.no_sync():` gradients accumulate on this rank, and the
        next backward() outside of it, or step(), sums them."""
        return _NoSync(self)

    # ---- checkpoints, end -------------------------------------------------------------

    def state_dict(self) -> Dict[str, Any]:
        """Return the optimizer's state and this rank's codec states, for a checkpoint."""
        return {"optimizer": self.optimizer.state_dict(),
                "group": self._state(lib.trib_group_state_save),
                "rests": {g.name: g.residual.clone()
                          for g in self._gradients if g.residual is not None}}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Continue from a state that state_dict() returned. All ranks load theirs. After an
        error nothing has changed."""
        rests = state["rests"]
        shapes = {g.name: g.residual.shape for g in self._gradients if g.residual is not None}
        if {name: rest.shape for name, rest in rests.items()} != shapes:
            raise ValueError("the residuals in the state belong to other parameters, or to another "
                             "in_grad")
        before = self._state(lib.trib_group_state_save)
        self._load_group(state["group"])
        try:
            self.optimizer.load_state_dict(state["optimizer"])
        except BaseException:
            self._load_group(before)
            raise
        for g in self._gradients:
            if g.residual is not None:
                g.residual.copy_(rests[g.name])
                g.version = g.residual._version
            g.may_have_residual = g.codec not in DENSE

    def _load_group(self, data: bytes) -> None:
        if not isinstance(data, bytes):
            raise TypeError(f"the state of a group is bytes, not {type(data).__name__}")
        self._check(lib.trib_group_state_load(self.handle, data, len(data)))

    def explain(self) -> str:
        """Return one line per group of tensors that is summed at once: tensors, bytes, codec."""
        return self._text(lib.trib_group_explain, 1 << 16)

    def close(self) -> None:
        """Free the sums' memory; each p.grad keeps its value, in memory of torch. Raise
        RuntimeError while sums are pending."""
        if self._begun:
            raise RuntimeError("sums of gradients are pending: call wait() on all ranks before "
                               "close()")
        super().close()
        self._leave()

    def __del__(self) -> None:
        super().__del__()
        if self._handle is not None:
            self._leave()

    def _leave(self) -> None:
        """Remove the hooks, and move gradients out of memory of the communicator."""
        for g in self._gradients:
            for h in g.hooks:
                h.remove()
            g.hooks = ()
            if _owners.get(id(g.parameter)) is self:
                del _owners[id(g.parameter)]
            if g.lies_in(g.sums) or g.residual is not None and g.lies_in(g.residual):
                g.parameter.grad = g.parameter.grad.clone()


@dataclass
class _Kept:
    """A hook and the autograd node on which it is registered, which it keeps alive."""

    accumulator: Any
    handle: Any

    def remove(self) -> None:
        self.handle.remove()


class _NoSync:
    def __init__(self, fed: Fed) -> None:
        self.fed, self.before = fed, list[bool]()  # a stack, for nested use

    def __enter__(self) -> None:
        self.before.append(self.fed._syncing)
        self.fed._syncing = False

    def __exit__(self, *_: Any) -> None:
        self.fed._syncing = self.before.pop()


def _trainable(model: torch.nn.Module) -> Any:
    for module in model.modules():
        if isinstance(module, torch.nn.parallel.DistributedDataParallel):
            raise TypeError("the model is DistributedDataParallel, which sums its gradients "
                            "itself: pass the wrapped module (model.module) to Fed, or use Hook")
    named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    if not named:
        raise ValueError("the model has no parameters that require a gradient")
    for name, p in named:
        if p.dtype != torch.float32 or p.device.type != "cpu":
            raise TypeError(f"{name} is {p.dtype} on {p.device}: Fed sums only float32 on the CPU")
        if id(p) in _owners:
            raise ValueError(f"another Fed sums the gradients of {name}: close() it first")
    return named


def _nested() -> bool:
    """Return whether a backward() runs inside another one on this thread."""
    entries = [getattr(f, "__code__", None) for f in (torch.autograd.backward, torch.autograd.grad)]
    frame: Any = sys._getframe()
    depth = 0
    while frame is not None and depth < 2:
        depth += frame.f_code in entries
        frame = frame.f_back
    return depth == 2
