/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operators that need all contributions at once, compared with a plain oracle: every
 * algorithm that gathers them, one aggregator and two, in place and not, odd lengths,
 * many rounds; and refused calls.
 */
#include <math.h>

#include "compress/kernels/kernels.h"
#include "compress/vectors/robust_op.h"
#include "tests/agg/client/aggregators.h"
#include "tests/comm/oracle.h"

enum { STEPS = 2, MOST = 9001 };

struct scene {
    trib_op_t op;
    double parameter;
    trib_dtype_t dtype;
    size_t count;
    size_t chunk;
    bool in_place;
};

static const struct scene scenes[] = {
    {TRIB_MEDIAN, 0, TRIB_F32, 1, 0, false},
    {TRIB_MEDIAN, 0, TRIB_F32, MOST, 1024, true},
    {TRIB_TRIMMED_MEAN, 0.3, TRIB_F32, 5003, 4096, false},
    {TRIB_TRIMMED_MEAN, 0, TRIB_F32, 77, 0, true},
    {TRIB_CLIPPED_MEAN, 0.5, TRIB_F32, 4099, 512, true},
    {TRIB_CLIPPED_MEAN, 2, TRIB_F16, 1000, 256, false},
    {TRIB_MEDIAN, 0, TRIB_BF16, 3001, 1024, true},
    {TRIB_TRIMMED_MEAN, 0.25, TRIB_F16, 129, 128, true},
    {TRIB_MEDIAN, 0, TRIB_F32, 0, 0, true},
    {TRIB_MEDIAN, 0, TRIB_F32, 70000, 65536, false},
    {TRIB_MEDIAN, 0, TRIB_F64, 4001, 2048, true},
    {TRIB_TRIMMED_MEAN, 0.3, TRIB_F64, 3001, 4096, false},
    {TRIB_CLIPPED_MEAN, 0.7, TRIB_F64, 1001, 1024, true},
};
enum { SCENES = sizeof(scenes) / sizeof(*scenes) };

/* Return an input of a rank: some elements are NaN, infinite, outliers, or equal to
 * those of others. */
static double given(int rank, uint32_t step, size_t i)
{
    const uint64_t bits = oracle_mix(((uint64_t)step << 40) + i * 64 + (uint64_t)rank);

    switch (bits % 19) {
    case 0:
        return NAN;
    case 1:
        return bits & 64 ? INFINITY : -INFINITY;
    case 2:
        return bits & 64 ? 3e4 : -3e4;
    case 3:
        return 0.25;
    default:
        return i % 211 == 5 ? (double)NAN : (double)(bits >> 16) * 0x1p-47 - 1;
    }
}

/* Looked up once: a virtual processor reports its features slowly. */
static const struct trib_kernels *kernels;

/* Store v in the dtype. */
static void put(trib_dtype_t dtype, void *at, double v)
{
    const float f = (float)v;

    if (dtype == TRIB_F64)
        memcpy(at, &v, sizeof(v));
    else
        kernels->from_f32[dtype](at, &f, 1);
}

static double get(trib_dtype_t dtype, const void *at)
{
    double v;
    float f;

    if (dtype == TRIB_F64) {
        memcpy(&v, at, sizeof(v));
        return v;
    }
    kernels->to_f32[dtype](&f, at, 1);
    return (double)f;
}

static double rounded(trib_dtype_t dtype, double v)
{
    uint8_t cell[8];

    put(dtype, cell, v);
    return get(dtype, cell);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double mean_of(const double *x, int n)
{
    double sum = 0;

    for (int i = 0; i < n; i++)
        sum += x[i];
    return sum / n;
}

/* x [n] is sorted. */
static double expected(const struct scene *s, double *x, int n)
{
    const double part = s->parameter > 0 ? s->parameter : 0.1;
    const trib_dtype_t kind = s->dtype == TRIB_F64 ? TRIB_F64 : TRIB_F32;
    int m = 0;

    for (int i = 0; i < n; i++)
        if (!isnan(x[i]))
            x[m++] = x[i];
    if (m == 0)
        return NAN;
    if (s->op == TRIB_CLIPPED_MEAN) {
        for (int i = 0; i < m; i++)
            x[i] = fmax(-rounded(kind, s->parameter),
                        fmin(x[i], rounded(kind, s->parameter)));
        return mean_of(x, m);
    }
    qsort(x, (size_t)m, sizeof(*x), compare);
    if (s->op == TRIB_MEDIAN)
        return mean_of(x + (m - 1) / 2, m % 2 ? 1 : 2);
    const int cut = (int)(part * m);
    return mean_of(x + cut, m - 2 * cut);
}

static bool same(double a, double b)
{
    return (isnan(a) && isnan(b)) || (a <= b && a >= b);
}

static void check(struct ranks_self *self, const struct scene *s,
                  const trib_comm_t *comm, uint32_t step, const void *got)
{
    const size_t size = trib_dtype_size(s->dtype);
    double x[RANKS_MAX];

    for (size_t i = 0; i < s->count; i++) {
        for (int r = 0; r < trib_size(comm); r++)
            x[r] = rounded(s->dtype, given(r, step, i));
        const double y = rounded(s->dtype, expected(s, x, trib_size(comm)));
        const double z = get(s->dtype, (const uint8_t *)got + i * size);
        if (!same(y, z))
            ranks_die(
                self,
                "%s of %d ranks, %s, step %u: element %zu of %zu is %.17g, not %.17g",
                trib_op_name(s->op), trib_size(comm), trib_dtype_name(s->dtype), step,
                i, s->count, z, y);
    }
}

static void use(struct ranks_self *self, trib_comm_t *comm, const struct scene *s,
                const char *algorithm)
{
    const size_t size = trib_dtype_size(s->dtype);
    uint8_t *in = malloc((s->count + 1) * size), *out = malloc((s->count + 1) * size);

    trib_plan_t *plan = ranks_plan_on(self, comm, TRIB_ALLREDUCE,
                                      .send = s->in_place ? out : in, .recv = out,
                                      .count = s->count, .dtype = s->dtype,
                                      .op = s->op, .parameter = s->parameter,
                                      .algorithm = algorithm, .chunk = s->chunk);
    for (uint32_t step = 0; step < STEPS; step++) {
        for (size_t i = 0; i < s->count; i++)
            put(s->dtype, (s->in_place ? out : in) + i * size,
                given(trib_rank(comm), step, i));
        ranks_step(self, plan);
        check(self, s, comm, step, out);
    }
    ranks_ok(self, trib_plan_free(plan));
    free(in);
    free(out);
}

static int by_ranks(struct ranks_self *self)
{
    static const char *const algorithms[] = {"auto", "direct", "flat"};

    for (size_t k = 0; k < SCENES; k++)
        use(self, self->comm, &scenes[k], algorithms[k % 3]);
    return 0;
}

TEST_ON(test_ranks, "shm", "tcp")
{
    for (int size = 1; size <= 8; size++)
        ranks_pass(.size = size, .fn = by_ranks, .config = *state);
}

/* ---- aggregators ----------------------------------------------------------------- */

static int by_aggregators(struct ranks_self *self)
{
    struct aggregators *s = self->arg;
    struct trib_comm *agg_comm = aggregators_join(self, s, self->comm);

    if (self->rank >= s->ranks) {
        aggregators_serve(self, s, agg_comm);
        trib_agg_comm_dispose(agg_comm);
        return 0;
    }
    for (size_t k = 0; k < SCENES; k++)
        use(self, agg_comm, &scenes[k], "auto");
    aggregators_leave(self, s, agg_comm);
    return 0;
}

TEST_ON(test_aggregators, "shm", "tcp")
{
    static const int of[][2] = {{1, 1}, {2, 1}, {5, 1}, {4, 2}};

    for (size_t i = 0; i < 4; i++) {
        struct aggregators s = {.ranks = of[i][0], .n = of[i][1]};
        aggregators_run(&s, (struct ranks_job){
                                .fn = by_aggregators, .arg = &s, .config = *state});
    }
}

/* ---- refusals -------------------------------------------------------------------- */

struct refusal {
    trib_op_t op;
    double parameter;
    trib_dtype_t dtype;
    const char *codec, *algorithm, *says;
};

static const struct refusal refusals[] = {
    {TRIB_MEDIAN, 0, TRIB_I32, NULL, NULL,
     "op median supports f32, f64, f16 and bf16, dtype is i32"},
    {TRIB_CLIPPED_MEAN, 1e300, TRIB_F32, NULL, NULL, "it is 1e+300"},
    {TRIB_MEDIAN, 0, TRIB_F32, "f16", NULL, "op is median: use codec none"},
    {TRIB_MEDIAN, 0, TRIB_F32, "exact", NULL, "op is median: use codec none"},
    {TRIB_MEDIAN, 0, TRIB_F32, NULL, "ring", "use direct, flat or auto"},
    {TRIB_TRIMMED_MEAN, 0, TRIB_F32, NULL, "tree",
     "op trimmed-mean needs all contributions in"},
    {TRIB_TRIMMED_MEAN, 0.5, TRIB_F32, NULL, NULL,
     "it is 0.5, it must be 0 (for 0.1) to below"},
    {TRIB_TRIMMED_MEAN, -1, TRIB_F32, NULL, NULL, "it is -1"},
    {TRIB_CLIPPED_MEAN, 0, TRIB_F32, NULL, NULL,
     "it is 0, it must be above 0 and finite"},
    {TRIB_CLIPPED_MEAN, (double)NAN, TRIB_F32, NULL, NULL, "above 0 and finite"},
    {TRIB_SUM, 0.1, TRIB_F32, NULL, NULL,
     "parameter is 0.1, but op sum has no parameter"},
    {TRIB_MEDIAN, 0.2, TRIB_F32, NULL, NULL, "but op median has no parameter"},
    {TRIB_MEAN, 1, TRIB_F32, "int8", NULL, "but op mean has no parameter"},
};

static int refused(struct ranks_self *self)
{
    static double x[64];

    for (size_t i = 0; i < sizeof(refusals) / sizeof(*refusals); i++) {
        const struct refusal *r = &refusals[i];
        trib_plan_t *plan;
        trib_desc_t d = sized(trib_desc_t, .recv = x, .count = 64, .dtype = r->dtype,
                              .op = r->op, .parameter = r->parameter, .codec = r->codec,
                              .algorithm = r->algorithm);
        ranks_assert(self, trib_plan_allreduce(self->comm, &d, &plan) != TRIB_OK);
        if (!strstr(trib_last_error(self->comm), r->says))
            ranks_die(self, "%s, not %s", trib_last_error(self->comm), r->says);
    }
    return 0;
}

TEST(test_refused)
{
    ranks_pass(.size = 4, .fn = refused);
}

int main(void)
{
    kernels = trib_kernels_get(NULL);
    return tribtest_run();
}
