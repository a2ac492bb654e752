# SPDX-License-Identifier: BSD-3-Clause
"""logistic.py - logistic regression with NumPy, with the samples spread over the ranks.

    trib-run -n 4 -- python3 logistic.py

Each step of Newton's method sums gradient and Hessian over all ranks, so the result equals
the one of a single process with all samples.
"""
import numpy as np

import tributary as tb

SAMPLES, FEATURES = 4000, 12

everything = np.random.default_rng(1)
truth = everything.normal(size=FEATURES)
samples = everything.normal(size=(SAMPLES, FEATURES))
labels = everything.random(SAMPLES) < 1 / (1 + np.exp(-samples @ truth))


def fit(comm, x, y, steps=8):
    weights = np.zeros(FEATURES)
    for _ in range(steps):
        p = 1 / (1 + np.exp(-x @ weights))
        sums = np.vstack([x.T @ (y - p), (x.T * (p * (1 - p))) @ x])
        comm.allreduce(sums)
        weights += np.linalg.solve(sums[1:], sums[0])
    return weights


with tb.init() as world:
    found = fit(world, samples[world.rank:: world.size], labels[world.rank:: world.size])
    if world.rank == 0:
        right = ((samples @ found > 0) == labels).mean()
        print(f"{world.size} ranks: {100 * right:.2f} % right, first weight {found[0]:.6f}, "
              f"drawn from {truth[0]:.6f}")
