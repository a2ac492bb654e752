/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Element types, reduction operators and collectives, with their names.
 */
#ifndef TRIBUTARY_TYPES_H
#define TRIBUTARY_TYPES_H

#include <stddef.h>
#include <stdint.h>

#include <tributary/export.h>
#include <tributary/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trib_comm trib_comm_t;
typedef struct trib_plan trib_plan_t;

/*
 * f16 is IEEE binary16, bf16 the upper half of binary32; f8_e4m3 and f8_e5m2 are the
 * 8-bit floats of the OCP (OFP8, revision 1.0, 2023). A rank that reduces several
 * contributions of these types computes in float32 and rounds once. Thus flat and
 * direct round only once. Ring, tree and halving-doubling forward partial sums, which
 * are rounded, and may overflow, at each hop. On overflow f16, bf16 and f8_e5m2 become
 * Inf; f8_e4m3, which has no Inf, becomes NaN (above 464).
 *
 * bool is one byte: 0 is false and every other value true. Results are 0 or 1.
 */
typedef enum trib_dtype {
    TRIB_F32,
    TRIB_F64,
    TRIB_F16,
    TRIB_BF16,
    TRIB_I8,
    TRIB_I32,
    TRIB_I64,
    TRIB_U8,
    TRIB_I16,
    TRIB_U16,
    TRIB_U32,
    TRIB_U64,
    TRIB_BOOL,
    TRIB_F8_E4M3,
    TRIB_F8_E5M2,
    TRIB_DTYPE_COUNT,
} trib_dtype_t;

/*
 * Integer sums and products wrap. The mean of integers is the wrapped sum divided
 * by the number of ranks, rounded towards zero. The mean of f32 and f64 is the sum
 * divided once, and Inf if the sum overflows. The mean of narrower floats does not
 * overflow with the sum, because partial sums are divided on the way. min and max
 * return NaN if any input is NaN. For bool, sum and max are lor, prod and min are land,
 * and mean is not supported.
 *
 * band, bor and bxor operate bitwise on integers and bool. land, lor and lxor operate
 * on the same types: a non-zero element is true, and the result is 0 or 1.
 *
 * minloc and maxloc operate on pairs: element 2k is a value, and element 2k + 1 is its
 * index, a signed integer of the same width. count is even and counts both. Types: f32,
 * f64, i32, u32, i64 and u64; with floats, the bits of the element hold the index. NaN
 * is less than all values for minloc and greater for maxloc. Without codecs and
 * TRIB_CHECK.
 *
 * median, trimmed-mean and clipped-mean tolerate a few faulty or malicious ranks. They
 * work element by element on f32, f64, f16 and bf16 and ignore NaN. trimmed-mean and
 * clipped-mean use trib_desc_t.parameter. The reducer needs all contributions at once,
 * so only the algorithms direct, flat and service (with one level) support these ops,
 * without a codec.
 */
typedef enum trib_op {
    TRIB_SUM,
    TRIB_MEAN,
    TRIB_MIN,
    TRIB_MAX,
    TRIB_PROD,
    TRIB_MEDIAN, /* for an even number of elements the mean of the middle two */
    TRIB_TRIMMED_MEAN, /* the mean without the largest and smallest elements */
    TRIB_CLIPPED_MEAN, /* the mean of elements clipped to a bound */
    TRIB_BAND,
    TRIB_BOR,
    TRIB_BXOR,
    TRIB_LAND,
    TRIB_LOR,
    TRIB_LXOR,
    TRIB_MINLOC, /* the smallest value and its smallest index */
    TRIB_MAXLOC,
    TRIB_OP_COUNT,
} trib_op_t;

typedef enum trib_coll {
    TRIB_ALLREDUCE,
    TRIB_REDUCE,
    TRIB_BROADCAST,
    TRIB_ALLGATHER,
    TRIB_REDUCE_SCATTER,
    TRIB_BARRIER,
    TRIB_GATHER,
    TRIB_SCATTER,
    TRIB_ALLTOALL,
    TRIB_SCAN,
    TRIB_EXSCAN,
    TRIB_COLL_COUNT,
} trib_coll_t;

/** trib_dtype_size - return the bytes of one element; 0 for an invalid dtype. */
TRIB_API size_t trib_dtype_size(trib_dtype_t dtype);

/** trib_dtype_name - return a name: "f32", "sum", "allreduce"; "?" if unknown. */
TRIB_API const char *trib_dtype_name(trib_dtype_t dtype);
TRIB_API const char *trib_op_name(trib_op_t op);
TRIB_API const char *trib_coll_name(trib_coll_t coll);

/**
 * trib_op_takes - return 1 if an op supports a dtype, else 0.
 *
 * Returns 0 for an invalid op or dtype. Plans and calls reject unsupported combinations
 * with TRIB_ERR_INVALID.
 * thread   any
 */
TRIB_API int trib_op_takes(trib_op_t op, trib_dtype_t dtype);

/**
 * trib_dtype_parse - convert a name to its value.
 *
 * errors   TRIB_ERR_INVALID: unknown name
 */
TRIB_API trib_status_t trib_dtype_parse(const char *name, trib_dtype_t *dtype_out);
TRIB_API trib_status_t trib_op_parse(const char *name, trib_op_t *op_out);
TRIB_API trib_status_t trib_coll_parse(const char *name, trib_coll_t *coll_out);

#ifdef __cplusplus
}
#endif

#endif
