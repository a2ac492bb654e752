# SPDX-License-Identifier: BSD-3-Clause
"""replicas.py - usage of DistributedDataParallel, covering the cases of PyTorch's tests, by Fed, by Hook and by DDP
over the backend. Each computes the same as averaging by hand, or fails with the expected error."""
import contextlib
import copy
import types
import warnings

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.checkpoint import checkpoint

import tributary as tb
from tributary.torch import Fed, Hook

torch.set_num_threads(1)
warnings.filterwarnings("ignore", "grad and param do not obey")
on = types.SimpleNamespace(comm=None, other=None, backend=None)  # two communicators, and a process group


# ---- ways to train ---------------------------------------------------------------------

class ByHand:
    """The reference: average the gradients one by one in step()."""

    def __init__(self, module, optimizer, **_):
        self.module = self.net = module
        self.optimizer = optimizer
        for t in [*module.parameters(), *module.buffers()]:
            if t.numel():
                same = t.detach().clone(memory_format=torch.contiguous_format)
                dist.broadcast(same, 0)
                if not torch.equal(t, same):
                    t.data.copy_(same)

    def average(self):
        for p in self.module.parameters():
            has = torch.tensor(float(p.grad is not None))
            dist.all_reduce(has)
            if not has:
                continue
            whole = torch.zeros(p.shape) if p.grad is None else p.grad.to_dense() if (
                p.grad.is_sparse) else p.grad.contiguous()
            whole = whole.detach().clone()
            dist.all_reduce(whole)
            p.grad = whole / dist.get_world_size()

    def backward(self, loss, **options):
        loss.backward(**options)

    def summed(self):
        self.average()

    def step(self, closure=None):
        if closure is None:
            self.average()
            self.optimizer.step()
        else:
            self.optimizer.step(lambda: self.evaluated(closure))
        for b in self.module.buffers():
            dist.broadcast(b, 0)

    def evaluated(self, closure):
        loss = closure().detach()
        self.average()
        dist.all_reduce(loss)
        return loss / dist.get_world_size()

    def zero_grad(self, to_none=False):
        self.optimizer.zero_grad(set_to_none=to_none)

    def no_sync(self):
        return contextlib.nullcontext()

    def close(self):
        pass


class ByFed(ByHand):
    codec, options = "none", {}

    def __init__(self, module, optimizer, comm=None, **_):
        self.module = self.net = module
        self.optimizer = optimizer
        self.fed = Fed(module, optimizer, comm or on.comm, self.codec, **self.options)
        self.no_sync, self.close = self.fed.no_sync, self.fed.close

    def summed(self):
        self.fed.wait()

    def step(self, closure=None):
        self.fed.step(closure)

    def zero_grad(self, to_none=False):
        if to_none:
            self.optimizer.zero_grad(set_to_none=True)
        else:
            self.fed.zero_grad()


class InGrad(ByFed):
    """A codec that sends all elements, so residuals are zero."""

    codec, options = "topk:ratio=1", {"in_grad": True, "small_below": 0}


class ByDdp(ByHand):
    def __init__(self, module, optimizer, comm=None, **options):
        self.module = module
        self.optimizer = optimizer
        self.net = self.wrap(module, **options)

    def wrap(self, module, group=None, **options):
        return DDP(module, process_group=group, bucket_cap_mb=0.01, **options)

    def summed(self):
        pass

    def step(self, closure=None):
        if closure is not None:
            raise NotImplementedError("DDP averages no losses")
        self.optimizer.step()
        for b in self.module.buffers():  # DDP does this before the next step
            dist.broadcast(b, 0)

    def no_sync(self):
        return self.net.no_sync()


class ByHook(ByDdp):
    def wrap(self, module, **options):
        net = super().wrap(module, **options)
        net.register_comm_hook(*Hook(on.comm))
        return net


class ByBackend(ByDdp):
    def wrap(self, module, **options):
        return super().wrap(module, group=on.backend, **options)


WAYS = {"Fed": ByFed, "in_grad": InGrad, "Hook": ByHook, "backend": ByBackend}


# ---- models and data -------------------------------------------------------------------

def perceptron():
    return nn.Sequential(nn.Linear(6, 150), nn.Tanh(), nn.Linear(150, 130), nn.Tanh(),
                         nn.Linear(130, 3))


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=0.01)


def x_of(step, *shape):
    generator = torch.Generator().manual_seed(100 * step + dist.get_rank())
    return torch.randn(*(shape or (5, 6)), generator=generator)


def loss_of(y):
    return (y - 0.3).square().mean()


def start(way, make=perceptron, optimizer=sgd, seed=3, **options):
    torch.manual_seed(seed)
    module = make()
    return way(module, optimizer(module.parameters()), **options)


def train(t, steps=3, first=0, x=x_of, to_none=False):
    for step in range(first, first + steps):
        t.zero_grad(to_none)
        t.backward(loss_of(t.net(x(step))))
        t.step()
    return t


# ---- training programs -----------------------------------------------------------------

def plainly(way):
    return train(start(way))


def gradients_of_none(way):
    return train(start(way), to_none=True)


def gradients_that_were_there(way):
    t = start(way)
    t.module[0].weight.grad = torch.ones(150, 6)
    t.backward(loss_of(t.net(x_of(0))))
    t.step()
    return train(t, first=1)


def none_and_zero_by_turns(way):
    t = start(way)
    for step in range(4):
        train(t, 1, step, to_none=step % 2 == 1)
    return t


def two_backwards(way):
    t = start(way)
    for step in range(3):
        t.zero_grad()
        t.backward(loss_of(t.net(x_of(2 * step))))
        t.backward(loss_of(t.net(x_of(2 * step + 1))))
        t.step()
    return t


def graph_retained(way):
    if issubclass(way, ByDdp):
        raise NotImplementedError("DDP sums once behind each forward()")
    t = start(way)
    t.zero_grad()
    loss = loss_of(t.net(x_of(0)))
    t.backward(loss, retain_graph=True)
    t.backward(loss)
    t.step()
    return train(t, 2)


def accumulated(way):
    t = start(way)
    for step in range(3):
        t.zero_grad()
        with t.no_sync():
            t.backward(loss_of(t.net(x_of(9 * step))))
            with t.no_sync():
                t.backward(loss_of(t.net(x_of(9 * step + 1))))
            t.backward(loss_of(t.net(x_of(9 * step + 2))))
        t.backward(loss_of(t.net(x_of(9 * step + 3))))
        t.step()
    return t


def clipped(way):
    t = start(way)
    for step in range(3):
        t.zero_grad()
        t.backward(100 * loss_of(t.net(x_of(step))))
        t.summed()
        nn.utils.clip_grad_norm_(t.module.parameters(), 0.05)
        if step == 1:
            for p in t.module.parameters():
                p.grad.data.clamp_(-1e-3, 1e-3)
        if isinstance(t, (ByFed, ByDdp)):
            t.step()
        else:
            t.optimizer.step()
    return t


def gradients_replaced(way):
    t = start(way)
    for step in range(3):
        t.zero_grad()
        t.backward(loss_of(t.net(x_of(step))))
        t.summed()
        for p in t.module.parameters():
            p.grad = p.grad * 0.5
        t.step()
    return t


def optimizers_own_step(way):
    """Call the optimizer's own step(), as torch's GradScaler does."""
    t = start(way)
    for step in range(3):
        t.zero_grad()
        t.backward(loss_of(t.net(x_of(step))))
        t.summed()
        t.optimizer.step()
    return t


def ranks_begin_otherwise(way):
    return train(start(way, seed=dist.get_rank()))


class Normal(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(6, 40), nn.BatchNorm1d(40), nn.Linear(40, 3)
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))
        self.register_buffer("flag", torch.tensor([1], dtype=torch.uint8))
        self.register_buffer("nothing", torch.zeros(0))

    def forward(self, x):
        self.seen += 1
        return self.last(torch.tanh(self.norm(self.first(x))))


def batch_norm(way):
    return train(start(way, Normal, seed=dist.get_rank()), 4)


class Branches(nn.Module):
    """A branch used by odd ranks, one used in some steps, one never used, and a frozen layer."""

    def __init__(self):
        super().__init__()
        self.first, self.odd, self.late, self.never, self.frozen = (
            nn.Linear(6, 6) for _ in range(5))
        self.frozen.requires_grad_(False)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        x = torch.tanh(self.frozen(self.first(x)))
        x = self.odd(x) if dist.get_rank() % 2 else x
        return self.late(x) if self.calls > 2 else x


def branches(way):
    return train(start(way, Branches, find_unused_parameters=True), 4, to_none=True)


def no_loss_on_one_rank(way):
    """Only rank 0 calls backward() in a step, for which DDP would wait forever."""
    if issubclass(way, ByDdp):
        raise NotImplementedError("each rank calls backward() with DDP")
    t = start(way)
    for step in range(3):
        t.zero_grad()
        if step != 1 or dist.get_rank() == 0:
            t.backward(loss_of(t.net(x_of(step))))
        t.step()
    return t


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.last = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 3)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.last(torch.tanh(self.second(torch.tanh(self.first(self.first(x))))))


def tied(way):
    return train(start(way, Tied))


class Checkpointed(nn.Module):
    def __init__(self, times, reentrant):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(6, 6) for _ in range(1 if times > 1 else 3))
        self.first, self.times, self.reentrant = nn.Linear(6, 6), times, reentrant

    def forward(self, x):
        x = self.first(x)
        for _ in range(self.times):
            for layer in self.layers:
                x = checkpoint(lambda y, f=layer: torch.tanh(f(y)), x,
                               use_reentrant=self.reentrant)
        return x


def checkpointed(way):
    return train(start(way, lambda: Checkpointed(1, True)))


def checkpointed_three_times(way):
    return train(start(way, lambda: Checkpointed(3, False)))


def reentrant_three_times(way):
    return train(start(way, lambda: Checkpointed(3, True)))


def reentrant_three_times_later(way):
    t = start(way, lambda: Checkpointed(3, True))
    for step in range(2):
        t.zero_grad()
        with t.no_sync():
            t.backward(loss_of(t.net(x_of(step))))
        if isinstance(t, ByDdp):
            raise NotImplementedError("DDP sums in backward() alone")
        t.step()
    return t


class Embedded(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.last = nn.Embedding(50, 6, sparse=True), nn.Linear(6, 3)

    def forward(self, x):
        return self.last(self.words(x))


def sparse(way):
    def words(step):
        return (x_of(step, 7).abs() * 10).long()

    def plain(parameters):
        return torch.optim.SGD(parameters, lr=0.1)

    t = start(way, Embedded, plain)
    train(t, 2, x=words)
    return train(t, 3, 2, words, to_none=True)


class Odd(nn.Module):
    """Parameters without elements, without dimensions, transposed, expanded, and in another memory format."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3).to(memory_format=torch.channels_last)
        self.scale = nn.Parameter(torch.ones(()))
        self.empty = nn.Parameter(torch.zeros(0, 3))
        self.turned = nn.Parameter(torch.arange(32.0).reshape(4, 8).t() / 32)
        self.wide = nn.Parameter(torch.ones(1).expand(4))

    def forward(self, x):
        x = self.conv(x.to(memory_format=torch.channels_last)).mean((2, 3))
        return x @ self.turned * self.scale + self.empty.sum() + self.wide.sum()


def odd_memory(way):
    def optimizer(parameters):
        return torch.optim.SGD([p for p in parameters if 0 not in p.stride()], lr=0.1)

    return train(start(way, Odd, optimizer), x=lambda step: x_of(step, 2, 3, 5, 5))


def penalty_on_gradients(way):
    t = start(way)
    for step in range(3):
        t.zero_grad()
        x = x_of(step).requires_grad_()
        y = loss_of(t.net(x))
        of_x, = torch.autograd.grad(y, x, create_graph=True)
        t.backward(y + of_x.square().sum())
        t.step()
    return t


def frozen_later(way):
    """Momentum keeps changing a parameter whose gradient is zero, as in torch, but not if it is None."""
    if way is InGrad:
        raise NotImplementedError("what a codec holds back of a parameter comes later")
    t = start(way, find_unused_parameters=True)
    train(t, 2)
    t.module[2].weight.requires_grad_(False)
    train(t, 2, 2, to_none=True)
    t.module[2].weight.requires_grad_(True)
    return train(t, 2, 4)


def by_closure(way):
    t = start(way)
    for step in range(3):
        def closure(now=step):
            t.zero_grad()
            loss = loss_of(t.net(x_of(now)))
            t.backward(loss)
            return loss
        t.step(closure)
    return t


def by_lbfgs(way):
    def lbfgs(parameters):
        return torch.optim.LBFGS(parameters, lr=0.3, max_iter=4, line_search_fn="strong_wolfe")

    t = start(way, lambda: nn.Linear(6, 3), lbfgs)
    for step in range(2):
        def closure(now=step):
            t.zero_grad()
            loss = loss_of(torch.tanh(t.net(x_of(now))))
            t.backward(loss)
            return loss
        t.step(closure)
    return t


def states_loaded(way):
    t = start(way, optimizer=lambda p: torch.optim.Adam(p, lr=0.01))
    train(t, 2)
    states = copy.deepcopy([t.module.state_dict(), t.optimizer.state_dict()])
    train(t, 2, 2)
    t.module.load_state_dict(states[0])
    t.optimizer.load_state_dict(states[1])
    copy.deepcopy(t.module)(x_of(0)).sum().backward()  # a copy is not a replica
    return train(t, 2, 4)


def moved_there_and_back(way):
    """Converting a model to another type and back replaces the gradient accumulators that hold the hooks."""
    t = train(start(way), 1)
    if isinstance(t, ByDdp):
        raise NotImplementedError("DDP is made anew after the model has moved")
    t.module.half().float()
    return train(t, 3, 1, to_none=True)


def through_two_models(way, apart=False):
    """The generator's backward pass of a GAN also goes through the discriminator."""
    def critic():
        return nn.Sequential(nn.Linear(3, 140), nn.Tanh(), nn.Linear(140, 130), nn.Linear(130, 1))

    one, two = start(way), start(way, critic, comm=on.other if apart else None)
    for step in range(3):
        two.zero_grad()
        two.backward(loss_of(two.net(one.net(x_of(step)).detach())))
        two.step()
        one.zero_grad()
        one.backward(-loss_of(two.net(one.net(x_of(step)))))
        one.step()
    return one, two


def through_two_apart(way):
    return through_two_models(way, True)


RIGHT = (plainly, gradients_of_none, gradients_that_were_there, none_and_zero_by_turns, two_backwards, graph_retained,
         accumulated, clipped, gradients_replaced, optimizers_own_step, ranks_begin_otherwise, batch_norm, branches,
         no_loss_on_one_rank, tied, checkpointed, checkpointed_three_times, reentrant_three_times,
         reentrant_three_times_later, sparse, odd_memory, penalty_on_gradients, frozen_later, by_closure, by_lbfgs,
         states_loaded, moved_there_and_back, through_two_models, through_two_apart)

# Programs that a way rejects, with part of the error message.
REFUSED = {
    ("reentrant_three_times", "Fed"): "second gradient",
    ("reentrant_three_times", "in_grad"): "second gradient",
    ("reentrant_three_times", "Hook"): "marked as ready twice",
    ("reentrant_three_times", "backend"): "marked as ready twice",
    ("sparse", "Hook"): "sparse=False",
    ("odd_memory", "Hook"): "must match the size",  # DDP has no parameters without elements
    ("odd_memory", "backend"): "must match the size",
}


def weights(trained):
    """Return the weights of all models, and close their trainers."""
    trained = trained if isinstance(trained, tuple) else (trained,)
    for t in trained:
        t.close()
    return torch.cat([p.detach().double().reshape(-1) for t in trained
                      for p in [*t.module.parameters(), *t.module.buffers()]])


def replicas(wanted, found):
    counts = {way: [0, 0] for way in WAYS}
    for case in RIGHT:
        if wanted and case.__name__ not in wanted:
            continue
        right = weights(case(ByHand))
        for name, way in WAYS.items():
            refused = REFUSED.get((case.__name__, name))
            try:
                got = weights(case(way))
            except NotImplementedError:
                continue
            except (RuntimeError, TypeError, ValueError, tb.Error) as e:
                if refused is None or refused not in str(e):
                    found.append(f"{case.__name__} by {name}: {type(e).__name__}: {e}")
                counts[name][1] += 1
                continue
            roots = got.clone()
            dist.broadcast(roots, 0)
            if refused is not None:
                found.append(f"{case.__name__} by {name}: not refused")
            elif not torch.equal(roots, got):
                found.append(f"{case.__name__} by {name}: the ranks differ")
            elif not torch.allclose(got, right, rtol=1e-5, atol=1e-5):
                found.append(f"{case.__name__} by {name}: off by {(got - right).abs().max():.3g}")
            counts[name][0] += 1
    return ", ".join(f"{way} {right} right, {refused} refused"
                     for way, (right, refused) in counts.items())


