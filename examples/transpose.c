/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transpose a matrix with one row per rank by an all-to-all.
 *
 *     trib-run -n 4 -- transpose
 */
#include <stdio.h>
#include <tributary.h>

int main(void)
{
    trib_comm_t *comm;
    if (trib_init(NULL, &comm) != TRIB_OK) {
        fprintf(stderr, "%s\n", trib_last_error(NULL));
        return 1;
    }
    const int rank = trib_rank(comm),
              size = trib_size(comm) < 64 ? trib_size(comm) : 64;
    float row[64], column[64];
    for (int i = 0; i < size; i++)
        row[i] = (float)(10 * rank + i);
    const trib_status_t st = trib_alltoall(comm, row, column, 1, TRIB_F32);
    if (st != TRIB_OK)
        fprintf(stderr, "%s\n", trib_last_error(comm));
    for (int i = 0; st == TRIB_OK && i < size; i++)
        printf("%g%s", (double)column[i], i + 1 < size ? " " : "\n");
    return trib_free_comm(comm) != TRIB_OK || st != TRIB_OK;
}
