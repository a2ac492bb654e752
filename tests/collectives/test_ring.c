/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include "tests/collectives/sweep.h"

static uint32_t after(const struct trib_sim *sim, uint32_t rank)
{
    return (rank + 1) % (uint32_t)sim->shape.size;
}

/* Sends all contributions but the local chunk's, and all results but the next
 * rank's. */
static void allreduce_bytes(const struct trib_sim *sim, uint32_t rank, uint64_t *up,
                            uint64_t *down)
{
    *up = sweep_all(sim) - trib_sim_chunk(sim, rank);
    *down = sweep_all(sim) - trib_sim_chunk(sim, after(sim, rank));
}

static void reduce_scatter_bytes(const struct trib_sim *sim, uint32_t rank,
                                 uint64_t *up, uint64_t *down)
{
    (void)rank;
    *up = (uint64_t)(sim->shape.size - 1) * sim->count;
    *down = 0;
}

static void allgather_bytes(const struct trib_sim *sim, uint32_t rank, uint64_t *up,
                            uint64_t *down)
{
    reduce_scatter_bytes(sim, rank, down, up);
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
    *down = after(sim, rank) == (uint32_t)sim->shape.root ? 0 : sim->count;
}

/* A chain: all but the last rank pass a sum on, and of an exclusive scan first their
 * own contribution. */
static void scan_bytes(const struct trib_sim *sim, uint32_t rank, uint64_t *up,
                       uint64_t *down)
{
    *up = rank + 1 < (uint32_t)sim->shape.size ? sim->count : 0;
    *down = 0;
}

static void exscan_bytes(const struct trib_sim *sim, uint32_t rank, uint64_t *up,
                         uint64_t *down)
{
    scan_bytes(sim, rank, down, up);
    *up = rank > 0 ? *down : 0;
}

int main(void)
{
    const struct sweep sweeps[] = {
        {"ring", TRIB_ALLREDUCE, false, allreduce_bytes},
        {"ring", TRIB_REDUCE_SCATTER, false, reduce_scatter_bytes},
        {"ring", TRIB_ALLGATHER, false, allgather_bytes},
        {"ring", TRIB_REDUCE, false, reduce_bytes},
        {"ring", TRIB_BROADCAST, false, broadcast_bytes},
        {"ring", TRIB_SCAN, false, scan_bytes},
        {"ring", TRIB_EXSCAN, false, exscan_bytes},
    };

    return sweep_main(sweeps, sizeof(sweeps) / sizeof(sweeps[0]));
}
