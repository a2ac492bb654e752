# SPDX-License-Identifier: BSD-3-Clause
"""fed.py FOLDER [CASE...] - one rank: the cases of replicas.py, then usage that Fed rejects with an error message and
without a hang. The communicator works afterwards."""
import os
import sys
import warnings

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.checkpoint import checkpoint

import tributary as tb
from replicas import (ByFed, ByHand, InGrad, Normal, loss_of, on, perceptron, replicas, sgd, start, train, weights,
                      x_of)
from tributary.torch import Fed


class Fault(torch.autograd.Function):
    @staticmethod
    def forward(_, x):
        return x.clone()

    @staticmethod
    def backward(_, of_y):
        raise KeyError("boom")


def raises(words, call, *arguments, **options):
    try:
        call(*arguments, **options)
    except (RuntimeError, TypeError, ValueError, tb.Error) as e:
        assert words in str(e), e
        return
    raise AssertionError(f"not refused: {words}")


def goes_on(t):
    """Check that the communicator still works, and that training by Fed equals averaging by hand."""
    t.module.requires_grad_(True)
    t.close()
    got = weights(train(start(ByFed)))
    assert torch.allclose(got, weights(train(start(ByHand))), rtol=1e-5, atol=1e-6)


def graphs():
    t = start(ByFed)
    loss = loss_of(t.net(x_of(0)))
    raises("has a graph", loss.backward, create_graph=True)
    t.zero_grad(True)
    goes_on(t)


def failed_backward():
    t, second = start(ByFed), start(ByFed)
    m = t.module
    y = m[4](torch.tanh(m[2](Fault.apply(torch.tanh(m[0](x_of(0)))))))
    try:
        loss_of(y).backward()
    except KeyError:
        pass
    raises("are pending", t.fed.zero_grad)
    raises("another Fed", second.fed.step)
    t.fed.wait()
    t.fed.zero_grad()
    second.close()
    goes_on(train(t, 1))


def unknown_parameters():
    t = start(ByFed)
    t.module.add_module("more", nn.Linear(3, 3))
    t.optimizer.add_param_group({"params": t.module.more.parameters()})
    raises("more.weight that Fed does not sum", train, t, 1)
    goes_on(t)
    t = start(lambda m, o: ByFed(frozen(m), o))
    train(t, 1)
    t.module[0].requires_grad_(True)
    raises("0.weight that Fed does not sum", train, t, 1)
    goes_on(t)


def frozen(m):
    m[0].requires_grad_(False)
    return m


def other_types():
    t = start(ByFed)
    train(t, 1)
    t.module.double()
    x = x_of(0).double()
    raises("now torch.float64", lambda: (loss_of(t.net(x)).backward(), t.step()))
    t.close()
    for dtype in (torch.float64, torch.complex64):
        raises(str(dtype), start, ByFed, lambda d=dtype: nn.Linear(3, 3).to(d))
    raises("no parameters", start, ByFed, lambda: nn.Linear(3, 3).requires_grad_(False))


def other_models():
    rank = dist.get_rank()
    raises("", start, ByFed, lambda: nn.Linear(6, 3 + rank))
    raises("and 0 differ", start, ByFed, lambda: nn.Linear(*((8, 4), (4, 8))[rank % 2], bias=False))
    t = start(ByFed)
    raises("another Fed", Fed, t.module, t.optimizer, on.comm)
    raises("DistributedDataParallel", Fed, DDP(t.module), t.optimizer, on.comm)
    goes_on(t)


def other_numbers_of_backwards():
    t = start(ByFed)

    def steps():
        for step in range(2):
            t.zero_grad()
            t.backward(loss_of(t.net(x_of(step))))
            if step == 0 and dist.get_rank() == 0:
                t.backward(loss_of(t.net(x_of(step))))
            t.step()

    raises("different steps", steps)
    goes_on(t)


class Inside(nn.Module):
    """All used parameters are inside a checkpoint, so the all-reduces complete in step()."""

    def __init__(self):
        super().__init__()
        self.used, self.unused = nn.Linear(6, 3), nn.Linear(3, 3)

    def forward(self, x):
        return checkpoint(lambda y: torch.tanh(self.used(y)), x.requires_grad_(), use_reentrant=True)


def changed_under_way():
    t = start(ByFed, Inside)
    t.backward(loss_of(t.net(x_of(0))))
    t.optimizer.zero_grad(set_to_none=False)
    raises("was changed", t.step)
    t.zero_grad()
    t.backward(loss_of(t.net(x_of(0))))
    nn.utils.clip_grad_norm_(t.module.parameters(), 1e-3)
    raises("was changed", t.step)
    t.zero_grad()
    t.backward(loss_of(t.net(x_of(0))))
    t.fed.wait()
    nn.utils.clip_grad_norm_(t.module.parameters(), 1e-3)
    goes_on(t)


def rests_cleared():
    t = start(InGrad)
    train(t, 1)
    t.fed.zero_grad()
    t.optimizer.zero_grad(set_to_none=False)
    raises("was written to", t.backward, loss_of(t.net(x_of(0))))
    t.fed.zero_grad()
    with t.no_sync():
        t.backward(loss_of(t.net(x_of(0))))
    raises("sum it by step()", t.fed.zero_grad)
    t.step()
    goes_on(t)


def no_sync_again():
    """The same no_sync() object may be entered twice."""
    t = start(ByFed)
    here = t.fed.no_sync()
    with here, here:
        t.backward(loss_of(t.net(x_of(0))))
    assert t.fed._syncing
    t.step()
    goes_on(t)


def other_default():
    """The residual of in_grad is float32, regardless of torch's default type."""
    m = perceptron()
    torch.set_default_dtype(torch.float64)
    fed = Fed(m, sgd(m.parameters()), on.comm, "topk:ratio=0.5", small_below=0, in_grad=True)
    torch.set_default_dtype(torch.float32)
    fed.zero_grad()
    loss_of(m(x_of(0))).backward()
    fed.step()
    fed.close()


def momentum_twice():
    for momentum, said in ((0.9, 1), (0, 0)):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            m = perceptron()
            fed = Fed(m, torch.optim.SGD(m.parameters(), lr=0.1, momentum=momentum), on.comm, "topk:ratio=0.1",
                      small_below=0, feedback="ef14:momentum=0.9")
        assert [("momentum is applied twice" in str(w.message)) for w in seen] == [True] * said, seen
        fed.close()


def feedback_without_use():
    m = perceptron()
    raises("has no effect", Fed, m, sgd(m.parameters()), on.comm, feedback="ef14")
    raises("has no effect", Fed, m, sgd(m.parameters()), on.comm, "topk:ratio=0.1", small_below=0, in_grad=True,
           feedback="ef14:momentum=0.9")
    os.environ["TRIB_FEEDBACK"] = "ef14:momentum=0.9"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Fed(m, sgd(m.parameters()), on.comm).close()  # nothing uses this feedback
    del os.environ["TRIB_FEEDBACK"]


def afterwards():
    """Gradients stay valid after Fed is closed; with broadcast_buffers=False each rank keeps its own buffers."""
    torch.manual_seed(dist.get_rank())
    m = Normal()
    own = m.norm.running_mean.add_(1 + dist.get_rank()).clone()
    fed = Fed(m, sgd(m.parameters()), on.comm, broadcast_buffers=False)
    loss_of(m(x_of(0))).backward()
    fed.step()
    assert (m.norm.running_mean - own).abs().max() < 0.5 * (1 + dist.get_rank()) and fed.param_groups
    grads = [p.grad.clone() for p in m.parameters()]
    fed.close()
    fed.close()
    fed._memory[:] = 7
    assert all(torch.equal(p.grad, g) for p, g in zip(m.parameters(), grads))


REFUSALS = (graphs, failed_backward, unknown_parameters, other_types, other_models, other_numbers_of_backwards,
            changed_under_way, rests_cleared, no_sync_again, other_default, momentum_twice, feedback_without_use, afterwards)


dist.init_process_group(
    "gloo", init_method=f"file://{sys.argv[1]}/meet", rank=int(os.environ["TRIB_RANK"]),
    world_size=int(os.environ["TRIB_SIZE"]))
faults = []
with tb.from_torch() as on.comm:
    on.other, on.backend = on.comm.split(0), dist.new_group(backend="tributary")
    print(replicas(sys.argv[2:], faults))
    for refusal in REFUSALS:
        if len(sys.argv) == 2 or refusal.__name__ in sys.argv[2:]:
            refusal()
    on.other.close()
    print("\n".join(faults) or "all right")
    sys.stdout.flush()
    dist.barrier()
    os._exit(bool(faults))
