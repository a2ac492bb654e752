/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include "tests/collectives/sweep.h"

static void allreduce_bytes(const struct trib_sim *sim, uint32_t rank, uint64_t *up,
                            uint64_t *down)
{
    (void)rank;
    *up = (uint64_t)(sim->shape.size - 1) * sim->count;
    *down = 0;
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
    bool root = rank == (uint32_t)sim->shape.root;

    *up = 0;
    *down = root ? (uint64_t)(sim->shape.size - 1) * sim->count : 0;
}

static void gather_bytes(const struct trib_sim *sim, uint32_t rank, uint64_t *up,
                         uint64_t *down)
{
    *up = 0;
    *down = rank == (uint32_t)sim->shape.root ? 0 : sim->count;
}

static void scan_bytes(const struct trib_sim *sim, uint32_t rank, uint64_t *up,
                       uint64_t *down)
{
    *up = ((uint64_t)sim->shape.size - 1 - rank) * sim->count;
    *down = 0;
}

static void exscan_bytes(const struct trib_sim *sim, uint32_t rank, uint64_t *up,
                         uint64_t *down)
{
    const uint64_t sent = ((uint64_t)sim->shape.size - 1 - rank) * sim->count;

    *up = rank == 0 ? 0 : sent;
    *down = rank == 0 ? sent : 0;
}

int main(void)
{
    const struct sweep sweeps[] = {
        {"flat", TRIB_ALLREDUCE, true, allreduce_bytes},
        {"flat", TRIB_REDUCE, true, reduce_bytes},
        {"flat", TRIB_BROADCAST, true, broadcast_bytes},
        {"flat", TRIB_GATHER, true, gather_bytes},
        {"flat", TRIB_SCATTER, true, broadcast_bytes},
        {"flat", TRIB_SCAN, true, scan_bytes},
        {"flat", TRIB_EXSCAN, false, exscan_bytes},
    };

    return sweep_main(sweeps, sizeof(sweeps) / sizeof(sweeps[0]));
}
