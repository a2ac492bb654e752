# SPDX-License-Identifier: BSD-3-Clause
"""training.py FOLDER - one rank: DDP's hook and Fed on a small network, compared with Gloo."""
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

import tributary as tb
from tributary.torch import Fed, Hook

torch.set_num_threads(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(40, 300)
        self.norm = nn.LayerNorm(300)
        self.second = nn.Linear(300, 120)
        self.last = nn.Linear(120, 10)
        self.unused = nn.Linear(5, 5)

    def forward(self, x):
        return self.last(torch.relu(self.second(self.norm(torch.relu(self.first(x))))))


def net(unused=False):
    torch.manual_seed(3)
    model = Net()
    if not unused:
        del model.unused
    return model


def batch(rank, step):
    g = torch.Generator().manual_seed(1000 * step + rank)
    return torch.randn(16, 40, generator=g), torch.randint(10, (16,), generator=g)


def loss_of(model, rank, step):
    x, y = batch(rank, step)
    return nn.functional.cross_entropy(model(x), y)


def weights(model):
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


def replicas_alike(model):
    mine = weights(model)
    other = mine.clone()
    dist.broadcast(other, 0)
    return torch.equal(mine, other)


def same(mine, gloos):
    """With two ranks results are bitwise equal; with more, Gloo adds in another order."""
    return torch.equal(mine, gloos) if dist.get_world_size() == 2 else torch.allclose(
        mine, gloos, rtol=1e-4, atol=1e-5)


def by_ddp(comm, hook, steps, model=None, start=0):
    model = model or DDP(net(), bucket_cap_mb=0.1)
    if hook is not None:
        model.register_comm_hook(*hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(start, start + steps):
        optimizer.zero_grad()
        loss_of(model, comm.rank, step).backward()
        optimizer.step()
    return model


def by_fed(comm, codec, steps, **options):
    model = net(options.pop("unused", False))
    fed = Fed(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), comm, codec,
              **options)
    for step in range(steps):
        fed.zero_grad()
        loss_of(model, comm.rank, step).backward()
        fed.step()
    return model, fed


def dense_is_gloo(comm):
    plain = weights(by_ddp(comm, None, 6))
    assert same(weights(by_ddp(comm, Hook(comm), 6)), plain), "hook"
    model, fed = by_fed(comm, "none", 6)
    assert same(weights(model), plain), "fed"
    fed.close()


def codecs(comm):
    for codec in ("topk:ratio=0.05", "int8", "bf16", "powersgd:rank=2", "dgc:ratio=0.05", "qsgd"):
        assert replicas_alike(by_ddp(comm, Hook(comm, codec, small_below=1000), 4)), codec
        model, fed = by_fed(comm, codec, 4, small_below=1000)
        assert replicas_alike(model), codec
        fed.close()


def kept_by_parameter(comm):
    """Residuals are kept although DDP forms other buckets after the first step."""
    model = DDP(net(), bucket_cap_mb=0.1)
    hook = Hook(comm, "topk:ratio=0.01", small_below=1000, model=model)
    by_ddp(comm, hook, 1, model)
    names = set(hook.state_dict()["parameters"])
    assert names == {"first.weight", "second.weight", "last.weight"}, names
    plans = {p.name: p.plan for p in hook._parameters.values() if p.plan}
    kept = {n: p.residual() for n, p in plans.items()}
    assert all(abs(r).sum() > 0 for r in kept.values())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.zero_grad()
    loss_of(model, comm.rank, 1).backward()
    again = {p.name: p.plan for p in hook._parameters.values() if p.plan}
    assert all(again[n] is plans[n] for n in plans), "a plan was made anew"


def policy(comm):
    model = DDP(net())
    hook = Hook(comm, "int8", small_below=0, policy=[("*.bias", "none"), ("norm*", "none")],
                model=model, start_step=1)
    by_ddp(comm, hook, 3, model)
    with_codec = {p.name for p in hook._parameters.values() if p.plan}
    assert with_codec == {"first.weight", "second.weight", "last.weight"}, with_codec
    assert replicas_alike(model)


def goes_on(comm, folder):
    """Four steps, and two steps, a saved and loaded state and two more, are bitwise equal."""
    path = os.path.join(folder, f"state{comm.rank}")
    whole = weights(by_ddp(comm, Hook(comm, "topk:ratio=0.05", small_below=1000), 4))
    model = DDP(net(), bucket_cap_mb=0.1)
    hook = Hook(comm, "topk:ratio=0.05", small_below=1000)
    model.register_comm_hook(*hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(4):
        if step == 2:
            torch.save([hook.state_dict(), model.state_dict(), optimizer.state_dict()], path)
            kept, of_model, of_optimizer = torch.load(path)
            model = DDP(net(), bucket_cap_mb=0.1)
            model.load_state_dict(of_model)
            hook = Hook(comm, "topk:ratio=0.05", small_below=1000)
            hook.load_state_dict(kept)
            model.register_comm_hook(*hook)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
            optimizer.load_state_dict(of_optimizer)
        optimizer.zero_grad()
        loss_of(model, comm.rank, step).backward()
        optimizer.step()
    assert torch.equal(weights(model), whole)


def accumulates(comm):
    """Two backward passes without an all-reduce between them equal one pass of both losses."""
    model = net()
    fed = Fed(model, torch.optim.SGD(model.parameters(), lr=0.1), comm)
    fed.zero_grad()
    with fed.no_sync():
        loss_of(model, comm.rank, 0).backward()
    loss_of(model, comm.rank, 1).backward()
    fed.step()
    expected = net()
    total = sum(loss_of(expected, r, s) for r in range(comm.size) for s in (0, 1)) / comm.size
    total.backward()
    torch.optim.SGD(expected.parameters(), lr=0.1).step()
    assert torch.allclose(weights(model), weights(expected), atol=1e-6)
    fed.close()


def in_grad(comm):
    """With in_grad the residual stays in p.grad, and training is bitwise equal."""
    options = dict(small_below=1000, policy=[("last.*", "int8")])
    for codec in ("topk:ratio=0.05", "dgc:ratio=0.05+qsgd"):
        plain, by_plan = by_fed(comm, codec, 5, **options)
        model, fed = by_fed(comm, codec, 5, in_grad=True, **options)
        rests = {g.name: g.residual for g in fed._gradients if g.residual is not None}
        assert sorted(rests) == ["first.weight", "second.weight"], rests.keys()
        assert torch.equal(weights(model), weights(plain)), codec
        state = fed.state_dict()
        rest = rests["first.weight"].clone()
        rests["first.weight"].zero_()
        fed.load_state_dict(state)
        assert torch.equal(rests["first.weight"], rest) and rest.count_nonzero() > 0
        by_plan.close()
        fed.close()


def unused(comm):
    model, fed = by_fed(comm, "int8", 3, unused=True, clip_norm=0.5)
    assert replicas_alike(model)
    assert torch.equal(model.unused.weight, net(True).unused.weight)
    state = fed.state_dict()
    fed.load_state_dict(state)
    fed.close()


def refused(kind, call, *arguments):
    try:
        call(*arguments)
    except kind:
        return
    raise AssertionError(f"{call} takes {arguments}")


def spoiled(state):
    """Return the state of a plan with one byte changed."""
    data = bytearray(state["bytes"])
    data[-1] ^= 1
    return dict(state, bytes=bytes(data))


def equal(one, two):
    """Return true if two states are equal, recursively."""
    if isinstance(one, torch.Tensor):
        return torch.equal(one, two)
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(equal(one[k], two[k]) for k in one)
    if isinstance(one, list):
        return len(one) == len(two) and all(map(equal, one, two))
    return one == two


def fed_stays(comm):
    """A rejected state does not change the optimizer, codecs or residuals."""
    for in_grad_too in (False, True):
        _, fed = by_fed(comm, "topk:ratio=0.05", 3, small_below=1000, in_grad=in_grad_too)
        state = fed.state_dict()
        _, later = by_fed(comm, "topk:ratio=0.05", 5, small_below=1000, in_grad=in_grad_too)
        kept = later.state_dict()
        kept["optimizer"] = {k: dict(v) if isinstance(v, dict) else list(v)
                             for k, v in kept["optimizer"].items()}
        kept["optimizer"]["state"] = {k: {n: t.clone() for n, t in v.items()}
                                      for k, v in kept["optimizer"]["state"].items()}
        other = dict(state["optimizer"], param_groups=[])
        wrong = [(tb.Error, dict(state, group=state["group"][:-8])),
                 (ValueError, dict(state, optimizer=other)),
                 (TypeError, dict(state, group="text"))]
        if in_grad_too:
            rests = state["rests"]
            name = sorted(rests)[-1]
            wrong += [(ValueError, dict(state, rests={})),
                      (ValueError, dict(state, rests=dict(rests, more=rests[name]))),
                      (ValueError, dict(state, rests={**rests, name: torch.ones(1)}))]
        for kind, bad in wrong:
            refused(kind, later.load_state_dict, bad)
            assert equal(later.state_dict(), kept), bad.keys()
        later.load_state_dict(state)
        assert equal(later.state_dict(), state)
        fed.close()
        later.close()


def hook_stays(comm):
    """A rejected state does not change a plan; a loaded state is kept until its plan exists."""
    def hook_of():
        model = DDP(net(), bucket_cap_mb=0.1)
        return model, Hook(comm, "topk:ratio=0.05", small_below=1000, model=model)

    model, hook = hook_of()
    by_ddp(comm, hook, 2, model)
    state = hook.state_dict()
    model, later = hook_of()
    by_ddp(comm, later, 3, model)
    kept = later.state_dict()
    last = list(kept["parameters"])[-1]
    bad = dict(state, parameters={**state["parameters"], last: spoiled(state["parameters"][last])})
    refused(tb.Error, later.load_state_dict, bad)
    assert equal(later.state_dict(), kept)

    new = hook_of()[1]
    assert new.state_dict() == {"step": 0, "parameters": {}}
    later.load_state_dict(new.state_dict())  # as at the start: nothing is held back
    assert later.state_dict() == new.state_dict()
    new.load_state_dict(state)
    assert equal(new.state_dict(), state), "saved again before the first step"
    refused(ValueError, new.load_state_dict, dict(state, parameters={last: {"of": "other"}}))
    assert equal(new.state_dict(), state)
    by_ddp(comm, None, 2, model)
    assert set(later.state_dict()["parameters"]) == set(state["parameters"])


dist.init_process_group(
    "gloo", init_method=f"file://{sys.argv[1]}/meet", rank=int(os.environ["TRIB_RANK"]),
    world_size=int(os.environ["TRIB_SIZE"]),
)
with tb.from_torch() as world:
    dense_is_gloo(world)
    codecs(world)
    kept_by_parameter(world)
    policy(world)
    goes_on(world, sys.argv[1])
    accumulates(world)
    unused(world)
    in_grad(world)
    fed_stays(world)
    hook_stays(world)
    x = torch.full((3,), float(world.rank), dtype=torch.bfloat16)
    assert world.allreduce(x)[0] == world.size * (world.size - 1) / 2
print("all right")
sys.stdout.flush()
os._exit(0)
