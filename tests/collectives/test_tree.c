/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include "tests/collectives/sweep.h"

/* Children of place v: v + 2^k below the lowest set bit of v, as far as ranks go. */
static uint64_t children(const struct trib_sim *sim, uint32_t rank, int root)
{
    int size = sim->shape.size;
    int v = ((int)rank - root + size) % size;
    uint64_t n = 0;

    for (int d = 1; v + d < size && (v & d) == 0; d *= 2)
        n++;
    return n;
}

static void reduce_bytes(const struct trib_sim *sim, uint32_t rank, uint64_t *up,
                         uint64_t *down)
{
    *up = rank == (uint32_t)sim->shape.root ? 0 : sim->count;
    *down = 0;
}

static void broadcast_bytes(const struct trib_sim *sim, uint32_t rank, uint64_t *up,
                            uint64_t *down)
{
    *up = 0;
    *down = children(sim, rank, sim->shape.root) * sim->count;
}

static void allreduce_bytes(const struct trib_sim *sim, uint32_t rank, uint64_t *up,
                            uint64_t *down)
{
    *up = rank == 0 ? 0 : sim->count;
    *down = children(sim, rank, 0) * sim->count;
}

/* Ranks of the subtree of a rank, itself included. */
static uint64_t below(const struct trib_sim *sim, uint32_t rank)
{
    const int size = sim->shape.size, v = ((int)rank - sim->shape.root + size) % size;
    int n = 1;

    while (v + n < size && !(v & n))
        n *= 2;
    return (uint64_t)(v + n < size ? n : size - v);
}

static void gather_bytes(const struct trib_sim *sim, uint32_t rank, uint64_t *up,
                         uint64_t *down)
{
    *up = 0;
    *down = rank == (uint32_t)sim->shape.root ? 0 : below(sim, rank) * sim->count;
}

static void scatter_bytes(const struct trib_sim *sim, uint32_t rank, uint64_t *up,
                          uint64_t *down)
{
    *up = 0;
    *down = (below(sim, rank) - 1) * sim->count;
}

int main(void)
{
    const struct sweep sweeps[] = {
        {"tree", TRIB_ALLREDUCE, false, allreduce_bytes},
        {"tree", TRIB_REDUCE, false, reduce_bytes},
        {"tree", TRIB_BROADCAST, false, broadcast_bytes},
        {"tree", TRIB_GATHER, true, gather_bytes},
        {"tree", TRIB_SCATTER, true, scatter_bytes},
    };

    return sweep_main(sweeps, sizeof(sweeps) / sizeof(sweeps[0]));
}
