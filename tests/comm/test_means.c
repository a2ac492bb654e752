/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Means: sums that overflow the type do not affect a mean that fits, and equal numbers
 * are their own mean, by every algorithm, transport and number of ranks.
 */
#include <math.h>

#include "tests/comm/algorithms.h"
#include "tests/comm/oracle.h"
#include "tests/harness/ranks.h"

/* Return an algorithm, or auto after the last. */
static const char *algorithm_or_auto(size_t a)
{
    return a < algorithms_count(true) ? algorithm_of(a, true) : "auto";
}

static const size_t counts[] = {1, 5, 1000, 16001};

struct mean {
    trib_dtype_t dtype;
    const char *codec;
    double value; /* 0: various */
    bool rounded; /* multiples of it are rounded by the type */
};

/* Return no plan if the algorithm does not support it. */
static trib_plan_t *plan_of(struct ranks_self *self, const struct mean *m,
                            const char *algorithm, trib_coll_t coll, size_t count,
                            uint8_t *x)
{
    trib_plan_t *plan;
    trib_desc_t d = sized(trib_desc_t, .recv = x, .count = count, .dtype = m->dtype,
                          .op = TRIB_MEAN, .codec = m->codec, .algorithm = algorithm,
                          .chunk = 4096);

    trib_status_t st = trib_plan_create(self->comm, coll, &d, &plan);
    if (st != TRIB_OK && st != TRIB_ERR_UNSUPPORTED)
        ranks_die(self, "%s", trib_last_error(self->comm));
    return plan;
}

/* Return true if a mean is near the number: partial sums may be rounded to the type. */
static bool near(const struct mean *m, int ranks, const uint8_t *got,
                 const uint8_t *number)
{
    const double a = perf_number_load(m->dtype, got, 0).f,
                 b = perf_number_load(m->dtype, number, 0).f;
    const double hops = m->rounded ? ranks : 0;
    const double step = m->codec[0] == 'q'   ? 1.0 / 127 /* levels */
                        : m->codec[0] == 'f' ? perf_number_epsilon(TRIB_F16)
                                             : perf_number_epsilon(m->dtype);

    return fabs(a - b) <= fabs(b) * step * hops;
}

/* Return numbers of float32 with 20 bits, of float64 with 49: small multiples are
 * exact. */
static double number(const struct mean *m, size_t i)
{
    const double x = (double)(oracle_mix(i) >> 12) * 0x1p-52 + 0.5;
    const double bits = m->dtype == TRIB_F32   ? 0x1p20
                        : m->dtype == TRIB_F64 ? 0x1p49
                                               : 0x1p7;

    return m->value > 0 ? m->value : floor(x * bits) / bits * (i % 2 ? -1e-3 : 3e5);
}

static void store(const struct mean *m, size_t i, uint8_t *x)
{
    double v = number(m, i);

    if (m->dtype == TRIB_F32 && !(m->value > 0)) { /* its factor adds no bits */
        const int e = ilogb(v);
        v = ldexp(trunc(ldexp(v, 19 - e)), e - 19);
    } else if (m->dtype == TRIB_F64) {
        const int e = ilogb(v);
        v = ldexp(trunc(ldexp(v, 48 - e)), e - 48);
    }
    perf_number_store(m->dtype, x, 0, (union perf_number){.f = v});
}

static void equal_once(struct ranks_self *self, const struct mean *m,
                       const char *algorithm, trib_coll_t coll, size_t count)
{
    const size_t size = trib_dtype_size(m->dtype);
    uint8_t *x = malloc((count + 1) * size), *was = malloc((count + 1) * size);
    trib_plan_t *plan = plan_of(self, m, algorithm, coll, count, x);

    ranks_assert(self, x && was);
    for (int start = 0; plan && start < 2; start++) {
        for (size_t i = 0; i < count; i++)
            store(m, i, x + i * size);
        memcpy(was, x, count * size);
        ranks_step(self, plan);
        for (size_t i = 0; i < count && (coll == TRIB_ALLREDUCE || self->rank == 0);
             i++)
            if (!near(m, self->size, x + i * size, was + i * size))
                ranks_die(
                    self,
                    "%s of %zu %s, codec %s, by %s: element %zu is %.17g, not %.17g",
                    trib_coll_name(coll), count, trib_dtype_name(m->dtype), m->codec,
                    algorithm, i, perf_number_load(m->dtype, x, i).f,
                    perf_number_load(m->dtype, was, i).f);
    }
    ranks_ok(self, trib_plan_free(plan));
    free(x);
    free(was);
}

static int equal_numbers(struct ranks_self *self)
{
    static const struct mean means[] = {
        {TRIB_F16, "none", 40960, false}, {TRIB_BF16, "none", 0x1.8p127, false},
        {TRIB_F16, "none", 40000, true},  {TRIB_BF16, "none", 3e38, true},
        {TRIB_F16, "none", 65504, true},  {TRIB_F32, "none", 0, false},
        {TRIB_F64, "none", 0, false},     {TRIB_F16, "qsgd:bits=8", 40960, true},
        {TRIB_F32, "f16", 40960, false},  {TRIB_F32, "bf16", 0x1.8p127, false},
        {TRIB_F16, "f16", 65504, true},
    };

    for (size_t k = 0; k < sizeof(means) / sizeof(means[0]); k++)
        for (size_t a = 0; a <= algorithms_count(true); a++)
            for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
                equal_once(self, &means[k], algorithm_or_auto(a), TRIB_ALLREDUCE,
                           counts[c]);
                if (algorithm_does(algorithm_or_auto(a), TRIB_REDUCE))
                    equal_once(self, &means[k], algorithm_or_auto(a), TRIB_REDUCE,
                               counts[c]);
            }
    return 0;
}

TEST_ON(test_equal_numbers, "shm", "tcp", "shm+nomap")
{
    static const int sizes[] = {3, 7, 2, 4, 5, 12};
    const bool all = strcmp(*state, "transport=shm") == 0;

    for (size_t i = 0; i < (all ? sizeof(sizes) / sizeof(sizes[0]) : 2); i++) {
        ranks_pass(.size = sizes[i], .fn = equal_numbers, .config = *state,
                   .seconds = 100);
    }
}

/* The mean of different numbers is exact up to the rounding of the type at each hop. */
static int unequal_numbers(struct ranks_self *self)
{
    enum { COUNT = 3000 };
    static const trib_dtype_t dtypes[] = {TRIB_F16, TRIB_BF16, TRIB_F32, TRIB_F64};
    static uint8_t x[COUNT * 8];

    for (size_t k = 0; k < 4; k++) {
        for (size_t a = 0; a <= algorithms_count(true); a++) {
            const struct mean m = {dtypes[k], "none", 0, false};
            const struct oracle o = {.kind = ORACLE_REALS,
                                     .seed = a + k,
                                     .dtype = m.dtype,
                                     .op = TRIB_MEAN,
                                     .size = self->size};
            trib_plan_t *plan =
                plan_of(self, &m, algorithm_or_auto(a), TRIB_ALLREDUCE, COUNT, x);
            if (!plan)
                continue;
            oracle_fill(&o, self->rank, 0, COUNT, x);
            ranks_step(self, plan);
            for (size_t i = 0; i < COUNT; i++) {
                const struct oracle_answer right = oracle_reduced(&o, i);
                const double got = perf_number_load(m.dtype, x, i).f;
                const double most = perf_number_epsilon(m.dtype) * right.magnitude;
                if (!(fabs(got - right.value.f) <= most))
                    ranks_die(self, "mean of %s by %s: element %zu is %.17g, not %.17g",
                              trib_dtype_name(m.dtype), algorithm_or_auto(a), i, got,
                              right.value.f);
            }
            ranks_ok(self, trib_plan_free(plan));
        }
    }
    return 0;
}

TEST_ON(test_unequal_numbers, "shm", "tcp")
{
    const bool all = strcmp(*state, "transport=shm") == 0;

    for (int size = 2; size <= 7; size += all ? 1 : 3) {
        ranks_pass(.size = size, .fn = unequal_numbers, .config = *state);
    }
}

TEST_DEADLINE(900)
