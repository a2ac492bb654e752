/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include "tests/collectives/sweep.h"

static uint32_t core_of(const struct trib_sim *sim)
{
    uint32_t core = 1;

    while (core * 2 <= (uint32_t)sim->shape.size)
        core *= 2;
    return core;
}

/* Return the elements that the core ranks in v's block of `width` finish or hold. */
static uint64_t block(const struct trib_sim *sim, uint32_t v, uint32_t width)
{
    uint32_t core = core_of(sim);
    uint64_t sum = 0;

    for (uint32_t c = 0; c < sim->lists[0].n_chunks; c++)
        if (c % core / width == v / width)
            sum += trib_sim_chunk(sim, c);
    return sum;
}

static uint64_t doubled(const struct trib_sim *sim, uint32_t v)
{
    uint64_t sum = 0;

    for (uint32_t d = 1; d < core_of(sim); d *= 2)
        sum += block(sim, v, d);
    return sum;
}

static void allreduce_bytes(const struct trib_sim *sim, uint32_t rank, uint64_t *up,
                            uint64_t *down)
{
    uint32_t core = core_of(sim);
    uint64_t all = sim->count;

    if (rank >= core) {
        *up = all;
        *down = 0;
        return;
    }
    *up = all - block(sim, rank, 1);
    *down = doubled(sim, rank);
    if (rank + core < (uint32_t)sim->shape.size)
        *down += all;
}

static void reduce_scatter_bytes(const struct trib_sim *sim, uint32_t rank,
                                 uint64_t *up, uint64_t *down)
{
    uint32_t core = core_of(sim);
    uint64_t all = sim->count * (uint64_t)sim->shape.size;

    *up = rank >= core ? all : all - block(sim, rank, 1);
    *down = rank + core < (uint32_t)sim->shape.size ? sim->count : 0;
}

static void allgather_bytes(const struct trib_sim *sim, uint32_t rank, uint64_t *up,
                            uint64_t *down)
{
    uint32_t core = core_of(sim);
    uint64_t size = (uint64_t)sim->shape.size;

    *up = 0;
    if (rank >= core)
        *down = sim->count;
    else
        *down = doubled(sim, rank) + (rank + core < size ? (size - 1) * sim->count : 0);
}

int main(void)
{
    const struct sweep sweeps[] = {
        {"halving-doubling", TRIB_ALLREDUCE, false, allreduce_bytes},
        {"halving-doubling", TRIB_REDUCE_SCATTER, false, reduce_scatter_bytes},
        {"halving-doubling", TRIB_ALLGATHER, false, allgather_bytes},
    };

    return sweep_main(sweeps, sizeof(sweeps) / sizeof(sweeps[0]));
}
