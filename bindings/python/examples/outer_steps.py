# SPDX-License-Identifier: BSD-3-Clause
"""outer_steps.py - DiLoCo: each rank trains locally; every H steps the changes are averaged.

    trib-run -n 4 -- python3 outer_steps.py --codec topk:ratio=0.02

The mean change is the gradient of an outer optimizer, SGD with Nesterov momentum (Douillard et
al., 2023). All rounds use one plan, so a codec's residual is carried over to the next round.
"""
import argparse

import torch
from torch import nn

import tributary as tb

parser = argparse.ArgumentParser(description="Local steps, and outer steps on all ranks")
parser.add_argument("--codec", default="none")
parser.add_argument("--rounds", type=int, default=60)
parser.add_argument("--every", type=int, default=16, help="local steps per round")
options = parser.parse_args()
torch.set_num_threads(1)
torch.manual_seed(1)
net = nn.Sequential(nn.Linear(20, 64), nn.Tanh(), nn.Linear(64, 1))
teacher = nn.Sequential(nn.Linear(20, 8), nn.Tanh(), nn.Linear(8, 1)).requires_grad_(False)


def batch(draw, count):
    x = torch.randn(count, 20, generator=draw)
    return x, teacher(x)


def flat(parameters):
    return torch.cat([p.detach().reshape(-1) for p in parameters])


with tb.init() as comm:
    inner = torch.optim.AdamW(net.parameters(), lr=3e-3)
    centre = nn.Parameter(flat(net.parameters()))  # the same on all ranks
    outer = torch.optim.SGD([centre], lr=0.7, momentum=0.5, nesterov=True)
    change = torch.from_numpy(comm.empty(centre.numel()))
    plan = comm.plan("allreduce", change, op="mean", codec=options.codec)
    data = torch.Generator().manual_seed(100 + comm.rank)  # different on each rank
    for _ in range(options.rounds):
        for _ in range(options.every):
            x, y = batch(data, 32)
            inner.zero_grad()
            nn.functional.mse_loss(net(x), y).backward()
            inner.step()
        change.copy_(centre.detach() - flat(net.parameters()))
        plan.run()
        centre.grad = change.clone()
        outer.step()
        nn.utils.vector_to_parameters(centre.detach().clone(), net.parameters())
    x, y = batch(torch.Generator().manual_seed(7), 2000)
    rest = nn.functional.mse_loss(net(x), y).item() / y.var().item()
    alike = comm.allreduce(centre.detach().clone(), op="max").equal(centre.detach())
    plan.close()
    if comm.rank == 0:
        print(f"{options.rounds} sums, {100 * (1 - rest):.1f} % of the variance explained, "
              f"replicas {'alike' if alike else 'differ'}")
