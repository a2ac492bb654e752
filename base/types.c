/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names and sizes of dtypes, ops and collectives, and their valid combinations.
 */
#include "base/dtype.h"

#include <string.h>

static const struct {
    const char *name;
    size_t bytes;
} dtypes[TRIB_DTYPE_COUNT] = {
    [TRIB_F32] = {"f32", 4},         [TRIB_F64] = {"f64", 8},
    [TRIB_F16] = {"f16", 2},         [TRIB_BF16] = {"bf16", 2},
    [TRIB_I8] = {"i8", 1},           [TRIB_I32] = {"i32", 4},
    [TRIB_I64] = {"i64", 8},         [TRIB_U8] = {"u8", 1},
    [TRIB_I16] = {"i16", 2},         [TRIB_U16] = {"u16", 2},
    [TRIB_U32] = {"u32", 4},         [TRIB_U64] = {"u64", 8},
    [TRIB_BOOL] = {"bool", 1},       [TRIB_F8_E4M3] = {"f8_e4m3", 1},
    [TRIB_F8_E5M2] = {"f8_e5m2", 1},
};

static const char *const ops[TRIB_OP_COUNT] = {
    [TRIB_SUM] = "sum",
    [TRIB_MEAN] = "mean",
    [TRIB_MIN] = "min",
    [TRIB_MAX] = "max",
    [TRIB_PROD] = "prod",
    [TRIB_MEDIAN] = "median",
    [TRIB_TRIMMED_MEAN] = "trimmed-mean",
    [TRIB_CLIPPED_MEAN] = "clipped-mean",
    [TRIB_BAND] = "band",
    [TRIB_BOR] = "bor",
    [TRIB_BXOR] = "bxor",
    [TRIB_LAND] = "land",
    [TRIB_LOR] = "lor",
    [TRIB_LXOR] = "lxor",
    [TRIB_MINLOC] = "minloc",
    [TRIB_MAXLOC] = "maxloc",
};

static const char *const colls[TRIB_COLL_COUNT] = {
    [TRIB_ALLREDUCE] = "allreduce",
    [TRIB_REDUCE] = "reduce",
    [TRIB_BROADCAST] = "broadcast",
    [TRIB_ALLGATHER] = "allgather",
    [TRIB_REDUCE_SCATTER] = "reduce-scatter",
    [TRIB_BARRIER] = "barrier",
    [TRIB_GATHER] = "gather",
    [TRIB_SCATTER] = "scatter",
    [TRIB_ALLTOALL] = "alltoall",
    [TRIB_SCAN] = "scan",
    [TRIB_EXSCAN] = "exscan",
};

size_t trib_dtype_size(trib_dtype_t dtype)
{
    return (unsigned)dtype < TRIB_DTYPE_COUNT ? dtypes[dtype].bytes : 0;
}

const char *trib_dtype_name(trib_dtype_t dtype)
{
    return (unsigned)dtype < TRIB_DTYPE_COUNT ? dtypes[dtype].name : "?";
}

const char *trib_op_name(trib_op_t op)
{
    return (unsigned)op < TRIB_OP_COUNT ? ops[op] : "?";
}

const char *trib_coll_name(trib_coll_t coll)
{
    return (unsigned)coll < TRIB_COLL_COUNT ? colls[coll] : "?";
}

bool trib_dtype_is_float(trib_dtype_t dtype)
{
    return dtype <= TRIB_BF16 || dtype == TRIB_F8_E4M3 || dtype == TRIB_F8_E5M2;
}

bool trib_dtype_is_narrow(trib_dtype_t dtype)
{
    return trib_dtype_is_float(dtype) && trib_dtype_size(dtype) < sizeof(float);
}

bool trib_op_is_located(trib_op_t op)
{
    return op == TRIB_MINLOC || op == TRIB_MAXLOC;
}

bool trib_op_is_logical(trib_op_t op)
{
    return op >= TRIB_LAND && op <= TRIB_LXOR;
}

int trib_op_takes(trib_op_t op, trib_dtype_t dtype)
{
    if ((unsigned)dtype >= TRIB_DTYPE_COUNT || (unsigned)op >= TRIB_OP_COUNT)
        return 0;
    if (op >= TRIB_MEDIAN && op <= TRIB_CLIPPED_MEAN)
        return dtype <= TRIB_BF16;
    if (trib_op_is_located(op))
        return trib_dtype_size(dtype) >= 4;
    if (op >= TRIB_BAND)
        return !trib_dtype_is_float(dtype);
    return op != TRIB_MEAN || dtype != TRIB_BOOL;
}

trib_status_t trib_dtype_parse(const char *name, trib_dtype_t *dtype_out)
{
    for (unsigned i = 0; name && i < TRIB_DTYPE_COUNT; i++) {
        if (strcmp(name, dtypes[i].name) == 0) {
            *dtype_out = (trib_dtype_t)i;
            return TRIB_OK;
        }
    }
    return TRIB_ERR_INVALID;
}

static int find_name(const char *const *names, int n, const char *name)
{
    for (int i = 0; name && i < n; i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    return -1;
}

trib_status_t trib_op_parse(const char *name, trib_op_t *op_out)
{
    int i = find_name(ops, TRIB_OP_COUNT, name);

    if (i < 0)
        return TRIB_ERR_INVALID;
    *op_out = (trib_op_t)i;
    return TRIB_OK;
}

trib_status_t trib_coll_parse(const char *name, trib_coll_t *coll_out)
{
    int i = find_name(colls, TRIB_COLL_COUNT, name);

    if (i < 0)
        return TRIB_ERR_INVALID;
    *coll_out = (trib_coll_t)i;
    return TRIB_OK;
}
