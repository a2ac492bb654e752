/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asynchronous push-sum: a rank takes all its steps while others are stopped, with at
 * most one share per edge in flight; weights and the mean are kept with a slow rank;
 * trib_trainer_settle collects all shares; the ranks agree; the slow rank uses the same
 * learning rate as the others.
 */
#include <math.h>

#include <tributary/train.h>

#include "tests/harness/ranks.h"

enum { COUNT = 5000, STEPS = 200, SLOWER = 8 }; /* a share is no short message */

struct free_run {
    struct ranks_self *self;
    trib_trainer_t *trainer;
    float x[COUNT];
};

static void must(const struct free_run *f, trib_status_t st)
{
    if (st != TRIB_OK)
        ranks_die(f->self, "%s", trib_trainer_error(f->trainer));
}

static struct free_run *open_run(struct ranks_self *self, const char *rate)
{
    struct free_run *f = calloc(1, sizeof(*f));
    trib_trainer_desc_t desc = TRIB_TRAINER_DESC_INIT;

    f->self = self;
    desc.params = f->x;
    desc.count = COUNT;
    desc.strategy = "agp";
    desc.optimizer = "sgd";
    desc.rate = rate;
    if (trib_trainer_create(self->comm, &desc, &f->trainer) != TRIB_OK)
        ranks_die(self, "%s", trib_trainer_error(NULL));
    return f;
}

static void close_run(struct free_run *f)
{
    must(f, trib_trainer_free(f->trainer));
    free(f);
}

/* Rank r puts this in by its first step, so that the mean is known. */
static float own(int rank, size_t i)
{
    return (float)(rank * 8 + (int)(i % 8));
}

/* Run one step. Return the distance between the rank and the mean of all inputs. */
static double step(struct free_run *f, bool first)
{
    trib_step_t step = TRIB_STEP_INIT;
    double off = 0;

    must(f, trib_trainer_begin(f->trainer, &step));
    for (size_t i = 0; i < COUNT; i++) {
        const double mean = (double)(i % 8) + 8 * 0.5 * (f->self->size - 1);
        off = fmax(off, fabs((double)step.params[i] - mean));
        step.gradient[i] = first ? -own(f->self->rank, i) : 0;
    }
    must(f, trib_trainer_end(f->trainer, 0));
    return off;
}

static trib_trainer_stats_t stats_of(const struct free_run *f)
{
    trib_trainer_stats_t stats = {.size = sizeof(stats)};

    must(f, trib_trainer_stats(f->trainer, &stats));
    return stats;
}

/* Check the weights, whichever step each rank has reached. */
static void check_weights(const struct free_run *f, bool at_rest)
{
    const trib_trainer_stats_t stats = stats_of(f);
    double sum[2] = {stats.weight + stats.weight_under_way, stats.weight};

    ranks_assert(f->self, stats.weight > 0);
    ranks_ok(f->self, trib_allreduce(f->self->comm, NULL, sum, 2, TRIB_F64, TRIB_SUM));
    if (!(fabs(sum[0] - f->self->size) < 1e-12) ||
        (at_rest && !(fabs(sum[1] - f->self->size) < 1e-12)))
        ranks_die(f->self, "weights add up to %.17g, and at rest %.17g", sum[0],
                  sum[1]);
}

static void check_mean(const struct free_run *f)
{
    for (size_t i = 0; i < COUNT; i++) {
        const double mean = (double)(i % 8) + 8 * 0.5 * (f->self->size - 1);
        if (!(fabs((double)f->x[i] - mean) < 1e-4 * mean + 1e-4))
            ranks_die(f->self, "element %zu is %g, not %g", i, (double)f->x[i], mean);
    }
}

/* Rank 0 runs all of its steps before the others begin, and they run theirs while it is
 * idle. */
static int waits_for_nobody(struct ranks_self *self)
{
    struct free_run *f = open_run(self, "1");
    _Atomic int *phase = &self->slot[-self->rank].phase; /* rank 0's */
    int hops = 0;

    while (1 << hops < self->size)
        hops++;
    while (self->rank != 0 && *phase == 0)
        usleep(1000);
    for (int k = 0; k < STEPS; k++)
        step(f, k == 0);
    const trib_trainer_stats_t stats = stats_of(f);
    if (self->rank == 0) {
        *phase = 1; /* also where the next lines fail */
        ranks_assert(self, stats.rounds > 0 && stats.rounds <= (uint64_t)hops);
        ranks_assert(self, stats.weight >= 0.25);
    }
    check_weights(f, false);
    must(f, trib_trainer_settle(f->trainer, NULL));
    check_weights(f, true);
    check_mean(f);
    must(f, trib_trainer_settle(f->trainer, NULL)); /* nothing is in flight */
    check_mean(f);
    close_run(f);
    return 0;
}

TEST_ON(test_waits_for_nobody, "shm", "tcp")
{
    ranks_pass(.size = 2, .fn = waits_for_nobody, .config = *state);
    ranks_pass(.size = 5, .fn = waits_for_nobody, .config = *state);
    ranks_pass(.size = 3, .fn = waits_for_nobody, .config = *state, .threads = true);
}

/* Rank 1 runs one step while the others run SLOWER; all finish, then continue. They
 * agree afterwards, and freeing adds the shares in flight. */
RANKS_TEST_ON(test_beside_a_slow_rank, ("shm", "tcp"), .size = 4)
{
    const bool is_slow = self->rank == 1;
    struct free_run *f = open_run(self, "1");
    double off = 0;

    for (int turn = 0; turn < 4; turn++) {
        for (int k = 0; k < (is_slow ? STEPS / SLOWER : STEPS); k++) {
            off = step(f, turn == 0 && k == 0);
            usleep(is_slow ? 200 * SLOWER : 200);
        }
        check_weights(f, false);
        must(f, trib_trainer_settle(f->trainer, NULL));
        check_weights(f, true);
        check_mean(f);
    }
    if (!(off < 0.01))
        ranks_die(self, "%g from the mean at the end", off);
    step(f, false);
    close_run(f);
    return 0;
}

/* Rank 0 reaches the end of its run, where the rate is 0. Its shares tell rank 1, which
 * has run few steps, so that rank 1's next step changes nothing. */
RANKS_TEST_ON(test_rate_is_that_of_the_run, ("shm"), .size = 2)
{
    struct free_run *f = open_run(self, "linear:rate=1,warmup=0,steps=50");
    trib_step_t one = TRIB_STEP_INIT;

    for (int turn = 0; turn < 20; turn++) {
        for (int k = 0; k < (self->rank ? 1 : 5); k++) {
            must(f, trib_trainer_begin(f->trainer, &one));
            memset(one.gradient, 0, COUNT * sizeof(float));
            must(f, trib_trainer_end(f->trainer, 0));
        }
        must(f, trib_trainer_settle(f->trainer, NULL));
    }
    must(f, trib_trainer_begin(f->trainer, &one));
    for (size_t i = 0; i < COUNT; i++)
        one.gradient[i] = self->rank == 1 ? 1 : 0;
    must(f, trib_trainer_end(f->trainer, 0));
    must(f, trib_trainer_settle(f->trainer, NULL));
    for (size_t i = 0; i < COUNT; i++)
        ranks_assert(self, fabsf(f->x[i]) < 1e-3f);
    close_run(f);
    return 0;
}

RANKS_TEST_ON(test_refuses_codecs, ("shm"), .size = 2)
{
    trib_trainer_desc_t desc = TRIB_TRAINER_DESC_INIT;
    trib_trainer_t *trainer = NULL;
    static float x[COUNT];

    desc.params = x;
    desc.count = COUNT;
    desc.strategy = "agp+int8";
    ranks_assert(self, trib_trainer_create(self->comm, &desc, &trainer) ==
                           TRIB_ERR_UNSUPPORTED);
    ranks_assert(self, ranks_has(trib_trainer_error(NULL),
                                 (const char *const[]){"agp", "int8", NULL}));
    return 0;
}
