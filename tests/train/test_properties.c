/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Properties that papers claim for strategies: weights of push-sum add up with shares
 * in flight, means are exact after log2 n rounds, codecs with error feedback lose
 * nothing, equal strategies return equal bits, and a seed reproduces a run.
 */
#include <math.h>

#include "tests/harness/daemon.h"
#include "tests/train/quadratic.h"

/* Push-sum ------------------------------------------------------------------- */

static double sum_of_weights(struct quadratic *q)
{
    trib_trainer_stats_t stats = {.size = sizeof(stats)};

    ranks_ok(q->self, trib_trainer_stats(q->trainer, &stats));
    ranks_assert(q->self, stats.weight > 0);
    double sum = stats.weight + stats.weight_under_way;
    ranks_ok(q->self, trib_allreduce(q->self->comm, NULL, &sum, 1, TRIB_F64, TRIB_SUM));
    return sum;
}

/* The weights alone, once nothing is in flight. */
static double sum_at_rest(struct quadratic *q)
{
    trib_trainer_stats_t stats = {.size = sizeof(stats)};

    ranks_ok(q->self, trib_trainer_stats(q->trainer, &stats));
    double sum = stats.weight;
    ranks_ok(q->self, trib_allreduce(q->self->comm, NULL, &sum, 1, TRIB_F64, TRIB_SUM));
    return sum;
}

static int weights_add_up(struct ranks_self *self)
{
    static const char *const strategies[] = {"sgp",
                                             "sgp:graph=random,peers=2",
                                             "sgp:graph=bipartite",
                                             "sgp:graph=ring",
                                             "osgp:tau=2",
                                             "osgp:graph=random,tau=3,peers=2",
                                             "sgp:peers=2+int8",
                                             "osgp:tau=2+f16"};

    for (size_t s = 0; s < sizeof(strategies) / sizeof(strategies[0]); s++) {
        struct quadratic q;

        quadratic_init(&q, self, strategies[s]);
        quadratic_open(&q);
        for (int k = 0; k < 20; k++) {
            quadratic_steps(&q, 1);
            const double sum = sum_of_weights(&q);
            if (!(fabs(sum - self->size) < 1e-12))
                ranks_die(self, "%s: weights add up to %.17g after step %d",
                          strategies[s], sum, k);
        }
        quadratic_finish(&q);
        ranks_assert(self, fabs(sum_at_rest(&q) - self->size) < 1e-12);
        quadratic_close(&q);
    }
    return 0;
}

TEST(test_weights_add_up)
{
    ranks_pass(.size = 3, .fn = weights_add_up, .config = "transport=shm",
               .threads = true);
    ranks_pass(.size = 5, .fn = weights_add_up, .config = "transport=tcp");
}

/* One step passes a different vector on each rank; later gradients are 0. */
static void scatter(struct quadratic *q)
{
    trib_step_t step = TRIB_STEP_INIT;

    ranks_ok(q->self, trib_trainer_begin(q->trainer, &step));
    for (size_t i = 0; i < QUADRATIC_COUNT; i++)
        step.gradient[i] = -10 * (float)(q->self->rank * 8 + (int)(i % 8));
    ranks_ok(q->self, trib_trainer_end(q->trainer, 0));
}

/* Returns how far this rank is from the mean, without another step. */
static double off_mean(struct quadratic *q)
{
    trib_step_t step = TRIB_STEP_INIT;
    double off = 0;

    ranks_ok(q->self, trib_trainer_begin(q->trainer, &step));
    for (size_t i = 0; i < QUADRATIC_COUNT; i++) {
        const double mean =
            (double)(i % 5) + (double)(i % 8) + 8 * 0.5 * (q->self->size - 1);
        off = fmax(off, fabs((double)step.params[i] - mean));
        step.gradient[i] = 0;
    }
    ranks_ok(q->self, trib_trainer_end(q->trainer, 0));
    return off;
}

/* With hops 1, 2, 4, … log2 n rounds compute the exact mean of n = 2^m ranks, for any
 * initial values. */
static int mean_is_exact(struct ranks_self *self)
{
    int rounds = 0;
    struct quadratic q;

    while (1 << rounds < self->size)
        rounds++;
    quadratic_init(&q, self, "sgp:graph=exponential");
    quadratic_open(&q);
    scatter(&q);
    for (int k = 1; k < rounds; k++) {
        double off = off_mean(&q);
        ranks_ok(self, trib_allreduce(self->comm, NULL, &off, 1, TRIB_F64, TRIB_MAX));
        ranks_assert(self, off > 1);
    }
    const double off = off_mean(&q);
    if (!(off < 1e-4))
        ranks_die(self, "%g from the mean of %d ranks", off, self->size);
    quadratic_close(&q);
    return 0;
}

TEST(test_mean_is_exact)
{
    for (int size = 2; size <= 8; size *= 2)
        ranks_pass(.size = size, .fn = mean_is_exact, .config = "transport=shm");
}

/* Error feedback ------------------------------------------------------------- */

enum { ROUNDS = 6 };

static float value_of(int rank, int step, size_t i)
{
    return (float)((int)((i * 7 + (size_t)rank * 31 + (size_t)step * 13) % 64) - 32);
}

struct flow {
    const char *strategy;
    int more; /* inputs are divided by the number of ranks plus `more` */
};

/* Move the trainer in mid-run to the same ranks in reverse order. */
static void turn_round(struct quadratic *q, trib_comm_t **comm_out)
{
    quadratic_finish(q);
    ranks_ok(q->self, trib_split(q->self->comm, 0, -q->self->rank, comm_out));
    if (trib_trainer_move(q->trainer, *comm_out) != TRIB_OK)
        ranks_die(q->self, "%s", trib_trainer_error(q->trainer));
}

/* At rate 1 the model moves by the sum of all inputs, minus the residuals of codecs.
 * Steps with gradient 0 then release the residuals, also on another communicator. */
static void flows(struct ranks_self *self, const struct flow *f, bool cut, bool moves)
{
    const double share = f->more < 0 ? 1 : 1.0 / (self->size + f->more);
    struct quadratic q;
    double expected[QUADRATIC_COUNT];
    trib_comm_t *other = NULL;

    quadratic_init(&q, self, f->strategy);
    q.desc.rate = "1";
    if (cut)
        quadratic_cut(&q);
    for (size_t i = 0; i < QUADRATIC_COUNT; i++)
        expected[i] = (double)(i % 5);
    quadratic_open(&q);
    for (int k = 0; k < 10 * ROUNDS; k++) {
        trib_step_t step = TRIB_STEP_INIT;
        if (k == ROUNDS && moves)
            turn_round(&q, &other);
        ranks_ok(self, trib_trainer_begin(q.trainer, &step));
        for (size_t i = 0; i < QUADRATIC_COUNT; i++) {
            step.gradient[i] = k < ROUNDS ? value_of(self->rank, k, i) : 0;
            for (int r = 0; r < self->size && k < ROUNDS; r++)
                expected[i] -= share * (double)value_of(r, k, i);
        }
        ranks_ok(self, trib_trainer_end(q.trainer, 0));
    }
    quadratic_finish(&q);
    quadratic_close(&q);
    ranks_ok(self, trib_free_comm(other));
    for (size_t i = 0; i < QUADRATIC_COUNT; i++)
        if (!(fabs((double)q.x[i] - expected[i]) < 1e-2))
            ranks_die(self, "%s%s: element %zu is %g, and should be %g", f->strategy,
                      moves ? ", moved" : "", i, (double)q.x[i], expected[i]);
}

/* Elastic averaging divides it among the ranks and the centre. */
static const struct flow all_flows[] = {
    {"sync+topk:ratio=0.3", 0},
    {"pipe:width=2+topk:ratio=0.3", 0},
    {"local:period=2+topk:ratio=0.3", 0},
    {"local:period=2,late=1+topk:ratio=0.3", 0},
    {"local:period=3,fragments=3+qsgd:bits=4,ef=1", 0},
    {"easgd:period=1+topk:ratio=0.3", 1},
};
static const struct flow served_flows[] = {
    {"ps+topk:ratio=0.3", -1},
    {"downpour:period=2+topk:ratio=0.3", -1},
    {"hybrid:groups=1+topk:ratio=0.3", 0},
};

RANKS_TEST(test_nothing_is_lost, .size = 3, .config = "transport=shm", .threads = true)
{
    for (size_t f = 0; f < sizeof(all_flows) / sizeof(all_flows[0]); f++)
        for (int how = 0; how < 4; how++)
            flows(self, &all_flows[f], how & 1, how & 2);
    return 0;
}

static int nothing_is_lost_served(struct ranks_self *self)
{
    for (size_t f = 0; f < sizeof(served_flows) / sizeof(served_flows[0]); f++)
        for (int moves = 0; moves < 2; moves++)
            flows(self, &served_flows[f], false, moves);
    return 0;
}

/* Equal strategies ------------------------------------------------------------ */

static void train_at(struct ranks_self *self, const char *strategy, const char *rate,
                     const char *optimizer, int steps, float x[QUADRATIC_COUNT])
{
    struct quadratic q;

    quadratic_init(&q, self, strategy);
    q.desc.optimizer = optimizer;
    q.desc.rate = rate;
    quadratic_open(&q);
    quadratic_steps(&q, steps);
    quadratic_finish(&q);
    quadratic_close(&q);
    memcpy(x, q.x, sizeof(q.x));
}

static void train(struct ranks_self *self, const char *strategy, const char *optimizer,
                  int steps, float x[QUADRATIC_COUNT])
{
    train_at(self, strategy, "0.1", optimizer, steps, x);
}

RANKS_TEST(test_are_equal, .size = 3, .config = "transport=shm")
{
    static const struct {
        const char *a, *b, *optimizer;
        double within;
    } pairs[] = {
        {"sync", "pipe:width=1", "sgd:momentum=0.5", 0},
        {"sync", "pipe:width=1,predict=1", "adam", 0},
        {"sync+topk:ratio=0.2", "pipe:width=1+topk:ratio=0.2", NULL, 0},
        {"sync", "local:period=1,rate=1", NULL, 1e-5},
        {"local:period=3", "diloco:period=3,rate=1,momentum=0,nesterov=0", "adam", 0},
        {"sgp:tau=1", "osgp", NULL, 0.5},
    };
    float a[QUADRATIC_COUNT], b[QUADRATIC_COUNT];

    for (size_t p = 0; p < sizeof(pairs) / sizeof(pairs[0]); p++) {
        double most = 0;

        train(self, pairs[p].a, pairs[p].optimizer, 25, a);
        train(self, pairs[p].b, pairs[p].optimizer, 25, b);
        for (size_t i = 0; i < QUADRATIC_COUNT; i++)
            most = fmax(most, fabs((double)a[i] - (double)b[i]));
        if (!(most <= pairs[p].within))
            ranks_die(self, "%s and %s are %g apart", pairs[p].a, pairs[p].b, most);
    }
    return 0;
}

RANKS_TEST(test_repeats, .size = 3, .config = "transport=tcp")
{
    static const char *const strategies[] = {"sync+qsgd:bits=4",
                                             "pipe+natural",
                                             "local:period=4+topk:ratio=0.2",
                                             "diloco:period=4,fragments=2,late=1",
                                             "sgp:graph=random,peers=2",
                                             "sgp+qsgd",
                                             "easgd",
                                             "lsgd:groups=2"};
    float a[QUADRATIC_COUNT], b[QUADRATIC_COUNT];

    for (size_t s = 0; s < sizeof(strategies) / sizeof(strategies[0]); s++) {
        train(self, strategies[s], "sgd:momentum=0.9", 20, a);
        train(self, strategies[s], "sgd:momentum=0.9", 20, b);
        if (memcmp(a, b, sizeof(a)) != 0)
            ranks_die(self, "%s: another run has other bits", strategies[s]);
    }
    return 0;
}

/* Oracles -------------------------------------------------------------------- */

enum { ORACLE_STEPS = 24 };

/* All ranks and the centre, in float64. */
RANKS_TEST(test_centre_is_right, .size = 3, .config = "transport=shm")
{
    const double rate = 0.1, beta = 0.6;
    struct quadratic q;
    double most = 0;

    quadratic_init(&q, self, "easgd:period=3,beta=0.6");
    quadratic_open(&q);
    quadratic_steps(&q, ORACLE_STEPS);
    quadratic_finish(&q);
    quadratic_close(&q);
    for (size_t i = 0; i < QUADRATIC_COUNT; i++) {
        double centre = (double)(i % 5), x[RANKS_MAX];

        for (int r = 0; r < self->size; r++)
            x[r] = centre;
        for (int k = 0; k < ORACLE_STEPS; k++) {
            double distance = 0;

            for (int r = 0; r < self->size; r++)
                x[r] -= rate * (x[r] - (double)quadratic_target(r, i));
            for (int r = 0; r < self->size && k % 3 == 2; r++) {
                distance += x[r] - centre;
                x[r] -= beta / self->size * (x[r] - centre);
            }
            centre += beta / self->size * distance;
        }
        most = fmax(most, fabs((double)q.x[i] - centre));
    }
    if (!(most < 1e-5))
        ranks_die(self, "the centre is %g from that of the oracle", most);
    return 0;
}

/* At pull 1 all ranks have the leader's parameters after an election. A NaN loss never
 * wins, and among equal losses the lowest rank leads. */
RANKS_TEST(test_best_leads, .size = 3, .config = "transport=shm")
{
    static const struct {
        double losses[3];
        int leader;
    } votes[] = {{{3, 1, 2}, 1},   {{1, 1, 1}, 0},       {{2, 1, 1}, 1},
                 {{NAN, 5, 4}, 2}, {{NAN, NAN, NAN}, 0}, {{1, NAN, INFINITY}, 0}};

    for (size_t v = 0; v < sizeof(votes) / sizeof(votes[0]); v++) {
        struct quadratic q;
        trib_step_t step = TRIB_STEP_INIT;

        quadratic_init(&q, self, "lsgd:period=1,pull=1");
        q.desc.rate = "1";
        quadratic_open(&q);
        ranks_ok(self, trib_trainer_begin(q.trainer, &step));
        for (size_t i = 0; i < QUADRATIC_COUNT; i++)
            step.gradient[i] = step.params[i] - (float)self->rank;
        ranks_ok(self, trib_trainer_end(q.trainer, votes[v].losses[self->rank]));
        ranks_ok(self, trib_trainer_begin(q.trainer, &step));
        for (size_t i = 0; i < QUADRATIC_COUNT; i++)
            if (fabsf(step.params[i] - (float)votes[v].leader) > 1e-5f)
                ranks_die(self, "vote %zu: %g is not of rank %d", v,
                          (double)step.params[i], votes[v].leader);
        memset(step.gradient, 0, QUADRATIC_COUNT * sizeof(float));
        ranks_ok(self, trib_trainer_end(q.trainer, 0));
        quadratic_close(&q);
    }
    return 0;
}

/* Beside a tribd -------------------------------------------------------------- */

static void save_state(struct quadratic *q, unsigned char **bytes_out, size_t *n_out)
{
    ranks_ok(q->self, trib_trainer_save(q->trainer, NULL, 0, n_out));
    *bytes_out = malloc(*n_out);
    ranks_assert(q->self, *bytes_out);
    ranks_ok(q->self, trib_trainer_save(q->trainer, *bytes_out, *n_out, n_out));
}

static void near(const struct ranks_self *self, const char *what, const float *a,
                 const float *b, double within)
{
    double most = 0;

    for (size_t i = 0; i < QUADRATIC_COUNT; i++)
        most = fmax(most, fabs((double)a[i] - (double)b[i]));
    if (!(most <= within))
        ranks_die(self, "%s: %g apart", what, most);
}

/* A store with a single rank is plain SGD. Ranks in step take gradients at the same
 * parameters, so all pushes of a step together are a synchronous step. */
static int serves(struct ranks_self *self)
{
    static const char *const alone[] = {"ps", "ps:staleness=0", "downpour:period=1",
                                        "downpour:period=4", "hybrid:groups=1"};
    float a[QUADRATIC_COUNT], b[QUADRATIC_COUNT];
    char rate[32];

    train(self, "sync", "sgd:momentum=0.5", 24, a);
    for (size_t s = 0; s < sizeof(alone) / sizeof(alone[0]) && self->size == 1; s++) {
        train(self, alone[s], "sgd:momentum=0.5", 24, b);
        near(self, alone[s], a, b, 1e-5);
    }
    train(self, "sync", "sgd:momentum=0.5", 22, a); /* within a period */
    train(self, "downpour:period=4", "sgd:momentum=0.5", 22, b);
    if (self->size == 1)
        near(self, "downpour that stops within a period", a, b, 1e-5);
    train(self, "sync", "sgd:momentum=0.5", 24, a);
    train(self, "hybrid:groups=1", "sgd:momentum=0.5", 24, b);
    near(self, "hybrid of one group", a, b, 1e-5);
    snprintf(rate, sizeof(rate), "%.17g", 0.1 / self->size);
    train(self, "sync", NULL, 24, a);
    train_at(self, "ps:staleness=0", rate, NULL, 24, b);
    near(self, "ps in step", a, b, 1e-5);
    return 0;
}

/* A run that is loaded has the vector of the saved one in its store. A state that one
 * rank refuses is refused on all. */
static int is_served_on(struct ranks_self *self)
{
    static const char *const strategies[] = {"ps", "ps+topk:ratio=0.25",
                                             "downpour:period=3", "hybrid:groups=2"};

    for (size_t s = 0; s < sizeof(strategies) / sizeof(strategies[0]); s++) {
        struct quadratic a, b;
        unsigned char *bytes;
        size_t n;

        quadratic_init(&a, self, strategies[s]);
        if (self->size == 1 && s == 3)
            continue;
        quadratic_open(&a);
        quadratic_steps(&a, 11);
        ranks_expect(self, trib_trainer_save(a.trainer, NULL, 0, &n), TRIB_ERR_BUSY,
                     "save before trib_trainer_settle");
        quadratic_finish(&a);
        save_state(&a, &bytes, &n);
        quadratic_init(&b, self, strategies[s]);
        quadratic_open(&b);
        quadratic_steps(&b, 3);
        quadratic_finish(&b);
        bytes[n - 1] ^= self->rank == self->size - 1; /* damaged on one rank */
        ranks_expect(self, trib_trainer_load(b.trainer, bytes, n), TRIB_ERR_INVALID,
                     strategies[s]);
        ranks_assert(
            self,
            strstr(trib_trainer_error(b.trainer),
                   self->rank == self->size - 1 ? "damaged" : "cannot load its state"));
        bytes[n - 1] ^= self->rank == self->size - 1;
        ranks_ok(self, trib_trainer_load(b.trainer, bytes, n));
        quadratic_finish(&b);
        near(self, strategies[s], a.x, b.x, 0);
        quadratic_steps(&a, 9);
        quadratic_finish(&a);
        quadratic_steps(&b, 9);
        quadratic_finish(&b);
        near(self, strategies[s], a.x, b.x, self->size == 1 ? 0 : 2);
        free(bytes);
        quadratic_close(&a);
        quadratic_close(&b);
    }
    return 0;
}

enum { LATE_COUNT = 4000, LATE_STEP = 3, LATE_STEPS = 7 };

/* The others finish one step before the last rank, which waits for them: a quorum is
 * enough. Its contribution is added later. */
static int passes_straggler(struct ranks_self *self)
{
    const bool is_late = self->rank == self->size - 1;
    static float x[LATE_COUNT];
    trib_trainer_desc_t desc = TRIB_TRAINER_DESC_INIT;
    trib_trainer_t *t;

    memset(x, 0, sizeof(x));
    desc.params = x;
    desc.count = LATE_COUNT;
    desc.rate = "1";
    if (trib_trainer_create(self->comm, &desc, &t) != TRIB_OK)
        ranks_die(self, "%s", trib_trainer_error(NULL));
    for (int k = 0; k < LATE_STEPS; k++) {
        trib_step_t step = TRIB_STEP_INIT;
        ranks_ok(self, trib_trainer_begin(t, &step));
        for (size_t i = 0; i < LATE_COUNT; i++)
            step.gradient[i] = is_late && k == LATE_STEP ? (float)self->size : 0;
        for (int r = 0; r < self->size - 1 && is_late && k == LATE_STEP; r++)
            while (atomic_load(&(self->slot - self->rank + r)->count) <= LATE_STEP)
                usleep(200);
        if (trib_trainer_end(t, 0) != TRIB_OK)
            ranks_die(self, "%s", trib_trainer_error(t));
        atomic_store(&self->slot->count, (uint64_t)k + 1);
    }
    ranks_ok(self, trib_trainer_settle(t, NULL));
    for (size_t i = 0; i < LATE_COUNT; i++)
        if (fabsf(x[i] + 1) > 1e-6f)
            ranks_die(self, "element %zu is %g, not -1", i, (double)x[i]);
    ranks_ok(self, trib_trainer_free(t));
    return 0;
}

TEST(test_served)
{
    struct daemon_process d = {.threads = 2};
    char config[100];

    daemon_need(&d);
    for (int size = 1; size <= 3; size += 2) {
        snprintf(config, sizeof(config), "transport=shm;service=127.0.0.1:%d", d.port);
        ranks_pass(.size = size, .fn = serves, .config = config);
        ranks_pass(.size = size, .fn = is_served_on, .config = config);
        ranks_pass(.size = size, .fn = nothing_is_lost_served, .config = config);
    }
    snprintf(config, sizeof(config),
             "transport=shm;service=127.0.0.1:%d;quorum=0.6,deadline=5ms", d.port);
    ranks_pass(.size = 3, .fn = passes_straggler, .config = config, .seconds = 30);
    daemon_end(&d);
}
