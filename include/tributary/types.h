/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Element types, reduction operators and the collectives by name.
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
 * contributions of any of these does it in float32 and rounds once: flat and direct
 * round once in all. Ring, tree and halving-doubling pass partial sums on, which round,
 * and may overflow, at each hop. Above the largest number (f8_e4m3: above 464) f16,
 * bf16 and f8_e5m2 give Inf, and f8_e4m3, which has no Inf, gives NaN.
 *
 * bool is a byte: 0 is false, all else is true, and what is reduced is 0 or 1.
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
 * divided once: Inf where the sum is beyond their range. A mean of fewer bits is not
 * Inf because the sum is: sums are divided on their way. min and max give NaN where any
 * input is NaN. Of bool sum and max are lor, prod and min are land, and there is no
 * mean.
 *
 * band, bor and bxor are of integers and bool, bit by bit. land, lor and lxor are of
 * them, too: an element is true if it is not 0, and the result is 0 or 1.
 *
 * minloc and maxloc are of pairs: element 2k is a value, element 2k + 1 an integer with
 * sign and of as many bits, its index; count is even, and counts both. They are of f32,
 * f64, i32, u32, i64 and u64; of floats the index lies in the bits of its element. NaN
 * is less than all values for minloc, and more for maxloc. No codec, no TRIB_CHECK.
 *
 * median, trimmed-mean and clipped-mean are for a few ranks whose contributions are
 * wrong, by a fault or on purpose. They are of f32, f64, f16 and bf16, element by
 * element, and leave out NaN.
 * trim and clip go by trib_desc_t.parameter. Whoever sums needs all contributions at
 * once, so only the algorithms direct, flat and service (of one level) do it, without a
 * codec.
 */
typedef enum trib_op {
    TRIB_SUM,
    TRIB_MEAN,
    TRIB_MIN,
    TRIB_MAX,
    TRIB_PROD,
    TRIB_MEDIAN, /* the middle one; of an even number the mean of the two in the
                  * middle */
    TRIB_TRIMMED_MEAN, /* the mean without the largest and the least */
    TRIB_CLIPPED_MEAN, /* the mean of elements that are cut to a bound */
    TRIB_BAND,
    TRIB_BOR,
    TRIB_BXOR,
    TRIB_LAND,
    TRIB_LOR,
    TRIB_LXOR,
    TRIB_MINLOC, /* the least value, and the least index that has it */
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

/** trib_dtype_size - bytes of one element; 0 for a value that is no dtype. */
TRIB_API size_t trib_dtype_size(trib_dtype_t dtype);

/** trib_dtype_name and its like - "f32", "sum", "allreduce"; "?" if unknown. */
TRIB_API const char *trib_dtype_name(trib_dtype_t dtype);
TRIB_API const char *trib_op_name(trib_op_t op);
TRIB_API const char *trib_coll_name(trib_coll_t coll);

/**
 * trib_op_takes - 1 if elements of a dtype can be reduced by an op, else 0.
 *
 * It is 0 also for values that are no op or no dtype. Plans and calls refuse what does
 * not go together by TRIB_ERR_INVALID.
 * thread   any
 */
TRIB_API int trib_op_takes(trib_op_t op, trib_dtype_t dtype);

/**
 * trib_dtype_parse and its like - the value of a name.
 *
 * errors   TRIB_ERR_INVALID: it is the name of none
 */
TRIB_API trib_status_t trib_dtype_parse(const char *name, trib_dtype_t *dtype_out);
TRIB_API trib_status_t trib_op_parse(const char *name, trib_op_t *op_out);
TRIB_API trib_status_t trib_coll_parse(const char *name, trib_coll_t *coll_out);

#ifdef __cplusplus
}
#endif

#endif
