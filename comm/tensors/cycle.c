/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Buckets by time. After the first step the ranks agree on when each tensor was ready
 * on the last rank. Tensors that became ready within one cycle are fused.
 *
 * Buckets with a codec hold one tensor each and do not change, so no state kept between
 * steps moves.
 */
#include <stdlib.h>

#include "comm/core/communicator.h"
#include "comm/tensors/tensor_group.h"

trib_status_t trib_cycle_make(struct trib_group *g)
{
    trib_desc_t d = TRIB_DESC_INIT;

    if (!g->opts.cycle_us || !g->n)
        return TRIB_OK;
    g->times = calloc(g->n, sizeof(*g->times));
    if (!g->times)
        return trib_comm_fail(g->comm, TRIB_ERR_NO_MEMORY,
                              "no memory for the times of %zu tensors", g->n);
    d.recv = g->times;
    d.count = g->n;
    d.dtype = TRIB_I32;
    d.op = TRIB_MAX;
    d.codec = "none";
    d.timeout_ms = g->opts.timeout_ms;
    return trib_plan_allreduce(g->comm, &d, &g->measure);
}

void trib_cycle_take(struct trib_group *g)
{
    assert(g->times && g->measure);
    for (size_t i = 0; i < g->n; i++)
        g->times[i] =
            (int32_t)(g->tensors[i].ready_us > INT32_MAX ? INT32_MAX
                                                         : g->tensors[i].ready_us);
}

trib_status_t trib_cycle_end(struct trib_group *g)
{
    uint32_t *assign = malloc(g->n * sizeof(*assign)), n_buckets = 0;
    trib_status_t st = TRIB_ERR_NO_MEMORY;

    assert(g->measure && g->n > 0);
    if (assign && trib_buckets_assign(g, true, assign, &n_buckets))
        st = trib_buckets_form(g, assign, n_buckets);
    free(assign);
    trib_cycle_free(g);
    /* The ranks would continue with different buckets, so fail all of them. */
    if (st != TRIB_OK)
        trib_comm_fail_all(g->comm, st, "no memory to re-form the buckets of a group");
    return st;
}

void trib_cycle_free(struct trib_group *g)
{
    (void)trib_plan_free(g->measure);
    free(g->times);
    g->measure = NULL;
    g->times = NULL;
}
