/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include "tests/collectives/sweep.h"

static uint64_t others(const struct trib_sim *sim, uint32_t rank)
{
    return sweep_all(sim) - trib_sim_chunk(sim, rank);
}

static void allreduce_bytes(const struct trib_sim *sim, uint32_t rank, uint64_t *up,
                            uint64_t *down)
{
    *up = others(sim, rank);
    *down = (uint64_t)(sim->shape.size - 1) * trib_sim_chunk(sim, rank);
}

static void reduce_bytes(const struct trib_sim *sim, uint32_t rank, uint64_t *up,
                         uint64_t *down)
{
    *up = others(sim, rank);
    *down = rank == (uint32_t)sim->shape.root ? 0 : trib_sim_chunk(sim, rank);
}

static void broadcast_bytes(const struct trib_sim *sim, uint32_t rank, uint64_t *up,
                            uint64_t *down)
{
    int size = sim->shape.size;
    int place = ((int)rank - sim->shape.root + size) % size;

    *up = 0;
    if (place == 0)
        *down = sweep_all(sim);
    else
        *down = (uint64_t)(size - 2) * trib_sim_chunk(sim, (uint32_t)(place - 1));
}

static void allgather_bytes(const struct trib_sim *sim, uint32_t rank, uint64_t *up,
                            uint64_t *down)
{
    (void)rank;
    *up = 0;
    *down = (uint64_t)(sim->shape.size - 1) * sim->count;
}

static void reduce_scatter_bytes(const struct trib_sim *sim, uint32_t rank,
                                 uint64_t *up, uint64_t *down)
{
    (void)rank;
    *up = (uint64_t)(sim->shape.size - 1) * sim->count;
    *down = 0;
}

int main(void)
{
    const struct sweep sweeps[] = {
        {"direct", TRIB_ALLREDUCE, true, allreduce_bytes},
        {"direct", TRIB_REDUCE, true, reduce_bytes},
        {"direct", TRIB_BROADCAST, true, broadcast_bytes},
        {"direct", TRIB_ALLGATHER, true, allgather_bytes},
        {"direct", TRIB_REDUCE_SCATTER, true, reduce_scatter_bytes},
        {"direct", TRIB_ALLTOALL, true, allgather_bytes},
    };

    return sweep_main(sweeps, sizeof(sweeps) / sizeof(sweeps[0]));
}
