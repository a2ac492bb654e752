/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include "tests/collectives/sweep.h"

static void alltoall_bytes(const struct trib_sim *sim, uint32_t rank, uint64_t *up,
                           uint64_t *down)
{
    (void)rank;
    *up = 0;
    *down = (uint64_t)(sim->shape.size - 1) * sim->count;
}

int main(void)
{
    const struct sweep sweeps[] = {
        {"pairwise", TRIB_ALLTOALL, true, alltoall_bytes},
    };

    return sweep_main(sweeps, sizeof(sweeps) / sizeof(sweeps[0]));
}
