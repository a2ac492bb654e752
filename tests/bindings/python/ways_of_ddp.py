# SPDX-License-Identifier: BSD-3-Clause
"""ways_of_ddp.py - checks of process_group.py for DistributedDataParallel: each kind of usage has the same losses as
with Gloo, bitwise equal with two ranks, and the same parameters on all ranks."""
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP


class Net(nn.Module):
    """A branch that some steps skip, and parameters of two types."""

    def __init__(self):
        super().__init__()
        self.first, self.side, self.last = nn.Linear(6, 40), nn.Linear(40, 40), nn.Linear(40, 3)
        self.wide = nn.Parameter(torch.ones(3, dtype=torch.float64))
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))

    def forward(self, x, whole=True):
        self.seen += 1
        x = torch.relu(self.first(x))
        return self.last(x + self.side(x) if whole else x) * self.wide


class Run:
    def __init__(self, group, zero=False, **options):
        torch.manual_seed(3)
        self.rank = dist.get_rank(group)
        self.net = DDP(Net(), process_group=group, bucket_cap_mb=0.005, **options)
        parameters = list(self.net.parameters())
        self.optimizer = (
            ZeroRedundancyOptimizer([p for p in parameters if p.dtype == torch.float32],
                                    torch.optim.SGD, process_group=group, lr=0.1, momentum=0.9)
            if zero else torch.optim.SGD(parameters, lr=0.1, momentum=0.9))
        self.numbers = torch.Generator().manual_seed(self.rank)
        self.losses = []

    def backward(self, **how):
        x = torch.randn(4, 6, generator=self.numbers)
        loss = self.net(x, **how).square().mean()
        loss.backward()
        self.losses.append(float(loss))

    def step(self, **how):
        self.backward(**how)
        self.optimizer.step()
        self.optimizer.zero_grad()

    def result(self):
        self.losses.append(float(sum(p.detach().double().sum() for p in self.net.parameters())))
        return torch.tensor(self.losses, dtype=torch.float64)


def static_graph(group):
    run = Run(group, static_graph=True)
    for _ in range(4):
        run.step()
    return run.result()


def unused(group):
    run = Run(group, find_unused_parameters=True)
    for step in range(4):
        run.step(whole=(step + run.rank) % 3 == 0)
    return run.result()


def accumulated(group):
    run = Run(group, gradient_as_bucket_view=True)
    for _ in range(3):
        with run.net.no_sync():
            run.backward()
            run.backward()
        run.step()
    return run.result()


def uneven(group):
    run = Run(group)
    with run.net.join():
        for _ in range(2 + run.rank):
            run.step()
    return run.result()


def sharded(group):
    """ZeroRedundancyOptimizer with ranks that finish after different numbers of steps, and its state on one rank."""
    run = Run(group, zero=True)
    with Join([run.net, run.optimizer]):
        for _ in range(2 + run.rank):
            run.step()
    run.optimizer.consolidate_state_dict(to=0)
    if run.rank == 0:
        run.losses.append(sum(float(s["momentum_buffer"].sum())
                              for s in run.optimizer.state_dict()["state"].values() if s))
    return run.result()


def check(gloo):
    for way in (static_graph, unused, accumulated, uneven, sharded):
        ours, theirs = way(None), way(gloo)
        if dist.get_world_size() == 2:  # more are added in another order than Gloo's
            assert torch.equal(ours, theirs), (way.__name__, ours, theirs)
        assert torch.allclose(ours, theirs, rtol=1e-5), (way.__name__, ours, theirs)
        sums = [torch.zeros(1, dtype=torch.float64) for _ in range(dist.get_world_size())]
        dist.all_gather(sums, ours[-1:])
        assert all(torch.equal(s, sums[0]) for s in sums), (way.__name__, sums)
