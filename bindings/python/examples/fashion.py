# SPDX-License-Identifier: BSD-3-Clause
"""fashion.py - train the network of ./dev demo in PyTorch, on Fashion-MNIST.

    trib-run -n 4 -- python3 fashion.py --codec topk:ratio=0.01 --in-grad

Fed sums the gradients during back-propagation. With --hook, DistributedDataParallel sums them
by a communication hook, over the backend tributary. Rank 0 prints the accuracy on the test
images. The data are those of Debian's package dataset-fashion-mnist.
"""
import argparse
import gzip
import os

import torch
import torch.distributed as dist
from torch import nn

import tributary as tb
from tributary.torch import Fed, Hook

parser = argparse.ArgumentParser(description="A network for Fashion-MNIST, trained on all ranks")
parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist")
parser.add_argument("--codec", default="none")
parser.add_argument("--steps", type=int, default=4680)
parser.add_argument("--batch", type=int, default=32, help="images per rank and step")
parser.add_argument("--rate", type=float, default=0.05)
parser.add_argument("--momentum", type=float, default=0.9, help="of the optimizer")
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--in-grad", action="store_true", help="keep the codec's residual in p.grad")
parser.add_argument("--hook", metavar="FILE", help="use DDP with Hook; a new file for rendezvous")
options = parser.parse_args()


def load(part):
    """Return images, normalized to mean 0 and deviation 1, and labels."""
    def file(name, skip):
        with gzip.open(os.path.join(options.data, f"{part}-{name}-ubyte.gz")) as f:
            return torch.frombuffer(bytearray(f.read()), dtype=torch.uint8, offset=skip)

    images = file("images-idx3", 16).reshape(-1, 784).float() / 255
    return (images - 0.286) / 0.353, file("labels-idx1", 8).long()


def network():
    torch.manual_seed(options.seed)
    net = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(),
                        nn.Linear(256, 10))
    for layer in net[::2]:
        nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        nn.init.zeros_(layer.bias)
    return net


def scale(step):
    """Return the factor of the learning rate: up for 1/20 of the steps, then down to 0."""
    rise = max(1, options.steps // 20)
    return (step + 1) / rise if step < rise else (options.steps - step) / (options.steps - rise)


def train(comm, images, labels):
    net = model = network()
    optimizer = step_of = torch.optim.SGD(net.parameters(), options.rate, momentum=options.momentum)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, scale)
    if options.hook:
        model = nn.parallel.DistributedDataParallel(net)
        model.register_comm_hook(*Hook(comm, options.codec))
    else:
        step_of = Fed(net, optimizer, comm, options.codec, in_grad=options.in_grad)
    draw = torch.Generator().manual_seed(options.seed)  # the same on all ranks
    order = torch.empty(0, dtype=torch.long)
    for _ in range(options.steps):
        if len(order) < options.batch * comm.size:
            order = torch.randperm(len(images), generator=draw)
        now, order = order.split([options.batch * comm.size,
                                  len(order) - options.batch * comm.size])
        mine = now[comm.rank * options.batch: (comm.rank + 1) * options.batch]
        step_of.zero_grad()
        nn.functional.cross_entropy(model(images[mine]), labels[mine]).backward()
        step_of.step()
        schedule.step()
    if not options.hook:
        step_of.close()
    return net


torch.set_num_threads(1)
if options.hook:
    dist.init_process_group("tributary", f"file://{options.hook}", rank=int(os.environ["TRIB_RANK"]),
                            world_size=int(os.environ["TRIB_SIZE"]))
with tb.from_torch() if options.hook else tb.init() as world:
    trained = train(world, *load("train"))
    test_images, test_labels = load("t10k")
    with torch.no_grad():
        right = (trained(test_images).argmax(1) == test_labels).float().mean()
    if world.rank == 0:
        print(f"codec {options.codec}: {100 * right:.2f} % of the test images are recognised")
