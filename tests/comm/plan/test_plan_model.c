/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All-reduces by codecs that learn: their guarantees for gradients with the structure
 * that they exploit, the same bits on all ranks, nothing lost with error feedback, and
 * a state that continues after saving; over algorithms, transports, numbers of ranks.
 */
#include "pipeline/payload/error_feedback.h"

#include <math.h>

#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "tests/comm/algorithms.h"
#include "tests/harness/ranks.h"

enum { COLUMNS = 48, DIRECTIONS = 3 };

struct scene {
    const char *codec;
    const char *algorithm;
    trib_op_t op;
    trib_feed_t feed;
    trib_dtype_t dtype;
    size_t count;
    size_t chunk;
    uint32_t steps;
    uint32_t exact_from; /* results equal the sums, up to rounding, from this step on;
                          * 0: never */
    bool loose;          /* gradients have no structure */
};

static uint32_t mixed(uint32_t a, uint32_t b)
{
    uint32_t h = a * 0x9e3779b9u ^ (b + 0x7f4a7c15u) * 0x85ebca6bu;

    h = (h ^ h >> 15) * 0x2c1b3c6du;
    return (h ^ h >> 13) * 0x297a2d39u;
}

/* Return a number in (-1, 1). */
static float number(uint32_t a, uint32_t b)
{
    return (float)((int32_t)mixed(a, b)) * 0x1p-31f;
}

/* Fill rows of COLUMNS elements, which are combinations of DIRECTIONS vectors, the same
 * for all. */
static void gradient(const struct scene *s, int rank, uint32_t step, float *x)
{
    for (size_t i = 0; i < s->count; i++) {
        const uint32_t row = (uint32_t)(i / COLUMNS), column = (uint32_t)(i % COLUMNS);
        const uint32_t who = (uint32_t)rank * 1000 + step;
        x[i] = s->loose ? number(who, (uint32_t)i) : 0.0f;
        for (uint32_t k = 0; !s->loose && k < DIRECTIONS; k++)
            x[i] += number(who * 8 + k, row) * number(77 + k, column);
    }
}

/* Compute the sum, or mean, over all ranks. Return its largest magnitude. */
static double expected(const struct scene *s, int size, uint32_t step, double *sum)
{
    float *x = calloc(s->count + 1, sizeof(*x));
    double most = 0;

    memset(sum, 0, s->count * sizeof(*sum));
    for (int r = 0; r < size; r++) {
        gradient(s, r, step, x);
        for (size_t i = 0; i < s->count; i++)
            sum[i] += (double)x[i] / (s->op == TRIB_MEAN ? size : 1);
    }
    for (size_t i = 0; i < s->count; i++)
        most = fmax(most, fabs(sum[i]));
    free(x);
    return most;
}

/* Return the rank of a matrix, which it destroys: count the rows that remain after
 * projecting out the earlier ones. */
static size_t rank_of(float *x, size_t rows, size_t columns)
{
    enum { MOST = 80 };
    size_t basis[MOST], rank = 0;

    for (size_t i = 0; i < rows && rank < MOST; i++) {
        float *row = x + i * columns;
        double before = 0, after = 0;
        for (size_t c = 0; c < columns; c++)
            before += (double)row[c] * (double)row[c];
        for (size_t b = 0; b < 2 * rank; b++) { /* twice: rounding */
            const float *q = x + basis[b % rank] * columns;
            double dot = 0, square = 0;
            for (size_t c = 0; c < columns; c++) {
                dot += (double)row[c] * (double)q[c];
                square += (double)q[c] * (double)q[c];
            }
            for (size_t c = 0; c < columns; c++)
                row[c] -= (float)(dot / square * (double)q[c]);
        }
        for (size_t c = 0; c < columns; c++)
            after += (double)row[c] * (double)row[c];
        if (after > 1e-8 * before)
            basis[rank++] = i;
    }
    return rank;
}

/* ---- one job --------------------------------------------------------------------- */

struct job {
    struct ranks_self *self;
    const struct scene *scene;
    trib_plan_t *plan;
    size_t n;
    size_t element;
    float *x;     /* contribution, result */
    void *vector; /* the same in the dtype of the plan */
    double *sum;
    double *given; /* sum of all inputs over steps and ranks, minus all results */
};

static void open_plan(struct job *j)
{
    const struct scene *s = j->scene;
    trib_desc_t d = TRIB_DESC_INIT;

    d.send = d.recv = j->vector;
    d.count = s->count;
    d.dtype = s->dtype;
    d.op = s->op;
    d.codec = s->codec;
    d.algorithm = s->algorithm;
    d.chunk = s->chunk;
    d.feed = s->feed;
    ranks_ok(j->self, trib_plan_create(j->self->comm, TRIB_ALLREDUCE, &d, &j->plan));
}

static void open_job(struct job *j, struct ranks_self *self)
{
    const struct scene *s = self->arg;

    *j = (struct job){.self = self, .scene = s, .n = s->count};
    j->element = trib_dtype_size(s->dtype);
    j->x = calloc(j->n + 1, sizeof(*j->x));
    j->vector = calloc(j->n + 1, j->element);
    j->sum = calloc(j->n + 1, sizeof(*j->sum));
    j->given = calloc(j->n + 1, sizeof(*j->given));
    open_plan(j);
}

static void close_job(struct job *j)
{
    ranks_ok(j->self, trib_plan_free(j->plan));
    free(j->x);
    free(j->vector);
    free(j->sum);
    free(j->given);
}

static void put(struct job *j)
{
    j->self->comm->engine.kernels->from_f32[j->scene->dtype](j->vector, j->x, j->n);
}

static void get(struct job *j)
{
    j->self->comm->engine.kernels->to_f32[j->scene->dtype](j->x, j->vector, j->n);
}

static void feed(struct job *j)
{
    for (size_t end = j->n; end;) {
        const size_t piece = end < 700 ? end : 700;
        (void)trib_plan_test(j->plan);
        end -= piece;
        ranks_ok(j->self, trib_plan_ready(j->plan, end, piece));
    }
}

/* Check that every rank has the result of rank 0. */
static void check_same(struct job *j, uint32_t step)
{
    uint8_t *theirs = malloc(j->n * j->element + 1);

    memcpy(theirs, j->vector, j->n * j->element);
    ranks_ok(j->self, trib_broadcast(j->self->comm, theirs, j->n, j->scene->dtype, 0));
    if (memcmp(theirs, j->vector, j->n * j->element) != 0)
        ranks_die(j->self, "%s %s, step %u: ranks 0 and %d have different results",
                  j->scene->codec, j->scene->algorithm, step, j->self->rank);
    free(theirs);
}

static void run_step(struct job *j, uint32_t step)
{
    const struct scene *s = j->scene;
    const double most = expected(s, j->self->size, step, j->sum);
    const double slack = s->dtype == TRIB_F32 ? 2e-5 : 2e-2;

    gradient(s, j->self->rank, step, j->x);
    put(j);
    ranks_ok(j->self, trib_plan_start(j->plan));
    if (s->feed)
        feed(j);
    ranks_ok(j->self, trib_plan_wait(j->plan));
    get(j);
    check_same(j, step);
    for (size_t i = 0; i < j->n; i++) {
        j->given[i] += j->sum[i] - (double)j->x[i];
        if (s->exact_from && step >= s->exact_from &&
            !(fabs((double)j->x[i] - j->sum[i]) <= slack * most))
            ranks_die(j->self, "%s %s, step %u: element %zu is %.9g, not %.9g",
                      s->codec, s->algorithm, step, i, (double)j->x[i], j->sum[i]);
    }
}

/* Check that the residuals hold the difference between inputs and results. */
static void check_mass(struct job *j)
{
    const struct scene *s = j->scene;
    float *residual = calloc(j->n + 1, sizeof(*residual));
    const double largest = 2.0 * s->steps * (s->op == TRIB_MEAN ? 1 : j->self->size);

    if (!trib_feedback_of(&j->plan->run)->residual) {
        free(residual);
        return;
    }
    memcpy(residual, trib_feedback_of(&j->plan->run)->residual,
           j->n * sizeof(*residual));
    ranks_ok(j->self,
             trib_allreduce(j->self->comm, NULL, residual, j->n, TRIB_F32, s->op));
    for (size_t i = 0; i < j->n; i++)
        if (!(fabs((double)residual[i] - j->given[i]) <= 1e-5 * largest))
            ranks_die(j->self,
                      "%s %s: of element %zu %.9g is missing, residuals have %.9g",
                      s->codec, s->algorithm, i, j->given[i], (double)residual[i]);
    free(residual);
}

static int steps(struct ranks_self *self)
{
    struct job j;

    open_job(&j, self);
    for (uint32_t step = 1; step <= j.scene->steps; step++)
        run_step(&j, step);
    if (j.scene->dtype == TRIB_F32)
        check_mass(&j);
    close_job(&j);
    return 0;
}

static void run(const struct scene *s, int size, const char *config)
{
    ranks_pass(.size = size, .fn = steps, .arg = (void *)s, .config = config,
               .threads = strcmp(config, "transport=loop") == 0);
}

/* Gradients of rank 3, approximated with rank 3 or more: exact after one iteration once
 * they no longer change. */
TEST(test_powersgd_of_low_rank)
{
    for (size_t a = 0; a < algorithms_count(false); a++) {
        struct scene s = {.codec = a % 2 ? "powersgd:rank=3,columns=48"
                                         : "powersgd:rank=5,columns=48,ef=0",
                          .algorithm = algorithm_at(a),
                          .op = a % 2 ? TRIB_MEAN : TRIB_SUM,
                          .count = (size_t)COLUMNS * 300,
                          .steps = 3,
                          .exact_from = 1};
        run(&s, 1 + (int)a, "transport=shm");
        s.feed = TRIB_FEED_BACKWARD;
        run(&s, 4 - (int)(a % 3), a % 2 ? "transport=shm" : "transport=loop");
    }
}

/* ---- one matrix of the whole vector ---------------------------------------------- */

struct layer {
    const char *codec, *algorithm;
    size_t rows, columns, rank; /* 0 of rank: nothing is compressed, and rank 0 gets a
                                 * warning */
    size_t matrices;            /* number of matrices into which the vector is cut by
                                 * rows */
};

/* Check the bytes of one start of all ranks; rows of the result are combinations of
 * `rank` vectors. */
static int sends_factors(struct ranks_self *self)
{
    const struct layer *l = self->arg;
    const size_t n = l->rows * l->columns;
    float *x = calloc(n, sizeof(*x));
    trib_stats_t before = {.size = sizeof(before)}, after = before;

    for (size_t i = 0; i < n; i++)
        x[i] = number((uint32_t)self->rank, (uint32_t)i);
    trib_plan_t *plan = ranks_plan(self, TRIB_ALLREDUCE, .recv = x, .count = n,
                                   .codec = l->codec, .algorithm = l->algorithm);
    ranks_ok(self, trib_stats(self->comm, &before));
    ranks_step(self, plan);
    ranks_ok(self, trib_stats(self->comm, &after));
    ranks_ok(self, trib_plan_free(plan));
    double sent = (double)(after.wire_bytes - before.wire_bytes);
    plan = ranks_plan(self, TRIB_ALLREDUCE, .recv = &sent, .count = 1,
                      .dtype = TRIB_F64);
    ranks_step(self, plan);
    ranks_ok(self, trib_plan_free(plan));
    const double factors = l->rank * (l->rows + l->matrices * l->columns) * sizeof(*x);
    const double least = 2.0 * (self->size - 1) * (l->rank ? factors : n * sizeof(*x));
    if (sent < least || sent > 1.1 * least)
        ranks_die(self, "%s %s: %.0f bytes were sent, %.0f are what it takes", l->codec,
                  l->algorithm, sent, least);
    if (l->rank && l->matrices == 1 && rank_of(x, l->rows, l->columns) != l->rank)
        ranks_die(self, "%s: the result has rank %zu", l->codec,
                  rank_of(x, l->rows, l->columns));
    free(x);
    return 0;
}

TEST(test_powersgd_sends_factors)
{
    static const char *const configs[] = {"transport=shm", "transport=tcp",
                                          "transport=shm+nomap"};
    static const struct layer layers[] = {
        {"powersgd:rank=4,columns=4608", "direct", 512, 4608, 4, 1},
        {"powersgd:rank=4,columns=512", "ring", 4608, 512, 4, 1},
        {"powersgd:rank=4,columns=1024", "auto", 1024, 1024, 4, 1},
        {"powersgd:rank=4", "direct", 1024, 1024, 4, 1},
        {"powersgd:rank=64,columns=400", "direct", 500, 400, 64,
         2}, /* 102 408 bytes per encoded chunk */
        {"powersgd:rank=4,columns=4608", "direct", 4, 4608, 0, 1},
    };

    for (size_t k = 0; k < sizeof(layers) / sizeof(*layers); k++) {
        struct ranks_job job = {.size = 4,
                                .fn = sends_factors,
                                .arg = (void *)(uintptr_t)&layers[k],
                                .config = configs[k % 3],
                                .noisy = layers[k].rank == 0};
        struct ranks r;
        assert_true(ranks_start(&r, &job));
        ranks_wait(&r);
        assert_int_equal(ranks_failed(&r), 0);
        if (layers[k].rank == 0) {
            assert_int_equal(r.slots[0].warnings, 1);
            assert_non_null(
                strstr(r.slots[0].warning, "does not compress a vector of 18432"));
            assert_int_equal(r.slots[1].warnings, 0);
        }
        ranks_close(&r);
    }
}

/* Nothing is lost, whatever the gradients. */
TEST(test_powersgd_keeps_the_rest)
{
    static const size_t counts[] = {1, 7, 129, 5003, 70001};
    for (size_t k = 0; k < 5; k++) {
        struct scene s = {.codec = k % 2 ? "powersgd" : "powersgd:rank=1,columns=40",
                          .algorithm = algorithm_at(k),
                          .op = k % 2 ? TRIB_SUM : TRIB_MEAN,
                          .count = counts[k],
                          .steps = 5,
                          .loose = true};
        run(&s, 3 + (int)(k % 2), k == 3 ? "transport=tcp" : "transport=shm");
        run(&s, 1, "transport=shm");
    }
}

/* A basis of as many vectors as span the slices of the gradients: always exact. */
TEST(test_gradiveq_of_a_subspace)
{
    for (size_t a = 0; a < algorithms_count(false); a++) {
        struct scene s = {
            .codec = a % 2 ? "gradiveq:slice=48,kept=3,train=2,coded=3"
                           : "gradiveq:slice=48,kept=4,train=2,coded=3,centre=1",
            .algorithm = algorithm_at(a),
            .op = a % 2 ? TRIB_SUM : TRIB_MEAN,
            .count = (size_t)COLUMNS * 301,
            .chunk = 8192,
            .steps = 9,
            .exact_from = 1};
        run(&s, 1 + (int)a, "transport=shm");
        s.feed = TRIB_FEED_BACKWARD;
        run(&s, 4 - (int)(a % 3), a % 2 ? "transport=shm" : "transport=loop");
    }
}

TEST(test_gradiveq_keeps_the_rest)
{
    for (size_t a = 0; a < algorithms_count(false); a++) {
        struct scene s = {.codec = "gradiveq:slice=64,kept=5,train=1,coded=4",
                          .algorithm = algorithm_at(a),
                          .op = a % 2 ? TRIB_SUM : TRIB_MEAN,
                          .count = 9001,
                          .chunk = 4096,
                          .steps = 8,
                          .loose = true};
        run(&s, 2 + (int)a, a == 2 ? "transport=tcp" : "transport=shm");
    }
}

/* Coefficients as integers with a scale that ranks share. */
TEST(test_gradiveq_quantised)
{
    static const char *const codecs[] = {
        "gradiveq:slice=64,kept=16,train=1,coded=4+int8:bucket=64",
        "gradiveq:slice=64,kept=16,train=2,coded=2,centre=1+qsgd:bits=6",
        "gradiveq:slice=64,kept=64,train=1,coded=9+int4",
    };
    for (size_t a = 0; a < algorithms_count(false); a++) {
        struct scene s = {.codec = codecs[a % 3],
                          .algorithm = algorithm_at(a),
                          .op = a % 2 ? TRIB_SUM : TRIB_MEAN,
                          .count = 9001,
                          .chunk = 4096,
                          .steps = 8,
                          .loose = true};
        run(&s, 1 + (int)a, "transport=shm");
        s.feed = TRIB_FEED_BACKWARD;
        run(&s, 3, "transport=loop");
    }
}

TEST(test_halves)
{
    struct scene s = {.codec = "powersgd:rank=4,columns=48",
                      .algorithm = "ring",
                      .op = TRIB_SUM,
                      .dtype = TRIB_BF16,
                      .count = (size_t)COLUMNS * 100,
                      .steps = 3,
                      .exact_from = 1};
    run(&s, 3, "transport=shm");
    s.codec = "gradiveq:slice=48,kept=24,train=1,coded=9";
    s.dtype = TRIB_F16;
    run(&s, 2, "transport=shm");
}

/* ---- state ----------------------------------------------------------------------- */

/* Run steps 1 to 8 without a break, and with a new plan from the state after step 4. */
static int resumed(struct ranks_self *self)
{
    struct job j;
    size_t bytes;

    open_job(&j, self);
    const struct scene *s = j.scene;
    float *whole = calloc(s->steps * j.n + 1, sizeof(*whole));
    uint8_t *state = NULL;
    for (uint32_t step = 1; step <= s->steps; step++) {
        if (step == s->steps / 2 + 1) {
            ranks_ok(self, trib_plan_state_save(j.plan, NULL, 0, &bytes));
            state = malloc(bytes);
            ranks_ok(self, trib_plan_state_save(j.plan, state, bytes, &bytes));
        }
        run_step(&j, step);
        memcpy(whole + (step - 1) * j.n, j.x, j.n * sizeof(*whole));
    }
    ranks_ok(self, trib_plan_free(j.plan));
    open_plan(&j);
    ranks_ok(self, trib_plan_state_load(j.plan, state, bytes));
    for (uint32_t step = s->steps / 2 + 1; step <= s->steps; step++) {
        run_step(&j, step);
        if (memcmp(whole + (step - 1) * j.n, j.x, j.n * sizeof(*whole)) != 0)
            ranks_die(self, "%s: step %u differs after a load", s->codec, step);
    }
    close_job(&j);
    free(whole);
    free(state);
    return 0;
}

TEST(test_state)
{
    static const char *const codecs[] = {"powersgd:rank=2",
                                         "gradiveq:slice=64,kept=6,train=3,coded=3",
                                         "gradiveq:slice=64,kept=6,train=5,coded=3"};
    for (size_t k = 0; k < 3; k++) {
        struct scene s = {.codec = codecs[k],
                          .algorithm = "ring",
                          .count = 6000,
                          .steps = 8,
                          .chunk = 4096,
                          .loose = true};
        ranks_pass(.size = 3, .fn = resumed, .arg = &s, .config = "transport=shm");
    }
}

/* ---- refusals -------------------------------------------------------------------- */

static int refused(struct ranks_self *self)
{
    float x[64] = {0}, y[64] = {0};
    trib_plan_t *plan;
    trib_desc_t d =
        sized(trib_desc_t, .send = x, .recv = y, .count = 32, .codec = "powersgd");

    ranks_assert(self, trib_plan_create(self->comm, TRIB_REDUCE, &d, &plan) ==
                           TRIB_ERR_UNSUPPORTED);
    ranks_assert(self, strstr(trib_last_error(self->comm), "use allreduce"));
    d.feedback = "ef21";
    ranks_assert(self,
                 trib_plan_create(self->comm, TRIB_ALLREDUCE, &d, &plan) != TRIB_OK);
    d.feedback = NULL;
    d.codec = "gradiveq:slice=16,kept=17";
    ranks_assert(self, trib_plan_create(self->comm, TRIB_ALLREDUCE, &d, &plan) ==
                           TRIB_ERR_CODEC);
    ranks_assert(self,
                 strstr(trib_last_error(self->comm), "kept is larger than slice"));
    /* otherwise elements are sent unencoded */
    d.codec = "gradiveq+topk";
    ranks_assert(self, trib_plan_create(self->comm, TRIB_ALLREDUCE, &d, &plan) ==
                           TRIB_ERR_CODEC);
    ranks_assert(self, strstr(trib_last_error(self->comm), "do not add"));
    d.codec = "gradiveq+qsgd:shared=0";
    ranks_assert(self, trib_plan_create(self->comm, TRIB_ALLREDUCE, &d, &plan) ==
                           TRIB_ERR_CODEC);
    ranks_assert(self, strstr(trib_last_error(self->comm), "must add: use shared=1"));
    d.codec = "powersgd:rank=1";
    d.recv = x;
    for (int i = 0; i < 32; i++)
        x[i] = self->rank == 0 ? (float)i : -1.0f;
    ranks_ok(self, trib_plan_create(self->comm, TRIB_BROADCAST, &d, &plan));
    ranks_step(self, plan);
    ranks_ok(self, trib_plan_free(plan));
    for (int i = 0; i < 32; i++)
        ranks_assert(self, x[i] == (float)i);
    return 0;
}

TEST(test_refused)
{
    ranks_pass(.size = 2, .fn = refused, .config = "transport=shm");
}
