/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TRIB_STATS: trib_plan_stats describes the results correctly, for every reducing
 * collective, in place and not, with wait, test and the call with a name; a plan
 * without statistics returns an error.
 */
#include <math.h>

#include "build-config.h"
#include "tests/harness/ranks.h"

enum { COUNT = 3001 };

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fabs(b);
}

/* The sum of the inputs is step * (i % 10), and NaN in element 7 of step 2. */
static void fill(double *x, size_t n, int step, int size)
{
    for (size_t i = 0; i < n; i++)
        x[i] =
            i == 7 && step == 2 ? (double)NAN : (double)(step * (int)(i % 10)) / size;
}

static void expect(struct ranks_self *self, trib_plan_t *plan, size_t first, int step)
{
    trib_plan_stats_t s = {.size = sizeof(s)};
    double squares = 0, before = 0;
    uint64_t zeros = 0;
    const bool bad = step == 2 && first == 0;

    ranks_ok(self, trib_plan_stats(plan, &s));
    for (size_t i = first; i < first + COUNT; i++) {
        const double v = (double)(i % 10);
        before += v * v;
        zeros += i % 10 == 0;
        squares += i == 7 && step == 2 ? 0 : step * step * v * v;
    }
    ranks_assert(self, s.results == (uint64_t)step && s.elements == COUNT &&
                           s.zeros == zeros);
    ranks_assert(self, near(s.norm, sqrt(squares)) && near(s.largest, 9.0 * step));
    ranks_assert(self, s.not_finite == bad && s.not_finite_in_all == bad);
    ranks_assert(self, step == 1
                           ? near(s.mean_norm, s.norm)
                           : near(s.mean_norm, (sqrt(before) + sqrt(squares)) / 2));
}

static void use(struct ranks_self *self, trib_coll_t coll, bool in_place, bool test)
{
    const size_t n = COUNT * (size_t)self->size;
    double *x = calloc(n, sizeof(*x)), *y = calloc(n, sizeof(*y));

    trib_plan_t *plan = ranks_plan(self, coll, .send = in_place ? NULL : x,
                                   .recv = in_place ? x : y, .count = COUNT,
                                   .dtype = TRIB_F64, .name = "layer");
    for (int step = 1; step <= 2; step++) {
        fill(x, n, step, self->size);
        ranks_ok(self, trib_plan_start(plan));
        while (test && trib_plan_test(plan) == TRIB_INPROGRESS)
            ;
        ranks_ok(self, trib_plan_wait(plan));
        ranks_ok(self, trib_plan_wait(plan)); /* computes once */
        if (coll != TRIB_REDUCE || self->rank == 0)
            expect(self, plan,
                   coll == TRIB_REDUCE_SCATTER ? COUNT * (size_t)self->rank : 0, step);
    }
    ranks_ok(self, trib_plan_free(plan));
    free(x);
    free(y);
}

static void refused(struct ranks_self *self, const char *name, trib_coll_t coll)
{
    trib_plan_stats_t s = {.size = sizeof(s)};
    double x[8] = {0};

    trib_plan_t *plan = ranks_plan(self, coll, .recv = x, .count = 1,
                                   .dtype = TRIB_F64, .name = name);
    ranks_expect(self, trib_plan_stats(plan, &s), TRIB_ERR_UNSUPPORTED,
                 "statistics of no plan");
    ranks_assert(self, strstr(trib_last_error(self->comm), "TRIB_STATS=1"));
    ranks_ok(self, trib_plan_free(plan));
}

static int with(struct ranks_self *self)
{
    static const trib_coll_t colls[] = {TRIB_ALLREDUCE, TRIB_REDUCE,
                                        TRIB_REDUCE_SCATTER};
    trib_plan_stats_t small = {.size = 8};
    float x[100] = {0};

    for (int i = 0; i < 12; i++)
        use(self, colls[i % 3], i / 3 % 2, i / 6);
    refused(self, NULL, TRIB_ALLREDUCE);
    refused(self, "layer", TRIB_BROADCAST);
    trib_plan_t *plan = ranks_plan(self, TRIB_ALLREDUCE, .recv = x, .count = 100,
                                   .name = "other");
    ranks_expect(self, trib_plan_stats(plan, NULL), TRIB_ERR_INVALID, "NULL");
    ranks_expect(self, trib_plan_stats(plan, &small), TRIB_ERR_INVALID,
                 "a small struct");
    ranks_ok(self, trib_plan_free(plan));
    for (int i = 0; i < 3; i++) /* logged when the communicator is freed */
        ranks_ok(self, trib_allreduce_named(self->comm, "named", NULL, x, 100, TRIB_F32,
                                            TRIB_SUM));
    return 0;
}

RANKS_TEST(test_without, .size = 2, .config = "transport=shm")
{
    refused(self, "layer", TRIB_ALLREDUCE);
    return 0;
}

TEST(test_with)
{
    ranks_pass(.size = 3, .fn = with, .config = "transport=shm;stats=1");
    ranks_pass(.size = 4, .fn = with, .config = "transport=tcp;stats=1");
#if HAVE_UCX
    ranks_pass(.size = 2, .fn = with, .config = "transport=ucx;stats=1");
#endif
    ranks_pass(.size = 1, .fn = with, .config = "stats=1");
}
