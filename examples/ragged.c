/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks with different numbers of items: number all items, and collect them on rank 0.
 *
 *     trib-run -n 4 -- ragged
 */
#include <stdio.h>
#include <tributary.h>

static trib_status_t collect(trib_comm_t *comm)
{
    const int rank = trib_rank(comm), size = trib_size(comm);
    const size_t n = (size_t)rank % 3; /* 0, 1, 2, 0, … */
    int64_t first = 0, mine = (int64_t)n, counts[64];
    int32_t items[2], all[128];

    trib_status_t st = trib_exscan(comm, &mine, &first, 1, TRIB_I64, TRIB_SUM);
    for (size_t i = 0; i < n; i++)
        items[i] = 100 * rank + (int32_t)(first + (int64_t)i);
    if (st == TRIB_OK)
        st = trib_gather(comm, &mine, counts, 1, TRIB_I64, 0);
    size_t lengths[64] = {0};
    for (int r = 0; rank == 0 && r < size; r++)
        lengths[r] = (size_t)counts[r];
    if (st == TRIB_OK)
        st = trib_gatherv(comm, items, n, all, lengths, NULL, TRIB_I32, 0);
    for (size_t r = 0, at = 0; st == TRIB_OK && r < (size_t)size; r++)
        for (size_t i = 0; i < lengths[r]; i++, at++)
            printf("%d ", (int)all[at]);
    return st;
}

int main(void)
{
    trib_comm_t *comm;
    if (trib_init(NULL, &comm) != TRIB_OK)
        return fprintf(stderr, "%s\n", trib_last_error(NULL)), 1;
    const trib_status_t st = trib_size(comm) <= 64 ? collect(comm) : TRIB_OK;
    return trib_free_comm(comm) != TRIB_OK || st != TRIB_OK;
}
