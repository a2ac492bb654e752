/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * f16 and bf16 with more ranks than a kernel sums at once: if one rank reduces all
 * contributions, partial sums are float32, and the result is rounded once.
 */
#include "tests/comm/oracle.h"
#include "tests/harness/ranks.h"

#define RANKS 10
#define COUNT 5001 /* not a multiple of any block */

/* The input of each rank, and the correct mean; rounding to the dtype after 8 ranks
 * would change it. */
struct sum {
    trib_dtype_t dtype;
    trib_op_t op;
    double given[RANKS];
    double expected;
};

static const struct sum sums[] = {
    {TRIB_F16, TRIB_SUM, {1e4, 1e4, 1e4, 1e4, 1e4, 1e4, 1e4, 1e4, -2e4, -2e4}, 40000},
    {TRIB_F16, TRIB_MEAN, {1e4, 1e4, 1e4, 1e4, 1e4, 1e4, 1e4, 1e4, -2e4, -2e4}, 4000},
    {TRIB_F16, TRIB_PROD, {8, 8, 8, 8, 8, 8, 8, 8, 0x1p-10, 0x1p-10}, 16},
    {TRIB_F16, TRIB_MAX, {1, 2, 3, 4, 5, 6, 7, 8, -9, 60000}, 60000},
    {TRIB_BF16, TRIB_SUM, {32, 32, 32, 32, 32, 32, 32, 33, 1, 0}, 258},
    {TRIB_BF16, TRIB_MEAN, {32, 32, 32, 32, 32, 32, 32, 33, 1, -256}, 0x1.9ap-3},
    {TRIB_BF16, TRIB_MIN, {1, 2, 3, 4, 5, 6, 7, 8, -9, 10}, -9},
};

static void sum_once(struct ranks_self *self, const struct sum *s, uint16_t *x)
{
    union perf_number v = {.f = s->given[self->rank]};

    for (size_t i = 0; i < COUNT; i++)
        perf_number_store(s->dtype, &x[i], 0, v);
    ranks_ok(self, trib_allreduce(self->comm, NULL, x, COUNT, s->dtype, s->op));
    for (size_t i = 0; i < COUNT; i++) {
        double got = perf_number_load(s->dtype, &x[i], 0).f;
        if (got != s->expected)
            ranks_die(self, "sum %d of dtype %d: element %zu is %g, not %g",
                      (int)(s - sums), (int)s->dtype, i, got, s->expected);
    }
}

static int rounded_once(struct ranks_self *self)
{
    uint16_t *x = malloc(COUNT * sizeof(*x));
    void *shared;

    ranks_ok(self, trib_alloc(self->comm, COUNT * sizeof(*x), &shared));
    for (size_t k = 0; k < sizeof(sums) / sizeof(sums[0]); k++) {
        sum_once(self, &sums[k], x);
        sum_once(self, &sums[k], shared);
    }
    ranks_ok(self, trib_free(self->comm, shared));
    free(x);
    return 0;
}

TEST(test_rounded_once)
{
    static const char *const configs[] = {"algorithm=flat", "algorithm=direct"};

    for (int i = 0; i < 2; i++) {
        ranks_pass(.size = RANKS, .fn = rounded_once, .config = configs[i],
                   .seconds = 60);
    }
}
