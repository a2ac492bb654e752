/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counters and a readable description of a group.
 */
#include "base/error.h"
#include "base/sized.h"
#include "base/text.h"
#include "comm/core/communicator.h"
#include "comm/tensors/tensor_group.h"

trib_status_t trib_group_stats(const trib_group_t *g, trib_group_stats_t *stats)
{
    static const struct trib_sized kind = {
        "trib_group_stats_t", "sizeof(trib_group_stats_t)", sizeof(*stats),
        TRIB_SIZED_UP_TO(trib_group_stats_t, overtaken)};
    struct trib_error err = {0};

    if (!g)
        return TRIB_ERR_INVALID;
    if (!stats)
        return trib_comm_fail(g->comm, TRIB_ERR_INVALID,
                              "trib_group_stats: stats is NULL");
    if (trib_sized_fits(&kind, stats, &err) != TRIB_OK)
        return trib_comm_fail(g->comm, TRIB_ERR_INVALID, "%s", trib_error_text(&err));
    trib_group_stats_t counted = g->stats;
    counted.size = sizeof(counted);
    counted.tensors = g->n;
    trib_sized_give(&kind, &counted, stats);
    return TRIB_OK;
}

trib_status_t trib_group_explain(const trib_group_t *g, char *text, size_t bytes)
{
    char says[80];
    bool fits = true;

    if (!g || !text || !bytes)
        return TRIB_ERR_INVALID;
    text[0] = '\0';
    trib_text_append(text, bytes, "%s: %zu tensors in %u buckets, by %s%s\n",
                     trib_group_says(g, says), g->n, g->buckets.n,
                     trib_op_name(g->opts.op),
                     g->agree ? ", in an order agreed by the ranks" : "");
    for (uint32_t k = 0; k < g->buckets.n && fits; k++) {
        const struct trib_bucket *b = &g->buckets.at[g->buckets.order[k]];
        const struct trib_group_tensor *first = trib_bucket_tensor(g, b, 0);
        const struct trib_group_tensor *last = trib_bucket_tensor(g, b, b->n - 1);
        fits = trib_text_append(
            text, bytes,
            "%s%s%s  %u tensor%s, %zu bytes of %s, codec %s, "
            "priority %d\n",
            first->desc.name, b->n > 1 ? " .. " : "", b->n > 1 ? last->desc.name : "",
            b->n, b->n > 1 ? "s" : "", b->bytes, trib_dtype_name(first->desc.dtype),
            first->desc.codec, first->desc.priority);
    }
    return TRIB_OK;
}
