# SPDX-License-Identifier: BSD-3-Clause
"""Times what a user of PyTorch and NumPy compresses gradients with.

    codec_torch.py FILE BYTES SECONDS

FILE: float32, repeated to fill BYTES. Prints rows "name,GBps": BYTES over the median of as many calls
as fit SECONDS, at least 3, on one thread. A name that ends in "chunks" takes 65 536 elements at a
time, as a plan of Tributary does; the others take the whole vector.
"""
import os
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np  # noqa: E402
import torch  # noqa: E402

CHUNK = 65536


def rate(call, n_bytes, seconds):
    samples = []
    call()
    end = time.perf_counter() + seconds
    while len(samples) < 3 or time.perf_counter() < end:
        begin = time.perf_counter()
        call()
        samples.append(time.perf_counter() - begin)
    samples.sort()
    return n_bytes / samples[len(samples) // 2] * 1e-9


def calls(array):
    """name -> what is timed."""
    vector = torch.from_numpy(array)
    pieces = torch.split(vector, CHUNK)
    copy, half = torch.empty_like(vector), torch.empty(len(array), dtype=torch.float16)
    scale = float(vector.abs().max()) / 127

    def topk(part, ratio):
        positions = torch.topk(part.abs(), max(1, round(len(part) * ratio)), sorted=False)[1]
        return positions, part[positions]

    def argpartition(ratio):
        k = round(len(array) * ratio)
        positions = np.argpartition(np.abs(array), len(array) - k)[len(array) - k:]
        return positions, array[positions]

    yield "torch copy_", lambda: copy.copy_(vector)
    for percent in ("1", "0.1"):
        ratio = float(percent) / 100
        yield f"torch.topk {percent} %", lambda r=ratio: topk(vector, r)
        yield f"torch.topk {percent} % chunks", lambda r=ratio: [topk(p, r) for p in pieces]
        yield f"numpy argpartition {percent} %", lambda r=ratio: argpartition(r)
    yield "torch quantize_per_tensor int8", lambda: torch.quantize_per_tensor(
        vector, scale, 0, torch.qint8)
    yield "torch copy_ to float16", lambda: half.copy_(vector)


def main():
    path, n_bytes, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    torch.set_num_threads(1)
    array = np.resize(np.fromfile(path, "<f4"), n_bytes // 4)
    for name, call in calls(array):
        print(f"{name},{rate(call, n_bytes, seconds):.4f}", flush=True)


main()
