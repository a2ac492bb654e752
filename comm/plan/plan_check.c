/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks of a plan's description: every mistake of the caller gets an error message.
 */
#include <assert.h>
#include <float.h>
#include <string.h>

#include "base/dtype.h"
#include "comm/core/communicator.h"
#include "comm/plan/configured.h"
#include "comm/plan/plan_parts.h"
#include "compress/vectors/robust_op.h"

/*
 * Return the maximum chunk in bytes. Encoded chunks are shorter than their elements: on
 * an agg_comm a coded chunk may span several slots if its encoding fits into one. Raw
 * elements get at most one slot. On an aggregator the description comes from another
 * host.
 */
static size_t chunk_most(const struct trib_comm *comm, bool coded)
{
    const size_t own =
        comm->cfg.chunk > comm->chunk_asked ? comm->cfg.chunk : comm->chunk_asked;

    if (!comm->aggregators)
        return comm->chunk_asked;
    return coded ? TRIB_AGG_CHUNKS_PER_WORD * own : own;
}

static trib_status_t check_chunk(struct trib_comm *comm, trib_coll_t coll,
                                 const trib_desc_t *d)
{
    const bool coded = strcmp(trib_codec_of(comm, coll, d), "none") != 0;
    const size_t most = chunk_most(comm, coded);

    if (!d->chunk || (d->chunk >= 64 && d->chunk <= most))
        return TRIB_OK;
    return trib_comm_fail(comm, TRIB_ERR_INVALID,
                          "chunk is %zu bytes, it must be 64 to %zu, the size of %s "
                          "(raise TRIB_CHUNK)",
                          d->chunk, most,
                          comm->aggregators && coded ? "the slots that it may use"
                                                     : "a slot");
}

/* Robust operators need all contributions at once and have a parameter. */
static trib_status_t check_robust(struct trib_comm *comm, const trib_desc_t *d)
{
    const char *op = trib_op_name(d->op);

    if (d->dtype > TRIB_BF16)
        return trib_comm_fail(comm, TRIB_ERR_INVALID,
                              "op %s supports f32, f64, f16 and bf16, dtype is %s", op,
                              trib_dtype_name(d->dtype));
    if (d->op == TRIB_TRIMMED_MEAN && !(d->parameter >= 0 && d->parameter < 0.5))
        return trib_comm_fail(
            comm, TRIB_ERR_INVALID,
            "op %s drops the fraction trib_desc_t.parameter at each end: it is %g, it "
            "must be 0 (for 0.1) to below 0.5",
            op, d->parameter);
    if (d->op == TRIB_CLIPPED_MEAN &&
        !(d->parameter > 0 &&
          d->parameter <= (d->dtype == TRIB_F64 ? DBL_MAX : (double)FLT_MAX)))
        return trib_comm_fail(
            comm, TRIB_ERR_INVALID,
            "op %s clips elements to trib_desc_t.parameter: it is %g, it must be above "
            "0 and finite",
            op, d->parameter);
    return TRIB_OK;
}

/* (value, index) pairs must not be split. */
static trib_status_t check_located(struct trib_comm *comm, trib_coll_t coll,
                                   const trib_desc_t *d)
{
    bool odd = d->count % 2;

    if (!trib_op_takes(d->op, d->dtype))
        return trib_comm_fail(
            comm, TRIB_ERR_INVALID,
            "op %s supports f32, f64, i32, u32, i64 and u64, dtype is %s",
            trib_op_name(d->op), trib_dtype_name(d->dtype));
    for (int r = 0; d->send_counts && coll == TRIB_REDUCE_SCATTER; r++) {
        if (r == comm->engine.ranks)
            break;
        odd = odd || d->send_counts[r] % 2;
    }
    if (odd)
        return trib_comm_fail(comm, TRIB_ERR_INVALID,
                              "op %s takes pairs of a value and its index: counts must "
                              "be even",
                              trib_op_name(d->op));
    return TRIB_OK;
}

static trib_status_t check_op(struct trib_comm *comm, trib_coll_t coll,
                              const trib_desc_t *d)
{
    const char *op = trib_op_name(d->op);

    assert(trib_dtype_size(d->dtype) > 0);
    if ((unsigned)d->op >= TRIB_OP_COUNT)
        return trib_comm_fail(comm, TRIB_ERR_INVALID, "op %d does not exist",
                              (int)d->op);
    if (d->parameter != 0 && d->op != TRIB_TRIMMED_MEAN && d->op != TRIB_CLIPPED_MEAN)
        return trib_comm_fail(comm, TRIB_ERR_INVALID,
                              "trib_desc_t.parameter is %g, but op %s has no "
                              "parameter: set it to 0",
                              d->parameter, op);
    if (trib_robust_is(d->op))
        return check_robust(comm, d);
    if (trib_op_is_located(d->op))
        return check_located(comm, coll, d);
    if (trib_op_takes(d->op, d->dtype))
        return TRIB_OK;
    if (d->dtype == TRIB_BOOL)
        return trib_comm_fail(comm, TRIB_ERR_INVALID,
                              "op %s does not support bool: use lor or land, or u8 and "
                              "sum to count",
                              op);
    return trib_comm_fail(comm, TRIB_ERR_INVALID,
                          "op %s supports integers and bool, dtype is %s: use an "
                          "integer dtype of %zu bytes for the bits",
                          op, trib_dtype_name(d->dtype), trib_dtype_size(d->dtype));
}

trib_status_t trib_plan_check_desc(struct trib_comm *comm, trib_coll_t coll,
                                   const trib_desc_t *d)
{
    int size = comm->engine.ranks;
    size_t bytes = trib_dtype_size(d->dtype), whole;

    assert(size > 0);
    if ((unsigned)coll >= TRIB_COLL_COUNT)
        return trib_comm_fail(comm, TRIB_ERR_INVALID, "collective %d does not exist",
                              (int)coll);
    if (!bytes)
        return trib_comm_fail(comm, TRIB_ERR_INVALID, "dtype %d does not exist",
                              (int)d->dtype);
    if (trib_coll_is_prefix(coll) && (d->op == TRIB_MEAN || trib_robust_is(d->op)))
        return trib_comm_fail(comm, TRIB_ERR_UNSUPPORTED,
                              "op %s needs all ranks, but %s combines only some of "
                              "them: use sum, min, max or prod",
                              trib_op_name(d->op), trib_coll_name(coll));
    if (trib_coll_sums(coll) && check_op(comm, coll, d) != TRIB_OK)
        return TRIB_ERR_INVALID;
    if (trib_coll_has_root(coll) && (d->root < 0 || d->root >= size))
        return trib_comm_fail(comm, TRIB_ERR_INVALID,
                              "root is %d, it must be a rank: 0 to %d", d->root,
                              size - 1);
    if (d->timeout_ms < 0)
        return trib_comm_fail(comm, TRIB_ERR_INVALID,
                              "timeout_ms is %d, it must be 0, for TRIB_TIMEOUT_MS, or "
                              "more",
                              d->timeout_ms);
    if ((unsigned)d->feed > TRIB_FEED_BACKWARD || (d->feed && !trib_coll_sums(coll)) ||
        (d->feed && (trib_coll_is_blocked(coll) || trib_coll_is_prefix(coll))))
        return trib_comm_fail(comm, TRIB_ERR_INVALID,
                              "feed %d is not supported for %s: only all-reduce and "
                              "reduce can be fed piecewise",
                              (int)d->feed, trib_coll_name(coll));
    if (__builtin_mul_overflow(d->count, bytes, &whole) ||
        __builtin_mul_overflow(whole, trib_coll_is_blocked(coll) ? (size_t)size : 1,
                               &whole) ||
        whole > PTRDIFF_MAX || (uint64_t)d->count >= TRIB_FRAME_COUNT_LISTED)
        return trib_comm_fail(comm, TRIB_ERR_OVERFLOW,
                              "%zu elements of %zu bytes%s do not fit into memory",
                              d->count, bytes,
                              trib_coll_is_blocked(coll) ? " for each rank" : "");
    return check_chunk(comm, coll, d);
}

static trib_status_t refuse_unused(struct trib_comm *comm, trib_coll_t coll,
                                   const char *field)
{
    return trib_comm_fail(comm, TRIB_ERR_INVALID,
                          "trib_desc_t.%s is set, but %s does not use it: leave it at "
                          "the value of TRIB_DESC_INIT",
                          field, trib_coll_name(coll));
}

trib_status_t trib_plan_check_unused(struct trib_comm *comm, trib_coll_t coll,
                                     const trib_desc_t *d)
{
    if ((unsigned)coll >= TRIB_COLL_COUNT) /* reported by trib_plan_check_desc */
        return TRIB_OK;
    if (!trib_coll_sums(coll) && (unsigned)d->op >= TRIB_OP_COUNT)
        return trib_comm_fail(comm, TRIB_ERR_INVALID, "op %d does not exist",
                              (int)d->op);
    if (!trib_coll_sums(coll) && (d->parameter < 0 || !(d->parameter <= 0)))
        return refuse_unused(comm, coll, "parameter");
    if (!trib_coll_is_blocked(coll) && (d->send_counts || d->recv_counts))
        return refuse_unused(comm, coll,
                             d->send_counts ? "send_counts" : "recv_counts");
    if (!trib_coll_is_blocked(coll) && (d->send_offsets || d->recv_offsets))
        return refuse_unused(comm, coll,
                             d->send_offsets ? "send_offsets" : "recv_offsets");
    if (coll == TRIB_BARRIER && d->codec && strcmp(d->codec, "none") != 0)
        return refuse_unused(comm, coll, "codec");
    return TRIB_OK;
}
