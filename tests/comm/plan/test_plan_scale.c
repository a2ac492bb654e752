/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scales of plans compared with a sum in double: prescale, postscale and weighted means
 * of each reducing collective, each dtype, feed and codec, in place and not, over
 * starts with different scales, and the same bits on all ranks.
 */
#include <math.h>

#include "compress/kernels/kernels.h"
#include "tests/harness/ranks.h"

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

enum { STARTS = 4 };

struct scene {
    trib_coll_t coll;
    trib_dtype_t dtype;
    size_t count;
    bool weighted;
    bool mean;
    bool counted; /* a reduce-scatter of different blocks, with gaps between them */
    trib_feed_t feed;
    const char *codec;
};

static const struct trib_kernels *kernels;

/* Return the input of rank r as element i of start k, and its scale. */
static double given(int r, size_t i, int k)
{
    return (double)((i * 7 + (size_t)(r * 3 + k)) % 11) - 5;
}

static double prescale(int r, int k)
{
    return k == 3 && r == 0 ? 0 : 0.3 + r + 0.5 * k;
}

static double postscale(int k)
{
    return k == 1 ? 1 : 0.75 - 0.25 * k;
}

static double rounding(trib_dtype_t dtype)
{
    return dtype == TRIB_F64       ? 0x1p-50
           : dtype == TRIB_F32     ? 0x1p-22
           : dtype == TRIB_F16     ? 0x1p-9
           : dtype == TRIB_BF16    ? 0x1p-6
           : dtype == TRIB_F8_E4M3 ? 0x1p-2
                                   : 0x1p-1;
}

/* Return the length of the block of rank r, and its place in the input. */
static size_t block_length(const struct scene *s, int r)
{
    return !s->counted ? s->count : r == 1 ? 0 : s->count - 7 * (size_t)r;
}

static size_t block_place(const struct scene *s, int r)
{
    size_t at = s->counted ? 1 : 0;

    for (int before = 0; before < r; before++)
        at += block_length(s, before) + (s->counted ? (size_t)before : 0);
    return at;
}

static void put(trib_dtype_t dtype, char *at, double v)
{
    const float f = (float)v;

    if (dtype == TRIB_F64)
        memcpy(at, &v, sizeof(v));
    else
        kernels->from_f32[dtype](at, &f, 1);
}

static double get(trib_dtype_t dtype, const char *at)
{
    double v;
    float f;

    if (dtype != TRIB_F64) {
        kernels->to_f32[dtype](&f, at, 1);
        return (double)f;
    }
    memcpy(&v, at, sizeof(v));
    return v;
}

static double weight_sum(const struct ranks_self *self, int k)
{
    double sum = 0;

    for (int r = 0; r < self->size; r++)
        sum += prescale(r, k);
    return sum > 0 ? sum : 1; /* without any weight nothing is divided */
}

/* Return element i of the vector that all ranks sum, and the tolerance of a result. */
static double expected(const struct ranks_self *self, const struct scene *s, size_t i,
                       int k, double *off)
{
    const int first = 0, last = s->coll == TRIB_SCAN     ? self->rank
                                : s->coll == TRIB_EXSCAN ? self->rank - 1
                                                         : self->size - 1;
    const double by = s->weighted ? weight_sum(self, k) : s->mean ? self->size : 1;
    double sum = 0, magnitudes = 0;

    for (int r = first; r <= last; r++) {
        sum += prescale(r, k) * given(r, i, k);
        magnitudes += fabs(prescale(r, k) * given(r, i, k));
    }
    *off = (self->size + 3) * magnitudes * fabs(postscale(k)) / by * rounding(s->dtype);
    return sum * postscale(k) / by;
}

static void check(struct ranks_self *self, const struct scene *s, const char *result,
                  int k)
{
    const bool block = s->coll == TRIB_REDUCE_SCATTER;
    const size_t at = block ? block_place(s, self->rank) : 0;
    const size_t count = block ? block_length(s, self->rank) : s->count;
    const size_t element = trib_dtype_size(s->dtype);
    double off;

    for (size_t i = 0; i < count; i++) {
        const double want = expected(self, s, at + i, k, &off);
        const double got = get(s->dtype, result + i * element);
        if (!(fabs(got - want) <= off))
            ranks_die(self, "%s %s, start %d, element %zu: %g, not %g",
                      trib_coll_name(s->coll), trib_dtype_name(s->dtype), k, i, got,
                      want);
    }
}

/* Check that all ranks have the same bytes. */
static void check_bits(struct ranks_self *self, const char *result, size_t bytes)
{
    char *all = malloc(bytes * (size_t)self->size + 1);

    ranks_assert(self, all);
    ranks_ok(self, trib_allgather(self->comm, result, all, bytes, TRIB_U8));
    for (int r = 0; r < self->size; r++)
        ranks_assert(self, memcmp(all + (size_t)r * bytes, result, bytes) == 0);
    free(all);
}

static void feed(struct ranks_self *self, const struct scene *s, trib_plan_t *plan)
{
    const size_t part = s->count / 5;

    for (size_t i = 0; s->feed && i < 5; i++) {
        const size_t which = s->feed == TRIB_FEED_FORWARD ? i : 4 - i;
        ranks_ok(self, trib_plan_ready(plan, which * part,
                                       which < 4 ? part : s->count - 4 * part));
    }
}

/* Check the data that a start must not change. */
static void check_kept(struct ranks_self *self, const struct scene *s, const char *send,
                       const char *recv, bool in_place, int k)
{
    const size_t element = trib_dtype_size(s->dtype);
    char want[sizeof(double)];

    for (size_t i = 0; i < s->count && !in_place; i++) {
        put(s->dtype, want, given(self->rank, i, k));
        ranks_assert(self, memcmp(send + i * element, want, element) == 0);
    }
    if (s->coll == TRIB_EXSCAN && self->rank == 0 && s->count && !in_place)
        ranks_assert(self, recv[0] == 77);
}

static void one_start(struct ranks_self *self, const struct scene *s, trib_plan_t *plan,
                      char *const *buffer, int k)
{
    const size_t element = trib_dtype_size(s->dtype);
    const size_t inputs =
        s->coll == TRIB_REDUCE_SCATTER ? block_place(s, self->size) : s->count;
    const bool in_place = k % 2;
    char *send = buffer[0], *recv = in_place ? send : buffer[1];

    for (size_t i = 0; i < inputs; i++)
        put(s->dtype, send + i * element, given(self->rank, i, k));
    if (!in_place)
        memset(recv, 77, s->count * element);
    ranks_ok(self, trib_plan_set_scale(plan, prescale(self->rank, k), postscale(k)));
    ranks_ok(self, trib_plan_start_with(plan, in_place ? NULL : send, recv));
    feed(self, s, plan);
    while (k == 2 && trib_plan_test(plan) == TRIB_INPROGRESS)
        ;
    ranks_ok(self, trib_plan_wait(plan));
    ranks_ok(self, trib_plan_wait(plan)); /* scales once */
    check_kept(self, s, send, recv, in_place, k);
    if (in_place && s->coll == TRIB_REDUCE_SCATTER)
        recv += block_place(s, self->rank) * element;
    if ((s->coll == TRIB_REDUCE && self->rank != self->size - 1) ||
        (s->coll == TRIB_EXSCAN && self->rank == 0))
        return;
    check(self, s, recv, k);
    if (s->coll == TRIB_ALLREDUCE)
        check_bits(self, recv, s->count * element);
}

/* The callback of trib_plan_notify gets scaled results. */
struct heard {
    const float *x;
    _Atomic int told;
    float got;
};

static void hear(void *arg, trib_status_t status)
{
    struct heard *h = arg;

    h->got = status == TRIB_OK ? h->x[99] : -1;
    h->told++;
}

static int notified(struct ranks_self *self)
{
    float x[100];
    struct heard h = {.x = x};

    trib_plan_t *plan = ranks_plan(self, TRIB_ALLREDUCE, .recv = x, .count = 100,
                                   .op = TRIB_MEAN, .weighted = 1, .postscale = 3);
    ranks_ok(self, trib_plan_notify(plan, hear, &h));
    for (int k = 1; k <= 20; k++) {
        for (int i = 0; i < 100; i++)
            x[i] = (float)(self->rank + 1);
        ranks_ok(self, trib_plan_set_scale(plan, self->rank == 1 ? 4 : 0, 3));
        ranks_ok(self, trib_plan_start(plan));
        while (k % 2 && h.told < k)
            sched_yield();
        ranks_ok(self, trib_plan_wait(plan));
        ranks_assert(self, h.told == k && h.got == 6 && x[0] == 6);
    }
    ranks_ok(self, trib_plan_free(plan));
    return 0;
}

TEST(test_notified)
{
    for (int tcp = 0; tcp < 2; tcp++)
        ranks_pass(.size = 3, .fn = notified,
                   .config = tcp ? "transport=tcp" : "transport=shm");
}

static int use(struct ranks_self *self)
{
    const struct scene *s = self->arg;
    const size_t bytes =
        ((s->count + 4) * (size_t)self->size + 1) * trib_dtype_size(s->dtype);
    char *const buffer[2] = {malloc(bytes), malloc(bytes)};
    size_t counts[4], offsets[4];

    ranks_assert(self, buffer[0] && buffer[1] && self->size <= 4);
    for (int r = 0; r < self->size; r++) {
        counts[r] = block_length(s, r);
        offsets[r] = block_place(s, r);
    }
    trib_plan_t *plan = ranks_plan(self, s->coll,
                                   .send_counts = s->counted ? counts : NULL,
                                   .send_offsets = s->counted ? offsets : NULL,
                                   .count = s->count, .dtype = s->dtype,
                                   .op = s->weighted || s->mean ? TRIB_MEAN : TRIB_SUM,
                                   .root = s->coll == TRIB_REDUCE ? self->size - 1 : 0,
                                   .codec = s->codec, .feed = s->feed, .prescale = 1,
                                   .weighted = s->weighted);
    for (int k = 0; k < STARTS; k++)
        one_start(self, s, plan, buffer, k);
    ranks_ok(self, trib_plan_free(plan));
    free(buffer[0]);
    free(buffer[1]);
    return 0;
}

static void run_on(const struct scene *s, int size)
{
    static const char *const transports[] = {"transport=shm", "transport=tcp",
                                             "transport=ucx"};

    for (size_t t = 0; t < (tribtest_slowness() > 1 ? 2 : 3); t++)
        ranks_pass(.size = size, .fn = use, .arg = (void *)(uintptr_t)s,
                   .config = transports[t]);
}

TEST(test_dtypes)
{
    static const trib_dtype_t dtypes[] = {TRIB_F32,  TRIB_F64,     TRIB_F16,
                                          TRIB_BF16, TRIB_F8_E4M3, TRIB_F8_E5M2};
    static const size_t counts[] = {1, 7, 1000, 30011, 0, 129};

    for (unsigned i = 0; i < 12; i++) {
        const struct scene s = {.dtype = dtypes[i % 6],
                                .count = counts[(i + i / 6) % 6],
                                .weighted = i / 6};
        run_on(&s, 1 + (int)(i % 4));
    }
}

TEST(test_collectives)
{
    static const struct scene scenes[] = {
        {.coll = TRIB_REDUCE, .count = 1001},
        {.coll = TRIB_REDUCE, .count = 33, .weighted = true},
        {.coll = TRIB_REDUCE_SCATTER, .count = 501},
        {.coll = TRIB_REDUCE_SCATTER, .count = 70, .weighted = true},
        {.coll = TRIB_REDUCE_SCATTER, .count = 40011, .counted = true},
        {.coll = TRIB_REDUCE_SCATTER, .count = 129, .weighted = true, .counted = true},
        {.coll = TRIB_SCAN, .count = 1001, .dtype = TRIB_F64},
        {.coll = TRIB_EXSCAN, .count = 1001},
        {.count = 1000, .mean = true},
    };

    for (unsigned i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
        run_on(&scenes[i], 2 + (int)(i % 3));
}

TEST(test_feeds_and_codecs)
{
    static const struct scene scenes[] = {
        {.count = 50000, .feed = TRIB_FEED_FORWARD},
        {.count = 50000, .feed = TRIB_FEED_BACKWARD, .weighted = true},
        {.count = 50000, .codec = "topk:ratio=1"},
        {.coll = TRIB_REDUCE, .count = 5000, .feed = TRIB_FEED_FORWARD},
    };

    for (unsigned i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
        run_on(&scenes[i], 2 + (int)(i % 2));
}

/* Scales of the description; and a mean without any weight is not divided. */
static int described(struct ranks_self *self)
{
    float x[3] = {1, 2, 3};
    trib_plan_t *plan;
    trib_desc_t d = sized(trib_desc_t, .recv = x, .count = 3,
                          .prescale = self->rank + 1, .postscale = 10);

    ranks_ok(self, trib_plan_allreduce(self->comm, &d, &plan));
    ranks_step(self, plan);
    ranks_assert(self, x[0] == 30 && x[1] == 60 && x[2] == 90);
    ranks_ok(self, trib_plan_free(plan));
    d.op = TRIB_MEAN;
    d.postscale = 0;
    d.weighted = 1;
    ranks_ok(self, trib_plan_allreduce(self->comm, &d, &plan));
    ranks_ok(self, trib_plan_set_scale(plan, 0, 1));
    ranks_step(self, plan);
    ranks_assert(self, x[0] == 0 && x[1] == 0 && x[2] == 0);
    ranks_ok(self, trib_plan_free(plan));
    return 0;
}

static void refused(struct ranks_self *self, trib_coll_t coll, const trib_desc_t *d,
                    trib_status_t expected, const char *const *words)
{
    trib_plan_t *plan;

    const trib_status_t st = trib_plan_create(self->comm, coll, d, &plan);
    if (st != expected || plan || !ranks_has(trib_last_error(self->comm), words))
        ranks_die(self, "%s: %s", trib_status_name(st), trib_last_error(self->comm));
}

RANKS_TEST(test_refusals, .size = 1)
{
    float x[3] = {1, 2, 3};
    trib_plan_t *plan;
    trib_desc_t d = sized(trib_desc_t, .recv = x, .count = 3);

    ranks_ok(self, trib_plan_allreduce(self->comm, &d, &plan));
    ranks_expect(self, trib_plan_set_scale(plan, 2, 1), TRIB_ERR_UNSUPPORTED, "none");
    ranks_ok(self, trib_plan_free(plan));
    d.prescale = 2;
    refused(self, TRIB_BROADCAST, &d, TRIB_ERR_UNSUPPORTED, WORDS("broadcast"));
    d.op = TRIB_MAX;
    refused(self, TRIB_ALLREDUCE, &d, TRIB_ERR_UNSUPPORTED, WORDS("by max"));
    d.op = TRIB_SUM;
    d.weighted = 1;
    refused(self, TRIB_ALLREDUCE, &d, TRIB_ERR_INVALID, WORDS("op mean"));
    d.op = TRIB_MEAN;
    d.quorum = "0.5,deadline=20ms";
    refused(self, TRIB_ALLREDUCE, &d, TRIB_ERR_UNSUPPORTED, WORDS("quorum"));
    d.quorum = NULL;
    d.prescale = -1;
    refused(self, TRIB_ALLREDUCE, &d, TRIB_ERR_INVALID, WORDS("0 or more"));
    d.prescale = (double)NAN;
    refused(self, TRIB_ALLREDUCE, &d, TRIB_ERR_INVALID, WORDS("finite"));
    d.prescale = 1;
    d.dtype = TRIB_I32;
    refused(self, TRIB_ALLREDUCE, &d, TRIB_ERR_UNSUPPORTED, WORDS("i32"));
    d.dtype = TRIB_F32;
    ranks_ok(self, trib_plan_allreduce(self->comm, &d, &plan));
    ranks_expect(self, trib_plan_set_scale(plan, -1, 1), TRIB_ERR_INVALID, "below 0");
    ranks_expect(self, trib_plan_set_scale(plan, 1, (double)INFINITY), TRIB_ERR_INVALID,
                 "not finite");
    ranks_ok(self, trib_plan_free(plan));
    ranks_assert(self, trib_plan_set_scale(NULL, 1, 1) == TRIB_ERR_INVALID);
    return 0;
}

/* Scales cannot change while the plan runs. */
static int busy(struct ranks_self *self)
{
    float x[10] = {1};

    trib_plan_t *plan = ranks_plan(self, TRIB_ALLREDUCE, .recv = x, .count = 10,
                                   .prescale = 2, .feed = TRIB_FEED_FORWARD);
    ranks_ok(self, trib_plan_start(plan));
    ranks_expect(self, trib_plan_set_scale(plan, 3, 1), TRIB_ERR_BUSY, "it runs");
    ranks_ok(self, trib_plan_ready(plan, 0, 10));
    ranks_ok(self, trib_plan_wait(plan));
    ranks_assert(self, x[0] == 2 * (float)self->size);
    ranks_ok(self, trib_plan_free(plan));
    return 0;
}

TEST(test_described)
{
    ranks_pass(.size = 2, .fn = described);
    ranks_pass(.size = 2, .fn = busy);
}

int main(void)
{
    kernels = trib_kernels_get(NULL);
    return tribtest_run();
}
