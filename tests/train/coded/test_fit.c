/* SPDX-License-Identifier: BSD-3-Clause */
/* Linear models fitted by coded gradients match plain gradient descent in double, also
 * when ranks are lost or join. */
#include <math.h>

#include <tributary/coded.h>

#include "tests/comm/growing.h"

enum { PARTS = 4, ROWS = 15, COLUMNS = 10, RANKS = 6, STEPS = 24, MEET = 6 };

static const double rate = 0.5, decay = 0.01;

static float feature(size_t sample, size_t column)
{
    return sinf((float)(sample * 29 + column * 7 + sample * column % 13));
}

/* The last samples are padding. */
static float label(size_t sample)
{
    if (sample >= PARTS * ROWS - 3)
        return 0;
    return feature(sample, 1) + feature(sample, 4) * 0.5f - 0.2f > 0 ? 1 : -1;
}

struct samples {
    float features[ROWS * COLUMNS], labels[ROWS];
};

static void fill(struct samples *s, int number)
{
    for (size_t i = 0; i < ROWS; i++) {
        const size_t sample = (size_t)number * ROWS + i;
        for (size_t k = 0; k < COLUMNS; k++)
            s->features[i * COLUMNS + k] = feature(sample, k);
        s->labels[i] = label(sample);
    }
}

/* Add the gradient of one sample, with a separate expression for each loss. */
static void oracle_add(bool hinge, const double *w, size_t sample, double *g)
{
    const double y = (double)label(sample);
    double z = w[COLUMNS];

    for (size_t k = 0; k < COLUMNS; k++)
        z += w[k] * (double)feature(sample, k);
    const double r = hinge ? (y * z < 1 ? -y : 0) : 1 / (1 + exp(-z)) - (y > 0);
    for (size_t k = 0; k <= COLUMNS; k++)
        g[k] += r * (k < COLUMNS ? (double)feature(sample, k) : 1);
}

static void oracle_gradient(bool hinge, const double *w, double *g)
{
    const size_t n = PARTS * ROWS - 3;

    for (size_t k = 0; k <= COLUMNS; k++)
        g[k] = 0;
    for (size_t i = 0; i < n; i++)
        oracle_add(hinge, w, i, g);
    for (size_t k = 0; k <= COLUMNS; k++)
        g[k] /= (double)n;
}

static void oracle(bool hinge, double *w)
{
    for (size_t k = 0; k <= COLUMNS; k++)
        w[k] = 0;
    for (int step = 0; step < STEPS; step++) {
        double g[COLUMNS + 1];
        oracle_gradient(hinge, w, g);
        for (size_t k = 0; k <= COLUMNS; k++)
            w[k] -= rate * (g[k] + (k < COLUMNS ? decay * w[k] : 0));
    }
}

static double distance(const float *weights, bool hinge)
{
    double w[COLUMNS + 1], sum = 0, norm = 0;

    oracle(hinge, w);
    for (size_t k = 0; k <= COLUMNS; k++) {
        sum += ((double)weights[k] - w[k]) * ((double)weights[k] - w[k]);
        norm += w[k] * w[k];
    }
    return sqrt(sum / norm);
}

/* A rank is killed before a step, or is slow. */
struct play {
    const char *code;
    int victim; /* -1: no rank dies */
    size_t meet;
    bool grows; /* the last rank joins later */
    char root[TRIB_ROOT_TEXT_MAX];
    struct growing_board *board;
};

struct rank {
    struct ranks_self *self;
    const struct play *play;
    bool hinge;
    double weights[COLUMNS + 1]; /* of the step before */
    double work; /* the work that the library reported to the rank */
};

static void check_step(struct rank *r, const trib_coded_step_t *s)
{
    double g[COLUMNS + 1];

    ranks_assert(r->self, s->size == sizeof(*s) && (s->step == 0) == !s->gradient);
    if (s->gradient && !(s->loss > 0 && s->loss < 10))
        ranks_die(r->self, "the loss is %g", s->loss);
    oracle_gradient(r->hinge, r->weights, g);
    for (size_t k = 0; k <= COLUMNS; k++) {
        if (s->gradient && !(fabs((double)s->gradient[k] - g[k]) < 1e-6))
            ranks_die(r->self, "step %zu: gradient %g, and not %g", s->step,
                      (double)s->gradient[k], g[k]);
        r->weights[k] = (double)s->weights[k];
    }
}

static void before_step(void *arg, const trib_coded_step_t *s)
{
    struct rank *r = arg;

    if (r->self->rank == r->play->victim && s->step == 8)
        raise(SIGKILL);
    if (r->self->rank == 0 && r->play->victim != 0)
        check_step(r, s);
    if (r->self->rank == 1 && s->step % 5 == 0)
        usleep(3000);
}

static void before_work(void *arg, size_t step, double work)
{
    struct rank *r = arg;

    ranks_assert(r->self, step < STEPS);
    r->work += work;
}

static void describe(struct ranks_self *self, const struct play *p,
                     const struct samples *s, struct rank *arg,
                     trib_coded_fit_desc_t *d)
{
    *arg = (struct rank){.self = self, .play = p};
    *d = (trib_coded_fit_desc_t)TRIB_CODED_FIT_DESC_INIT;
    d->code = p->code;
    d->features = self->rank < PARTS ? s->features : NULL;
    d->labels = self->rank < PARTS ? s->labels : NULL;
    d->rows = ROWS;
    d->columns = COLUMNS;
    d->partitions = PARTS;
    d->steps = STEPS;
    d->rate = rate;
    d->decay = decay;
    d->meet = p->meet;
    d->step = before_step;
    d->step_arg = arg;
    d->work = before_work;
}

/* Two answers of half of the work, or one of all partitions that a rank has. */
static void check_work(const struct rank *r, const trib_coded_stats_t *stats,
                       const char *code)
{
    const double blocks = code[0] == 'g'                             ? 2
                          : code[0] == 'n' && r->self->rank >= PARTS ? 0
                                                                     : 1;
    const double answers = (double)(stats->answered + stats->products);

    ranks_assert(r->self,
                 r->work == answers * blocks * (strchr("gn", code[0]) ? 1 : 0.5));
}

static void fit(struct ranks_self *self, trib_coded_fit_desc_t *d, bool hinge)
{
    float weights[COLUMNS + 1] = {0};
    trib_coded_stats_t stats = TRIB_CODED_STATS_INIT;
    struct rank *r = d->step_arg;

    r->hinge = hinge;
    r->work = 0;
    d->loss = hinge ? "hinge" : "logistic";
    if (trib_coded_fit(&self->comm, d, weights, &stats) != TRIB_OK)
        ranks_die(self, "%s: %s", d->code, trib_coded_error(NULL));
    if (trib_rank(self->comm) == 0 && !(distance(weights, hinge) < 1e-5))
        ranks_die(self, "%s, %s: the weights are %g from those of plain descent",
                  d->code, d->loss, distance(weights, hinge));
    if (!r->play->grows && r->play->victim < 0)
        check_work(r, &stats, d->code);
    if (trib_rank(self->comm) == 0)
        ranks_assert(self, stats.products >= 1 &&
                               stats.waited >=
                                   (d->code[0] == 'g' ? 1 : PARTS) * stats.products);
}

RANKS_TEST_ON(weights_equal_plain_descent, ("shm"), .size = RANKS)
{
    static const char *const codes[] = {"none", "rlnc", "mds", "gradient:spare=1"};
    struct samples s;
    struct rank arg;

    fill(&s, self->rank);
    for (int i = 0; i < 4; i++) {
        const struct play p = {.code = codes[i], .victim = -1};
        trib_coded_fit_desc_t d;
        describe(self, &p, &s, &arg, &d);
        fit(self, &d, i % 2 != 0);
        fit(self, &d, i % 2 == 0);
    }
    return 0;
}

static int lose(struct ranks_self *self)
{
    const struct play *p = self->arg;
    struct samples s;
    trib_coded_fit_desc_t d;
    struct rank arg;

    ranks_ok(self, trib_init(&self->opts, &self->comm));
    fill(&s, self->rank);
    describe(self, p, &s, &arg, &d);
    fit(self, &d, false);
    ranks_assert(self,
                 trib_size(self->comm) == (p->meet || !p->victim ? RANKS - 1 : RANKS));
    (void)trib_free_comm(self->comm);
    return 0;
}

/* All ranks but the victim pass. */
static void play_out(const struct play *p, int (*fn)(struct ranks_self *self),
                     void *config)
{
    const struct ranks_job job = {.size = RANKS,
                                  .fn = fn,
                                  .arg = (void *)p,
                                  .config = config,
                                  .bare = true,
                                  .noisy = true};
    struct ranks r;

    assert_true(ranks_start(&r, &job));
    ranks_wait(&r);
    assert_false(r.hung);
    for (int k = 0; k < RANKS; k++)
        if (k != p->victim && r.slots[k].status != 0)
            fail_msg("%s, victim %d: rank %d: %s", p->code, p->victim, k,
                     r.slots[k].text);
    ranks_close(&r);
}

TEST_ON(fits_go_on_without_lost_ranks, "shm")
{
    static const struct play plays[] = {
        {.code = "rlnc", .victim = 2},
        {.code = "rlnc", .victim = 3, .meet = MEET},
        {.code = "mds", .victim = 5, .meet = MEET},
        {.code = "gradient:spare=1", .victim = 1, .meet = MEET},
        {.code = "rlnc", .victim = 0},
    };

    for (size_t i = 0; i < sizeof(plays) / sizeof(plays[0]); i++)
        play_out(&plays[i], lose, *state);
}

/* The newcomer has only the description of the run. */
static int grow(struct ranks_self *self)
{
    const struct play *p = self->arg;
    struct samples s;
    trib_coded_fit_desc_t d;
    trib_listener_t *listener = NULL;
    struct rank arg;

    fill(&s, self->rank);
    describe(self, p, &s, &arg, &d);
    if (self->rank < RANKS - 1) {
        growing_init(self, p->root, RANKS - 1);
        listener = self->rank == 0 ? growing_listen(self, self->comm, p->board) : NULL;
        while (listener && !trib_listener_waiting(listener))
            usleep(500);
    } else {
        ranks_ok(self, growing_join(self, p->board));
    }
    d.listener = listener;
    fit(self, &d, false);
    trib_listener_close(listener);
    ranks_assert(self, trib_size(self->comm) == RANKS - (p->victim >= 0));
    return trib_free_comm(self->comm) != TRIB_OK;
}

/* Also where the meeting that they wait for finds that a rank is lost. */
TEST_ON(newcomers_take_part, "shm")
{
    struct play plays[] = {
        {.code = "rlnc", .victim = -1, .meet = MEET},
        {.code = "mds", .victim = 1, .meet = STEPS / 2},
    };

    for (size_t i = 0; i < sizeof(plays) / sizeof(plays[0]); i++) {
        struct play *p = &plays[i];
        trib_local_t *place;

        p->grows = true;
        p->board = growing_board();
        assert_non_null(p->board);
        assert_status(trib_local_create(RANKS - 1, &place), TRIB_OK);
        snprintf(p->root, sizeof(p->root), "%s", trib_local_root(place));
        play_out(p, grow, *state);
        trib_local_destroy(place);
        munmap(p->board, sizeof(*p->board));
    }
}

RANKS_TEST_ON(wrong_fits_are_refused, ("shm"), .size = 2)
{
    trib_coded_fit_desc_t d = TRIB_CODED_FIT_DESC_INIT;
    float weights[COLUMNS + 1] = {0};
    struct samples s;

    fill(&s, self->rank);
    d.columns = COLUMNS;
    d.rows = ROWS;
    d.partitions = 1;
    d.features = s.features;
    d.labels = s.labels;
    d.loss = self->rank == 1 ? "square" : NULL;
    ranks_expect(self, trib_coded_fit(&self->comm, &d, weights, NULL), TRIB_ERR_INVALID,
                 "loss");
    ranks_assert(self, self->rank != 1 || strstr(trib_coded_error(NULL), "square"));
    d.loss = NULL;
    d.rate = (double)INFINITY;
    ranks_expect(self, trib_coded_fit(&self->comm, &d, weights, NULL), TRIB_ERR_INVALID,
                 "rate");
    d.rate = 1;
    if (self->rank == 0)
        ranks_ok(self, trib_listener_open(self->comm, "127.0.0.1", &d.listener));
    ranks_expect(self, trib_coded_fit(&self->comm, &d, weights, NULL), TRIB_ERR_INVALID,
                 "meet");
    ranks_assert(self, self->rank != 0 || strstr(trib_coded_error(NULL), "meet is 0"));
    trib_listener_close(d.listener);
    d.listener = NULL;
    d.partitions = 3;
    ranks_expect(self, trib_coded_fit(&self->comm, &d, weights, NULL), TRIB_ERR_INVALID,
                 "partitions");
    return 0;
}
