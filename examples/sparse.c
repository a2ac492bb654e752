/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sparse gradient of an embedding: each rank has different rows.
 *
 *     trib-run -n 4 -- sparse
 */
#include <stdio.h>

#include <tributary.h>

enum { LENGTH = 1000000, GIVEN = 3, ROOM = 64 };

int main(void)
{
    trib_comm_t *comm;
    if (trib_init(NULL, &comm) != TRIB_OK) {
        fprintf(stderr, "%s\n", trib_last_error(NULL));
        return 1;
    }
    /* In any order; values with the same index are added. */
    const uint64_t mine[GIVEN] = {7, 500000 + (uint64_t)trib_rank(comm), 7};
    const float gradient[GIVEN] = {1, 2, 3};
    trib_sparse_desc_t d = TRIB_SPARSE_DESC_INIT;
    trib_plan_t *plan = NULL;
    uint64_t indices[ROOM];
    float sums[ROOM];
    size_t n = 0;
    d.length = LENGTH;
    d.most = GIVEN;
    if (trib_plan_sparse(comm, &d, &plan) != TRIB_OK ||
        trib_plan_start_sparse(plan, mine, gradient, GIVEN) != TRIB_OK ||
        trib_plan_wait(plan) != TRIB_OK ||
        trib_plan_sparse_count(plan, &n) != TRIB_OK ||
        trib_plan_sparse_pairs(plan, indices, sums, ROOM) != TRIB_OK)
        fprintf(stderr, "%s\n", trib_last_error(comm));
    for (size_t i = 0; i < n && i < ROOM && trib_rank(comm) == 0; i++)
        printf("%llu: %g\n", (unsigned long long)indices[i], (double)sums[i]);
    trib_plan_free(plan);
    return trib_free_comm(comm) != TRIB_OK || n == 0;
}
