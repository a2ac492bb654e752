/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compare each rule with plain C: every dtype that it accepts, odd lengths, all
 * elements and some, several ranks and vectors, rates of pushes, results, repeated
 * pushes; quotas.
 */
#include "agg/store/store_image.h"
#include "agg/store/store_table.h"
#include "agg/store/store_walk.h"

#include <math.h>

#include "base/dtype.h"
#include "base/error.h"
#include "base/quota.h"
#include "compress/kernels/kernels.h"
#include "tests/harness/rng_draw.h"
#include "tests/harness/tribtest.h"

enum { RANKS = 3, PUSHES = 12, COUNT_MAX = 70001 };

static const uint64_t counts[] = {1, 7, 511, 512, 513, 8193, COUNT_MAX};

/* A vector in plain C: floats in float64, rounded as the store rounds. */
struct plain {
    trib_dtype_t dtype;
    uint64_t count;
    double *x, *v, *m;
    int64_t *i;
    const bool *listed; /* elements that the push contains; NULL: all */
};

static const struct trib_kernels *kernels;

static double round_to(trib_dtype_t dtype, double x)
{
    return dtype == TRIB_F64 ? x : (double)(float)x;
}

static void *grow(uint64_t n, size_t each)
{
    void *p = calloc(n, each);

    assert_non_null(p);
    return p;
}

/* Draw the elements of a push: in their dtype, and as numbers. */
static void draw(const struct plain *p, uint32_t number, void *wire, double *as,
                 int64_t *as_int)
{
    struct trib_rng rng = {.seed = 7, .step = number};

    for (uint64_t k = 0; k < p->count; k++) {
        const uint32_t u = draw_u32(rng, (uint32_t)k);
        as[k] = round_to(TRIB_F32, (double)(int32_t)u / 2147483648.0);
        as_int[k] = (int64_t)(((uint64_t)u << 32) ^ (u * UINT64_C(2654435761)));
    }
    if (p->dtype == TRIB_F64) {
        memcpy(wire, as, p->count * sizeof(*as));
    } else if (trib_dtype_is_float(p->dtype)) {
        float *f = grow(p->count, sizeof(*f));
        for (uint64_t k = 0; k < p->count; k++)
            f[k] = (float)as[k];
        kernels->from_f32[p->dtype](wire, f, p->count);
        kernels->to_f32[p->dtype](f, wire, p->count);
        for (uint64_t k = 0; k < p->count; k++)
            as[k] = f[k];
        free(f);
    } else {
        for (uint64_t k = 0; k < p->count; k++)
            memcpy((uint8_t *)wire + k * trib_dtype_size(p->dtype), &as_int[k],
                   trib_dtype_size(p->dtype));
    }
}

/* The rules, implemented in the simplest way. */
static void push_plain(struct plain *p, const char *rule, double rate, uint64_t step,
                       double *g, const int64_t *gi)
{
    const trib_dtype_t d = p->dtype;

    for (uint64_t k = 0; k < p->count; k++) {
        if (p->listed && !p->listed[k])
            continue; /* a sparse push leaves it unchanged, with its state */
        if (!trib_dtype_is_float(d)) {
            p->i[k] = (int64_t)((uint64_t)p->i[k] + (uint64_t)gi[k]);
        } else if (strncmp(rule, "sum", 3) == 0) {
            p->x[k] = round_to(d, p->x[k] + g[k]);
        } else if (strncmp(rule, "sgd", 3) == 0) {
            const bool nesterov = strstr(rule, "nesterov=1");
            const double a = g[k] + 0.125 * p->x[k], v = 0.5 * p->v[k] + a;
            p->v[k] = round_to(d, v);
            p->x[k] = round_to(d, p->x[k] - rate * (nesterov ? a + 0.5 * v : v));
        } else if (strncmp(rule, "adam", 4) == 0) {
            const double m = 0.75 * p->m[k] + (1 - 0.75) * g[k];
            const double v = 0.5 * p->v[k] + (1 - 0.5) * g[k] * g[k];
            const double up = m / (1 - pow(0.75, (double)step));
            const double down = sqrt(v / (1 - pow(0.5, (double)step))) + 1e-3;
            p->x[k] = round_to(d, (1 - rate * 0.25) * p->x[k] - rate * up / down);
            p->m[k] = round_to(d, m);
            p->v[k] = round_to(d, v);
        } else {
            const double moved = 0.25 * (g[k] - p->x[k]);
            p->x[k] = round_to(d, p->x[k] + moved);
            g[k] = round_to(d, g[k] - moved);
        }
    }
}

/* Move the listed elements to the beginning. Return their number. */
static uint64_t keep_listed(const struct plain *p, void *wire)
{
    const size_t each = trib_dtype_size(p->dtype);
    uint8_t *bytes = wire;
    uint64_t n = 0;

    for (uint64_t k = 0; k < p->count; k++)
        if (!p->listed || p->listed[k])
            memmove(bytes + n++ * each, bytes + k * each, each);
    return n;
}

/* Check the listed elements as received. */
static void expect(const struct plain *p, const double *x, const int64_t *i,
                   const void *wire)
{
    const size_t each = trib_dtype_size(p->dtype);
    uint8_t *right = grow(p->count, each);

    if (p->dtype == TRIB_F64) {
        memcpy(right, x, p->count * each);
    } else if (trib_dtype_is_float(p->dtype)) {
        float *f = grow(p->count, sizeof(*f));
        for (uint64_t k = 0; k < p->count; k++)
            f[k] = (float)x[k];
        kernels->from_f32[p->dtype](right, f, p->count);
        free(f);
    } else {
        for (uint64_t k = 0; k < p->count; k++)
            memcpy(right + k * each, &i[k], each);
    }
    assert_memory_equal(right, wire, keep_listed(p, right) * each);
    free(right);
}

struct scene {
    const char *rule;
    double rate; /* as in the text */
};

static const struct scene scenes[] = {
    {"sum", 0},
    {"sgd:rate=0.5,momentum=0.5,decay=0.125", 0.5},
    {"sgd:momentum=0.5,nesterov=1,rate=0.5,decay=0.125", 0.5},
    {"adam:rate=0.125,beta1=0.75,beta2=0.5,eps=0.001,decay=0.25", 0.125},
    {"elastic:pull=0.25", 0},
};

/* Draw a list of indices for push n: none, all, the last one, or a third of them. */
static uint64_t list(const struct plain *p, uint32_t n, bool *listed, uint32_t *indices)
{
    const struct trib_rng rng = {.seed = 8, .step = n};
    uint64_t count = 0;

    for (uint64_t k = 0; k < p->count; k++) {
        listed[k] = n % 6 == 0   ? false
                    : n % 6 == 1 ? true
                    : n % 6 == 2 ? k + 1 == p->count
                                 : draw_u32(rng, (uint32_t)k) % 3 == 0;
        if (listed[k])
            indices[count++] = (uint32_t)k;
    }
    return count;
}

static void check(const struct scene *scene, trib_dtype_t dtype, uint64_t count,
                  bool sparse)
{
    const struct trib_store_spec spec = {"x", dtype, count, scene->rule};
    struct plain p = {
        dtype,          count, grow(count, 8), grow(count, 8), grow(count, 8),
        grow(count, 8), NULL};
    bool *listed = grow(count, sizeof(*listed));
    uint32_t *indices = grow(count, sizeof(*indices));
    uint8_t *wire = grow(count, 8), *out = grow(count, 8);
    double *g = grow(count, 8);
    int64_t *gi = grow(count, 8);
    struct trib_store_table *table;
    struct trib_error err = {0};
    struct trib_store_found found;

    assert_ok(trib_store_table_create(RANKS, NULL, &table));
    assert_ok(trib_store_table_open(table, &spec, &err, &found));
    draw(&p, 99, wire, p.x, p.i);
    assert_ok(trib_store_set(table, found.vector, wire, NULL, &err));
    struct trib_store_range range = {.vector = found.vector};
    for (uint32_t n = 0; n < PUSHES; n++) {
        const bool rated = scene->rate > 0 && n % 3 == 2;
        struct trib_store_table_push push = {.rank = n % RANKS,
                                             .number = n / RANKS + 1,
                                             .rate = rated ? 0.0625 : 0,
                                             .data = wire,
                                             .gives = n % 2};
        draw(&p, n, wire, g, gi);
        if (sparse) {
            push.indices = (const uint8_t *)indices;
            push.count = list(&p, n, listed, indices);
            p.listed = listed;
            assert_int_equal(keep_listed(&p, wire), push.count);
        }
        assert_ok(trib_store_table_push(table, found.vector, &push, NULL, &err));
        push_plain(&p, scene->rule, rated ? 0.0625 : scene->rate, n + 1, g, gi);
        if (push.gives)
            expect(&p, strncmp(scene->rule, "elastic", 7) ? p.x : g, p.i, wire);
        if (n % 4 == 0) { /* the push is repeated */
            assert_ok(trib_store_table_push(table, found.vector, &push, NULL, &err));
        }
        assert_int_equal(trib_store_version(table, found.vector), n + 1);
        assert_int_equal(trib_store_clock(table, found.vector, n % RANKS),
                         n / RANKS + 1);
        if (sparse) {
            range.indices = push.indices;
            range.count = push.count;
            (void)trib_store_read(table, &range, NULL, out);
            expect(&p, p.x, p.i, out);
        }
        p.listed = NULL;
        range = (struct trib_store_range){.vector = found.vector, .count = count};
        (void)trib_store_read(table, &range, NULL, out);
        expect(&p, p.x, p.i, out);
    }
    const uint64_t first = count / 3, part = count - first - count / 5;
    const size_t each = trib_dtype_size(dtype);
    range = (struct trib_store_range){found.vector, first, part, NULL};
    (void)trib_store_read(table, &range, NULL, wire);
    assert_memory_equal(wire, out + first * each, part * each);
    trib_store_table_destroy(table);
    void *const all[] = {p.x, p.v, p.m, p.i, wire, out, g, gi, listed, indices};
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        free(all[i]);
}

TEST(test_rules)
{
    for (size_t s = 0; s < sizeof(scenes) / sizeof(*scenes); s++)
        for (int dtype = 0; dtype < TRIB_DTYPE_COUNT; dtype++)
            for (size_t c = 0; c < sizeof(counts) / sizeof(*counts); c++)
                if (dtype != TRIB_BOOL &&
                    (s == 0 || trib_dtype_is_float((trib_dtype_t)dtype)))
                    for (int sparse = 0; sparse < 2; sparse++)
                        check(&scenes[s], (trib_dtype_t)dtype, counts[c], sparse);
}

/* The answer to a repeated elastic push uses the current centre. */
TEST(test_again)
{
    const struct trib_store_spec spec = {"c", TRIB_F32, 1, "elastic:pull=0.5"};
    float x = 8;
    struct trib_store_table_push push = {
        .rank = 1, .number = 1, .data = &x, .gives = true};
    struct trib_store_table *table;
    struct trib_store_found found;

    assert_ok(trib_store_table_create(RANKS, NULL, &table));
    assert_ok(trib_store_table_open(table, &spec, NULL, &found));
    assert_ok(trib_store_table_push(table, found.vector, &push, NULL, NULL));
    assert_true(x == 4);
    x = 8;
    assert_ok(trib_store_table_push(table, found.vector, &push, NULL, NULL));
    const struct trib_store_range one = {.vector = found.vector, .count = 1};
    assert_true(x == 6); /* halfway to the centre, which is 4 */
    (void)trib_store_read(table, &one, NULL, &x);
    assert_true(x == 4);
    trib_store_table_destroy(table);
}

static void refused(struct trib_store_table *table, const struct trib_store_spec *spec,
                    trib_status_t status, const char *words)
{
    struct trib_error err = {0};
    struct trib_store_found found;

    assert_status(trib_store_table_open(table, spec, &err, &found), status);
    assert_non_null(strstr(err.text, words));
}

TEST(test_refused)
{
    const struct trib_store_spec good = {"x", TRIB_F32, 4, "sum"};
    struct trib_store_spec s = good;
    struct trib_store_table *table;
    struct trib_error err = {0};
    float data[4] = {1, 2, 3, 4};
    struct trib_store_table_push push = {.rank = 2, .number = 2, .data = data};
    struct trib_store_found found;

    assert_ok(trib_store_table_create(RANKS, NULL, &table));
    assert_ok(trib_store_table_open(table, &good, NULL, &found));
    s.count = 5;
    refused(table, &s, TRIB_ERR_MISMATCH, "exists with 4 elements of f32");
    s = (struct trib_store_spec){"y", TRIB_BOOL, 4, "sum"};
    refused(table, &s, TRIB_ERR_INVALID, "a store supports numbers");
    s = (struct trib_store_spec){"y", (trib_dtype_t)200, 4, "sum"};
    refused(table, &s, TRIB_ERR_INVALID, "a store supports numbers");
    s = (struct trib_store_spec){"y", TRIB_I32, 4, "sgd:rate=1"};
    refused(table, &s, TRIB_ERR_INVALID, "rule sgd requires floats, not i32");
    assert_status(trib_store_table_push(table, found.vector, &push, NULL, &err),
                  TRIB_ERR_PROTOCOL);
    trib_error_clear(&err);
    push = (struct trib_store_table_push){
        .rank = 2, .number = 1, .rate = 0.1, .data = data};
    assert_status(trib_store_table_push(table, found.vector, &push, NULL, &err),
                  TRIB_ERR_INVALID);
    assert_non_null(strstr(err.text, "no rate"));
    push.rate = NAN;
    assert_status(trib_store_table_push(table, found.vector, &push, NULL, NULL),
                  TRIB_ERR_INVALID);
    assert_int_equal(trib_store_version(table, found.vector), 0);
    push.rate = 0;
    assert_ok(trib_store_table_push(table, found.vector, &push, NULL, NULL));
    assert_status(trib_store_set(table, found.vector, data, NULL, NULL), TRIB_ERR_BUSY);
    assert_int_equal(trib_store_table_size(table), 1);
    trib_store_table_destroy(table);
}

TEST(test_rule_texts)
{
    static const char *const wrong[][2] = {
        {"", "there is no \"\", only sum, sgd, adam, elastic"},
        {"smu", "did you mean \"sum\""},
        {"sum:rate=1", "sum has no parameters, only sgd, adam, elastic have"},
        {"sgd", "requires rate, such as \"sgd:rate=0.1\""},
        {"sgd:rate=0", "rate is \"0\", it must be a number above 0"},
        {"sgd:rate=nan", "it must be"},
        {"sgd:rate", "rate has no value"},
        {"sgd:rate=1,rate=2", "given twice"},
        {"sgd:rate=1,momentm=0.5", "did you mean \"momentum\""},
        {"sgd:rate=1,momentum=1", "below 1"},
        {"sgd:rate=1,nesterov=2", "0 or 1"},
        {"adam:rate=1,beta1=1e9", "below 1"},
        {"elastic:pull=1.5", "at most 1"},
        {"elastic:pull=0.5,", "no parameter \"\""},
    };
    struct trib_store_rule rule;
    char longer[TRIB_STORE_RULE_TEXT_MAX + 2];

    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        struct trib_error err = {0};
        assert_status(trib_store_rule_parse(wrong[i][0], &err, &rule),
                      TRIB_ERR_INVALID);
        if (!strstr(err.text, wrong[i][1]))
            fail_msg("%s: %s", wrong[i][0], err.text);
    }
    memset(longer, 'x', sizeof(longer));
    longer[sizeof(longer) - 1] = 0;
    assert_status(trib_store_rule_parse(longer, NULL, &rule), TRIB_ERR_INVALID);
    assert_ok(trib_store_rule_parse("adam:rate=0.5,eps=1", NULL, &rule));
    assert_true(rule.param[TRIB_ADAM_BETA2] == 0.999 && rule.param[TRIB_ADAM_EPS] == 1);
}

TEST(test_quota)
{
    const struct trib_store_spec spec = {"x", TRIB_F32, 1000, "adam:rate=1"};
    const struct trib_store_spec more = {"y", TRIB_F32, 1000, "adam:rate=1"};
    const struct trib_store_spec most = {"z", TRIB_F64, TRIB_CONTROL_COUNT_MAX, "sum"};
    struct trib_quota quota = {.most = 20000};
    struct trib_store_table *table;
    struct trib_store_found found;

    assert_ok(trib_store_table_create(RANKS, &quota, &table));
    assert_ok(trib_store_table_open(table, &spec, NULL, &found));
    assert_in_range(trib_quota_held_mt(&quota), 12000, 13000);
    refused(table, &more, TRIB_ERR_NO_RESOURCE, "more than the job, its user or");
    refused(table, &most, TRIB_ERR_NO_RESOURCE, "more than the job, its user or");
    assert_in_range(trib_quota_held_mt(&quota), 12000, 13000);
    trib_store_table_destroy(table);
    assert_int_equal(trib_quota_held_mt(&quota), 0);
}

/* Ranks in step -------------------------------------------------------------------- */

struct stepper {
    struct trib_store_table *table;
    uint32_t rank;
    uint32_t too_early; /* reads that returned fewer pushes than all ranks had made */
};

enum { STEPS = 3000 };

/* Push, then wait until no rank has fewer pushes, like a pull with staleness 0. */
static void *push_in_step(void *arg)
{
    struct stepper *s = arg;

    for (uint64_t n = 1; n <= STEPS; n++) {
        const struct trib_store_range first = {.count = 1};
        int32_t one = 1, x;
        struct trib_store_table_push push = {
            .rank = s->rank, .number = n, .data = &one};
        struct trib_error err = {0};
        if (trib_store_table_push(s->table, 0, &push, NULL, &err) != TRIB_OK)
            return NULL;
        while (trib_store_lead(s->table, 0, s->rank).least < n)
            sched_yield();
        s->too_early += trib_store_read(s->table, &first, NULL, &x) < RANKS * n;
        s->too_early += (uint64_t)x < RANKS * n;
    }
    return arg;
}

/* The slowest rank catches up while another rank still lags: a pull waits for both. */
TEST(test_in_step)
{
    const struct trib_store_spec spec = {"step", TRIB_I32, 1, "sum"};
    struct trib_store_table *table;
    struct trib_store_found found;
    struct stepper s[RANKS];
    pthread_t threads[RANKS];
    void *done;

    assert_ok(trib_store_table_create(RANKS, NULL, &table));
    assert_ok(trib_store_table_open(table, &spec, NULL, &found));
    for (uint32_t r = 0; r < RANKS; r++) {
        s[r] = (struct stepper){table, r, 0};
        assert_int_equal(pthread_create(&threads[r], NULL, push_in_step, &s[r]), 0);
    }
    for (uint32_t r = 0; r < RANKS; r++) {
        assert_int_equal(pthread_join(threads[r], &done), 0);
        assert_non_null(done);
        assert_int_equal(s[r].too_early, 0);
    }
    trib_store_table_destroy(table);
}

/* Ticks ---------------------------------------------------------------------------- */

enum { LONG = 20 * TRIB_STORE_STRIPE, TICKS = 2 };

static void count_tick(void *arg, uint64_t walk_ns)
{
    assert_true(walk_ns > 0);
    ++*(int *)arg;
}

static void ticked(int *n)
{
    assert_true(*n >= TICKS);
    *n = 0;
}

/* Each long piece of work ticks, so that connections stay alive, and others get their
 * turns. */
TEST(test_ticks)
{
    const struct trib_store_spec spec = {"x", TRIB_U8, LONG, "sum"};
    uint8_t *x = calloc(LONG, 1);
    uint32_t *indices = calloc(LONG, sizeof(*indices));
    int n = 0;
    const struct trib_store_tick tick = {count_tick, &n};
    struct trib_store_table_push push = {.number = 1, .data = x};
    struct trib_store_range range = {.count = LONG};
    struct trib_store_table *table;
    struct trib_store_image image;
    struct trib_store_found found;

    assert_true(x && indices);
    assert_ok(trib_store_table_create(RANKS, NULL, &table));
    assert_ok(trib_store_table_open(table, &spec, NULL, &found));
    assert_ok(trib_store_set(table, 0, x, &tick, NULL));
    ticked(&n);
    assert_ok(trib_store_table_push(table, 0, &push, &tick, NULL));
    ticked(&n);
    (void)trib_store_read(table, &range, &tick, x);
    ticked(&n);
    range.indices = (const uint8_t *)indices;
    (void)trib_store_read(table, &range, &tick, x);
    ticked(&n);
    trib_store_replace(table, 0, x, 7, &tick);
    ticked(&n);
    trib_store_image(table, 0, &image);
    image.value = x;
    assert_ok(trib_store_put(table, 0, &image, &tick, NULL));
    ticked(&n);
    trib_store_table_destroy(table);
    free(indices);
    free(x);
}

int main(void)
{
    kernels = trib_kernels_get("c");
    return tribtest_run();
}
