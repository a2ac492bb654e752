/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Trainers in jobs whose ranks change. Newcomers join: all get the old ranks' model and
 * continue to the minimum of all. A rank is killed or stopped in any phase of each
 * strategy: the others learn which rank it was and continue without it. Strategies that
 * use the store finish without it.
 */
#include "tests/harness/tribtest.h"

#include <math.h>

#include <tributary/elastic.h>
#include <tributary/train.h>

#include "tests/comm/growing.h"
#include "tests/harness/daemon.h"
#include "tests/train/quadratic.h"

enum { STEPS = 120, HIT = 7, MOST = 60 };

/* Switch the trainer to the ranks of another communicator. */
static void change_comm(struct quadratic *q, struct ranks_self *self, trib_comm_t *comm)
{
    *self = *q->self;
    self->comm = comm;
    self->rank = trib_rank(comm);
    self->size = trib_size(comm);
    q->self = self;
}

static void must_move(struct quadratic *q, trib_comm_t *comm)
{
    if (trib_trainer_move(q->trainer, comm) != TRIB_OK)
        ranks_die(q->self, "%s: move: %s", q->desc.strategy,
                  trib_trainer_error(q->trainer));
}

static void explains(const struct quadratic *q, const char *words)
{
    char text[1000];

    ranks_ok(q->self, trib_trainer_explain(q->trainer, text, sizeof(text)));
    if (!strstr(text, words))
        ranks_die(q->self, "%s: \"%s\" does not say \"%s\"", q->desc.strategy, text,
                  words);
}

static void must_be_near(const struct quadratic *q, double near)
{
    if (!(quadratic_distance(q) <= near))
        ranks_die(q->self, "%s: %g from the minimum", q->desc.strategy,
                  quadratic_distance(q));
}

/* Newcomers ------------------------------------------------------------------ */

/* How near the model is to the minimum in the end. */
static const struct {
    const char *strategy, *optimizer;
    double near;
} growing[] = {
    {"sync", "sgd:momentum=0.5", 1e-4},
    {"sync", "adam", 0.2},
    {"sync+topk:ratio=0.25", NULL, 0.3},
    {"pipe:width=2", "sgd:momentum=0.5", 1e-4},
    {"pipe:width=auto+topk:ratio=0.25|int8", NULL, 0.3},
    {"local:period=4", NULL, 1e-4},
    {"local:period=4,fragments=3,late=2", NULL, 1e-3},
    {"local:period=4+topk:ratio=0.25", NULL, 0.5},
    {"diloco:period=4", NULL, 1e-3},
    {"sgp:graph=random,peers=2", NULL, 0.3},
    {"osgp:tau=2", NULL, 0.5},
    {"agp", NULL, 0.5},
    {"easgd:period=4", NULL, 1e-2},
    {"lsgd:period=4,groups=2", NULL, 1.2},
};

/* Ranks 1 and 2 train, then rank 0 joins. */
static int grows(struct ranks_self *self)
{
    const bool is_new = self->rank == 0;
    trib_comm_t *fewer;

    ranks_ok(self, trib_split(self->comm, is_new ? -1 : 0, self->rank, &fewer));
    for (size_t i = 0; i < sizeof(growing) / sizeof(growing[0]); i++) {
        struct quadratic q;
        struct ranks_self small;

        quadratic_init(&q, self, growing[i].strategy);
        q.desc.optimizer = growing[i].optimizer;
        if (is_new) {
            quadratic_open(&q);
        } else {
            change_comm(&q, &small, fewer);
            quadratic_open(&q);
            quadratic_train(&q, STEPS);
            must_be_near(&q, growing[i].near);
            must_move(&q, self->comm);
            q.self = self;
        }
        explains(&q, "moved at step 120 from 2 to 3 ranks, 1 of them new");
        quadratic_finish(&q);
        q.self = is_new ? self : &small; /* the minimum of the old ranks */
        if (!is_new)
            must_be_near(&q, growing[i].near + 0.4);
        q.self = self;
        quadratic_train(&q, STEPS);
        must_be_near(&q, growing[i].near);
        quadratic_close(&q);
    }
    return trib_free_comm(fewer) != TRIB_OK;
}

TEST(test_grows)
{
    ranks_pass(.size = 3, .fn = grows, .config = "transport=shm", .threads = true);
    ranks_pass(.size = 3, .fn = grows, .config = "transport=tcp");
}

/* Two runs of one rank each become one. The rank that is further ahead passes its
 * parameters and number of steps to the other, and both use the rate of two ranks. */
static void joins(struct ranks_self *self, trib_comm_t *alone, const char *strategy)
{
    struct ranks_self single;
    struct quadratic q;
    trib_step_t step = TRIB_STEP_INIT;
    float model[QUADRATIC_COUNT];

    quadratic_init(&q, self, strategy);
    q.desc.rate = "constant:rate=0.125,ranks=1";
    q.desc.optimizer = "sgd:momentum=0.5";
    change_comm(&q, &single, alone);
    quadratic_open(&q);
    quadratic_steps(&q, self->rank == 1 ? 5 : 3);
    quadratic_finish(&q);
    memcpy(model, q.x, sizeof(model));
    ranks_ok(self, trib_broadcast(self->comm, model, QUADRATIC_COUNT, TRIB_F32, 1));
    must_move(&q, self->comm);
    ranks_ok(self, trib_trainer_begin(q.trainer, &step));
    ranks_assert(self, step.number == 5 && step.rate == 0.25);
    if (self->rank == 0 && memcmp(step.params, model, sizeof(model)) != 0)
        ranks_die(self, "%s: rank 0 has not the parameters of rank 1", strategy);
    memset(step.gradient, 0, sizeof(model));
    ranks_ok(self, trib_trainer_end(q.trainer, 0));
    q.self = self;
    quadratic_finish(&q);
    quadratic_close(&q);
}

RANKS_TEST(test_furthest_gives, .size = 2, .config = "transport=shm")
{
    static const char *const strategies[] = {"sync", "pipe:width=2", "local:period=1",
                                             "easgd:period=1"};
    trib_comm_t *alone;

    ranks_ok(self, trib_split(self->comm, self->rank, 0, &alone));
    for (int s = 0; s < 4; s++)
        joins(self, alone, strategies[s]);
    return trib_free_comm(alone) != TRIB_OK;
}

/* A job of one rank admits another process, whose trainer starts as at the beginning of
 * a run. The old one may be in mid-run: it finishes first. */
struct door {
    char root[TRIB_ROOT_TEXT_MAX];
    struct growing_board *board;
};

static int lets_in(struct ranks_self *self)
{
    const struct door *d = self->arg;
    struct ranks_self both;
    struct quadratic q;
    trib_comm_t *bigger = NULL;

    if (self->rank == 1) {
        ranks_ok(self, growing_join(self, d->board));
        quadratic_init(&q, self, "pipe:width=2+topk:ratio=0.5");
        quadratic_open(&q);
        bigger = self->comm;
    } else {
        growing_init(self, d->root, 1);
        quadratic_init(&q, self, "pipe:width=2+topk:ratio=0.5");
        q.self = &both;
        both = *self;
        both.size = 1;
        quadratic_open(&q);
        quadratic_steps(&q, STEPS);
        quadratic_finish(&q);
        trib_listener_t *l = growing_listen(self, self->comm, d->board);
        while (trib_listener_waiting(l) < 1)
            usleep(500);
        ranks_ok(self, trib_comm_grow(self->comm, l, 1, &bigger));
        must_move(&q, bigger);
        ranks_ok(self, trib_free_comm(self->comm));
        trib_listener_close(l);
    }
    change_comm(&q, &both, bigger);
    explains(&q, "moved at step 120 from 1 to 2 ranks, 1 of them new");
    quadratic_steps(&q, STEPS);
    quadratic_finish(&q);
    must_be_near(&q, 0.3);
    quadratic_close(&q);
    return trib_free_comm(bigger) != TRIB_OK;
}

TEST(test_lets_in)
{
    struct door d = {.board = growing_board()};
    trib_local_t *local;

    assert_non_null(d.board);
    assert_status(trib_local_create(1, &local), TRIB_OK);
    snprintf(d.root, sizeof(d.root), "%s", trib_local_root(local));
    ranks_pass(.size = 2, .fn = lets_in, .arg = &d, .config = "transport=shm",
               .bare = true);
    trib_local_destroy(local);
    munmap(d.board, sizeof(*d.board));
}

/* Old and new trainers that differ are rejected, and the old one is unchanged. */
RANKS_TEST(test_differs, .size = 3, .config = "transport=shm")
{
    const bool is_new = self->rank == 2;
    struct quadratic q;
    struct ranks_self small;
    trib_comm_t *fewer;

    ranks_ok(self, trib_split(self->comm, is_new ? -1 : 0, self->rank, &fewer));
    quadratic_init(&q, self, is_new ? "pipe" : "sync");
    if (is_new) {
        ranks_expect(self, trib_trainer_create(self->comm, &q.desc, &q.trainer),
                     TRIB_ERR_MISMATCH, "create");
        return 0;
    }
    change_comm(&q, &small, fewer);
    quadratic_open(&q);
    quadratic_steps(&q, 3);
    ranks_expect(self, trib_trainer_move(q.trainer, self->comm), TRIB_ERR_MISMATCH,
                 "move");
    ranks_assert(self, strstr(trib_trainer_error(q.trainer), "rank 2 differ"));
    quadratic_steps(&q, STEPS);
    quadratic_finish(&q);
    must_be_near(&q, 1e-4);
    quadratic_close(&q);
    return trib_free_comm(fewer) != TRIB_OK;
}

/* Losses --------------------------------------------------------------------- */

enum phase { BEGIN, COMPUTE, END, SETTLE, SAVE, PHASES };

static const char *const phases[] = {"begin", "compute", "end", "finish", "save"};

static const struct kind {
    const char *strategy, *codec, *feedback;
    double near;
    bool goes_on; /* rank 2 continues without noticing the loss */
    bool alone; /* so does rank 0, which shares no group with the victim */
    bool fed; /* layer by layer, each with its own codec */
} kinds[] = {
    {"sync", NULL, NULL, 1e-4, false, false, false},
    {"sync", "topk:ratio=0.25", "ef14:momentum=0.5", 0.3, false, false, false},
    {"sync", "topk:ratio=0.25", NULL, 0.3, false, false, true},
    {"pipe:width=2", NULL, NULL, 1e-3, false, false, false},
    {"local:period=4", "int8", NULL, 0.1, false, false, false},
    {"diloco:period=4,fragments=2,late=1", NULL, NULL, 1e-2, false, false, false},
    {"sgp", NULL, NULL, 0.3, false, false, false},
    {"osgp:tau=2", NULL, NULL, 0.5, false, false, false},
    {"agp", NULL, NULL, 0.5, false, false, false},
    {"easgd:period=4", NULL, NULL, 1e-2, false, false, false},
    {"lsgd:period=4,groups=2", NULL, NULL, 1.2, false, false, false},
};
static const struct kind served[] = {
    {"ps", NULL, NULL, 0.6, true, true, false},
    {"downpour:period=2", "topk:ratio=0.5", NULL, 0.6, true, true, false},
    {"hybrid:groups=2", NULL, NULL, 0.6, true, false, false},
};

enum { SIZE = 3, VICTIM = 1 };

struct shot {
    struct kind kind;
    enum phase phase;
    int signal;
};

struct rank {
    struct ranks_self *self;
    const struct shot *shot;
    bool armed; /* the victim dies when it waits */
};

static bool is_victim(const struct rank *r)
{
    return r->self->rank == VICTIM;
}

static struct ranks_slot *slot_of(const struct rank *r, int rank)
{
    return r->self->slot - r->self->rank + rank;
}

/* The victim announces its position before it dies there. */
static void die(struct rank *r)
{
    atomic_store(&r->self->slot->phase, 1);
    raise(r->shot->signal);
}

/* This trib_idle_fn is called while a rank waits. */
static int look(void *arg)
{
    struct rank *r = arg;

    if (r->armed)
        die(r);
    return 0;
}

/* The others enter a call when the victim is in it, or dead. */
static void let_victim_in(struct rank *r, uint64_t call)
{
    const double until = ranks_seconds() + 15 * tribtest_slowness();
    struct ranks_slot *victim = slot_of(r, VICTIM);

    if (is_victim(r))
        atomic_store(&victim->count, call);
    while (!is_victim(r) && !atomic_load(&victim->phase) &&
           atomic_load(&victim->count) < call && ranks_seconds() < until)
        usleep(200);
}

static void hit(struct rank *r, enum phase phase, uint64_t step)
{
    if (is_victim(r) && r->shot->phase == phase && step >= HIT)
        die(r);
}

/* The victim dies while it waits in the call, or after the call if it does not wait. */
static void hit_within(struct rank *r, enum phase phase, uint64_t step)
{
    if (r->shot->phase != phase || step < HIT)
        return;
    let_victim_in(r, step);
    r->armed = is_victim(r);
}

static trib_status_t one_step(struct rank *r, struct quadratic *q, uint64_t number)
{
    trib_step_t step = TRIB_STEP_INIT;

    hit(r, BEGIN, number);
    trib_status_t st = trib_trainer_begin(q->trainer, &step);
    if (st != TRIB_OK)
        return st;
    for (size_t i = 0; i < QUADRATIC_COUNT; i++)
        step.gradient[i] = step.params[i] - quadratic_target(q->self->rank, i);
    if (q->desc.feed != TRIB_FEED_WHOLE)
        st = trib_trainer_ready(q->trainer, 500, QUADRATIC_COUNT - 500);
    hit(r, COMPUTE, number);
    if (st == TRIB_OK && q->desc.feed != TRIB_FEED_WHOLE)
        st = trib_trainer_ready(q->trainer, 0, 500);
    if (st != TRIB_OK)
        return st;
    hit_within(r, END, number);
    st = trib_trainer_end(q->trainer, 1 + q->self->rank);
    if (r->armed && number >= HIT + 4)
        die(r);
    return st;
}

static trib_status_t finish_and_save(struct rank *r, struct quadratic *q,
                                     uint64_t number)
{
    size_t bytes;

    hit_within(r, SETTLE, number);
    const trib_status_t st = trib_trainer_settle(q->trainer, NULL);
    if (r->armed)
        die(r);
    hit(r, SAVE, number);
    return st == TRIB_OK ? trib_trainer_save(q->trainer, NULL, 0, &bytes) : st;
}

/* Steps until an error tells that a rank is lost; those that do not care finish without
 * it. */
static trib_status_t run_into_it(struct rank *r, struct quadratic *q)
{
    trib_status_t st = TRIB_OK;

    for (uint64_t number = 0; st == TRIB_OK; number++) {
        if (number == MOST)
            ranks_die(q->self, "%s: no error in %d steps", q->desc.strategy, MOST);
        st = one_step(r, q, number);
        if (st == TRIB_OK && number % 12 == 11)
            st = finish_and_save(r, q, number);
        if (r->shot->kind.goes_on && number == 35)
            break;
    }
    return st;
}

/* All others have an error before the first of them announces trib_comm_shrink. */
static void meet(struct rank *r)
{
    const double until = ranks_seconds() + 15 * tribtest_slowness();

    atomic_store(&r->self->slot->phase, 1);
    for (int i = 0; i < SIZE; i++)
        while (i != VICTIM && !atomic_load(&slot_of(r, i)->phase) &&
               ranks_seconds() < until)
            usleep(200);
}

static void names_victim(const struct quadratic *q, trib_comm_t *comm)
{
    int lost[SIZE], n = 0;

    ranks_ok(q->self, trib_comm_lost(comm, lost, SIZE, &n));
    /* A rank that lost a member of its group may not see the loss in the
     * communicator. */
    const bool known = n == 1 && lost[0] == VICTIM;
    if ((!known && !strstr(q->desc.strategy, "groups")) ||
        !strstr(trib_trainer_error(q->trainer), "rank 1"))
        ranks_die(q->self, "%s: %d ranks are lost: %s", q->desc.strategy, n,
                  trib_trainer_error(q->trainer));
}

/* The weights add up to the number of ranks again, and the lost weight is reported. */
static void weights_add_up(const struct quadratic *q)
{
    trib_trainer_stats_t stats = {.size = sizeof(stats)};

    ranks_ok(q->self, trib_trainer_stats(q->trainer, &stats));
    ranks_assert(q->self, stats.moves == 1 && stats.lost_weight != 0);
    double sum = stats.weight;
    ranks_ok(q->self, trib_allreduce(q->self->comm, NULL, &sum, 1, TRIB_F64, TRIB_SUM));
    if (!(fabs(sum - q->self->size) < 1e-12))
        ranks_die(q->self, "weights add up to %.17g", sum);
    explains(q, "weight");
}

static int survives(struct ranks_self *self)
{
    const struct shot *shot = self->arg;
    struct rank r = {.self = self, .shot = shot};
    struct ranks_self fewer;
    struct quadratic q;
    trib_comm_t *comm, *smaller;

    self->opts.idle = look;
    self->opts.idle_arg = &r;
    self->opts.rewind = shot->phase % 2; /* a sum is taken back, or dropped */
    ranks_ok(self, trib_init(&self->opts, &comm));
    self->comm = comm;
    quadratic_init(&q, self, shot->kind.strategy);
    q.desc.codec = shot->kind.codec;
    q.desc.feedback = shot->kind.feedback;
    if (shot->kind.fed) {
        quadratic_cut(&q);
        q.desc.feed = TRIB_FEED_BACKWARD;
    }
    quadratic_open(&q);
    const trib_status_t st = run_into_it(&r, &q);
    if (shot->kind.goes_on && (self->rank == 2 || shot->kind.alone) && st != TRIB_OK)
        ranks_die(self, "%s: %s", shot->kind.strategy, trib_trainer_error(q.trainer));
    if (st != TRIB_OK)
        names_victim(&q, comm);
    meet(&r);
    ranks_assert(self, trib_comm_shrink(comm, &smaller) == TRIB_OK);
    must_move(&q, smaller);
    const trib_status_t freed = trib_free_comm(comm);
    if (freed == TRIB_ERR_BUSY)
        ranks_die(self, "%s: %s", q.desc.strategy, trib_last_error(comm));
    change_comm(&q, &fewer, smaller);
    explains(&q, "from 3 to 2 ranks, 0 of them new");
    if (strstr(shot->kind.strategy, "sgp") || strcmp(shot->kind.strategy, "agp") == 0)
        weights_add_up(&q);
    quadratic_train(&q, STEPS);
    must_be_near(&q, shot->kind.near);
    quadratic_close(&q);
    return trib_free_comm(smaller) != TRIB_OK;
}

static void shoot(struct kind kind, enum phase phase, int signal_number,
                  const char *config)
{
    struct shot shot = {.kind = kind, .phase = phase, .signal = signal_number};
    struct ranks r;
    const struct ranks_job job = {.size = SIZE,
                                  .fn = survives,
                                  .arg = &shot,
                                  .config = config,
                                  .bare = true,
                                  .noisy = true,
                                  .seconds = 40};

    assert_true(ranks_start(&r, &job));
    while (!ranks_poll(&r)) {
        if (r.ended[0] && r.ended[2])
            ranks_signal(&r, VICTIM, SIGKILL);
        usleep(300);
    }
    for (int i = 0; i < SIZE; i++)
        if (i != VICTIM && r.slots[i].status != 0)
            fail_msg("%s %s, signal %d in %s, %s: rank %d: %s", kind.strategy,
                     kind.codec ? kind.codec : "", signal_number, phases[phase], config,
                     i, r.slots[i].text);
    ranks_close(&r);
}

/* Return how long a rank is silent before it counts as stopped. The time is longer
 * where the others do not wait for a stopped rank, because a busy machine also silences
 * ranks. */
static unsigned patience_ms(int signal_number)
{
    return (signal_number == SIGSTOP ? 1000 : 10000) * tribtest_slowness();
}

/* Each strategy in each phase; signals and transports take turns. */
TEST(test_survives)
{
    static const char *const transports[] = {"shm", "tcp"};
    char config[100];

    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
        for (int phase = 0; phase < PHASES; phase++) {
            const size_t turn = k + (size_t)phase;
            const int signal_number = turn / 2 % 2 ? SIGSTOP : SIGKILL;
            snprintf(config, sizeof(config), "transport=%s;stop_timeout_ms=%u",
                     transports[turn % 2], patience_ms(signal_number));
            shoot(kinds[k], (enum phase)phase, signal_number, config);
        }
}

TEST(test_survives_served)
{
    struct daemon_process d = {.threads = 2};
    char config[100];

    assert_true(daemon_folder(d.folder));
    if (!daemon_run(&d)) {
        daemon_end(&d);
        tribtest_skip("built without libmicrohttpd");
    }
    for (size_t k = 0; k < sizeof(served) / sizeof(served[0]); k++)
        for (int phase = COMPUTE; phase <= END; phase++) {
            const int signal_number = k % 2 ? SIGSTOP : SIGKILL;
            snprintf(config, sizeof(config),
                     "transport=shm;stop_timeout_ms=%u;service=127.0.0.1:%d",
                     patience_ms(signal_number), d.port);
            shoot(served[k], (enum phase)phase, signal_number, config);
        }
    daemon_end(&d);
}
