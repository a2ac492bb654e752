/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random graphs of steps with neighbours, known to all ranks, and the initial vectors.
 */
#ifndef TESTS_COMM_NEIGHBOR_GRAPHS_H
#define TESTS_COMM_NEIGHBOR_GRAPHS_H

#include "tests/comm/oracle.h"
#include "tests/harness/ranks.h"

struct scene {
    size_t count;
    trib_dtype_t dtype;
    uint64_t seed;
    int late;
    bool exact; /* shares and elements with so few bits that no sum is rounded */
};

/* Return the share that rank a sends to rank b in a step; 0: no edge. */
static inline double scene_share(const struct scene *s, int size, int step, int a,
                                 int b)
{
    const uint64_t x =
        oracle_mix(s->seed ^ (uint64_t)step << 40 ^ (uint64_t)a << 20 ^ (uint64_t)b);

    if (a == b || x % 3 == 0)
        return 0;
    return s->exact ? 0.125 : (double)(x >> 8 & 0xff) / 256 / size + 1.0 / 1024;
}

struct graph {
    trib_neighbors_t g;
    int to[RANKS_MAX], from[RANKS_MAX];
    double shares[RANKS_MAX];
};

static inline void scene_graph(const struct scene *s, int size, int rank, int step,
                               struct graph *out)
{
    out->g = (trib_neighbors_t)TRIB_NEIGHBORS_INIT;
    out->g.to = out->to;
    out->g.shares = out->shares;
    out->g.from = out->from;
    for (int k = 0; k < size; k++) {
        const int p = (k + step) % size; /* in any order */
        if (scene_share(s, size, step, rank, p) > 0) {
            out->to[out->g.n_to] = p;
            out->shares[out->g.n_to++] = scene_share(s, size, step, rank, p);
        }
        if (scene_share(s, size, step, k, rank) > 0)
            out->from[out->g.n_from++] = k;
    }
}

static inline double scene_input(const struct scene *s, int rank, size_t i)
{
    const uint64_t x = oracle_mix(s->seed ^ (uint64_t)rank << 50 ^ i);

    return s->exact ? (double)(x % 9) - 4 : (double)(x % 2001) / 1000 - 1;
}

static inline double scene_load(const struct scene *s, const void *x, size_t i)
{
    return s->dtype == TRIB_F64 ? ((const double *)x)[i]
                                : (double)((const float *)x)[i];
}

static inline void scene_store(const struct scene *s, void *x, size_t i, double value)
{
    if (s->dtype == TRIB_F64)
        ((double *)x)[i] = value;
    else
        ((float *)x)[i] = (float)value;
}

#endif
