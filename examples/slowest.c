/* SPDX-License-Identifier: BSD-3-Clause */
/* Find the slowest rank in each phase of a step, on all ranks. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <tributary.h>

struct slow {
    double seconds;
    int64_t rank;
};

int main(void)
{
    static const char *const phase[] = {"load", "forward", "backward"};
    trib_comm_t *comm;
    double x[6];

    if (trib_init(NULL, &comm) != TRIB_OK)
        return fprintf(stderr, "%s\n", trib_last_error(NULL)), 1;
    for (int p = 0; p < 3; p++) {
        const struct slow mine = {0.1 * ((trib_rank(comm) + p) % trib_size(comm)),
                                  trib_rank(comm)};
        memcpy(x + 2 * p, &mine, sizeof(mine));
    }
    const trib_status_t st = trib_allreduce(comm, NULL, x, 6, TRIB_F64, TRIB_MAXLOC);
    if (st != TRIB_OK)
        fprintf(stderr, "%s\n", trib_last_error(comm));
    for (int p = 0; p < 3 && trib_rank(comm) == 0; p++) {
        struct slow most;
        memcpy(&most, x + 2 * p, sizeof(most));
        printf("%s: %g s on rank %d\n", phase[p], most.seconds, (int)most.rank);
    }
    return trib_free_comm(comm) != TRIB_OK || st != TRIB_OK;
}
