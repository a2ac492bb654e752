/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All-reduces by LGC, from elements to latents: the same bits on all ranks, nothing
 * lost with error feedback while values are exact, few elements where they are not, and
 * a state that continues after saving; over algorithms, transports, numbers of ranks.
 */
#include "pipeline/payload/error_feedback.h"

#include <math.h>

#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "tests/comm/algorithms.h"
#include "tests/harness/ranks.h"

enum { COUNT = 2600, CHUNK = 2048 /* bytes */, DENSE = 1, TRAIN = 3, STEPS = 6 };

struct scene {
    const char *codec;
    const char *algorithm;
    trib_op_t op;
    trib_feed_t feed;
    trib_dtype_t dtype;
    uint32_t conserved; /* until this step the residuals contain all errors */
};

static float number(uint32_t a, uint32_t b)
{
    uint32_t h = a * 0x9e3779b9u ^ (b + 0x7f4a7c15u) * 0x85ebca6bu;

    h = (h ^ h >> 15) * 0x2c1b3c6du;
    h = (h ^ h >> 13) * 0x297a2d39u;
    return (float)(int32_t)h * 0x1p-31f;
}

/* A part that all ranks have in common, and a fifth of their own. */
static float gradient(int rank, uint32_t step, size_t i)
{
    return number(step, (uint32_t)i) +
           0.2f * number(1000 * (uint32_t)rank + step, (uint32_t)i);
}

static double expected(const struct scene *s, int size, uint32_t step, size_t i)
{
    double sum = 0;

    for (int r = 0; r < size; r++)
        sum += (double)gradient(r, step, i);
    return s->op == TRIB_MEAN ? sum / size : sum;
}

struct job {
    struct ranks_self *self;
    const struct scene *scene;
    trib_plan_t *plan;
    size_t element;
    float x[COUNT];
    float vector[COUNT]; /* the same in the dtype of the plan */
    double missing[COUNT]; /* sum of inputs over all steps and ranks, minus results */
};

static void open_plan(struct job *j)
{
    const struct scene *s = j->scene;
    trib_desc_t d = TRIB_DESC_INIT;

    d.send = d.recv = j->vector;
    d.count = COUNT;
    d.dtype = s->dtype;
    d.op = s->op;
    d.codec = s->codec;
    d.algorithm = s->algorithm;
    d.chunk = CHUNK;
    d.feed = s->feed;
    ranks_ok(j->self, trib_plan_create(j->self->comm, TRIB_ALLREDUCE, &d, &j->plan));
}

static void check_same(struct job *j, uint32_t step)
{
    float theirs[COUNT];

    memcpy(theirs, j->vector, COUNT * j->element);
    ranks_ok(j->self, trib_broadcast(j->self->comm, theirs, COUNT, j->scene->dtype, 0));
    if (memcmp(theirs, j->vector, COUNT * j->element) != 0)
        ranks_die(j->self, "%s %s, step %u: ranks 0 and %d have different results",
                  j->scene->codec, j->scene->algorithm, step, j->self->rank);
}

/* Check the number of non-zero elements in each stage. */
static void check_support(struct job *j, uint32_t step)
{
    size_t sent = 0;

    for (size_t i = 0; i < COUNT; i++)
        sent += j->x[i] != 0.0f;
    const bool all = step <= DENSE;
    if (all ? sent < COUNT - 9 : sent > COUNT / 4 || sent < COUNT / 9)
        ranks_die(j->self, "%s %s, step %u: %zu of %d elements came out",
                  j->scene->codec, j->scene->algorithm, step, sent, COUNT);
}

/* Check that the residuals of all ranks equal the missing values. */
static void check_mass(struct job *j, uint32_t step)
{
    float residual[COUNT];

    memcpy(residual, trib_feedback_of(&j->plan->run)->residual, sizeof(residual));
    ranks_ok(j->self, trib_allreduce(j->self->comm, NULL, residual, COUNT, TRIB_F32,
                                     j->scene->op));
    for (size_t i = 0; i < COUNT; i++)
        if (!(fabs((double)residual[i] - j->missing[i]) <= 1e-4))
            ranks_die(j->self,
                      "%s %s, step %u: of element %zu %.9g is missing, residuals have "
                      "%.9g",
                      j->scene->codec, j->scene->algorithm, step, i, j->missing[i],
                      (double)residual[i]);
}

static void run_step(struct job *j, uint32_t step)
{
    const struct scene *s = j->scene;
    const struct trib_kernels *k = j->self->comm->engine.kernels;

    for (size_t i = 0; i < COUNT; i++)
        j->x[i] = gradient(j->self->rank, step, i);
    k->from_f32[s->dtype](j->vector, j->x, COUNT);
    ranks_ok(j->self, trib_plan_start(j->plan));
    for (size_t end = COUNT; s->feed && end;) {
        const size_t piece = end < 300 ? end : 300;
        end -= piece;
        ranks_ok(j->self, trib_plan_ready(j->plan, end, piece));
    }
    ranks_ok(j->self, trib_plan_wait(j->plan));
    k->to_f32[s->dtype](j->x, j->vector, COUNT);
    check_same(j, step);
    check_support(j, step);
    for (size_t i = 0; i < COUNT; i++)
        j->missing[i] += expected(s, j->self->size, step, i) - (double)j->x[i];
    if (step <= s->conserved)
        check_mass(j, step);
}

static int steps(struct ranks_self *self)
{
    struct job *j = calloc(1, sizeof(*j));

    *j = (struct job){.self = self, .scene = self->arg};
    j->element = trib_dtype_size(j->scene->dtype);
    open_plan(j);
    for (uint32_t step = 1; step <= STEPS; step++)
        run_step(j, step);
    char text[1500];
    ranks_ok(self, trib_plan_explain(j->plan, text, sizeof(text)));
    if (!strstr(text, "\nmodel      coded, "))
        ranks_die(self, "\"%s\" does not say what was learned", text);
    ranks_ok(self, trib_plan_free(j->plan));
    free(j);
    return 0;
}

static void run(const struct scene *s, int size, const char *config)
{
    ranks_pass(.size = size, .fn = steps, .arg = (void *)s, .config = config,
               .threads = strcmp(config, "transport=loop") == 0);
}

static const char *const codecs[] = {
    "lgc:ratio=0.125,dense=1,train=3",
    "lgc-ps:ratio=0.125,dense=1,train=3,innovation=0.01",
};

TEST(test_algorithms)
{
    for (size_t a = 0; a < algorithms_count(false); a++) {
        for (int form = 0; form < 2; form++) {
            struct scene s = {.codec = codecs[form],
                              .algorithm = algorithm_at(a),
                              .op = (a + form) % 2 ? TRIB_MEAN : TRIB_SUM,
                              .conserved = STEPS};
            run(&s, 2 + a % 3, a == 1 ? "transport=tcp" : "transport=shm");
            if (a == 2)
                s.feed = TRIB_FEED_BACKWARD;
            if (a == 2 || a == 3)
                run(&s, 1 + a, "transport=loop");
        }
    }
}

/* A single rank; 16-bit floats, which are rounded after the decoder. */
TEST(test_others)
{
    for (int form = 0; form < 2; form++) {
        struct scene s = {.codec = codecs[form],
                          .algorithm = "ring",
                          .op = TRIB_MEAN,
                          .conserved = STEPS};
        run(&s, 1, "transport=shm");
        s.dtype = form ? TRIB_F16 : TRIB_BF16;
        s.conserved = 0;
        run(&s, 2, "transport=shm");
    }
}

/* Run all steps without a break; and with a new plan from the state after each of
 * them. */
static int resumed(struct ranks_self *self)
{
    struct job *j = calloc(1, sizeof(*j));
    uint8_t *states[STEPS + 1] = {NULL};
    float *results = calloc(STEPS + 1, sizeof(j->x));
    size_t bytes;

    *j = (struct job){.self = self, .scene = self->arg, .element = sizeof(float)};
    open_plan(j);
    for (uint32_t step = 1; step <= STEPS; step++) {
        run_step(j, step);
        memcpy(results + step * COUNT, j->x, sizeof(j->x));
        ranks_ok(self, trib_plan_state_save(j->plan, NULL, 0, &bytes));
        states[step] = malloc(bytes);
        ranks_ok(self, trib_plan_state_save(j->plan, states[step], bytes, &bytes));
    }
    ranks_ok(self, trib_plan_free(j->plan));
    for (uint32_t saved = 1; saved < STEPS; saved++) {
        open_plan(j);
        ranks_ok(self, trib_plan_state_load(j->plan, states[saved], bytes));
        for (uint32_t step = saved + 1; step <= STEPS && step <= saved + 2; step++) {
            run_step(j, step);
            if (memcmp(results + step * COUNT, j->x, sizeof(j->x)) != 0)
                ranks_die(self, "%s: step %u differs after a load of step %u",
                          j->scene->codec, step, saved);
        }
        ranks_ok(self, trib_plan_free(j->plan));
    }
    for (uint32_t step = 1; step <= STEPS; step++)
        free(states[step]);
    free(results);
    free(j);
    return 0;
}

TEST(test_state)
{
    for (int form = 0; form < 2; form++) {
        struct scene s = {.codec = codecs[form], .algorithm = "ring"};
        ranks_pass(.size = 2, .fn = resumed, .arg = &s, .config = "transport=shm");
    }
}

RANKS_TEST(test_refused, .size = 2, .config = "transport=shm")
{
    float x[COUNT] = {0};
    trib_desc_t d = TRIB_DESC_INIT;
    trib_plan_t *plan;

    d.send = d.recv = x;
    d.count = COUNT;
    d.codec = "lgc";
    ranks_assert(self, trib_plan_create(self->comm, TRIB_ALLREDUCE, &d, &plan) ==
                           TRIB_ERR_CODEC);
    ranks_assert(
        self, strstr(trib_last_error(self->comm), "chunks of at least 3100 elements"));
    d.codec = "lgc:ratio=0.125";
    ranks_assert(self, trib_plan_create(self->comm, TRIB_REDUCE, &d, &plan) ==
                           TRIB_ERR_UNSUPPORTED);
    return 0;
}
