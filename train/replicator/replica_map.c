/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Maps: the replicas of a group share the work on a list of items.
 */
#include <stdlib.h>
#include <string.h>

#include "train/replicator/replica.h"

/* Return the first item of replica q. */
static size_t items_before(size_t items, size_t n, size_t q)
{
    return items / n * q + (q < items % n ? q : items % n);
}

static trib_status_t map_mine(struct trib_replica *r, trib_map_fn map, size_t items,
                              unsigned char *result, size_t bytes)
{
    const size_t n = (size_t)trib_size(r->sync), me = (size_t)trib_rank(r->sync);

    for (size_t i = items_before(items, n, me); i < items_before(items, n, me + 1);
         i++) {
        const int code = map(r, i, result + i * bytes);

        if (code != 0)
            return trib_fault_callback(r, "map", code);
    }
    return TRIB_OK;
}

static trib_status_t gather(struct trib_replica *r, size_t items, void *result,
                            size_t count, trib_dtype_t dtype)
{
    const size_t n = (size_t)trib_size(r->sync);
    size_t *counts = calloc(n, sizeof(*counts));

    if (!counts)
        return trib_fail(&r->err, TRIB_ERR_NO_MEMORY, "no memory for %zu counts", n);
    for (size_t q = 0; q < n; q++)
        counts[q] = (items_before(items, n, q + 1) - items_before(items, n, q)) * count;

    const trib_status_t st = trib_fault_comm(
        r, r->sync, trib_allgatherv(r->sync, NULL, result, counts, NULL, dtype));
    free(counts);
    return st;
}

trib_status_t trib_replica_map_gather(trib_replica_t *replica, trib_map_fn map,
                                      size_t items, void *result, size_t count,
                                      trib_dtype_t dtype)
{
    const trib_status_t st =
        map_mine(replica, map, items, result, count * trib_dtype_size(dtype));

    return st == TRIB_OK && trib_size(replica->sync) > 1
               ? gather(replica, items, result, count, dtype)
               : st;
}

static double reduced(double a, double b, trib_op_t op)
{
    switch (op) {
    case TRIB_MIN:
        return b < a || b != b ? b : a;
    case TRIB_MAX:
        return b > a || b != b ? b : a;
    default:
        return a + b;
    }
}

static int64_t reduced_whole(int64_t a, int64_t b, trib_op_t op)
{
    switch (op) {
    case TRIB_MIN:
        return b < a ? b : a;
    case TRIB_MAX:
        return b > a ? b : a;
    default:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    }
}

static void reduce_whole(const int64_t *rows, size_t items, size_t count, trib_op_t op,
                         int64_t *out)
{
    for (size_t e = 0; e < count; e++) {
        int64_t x = rows[e];

        for (size_t i = 1; i < items; i++)
            x = reduced_whole(x, rows[i * count + e], op);
        out[e] = op == TRIB_MEAN ? x / (int64_t)items : x;
    }
}

static void reduce_floats(const void *rows, size_t items, size_t count,
                          trib_dtype_t dtype, trib_op_t op, void *out)
{
    const float *narrow = rows;
    const double *wide = rows;

    for (size_t e = 0; e < count; e++) {
        double x = 0;

        for (size_t i = 0; i < items; i++) {
            const size_t at = i * count + e;
            const double value = dtype == TRIB_F32 ? (double)narrow[at] : wide[at];

            x = i == 0 ? value : reduced(x, value, op);
        }
        x = op == TRIB_MEAN ? x / (double)items : x;
        if (dtype == TRIB_F32)
            ((float *)out)[e] = (float)x;
        else
            ((double *)out)[e] = x;
    }
}

trib_status_t trib_replica_map_reduce(trib_replica_t *replica, trib_map_fn map,
                                      size_t items, void *result, size_t count,
                                      trib_dtype_t dtype, trib_op_t op)
{
    const size_t bytes = count * trib_dtype_size(dtype);

    if ((dtype != TRIB_F32 && dtype != TRIB_F64 && dtype != TRIB_I64) ||
        (op != TRIB_SUM && op != TRIB_MEAN && op != TRIB_MIN && op != TRIB_MAX))
        return trib_fail(&replica->err, TRIB_ERR_UNSUPPORTED,
                         "trib_replica_map_reduce does not support op %s of %s; it "
                         "supports sum, mean, min and max of f32, f64 and i64",
                         trib_op_name(op), trib_dtype_name(dtype));
    memset(result, 0, bytes);
    if (items == 0)
        return TRIB_OK;
    void *rows = calloc(items, bytes);
    if (!rows)
        return trib_fail(&replica->err, TRIB_ERR_NO_MEMORY,
                         "no memory for the results of %zu items", items);
    const trib_status_t st =
        trib_replica_map_gather(replica, map, items, rows, count, dtype);

    if (st == TRIB_OK && dtype == TRIB_I64)
        reduce_whole(rows, items, count, op, result);
    else if (st == TRIB_OK)
        reduce_floats(rows, items, count, dtype, op, result);
    free(rows);
    return st;
}
