/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The residual of a plan with one codec moves to a plan with another: to its residual,
 * or into its next start.
 */
#include "base/dtype.h"
#include "comm/auto/auto_carry.h"
#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "tests/comm/oracle.h"
#include "tests/harness/ranks.h"

enum { COUNT = 5003 };

static trib_plan_t *make(struct ranks_self *self, trib_dtype_t dtype, const char *codec)
{
    return ranks_plan(self, TRIB_ALLREDUCE, .count = COUNT, .dtype = dtype,
                      .codec = codec);
}

static void store(trib_dtype_t dtype, void *at, size_t i, double value)
{
    perf_number_store(dtype, at, i, (union perf_number){.f = value});
}

static double load(trib_dtype_t dtype, const void *at, size_t i)
{
    return perf_number_load(dtype, at, i).f;
}

/* Start a plan whose residual keeps all but the largest elements. */
static trib_plan_t *hold(struct ranks_self *self, trib_dtype_t dtype, void *x)
{
    trib_plan_t *plan = make(self, dtype, "topk:ratio=0.01");

    for (size_t i = 0; i < COUNT; i++)
        store(dtype, x, i, (double)(i % 16));
    ranks_ok(self, trib_plan_start_with(plan, NULL, x));
    ranks_ok(self, trib_plan_wait(plan));
    return plan;
}

static void to_another(struct ranks_self *self, trib_dtype_t dtype, void *x)
{
    struct trib_auto_carry carry = {0};
    static float was[COUNT], is[COUNT];
    trib_plan_t *from = hold(self, dtype, x);
    trib_plan_t *to = make(self, dtype, "dgc:ratio=0.01");

    ranks_ok(self, trib_auto_carry_over(&carry, from, to));
    ranks_assert(self, !carry.rest && trib_auto_carry_begin(&carry, to, x, true) == x);
    ranks_ok(self, trib_plan_residual_get(from, 0, COUNT, was));
    ranks_ok(self, trib_plan_residual_get(to, 0, COUNT, is));
    ranks_assert(self, memcmp(was, is, sizeof(is)) == 0);
    ranks_ok(self, trib_plan_free(from));
    ranks_ok(self, trib_plan_free(to));
}

/* The next start sends the whole residual, at once or in parts. */
static void to_dense(struct ranks_self *self, trib_dtype_t dtype, void *x, bool whole)
{
    struct trib_auto_carry carry = {0};
    static float rest[COUNT];
    trib_plan_t *from = hold(self, dtype, x);
    trib_plan_t *to = make(self, dtype, "none");

    ranks_ok(self, trib_plan_residual_get(from, 0, COUNT, rest));
    ranks_ok(self, trib_auto_carry_over(&carry, from, to));
    ranks_ok(self, trib_plan_free(from));
    for (size_t i = 0; i < COUNT; i++)
        store(dtype, x, i, 1);
    const void *sum = trib_auto_carry_begin(&carry, to, x, whole);
    ranks_assert(self, sum && sum != x);
    if (!whole) {
        trib_auto_carry_ready(&carry, to, 4000, COUNT - 4000);
        trib_auto_carry_ready(&carry, to, 0, 4000);
    }
    double held = 0;
    for (size_t i = 0; i < COUNT; i++) {
        const double d = load(dtype, sum, i) - (double)rest[i];
        held += (double)rest[i];
        if (d < 1 || d > 1)
            ranks_die(self, "element %zu: %g is not 1 more than %g", i,
                      load(dtype, sum, i), (double)rest[i]);
    }
    ranks_assert(self, held > COUNT);
    trib_auto_carry_end(&carry);
    ranks_assert(self, trib_auto_carry_begin(&carry, to, x, true) == x);
    ranks_ok(self, trib_plan_free(to));
}

RANKS_TEST(test_carried, .size = 2)
{
    static const trib_dtype_t dtypes[] = {TRIB_F32, TRIB_F16, TRIB_BF16};
    static float x[COUNT];

    for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
        to_another(self, dtypes[i], x);
        to_dense(self, dtypes[i], x, true);
        to_dense(self, dtypes[i], x, false);
    }
    return 0;
}
