# SPDX-License-Identifier: BSD-3-Clause
"""ddp_steps.py ADDRESS ROUNDS STEPS BATCH ROWS LAYERS - a rank: steps of training, by several ways of summing.
ddp_steps.py --ways - their names.

Gloo's backend and torch's hooks, next to the backend tributary, Hook and Fed. A round does a few
steps by each way, so that all see the same machine. Rank 0 prints "way,round,ms,cpu_ms" for each:
the time of a step, and the processor time of a rank in it, of the rank that has more.
"""
import gc
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel as DDP

import tributary as tb
from tributary.torch import Fed, Hook

WIDTH = 2048
WARM = 3  # torch's PowerSGD begins with the third step


def network():
    return nn.Sequential(*[nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)])


def ddp(net, group, **options):
    return DDP(net, process_group=group, gradient_as_bucket_view=True, **options)


FIRST_BUCKET = dist._DEFAULT_FIRST_BUCKET_BYTES


def by_torch(group, hook=None, one_bucket=False):
    dist._DEFAULT_FIRST_BUCKET_BYTES = 1 << 30 if one_bucket else FIRST_BUCKET
    net = network()
    model = ddp(net, group, bucket_cap_mb=1024 if one_bucket else 25)
    dist._DEFAULT_FIRST_BUCKET_BYTES = FIRST_BUCKET
    if hook is not None:
        model.register_comm_hook(*hook(group))
    return model, torch.optim.SGD(net.parameters(), lr=1e-4), lambda: None


def by_hook(comm, group, codec):
    model = ddp(network(), group)
    hook = Hook(comm, codec)
    model.register_comm_hook(*hook)

    def close():
        for parameter in hook._parameters.values():
            if parameter.plan:
                parameter.plan.close()
    return model, torch.optim.SGD(model.parameters(), lr=1e-4), close


def by_fed(comm, codec, **options):
    net = network()
    fed = Fed(net, torch.optim.SGD(net.parameters(), lr=1e-4), comm, codec, **options)
    return net, fed, fed.close


def alone():
    net = network()
    return net, torch.optim.SGD(net.parameters(), lr=1e-4), lambda: None


def power(group):
    return powerSGD_hook.PowerSGDState(process_group=group, matrix_approximation_rank=1,
                                       start_powerSGD_iter=2), powerSGD_hook.powerSGD_hook


def ways(gloo, ours, comm):
    """PowerSGD of torch mixes up its sums over Gloo with several buckets: it has one."""
    yield "computing alone", alone
    yield "gloo", lambda: by_torch(gloo)
    yield "gloo fp16", lambda: by_torch(gloo, lambda g: (g, default_hooks.fp16_compress_hook))
    yield "gloo powersgd", lambda: by_torch(gloo, power, one_bucket=True)
    yield "backend", lambda: by_torch(ours)
    for codec in ("bf16", "int8", "qsgd:bits=4", "topk:ratio=0.01", "powersgd:rank=1"):
        yield f"hook {codec}", lambda codec=codec: by_hook(comm, gloo, codec)
        yield f"fed {codec}", lambda codec=codec: by_fed(comm, codec)
    yield "fed none", lambda: by_fed(comm, "none")
    for codec in ("topk:ratio=0.01", "topk:ratio=0.005"):
        yield f"fed {codec} in grad", lambda codec=codec: by_fed(comm, codec, in_grad=True)


def step(model, optimizer, x):
    optimizer.zero_grad(*(() if isinstance(optimizer, Fed) else (False,)))
    model(x).square().mean().backward()
    optimizer.step()


def measure(make, gloo):
    """Milliseconds of a step, of the slower rank."""
    model, optimizer, close = make()
    x = torch.randn(BATCH, WIDTH)
    for _ in range(WARM):
        step(model, optimizer, x)
    dist.barrier(gloo)
    begun, cpu = time.perf_counter(), time.process_time()
    for _ in range(STEPS):
        step(model, optimizer, x)
    took = torch.tensor([1e3 * (time.perf_counter() - begun) / STEPS,
                         1e3 * (time.process_time() - cpu) / STEPS])
    dist.all_reduce(took, dist.ReduceOp.MAX, group=gloo)
    close()
    return took.tolist()


if sys.argv[1:] == ["--ways"]:
    print("\n".join(name for name, _ in ways(None, None, None)))
    sys.exit(0)
ADDRESS, ROWS = sys.argv[1], sys.argv[5]
ROUNDS, STEPS, BATCH, LAYERS = (int(sys.argv[i]) for i in (2, 3, 4, 6))
RANK, SIZE = int(os.environ["TRIB_RANK"]), int(os.environ["TRIB_SIZE"])
torch.set_num_threads(1)
os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[RANK % os.cpu_count()]})
torch.manual_seed(1)
dist.init_process_group("gloo", f"tcp://{ADDRESS}:7100", rank=RANK, world_size=SIZE)
with tb.from_torch() as world:
    tributary = dist.new_group(backend="tributary")
    wanted = [w for w in ROWS.split(";") if w]
    for number in range(ROUNDS):
        for way, build in ways(None, tributary, world):
            if wanted and way not in wanted:
                continue
            ms, cpu_ms = measure(build, None)
            gc.collect()
            if RANK == 0:
                print(f"{way.replace(',', '.')},{number + 1},{ms:.1f},{cpu_ms:.1f}", flush=True)
sys.stdout.flush()
os._exit(0)
