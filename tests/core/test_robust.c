/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operators that need all contributions at once, against a plain oracle: every algorithm that
 * gathers them, one service and two, in place and not, odd lengths, many rounds; and what is
 * refused.
 */
#include "tests/harness/tribtest.h"

#include <math.h>

#include "compress/kernels.h"
#include "compress/robust.h"
#include "tests/core/nodes.h"
#include "tests/core/oracle.h"

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
};
enum { SCENES = sizeof(scenes) / sizeof(*scenes) };

/* What a rank gives: some of it NaN, infinite, far off, or the same as of others. */
static float given(int rank, uint32_t step, size_t i)
{
    const uint64_t bits = oracle_mix(((uint64_t)step << 40) + i * 64 + (uint64_t)rank);

    switch (bits % 19) {
    case 0:
        return NAN;
    case 1:
        return bits & 64 ? INFINITY : -INFINITY;
    case 2:
        return bits & 64 ? 3e4f : -3e4f;
    case 3:
        return 0.25f;
    default:
        return i % 211 == 5 ? NAN : (float)((double)(bits >> 40) * 0x1p-23 - 1);
    }
}

static int compare(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

static double mean_of(const float *x, int n)
{
    double sum = 0;

    for (int i = 0; i < n; i++)
        sum += (double)x[i];
    return sum / n;
}

/* x [n] is sorted. */
static float expected(const struct scene *s, float *x, int n)
{
    const double part = s->parameter > 0 ? s->parameter : 0.1;
    int m = 0;

    for (int i = 0; i < n; i++)
        if (!isnan(x[i]))
            x[m++] = x[i];
    if (m == 0)
        return NAN;
    if (s->op == TRIB_CLIPPED_MEAN) {
        for (int i = 0; i < m; i++)
            x[i] = fmaxf(-(float)s->parameter, fminf(x[i], (float)s->parameter));
        return (float)mean_of(x, m);
    }
    qsort(x, (size_t)m, sizeof(*x), compare);
    if (s->op == TRIB_MEDIAN)
        return (float)mean_of(x + (m - 1) / 2, m % 2 ? 1 : 2);
    const int cut = (int)(part * m);
    return (float)mean_of(x + cut, m - 2 * cut);
}

static bool same(float a, float b)
{
    return (isnan(a) && isnan(b)) || (a <= b && a >= b);
}

static void check(struct ranks_self *self, const struct scene *s, const trib_comm_t *comm,
                  uint32_t step, const void *got)
{
    const struct trib_kernels *k = trib_kernels_get(NULL);
    const size_t size = trib_dtype_size(s->dtype);
    float x[RANKS_MAX], y, z;
    uint8_t cell[8];

    for (size_t i = 0; i < s->count; i++) {
        for (int r = 0; r < trib_size(comm); r++) {
            x[r] = given(r, step, i);
            k->from_f32[s->dtype](cell, &x[r], 1);
            k->to_f32[s->dtype](&x[r], cell, 1);
        }
        y = expected(s, x, trib_size(comm));
        k->from_f32[s->dtype](cell, &y, 1);
        k->to_f32[s->dtype](&y, cell, 1);
        k->to_f32[s->dtype](&z, (const uint8_t *)got + i * size, 1);
        if (!same(y, z))
            ranks_die(self, "%s of %d ranks, %s, step %u: element %zu of %zu is %.9g, not %.9g",
                      trib_op_name(s->op), trib_size(comm), trib_dtype_name(s->dtype), step, i,
                      s->count, (double)z, (double)y);
    }
}

static void use(struct ranks_self *self, trib_comm_t *comm, const struct scene *s,
                const char *algorithm)
{
    const struct trib_kernels *k = trib_kernels_get(NULL);
    float *x = malloc((s->count + 1) * sizeof(*x));
    uint8_t *in = malloc((s->count + 1) * sizeof(*x)), *out = malloc((s->count + 1) * sizeof(*x));
    trib_desc_t d = TRIB_DESC_INIT;
    trib_plan_t *plan;

    d.send = s->in_place ? out : in;
    d.recv = out;
    d.count = s->count;
    d.dtype = s->dtype;
    d.op = s->op;
    d.parameter = s->parameter;
    d.algorithm = algorithm;
    d.chunk = s->chunk;
    ranks_ok(self, trib_plan_allreduce(comm, &d, &plan));
    for (uint32_t step = 0; step < STEPS; step++) {
        for (size_t i = 0; i < s->count; i++)
            x[i] = given(trib_rank(comm), step, i);
        k->from_f32[s->dtype](s->in_place ? out : in, x, s->count);
        ranks_ok(self, trib_plan_start(plan));
        ranks_ok(self, trib_plan_wait(plan));
        check(self, s, comm, step, out);
    }
    ranks_ok(self, trib_plan_free(plan));
    free(x);
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

static void test_ranks(void **state)
{
    for (int size = 1; size <= 8; size++)
        assert_int_equal(ranks_run(&(struct ranks_job){
                             .size = size, .fn = by_ranks, .config = *state}),
                         0);
}

/* ---- services ---------------------------------------------------------------------- */

static void serve(struct ranks_self *self, struct trib_comm *channel)
{
    const struct nodes *s = self->arg;
    bool more = true;

    while (more || channel->engine.head) {
        more = more && nodes_listen(self, s, channel);
        if (!trib_channel_step(channel))
            sched_yield();
    }
}

static int by_services(struct ranks_self *self)
{
    struct nodes *s = self->arg;
    struct trib_comm *channel = nodes_join(self, s, self->comm);

    if (self->rank >= s->ranks) {
        serve(self, channel);
        trib_channel_dispose(channel);
        return 0;
    }
    for (size_t k = 0; k < SCENES; k++)
        use(self, channel, &scenes[k], "auto");
    if (trib_free_comm(channel) != TRIB_OK)
        ranks_die(self, "%s", trib_last_error(NULL));
    if (self->rank == 0)
        nodes_tell(s, NODES_GOODBYE, "-");
    return 0;
}

static void test_services(void **state)
{
    static const int of[][2] = {{1, 1}, {2, 1}, {5, 1}, {4, 2}};

    for (size_t i = 0; i < 4; i++) {
        struct nodes s = {.ranks = of[i][0], .services = of[i][1]};
        assert_true(nodes_open(&s));
        assert_int_equal(ranks_run(&(struct ranks_job){.size = s.ranks + s.services,
                                                       .fn = by_services,
                                                       .arg = &s,
                                                       .config = *state}),
                         0);
        nodes_close(&s);
    }
}

/* ---- refusals ----------------------------------------------------------------------- */

struct refusal {
    trib_op_t op;
    double parameter;
    trib_dtype_t dtype;
    const char *codec, *algorithm, *says;
};

static const struct refusal refusals[] = {
    {TRIB_MEDIAN, 0, TRIB_F64, NULL, NULL, "op median is of f32, f16 and bf16, dtype is f64"},
    {TRIB_MEDIAN, 0, TRIB_I32, NULL, NULL, "dtype is i32"},
    {TRIB_MEDIAN, 0, TRIB_F32, "f16", NULL, "op is median: use codec none"},
    {TRIB_MEDIAN, 0, TRIB_F32, "exact", NULL, "op is median: use codec none"},
    {TRIB_MEDIAN, 0, TRIB_F32, NULL, "ring", "use direct, flat or auto"},
    {TRIB_TRIMMED_MEAN, 0, TRIB_F32, NULL, "tree", "op trimmed-mean needs all contributions at"},
    {TRIB_TRIMMED_MEAN, 0.5, TRIB_F32, NULL, NULL, "it is 0.5, it must be 0 (for 0.1) to below"},
    {TRIB_TRIMMED_MEAN, -1, TRIB_F32, NULL, NULL, "it is -1"},
    {TRIB_CLIPPED_MEAN, 0, TRIB_F32, NULL, NULL, "it is 0, it must be above 0 and finite"},
    {TRIB_CLIPPED_MEAN, (double)NAN, TRIB_F32, NULL, NULL, "above 0 and finite"},
};

static int refused(struct ranks_self *self)
{
    static double x[64];

    for (size_t i = 0; i < sizeof(refusals) / sizeof(*refusals); i++) {
        const struct refusal *r = &refusals[i];
        trib_desc_t d = TRIB_DESC_INIT;
        trib_plan_t *plan;
        d.recv = x;
        d.count = 64;
        d.dtype = r->dtype;
        d.op = r->op;
        d.parameter = r->parameter;
        d.codec = r->codec;
        d.algorithm = r->algorithm;
        ranks_assert(self, trib_plan_allreduce(self->comm, &d, &plan) != TRIB_OK);
        if (!strstr(trib_last_error(self->comm), r->says))
            ranks_die(self, "%s, not %s", trib_last_error(self->comm), r->says);
    }
    return 0;
}

static void test_refused(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(&(struct ranks_job){.size = 4, .fn = refused}), 0);
}

#define ON(test, config) \
    {#test " [" config "]", test, NULL, NULL, (char *)(uintptr_t)"transport=" config}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON(test_ranks, "shm"),
        ON(test_ranks, "tcp"),
        ON(test_services, "shm"),
        ON(test_services, "tcp"),
        cmocka_unit_test(test_refused),
    };

    tribtest_deadline(300);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
