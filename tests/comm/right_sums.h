/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For tests of communicators that have shrunk or grown: all-reduces of several dtypes
 * and lengths, in place and not, compared with an oracle.
 */
#ifndef TESTS_COMM_RIGHT_SUMS_H
#define TESTS_COMM_RIGHT_SUMS_H

#include "tests/comm/oracle.h"
#include "tests/harness/ranks.h"

/* Check that the bytes of a sum are the same on all ranks, and correct. */
static inline void sum_is_right(struct ranks_self *self, trib_comm_t *comm,
                                const struct oracle *o, const void *sum, size_t count)
{
    const size_t bytes = trib_dtype_size(o->dtype);
    uint64_t all[64], mine = oracle_hash(sum, count * bytes);

    for (size_t i = 0; i < count; i++) {
        const struct oracle_answer a = oracle_reduced(o, i);
        ranks_assert(self,
                     oracle_equal(o->dtype, &a,
                                  perf_number_load(o->dtype, (const char *)sum, i)));
    }
    ranks_ok(self, trib_allgather(comm, &mine, all, 1, TRIB_I64));
    for (int r = 0; r < trib_size(comm); r++)
        ranks_assert(self, all[r] == mine);
}

/* Each case is a dtype and a length; the first of 28 is `first`. */
static inline void sums_are_right(struct ranks_self *self, trib_comm_t *comm,
                                  size_t first)
{
    static const trib_dtype_t dtypes[] = {TRIB_F32, TRIB_F64, TRIB_F16, TRIB_BF16,
                                          TRIB_I8,  TRIB_I32, TRIB_I64};
    static const size_t counts[] = {1, 7, 1023, 30011};

    ranks_assert(self, trib_size(comm) <= 64);
    for (size_t k = first; k < 7 * 4; k++) {
        const size_t count = counts[k % 4];
        struct oracle o = {ORACLE_EXACT, k, dtypes[k / 4], TRIB_SUM, trib_size(comm)};
        char *x = malloc(2 * count * 8), *y = x + count * 8;
        ranks_assert(self, x);
        for (int round = 0; round < 3; round++) {
            const bool in_place = (k + (size_t)round) % 2;
            o.seed += 100;
            oracle_fill(&o, trib_rank(comm), 0, count, in_place ? y : x);
            ranks_ok(self, trib_allreduce(comm, in_place ? NULL : x, y, count, o.dtype,
                                          o.op));
            sum_is_right(self, comm, &o, y, count);
        }
        free(x);
    }
}

#endif
