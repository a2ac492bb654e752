/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The residual of a plan, read and written by range: nothing is lost when a vector is
 * cut into others, and the next start sends a written residual.
 */
#include "tests/harness/tribtest.h"

#include "build-config.h"
#include "comm/core/plan_struct.h"
#include "tests/agg/client/aggregators.h"
#include "tests/harness/ranks.h"

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static trib_plan_t *make(struct ranks_self *self, size_t count, const char *codec,
                         const char *feedback)
{
    return ranks_plan(self, TRIB_ALLREDUCE, .count = count, .codec = codec,
                      .feedback = feedback);
}

static void start(struct ranks_self *self, trib_plan_t *plan, float *x)
{
    ranks_ok(self, trib_plan_start_with(plan, NULL, x));
    ranks_ok(self, trib_plan_wait(plan));
}

static float value(int rank, size_t i)
{
    return (float)((int)(i * 2654435761u >> 20) % 2000 - 1000 + rank);
}

/* Add the residuals of all ranks to x: together with the sums, they equal the
 * inputs. */
static void add_residuals(struct ranks_self *self, const float *r, float *x, size_t n)
{
    float *all = malloc(n * sizeof(*all));

    ranks_assert(self, all);
    memcpy(all, r, n * sizeof(*all));
    trib_plan_t *plan = make(self, n, "none", NULL);
    start(self, plan, all);
    for (size_t i = 0; i < n; i++)
        x[i] += all[i];
    ranks_ok(self, trib_plan_free(plan));
    free(all);
}

/* One vector of n is split into two at `cut`; elements are integers, so that sums are
 * exact. */
static void move(struct ranks_self *self, size_t n, size_t cut, const char *codec)
{
    float *x = calloc(n, sizeof(*x)), *r = malloc(n * sizeof(*r));
    trib_plan_t *whole = make(self, n, codec, NULL);
    trib_plan_t *part[2] = {make(self, cut, codec, NULL),
                            make(self, n - cut, codec, NULL)};
    const size_t first[2] = {0, cut}, count[2] = {cut, n - cut};
    size_t held = 0;

    ranks_assert(self, x && r);
    ranks_ok(self, trib_plan_residual_get(whole, 0, n, r));
    for (size_t i = 0; i < n; i++) {
        ranks_assert(self, r[i] == 0);
        x[i] = value(self->rank, i);
    }
    start(self, whole, x);
    ranks_ok(self, trib_plan_residual_get(whole, 0, n, r));
    add_residuals(self, r, x, n);
    for (size_t i = 0; i < n; i++) {
        float sum = 0;
        for (int k = 0; k < self->size; k++)
            sum += value(k, i);
        ranks_assert(self, x[i] == sum);
        held += r[i] != 0;
    }
    ranks_assert(self, held > n / 2);
    for (int p = 0; p < 2; p++) {
        float *y = x + first[p];
        float *again = malloc(count[p] * sizeof(*again) + 1);
        ranks_ok(self, trib_plan_residual_get(whole, first[p], count[p], again));
        ranks_ok(self, trib_plan_residual_set(part[p], 0, count[p], again));
        memset(y, 0, count[p] * sizeof(*y));
        start(self, part[p], y); /* only the residual */
        ranks_ok(self, trib_plan_residual_get(part[p], 0, count[p], again));
        add_residuals(self, again, y, count[p]);
        add_residuals(self, r + first[p],
                      (memset(again, 0, count[p] * sizeof(*again)), again), count[p]);
        for (size_t i = 0; i < count[p]; i++)
            ranks_assert(self, y[i] == again[i]);
        free(again);
        ranks_ok(self, trib_plan_free(part[p]));
    }
    ranks_ok(self, trib_plan_free(whole));
    free(x);
    free(r);
}

RANKS_TEST_ON(test_moves, ("shm", "tcp", IF_UCX("ucx")), .size = 3)
{
    static const size_t sizes[] = {1023, 4097, 100003};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        move(self, sizes[i], sizes[i] / 3, "topk:ratio=0.05");
        move(self, sizes[i], 1, "randomk:ratio=0.1");
    }
    return 0;
}

/* A plan with the residual of another one continues with the same bits. */
RANKS_TEST_ON(test_same_bits, ("shm"), .size = 2)
{
    enum { N = 5000 };
    static float x[N], y[N], r[N];
    trib_plan_t *a = make(self, N, "topk:ratio=0.01", NULL);
    trib_plan_t *b = make(self, N, "topk:ratio=0.01", NULL);

    for (int step = 0; step < 4; step++) {
        for (size_t i = 0; i < N; i++)
            x[i] = y[i] = value(self->rank + step, i) / 7;
        start(self, a, x);
        start(self, b, y);
        ranks_assert(self, memcmp(x, y, sizeof(x)) == 0);
        ranks_ok(self, trib_plan_residual_get(a, 0, N, r));
        trib_plan_free(b);
        b = make(self, N, "topk:ratio=0.01", NULL);
        for (size_t at = 0; at < N; at += 1000)
            ranks_ok(self, trib_plan_residual_set(b, at, 1000, r + at));
    }
    ranks_ok(self, trib_plan_free(a));
    ranks_ok(self, trib_plan_free(b));
    return 0;
}

/* A single rank also sends the residual written to it. */
static int alone(struct ranks_self *self)
{
    enum { N = 2000 };
    static float x[N], r[N];
    trib_plan_t *plan = make(self, N, "topk:ratio=0.01", NULL);

    r[17] = 5;
    ranks_ok(self, trib_plan_residual_set(plan, 0, N, r));
    start(self, plan, x);
    ranks_assert(self, x[17] == 5);
    ranks_ok(self, trib_plan_residual_get(plan, 17, 1, r));
    ranks_assert(self, r[0] == 0);
    ranks_ok(self, trib_plan_free(plan));
    return 0;
}

TEST_ON(test_alone, "shm")
{
    ranks_pass(.size = 1, .fn = alone, .config = *state);
}

/* Aggregators sum, and each rank keeps its residual, as without them. */
static int with_aggregators(struct ranks_self *whole)
{
    enum { N = 3000 };
    static float x[N], y[N], r[N], none[N];
    struct ranks_self ours = *whole, *self = &ours;

    self->comm = aggregators_attach(whole, whole->arg);
    if (!self->comm)
        return 0;
    self->size = trib_size(self->comm);
    trib_plan_t *plan = make(self, N, "topk:ratio=0.05", NULL);
    for (size_t i = 0; i < N; i++)
        x[i] = value(self->rank, i);
    start(self, plan, x);
    ranks_ok(self, trib_plan_residual_get(plan, 0, N, r));
    memcpy(y, r, sizeof(y));
    add_residuals(self, r, x, N);
    for (size_t i = 0; i < N; i++) {
        float sum = 0;
        for (int k = 0; k < self->size; k++)
            sum += value(k, i);
        ranks_assert(self, x[i] == sum);
    }
    ranks_ok(self, trib_plan_residual_set(plan, 0, N, none));
    memset(x, 0, sizeof(x));
    start(self, plan, x);
    ranks_assert(self, memcmp(x, none, sizeof(x)) == 0);
    ranks_ok(self, trib_plan_residual_set(plan, 0, N, y));
    ranks_ok(self, trib_plan_residual_get(plan, 0, N, r));
    ranks_assert(self, memcmp(y, r, sizeof(y)) == 0);
    ranks_ok(self, trib_plan_free(plan));
    aggregators_leave(whole, whole->arg, self->comm);
    return 0;
}

TEST_ON(test_with_aggregators, "shm")
{
    struct aggregators s = {.ranks = 2, .n = 1};

    aggregators_run(
        &s, (struct ranks_job){.fn = with_aggregators, .config = *state, .arg = &s});
}

static void refuses(struct ranks_self *self, trib_status_t status, trib_status_t wanted,
                    const char *const *words)
{
    ranks_expect(self, status, wanted, "the residual");
    if (!ranks_has(trib_last_error(self->comm), words))
        ranks_die(self, "%s", trib_last_error(self->comm));
}

RANKS_TEST_ON(test_refused, ("shm"), .size = 2)
{
    float r[10] = {0}, x[2000] = {0};
    trib_plan_t *dense = make(self, 2000, "none", NULL);
    trib_plan_t *kept = make(self, 2000, "topk:ratio=0.1", NULL);
    trib_plan_t *without = make(self, 2000, "topk:ratio=0.1", "none");

    refuses(self, trib_plan_residual_get(dense, 0, 10, r), TRIB_ERR_UNSUPPORTED,
            WORDS("trib_plan_residual_get", "no residual", "codec is none"));
    refuses(self, trib_plan_residual_set(without, 0, 10, r), TRIB_ERR_UNSUPPORTED,
            WORDS("trib_plan_residual_set", "topk", "feedback is none"));
    refuses(self, trib_plan_residual_get(kept, 1995, 10, r), TRIB_ERR_INVALID,
            WORDS("elements 1995 to 2005", "2000"));
    refuses(self, trib_plan_residual_get(kept, SIZE_MAX, 2, r), TRIB_ERR_INVALID,
            WORDS("outside a residual of 2000"));
    ranks_expect(self, trib_plan_residual_get(kept, 0, 10, NULL), TRIB_ERR_INVALID, "");
    ranks_expect(self, trib_plan_residual_get(NULL, 0, 10, r), TRIB_ERR_INVALID, "");
    ranks_ok(self, trib_plan_residual_get(kept, 2000, 0, NULL));
    ranks_ok(self, trib_barrier(self->comm));
    if (self->rank == 0) { /* the other rank starts after its signal */
        ranks_ok(self, trib_plan_start_with(kept, NULL, x));
        refuses(self, trib_plan_residual_get(kept, 0, 10, r), TRIB_ERR_BUSY,
                WORDS("trib_plan_residual_get", "still running"));
        ranks_ok(self, trib_plan_wait(kept));
    } else {
        const struct timespec late = {0, 200000000};
        nanosleep(&late, NULL);
        start(self, kept, x);
    }
    ranks_ok(self, trib_plan_free(dense));
    ranks_ok(self, trib_plan_free(kept));
    ranks_ok(self, trib_plan_free(without));
    return 0;
}
