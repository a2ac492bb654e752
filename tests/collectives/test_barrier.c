/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include "tests/collectives/sweep.h"

/* The engine sends no bytes; the simulator counts stand-ins for messages. */
static void barrier_bytes(const struct trib_sim *sim, uint32_t rank, uint64_t *up,
                          uint64_t *down)
{
    (void)rank;
    *up = 0;
    *down = 0;
    for (int d = 1; d < sim->shape.size; d *= 2)
        *down += sim->count;
}

int main(void)
{
    const struct sweep sweeps[] = {
        {"dissemination", TRIB_BARRIER, false, barrier_bytes},
    };

    return sweep_main(sweeps, sizeof(sweeps) / sizeof(sweeps[0]));
}
