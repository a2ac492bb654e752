/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include "tests/collectives/sweep.h"

/* Sums that a rank sends, if ranks from `first` on take part. */
static uint64_t sums(const struct trib_sim *sim, uint32_t rank, uint32_t first)
{
    uint64_t n = 0;

    for (uint32_t d = 1; rank >= first && rank + d < (uint32_t)sim->shape.size; d *= 2)
        n++;
    return n * sim->count;
}

static void scan_bytes(const struct trib_sim *sim, uint32_t rank, uint64_t *up,
                       uint64_t *down)
{
    *up = sums(sim, rank, 0);
    *down = 0;
}

static void exscan_bytes(const struct trib_sim *sim, uint32_t rank, uint64_t *up,
                         uint64_t *down)
{
    *up = sums(sim, rank, 1);
    *down = rank + 1 < (uint32_t)sim->shape.size ? sim->count : 0;
}

/* Pairs, as if unions did not grow. */
static void pairs_bytes(const struct trib_sim *sim, uint32_t rank, uint64_t *up,
                        uint64_t *down)
{
    const uint32_t size = (uint32_t)sim->shape.size;
    uint32_t core = 1, steps = 0;

    for (; core * 2 <= size; core *= 2)
        steps++;
    *up = rank < core ? steps * sim->count : sim->count;
    *down = rank + core < size ? sim->count : 0;
}

int main(void)
{
    const struct sweep sweeps[] = {
        {"doubling", TRIB_SCAN, false, scan_bytes},
        {"doubling", TRIB_EXSCAN, false, exscan_bytes},
        {"doubling", TRIB_ALLREDUCE, false, pairs_bytes},
    };

    return sweep_main(sweeps, sizeof(sweeps) / sizeof(sweeps[0]));
}
