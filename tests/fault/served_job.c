/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/fault/served_job.h"

#include <math.h>

#include "tests/comm/oracle.h"

enum {
    WHOLE,  /* f32 in memory that the service can access, fed in pieces */
    SPARSE, /* with error feedback */
    LEVELS, /* with random rounding */
    COUNTS, /* i32 */
    PLANS,
    COUNT_MOST = 30000,
    WARM_UP = 2,
    AFTER = 6,  /* steps after the fault */
    SERVED = 9, /* number of starts after the fault within which services must sum
                 * again */
    DRAIN = 12, /* steps that drain all residuals */
    RETURN_S = 40,
    SHOT_S = 20, /* the longest wait for a fault */
};

static const struct {
    size_t count;
    const char *codec;
    trib_dtype_t dtype;
    double error; /* tolerance of an element */
} plans[PLANS] = {
    [WHOLE] = {COUNT_MOST, "none", TRIB_F32, 0},
    [SPARSE] = {4097, "topk:ratio=0.25", TRIB_F32, (double)INFINITY},
    [LEVELS] = {8191, "int8", TRIB_F32, 0.5},
    [COUNTS] = {5003, "none", TRIB_I32, 0},
};

struct job {
    struct ranks_self *self;
    const struct served_job *what;
    trib_plan_t *plan[PLANS];
    void *x[PLANS];      /* [plans[p].count], in place */
    double *given, *got; /* [SPARSE count] sums over all steps */
    uint64_t random;     /* random state of this rank */
    double longest;      /* the longest wait after the fault, in seconds */
};

/* Return an input of a rank: a small integer. */
static double number(uint64_t seed, int rank, uint64_t step, size_t i)
{
    return (double)(oracle_mix(seed ^ oracle_mix(i * 64 + (uint64_t)rank) ^
                               step << 40) %
                    17) -
           8;
}

static double sum_of(const struct job *j, uint64_t step, size_t i)
{
    double sum = 0;

    for (int r = 0; r < j->self->size; r++)
        sum += number(j->what->seed, r, step, i);
    return sum;
}

static double at(const struct job *j, int p, size_t i)
{
    return plans[p].dtype == TRIB_I32 ? (double)((int32_t *)j->x[p])[i]
                                      : (double)((float *)j->x[p])[i];
}

static void put(struct job *j, int p, size_t i, double value)
{
    if (plans[p].dtype == TRIB_I32)
        ((int32_t *)j->x[p])[i] = (int32_t)value;
    else
        ((float *)j->x[p])[i] = (float)value;
}

/* Return a key that is unique for each step and plan. */
static uint64_t key(uint64_t step, int p)
{
    return step * PLANS + (uint64_t)p + 1;
}

/* The fault ------------------------------------------------------------------------ */

static int phase(const struct job *j)
{
    return atomic_load(&j->self->slot->phase);
}

/* The marker announces that the job is at this place, and waits for the fault or, if it
 * is the victim, for its end. */
static void mark(const struct job *j, enum place place, bool waits)
{
    const double until = ranks_seconds() + SHOT_S * (double)tribtest_slowness();

    if (j->what->place != place || j->self->rank != j->what->marker ||
        phase(j) != JOB_COMES)
        return;
    atomic_store(&j->self->slot->phase, JOB_THERE);
    while (waits &&
           (j->what->hit || (phase(j) != JOB_FIRED && ranks_seconds() < until)))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    if (waits) /* the others may or may not notice */
        nanosleep(&(struct timespec){.tv_nsec = (long)(j->what->seed % 30) * 1000000},
                  NULL);
}

/* Steps ---------------------------------------------------------------------------- */

static trib_status_t make(struct job *j)
{
    trib_comm_t *comm = j->self->comm;
    trib_status_t st = trib_alloc(comm, COUNT_MOST * sizeof(float), &j->x[WHOLE]);

    for (int p = 0; p < PLANS && st == TRIB_OK; p++) {
        trib_desc_t d = TRIB_DESC_INIT;
        if (p != WHOLE)
            j->x[p] = calloc(plans[p].count, sizeof(float));
        ranks_assert(j->self, j->x[p]);
        d.recv = j->x[p];
        d.count = plans[p].count;
        d.dtype = plans[p].dtype;
        d.codec = plans[p].codec;
        d.chunk = 4096;
        d.feed = p == WHOLE ? TRIB_FEED_FORWARD : TRIB_FEED_WHOLE;
        st = trib_plan_allreduce(comm, &d, &j->plan[p]);
    }
    j->given = calloc(plans[SPARSE].count, sizeof(double));
    j->got = calloc(plans[SPARSE].count, sizeof(double));
    ranks_assert(j->self, j->given && j->got);
    return st;
}

static void check(struct job *j, uint64_t step, int p)
{
    for (size_t i = 0; i < plans[p].count; i++) {
        const double is = at(j, p, i), should = sum_of(j, key(step, p), i);
        if (p == SPARSE)
            j->got[i] += is;
        else if (!(fabs(is - should) <= plans[p].error))
            ranks_die(j->self, "step %llu, plan %d, element %zu is %g, not %g",
                      (unsigned long long)step, p, i, is, should);
    }
}

static trib_status_t wait_for(struct job *j, uint64_t step, int p)
{
    const double begin = ranks_seconds();
    const trib_status_t st = trib_plan_wait(j->plan[p]);
    const double took = ranks_seconds() - begin;

    if (phase(j) == JOB_FIRED && took > j->longest)
        j->longest = took;
    if (st == TRIB_OK)
        check(j, step, p);
    return st;
}

/* Start all plans, and wait for them in an order that differs per rank. */
static trib_status_t step_once(struct job *j, uint64_t step)
{
    const size_t all = plans[WHOLE].count, third = all / 3;
    trib_status_t st = TRIB_OK;

    for (int p = 0; p < PLANS && st == TRIB_OK; p++) {
        for (size_t i = 0; i < plans[p].count; i++)
            put(j, p, i, number(j->what->seed, j->self->rank, key(step, p), i));
        st = trib_plan_start(j->plan[p]);
        if (p == WHOLE && st == TRIB_OK)
            st = trib_plan_ready(j->plan[p], 0, third);
    }
    for (size_t i = 0; i < plans[SPARSE].count; i++)
        j->given[i] += sum_of(j, key(step, SPARSE), i);
    if (step >= WARM_UP)
        mark(j, AT_PLANS, true);
    if (st == TRIB_OK)
        st = trib_plan_ready(j->plan[WHOLE], third, all - third);
    j->random = oracle_mix(j->random);
    for (int k = 0; k < PLANS && st == TRIB_OK; k++)
        st = wait_for(j, step, (int)((j->random + (uint64_t)k) % PLANS));
    return st;
}

static trib_status_t drain(struct job *j)
{
    const size_t n = plans[SPARSE].count;
    trib_status_t st = TRIB_OK;

    for (int k = 0; k < DRAIN && st == TRIB_OK; k++) {
        for (size_t i = 0; i < n; i++)
            put(j, SPARSE, i, 0);
        st = trib_plan_start(j->plan[SPARSE]);
        if (st == TRIB_OK)
            st = trib_plan_wait(j->plan[SPARSE]);
        for (size_t i = 0; i < n; i++)
            j->got[i] += at(j, SPARSE, i);
    }
    for (size_t i = 0; i < n && st == TRIB_OK; i++)
        if (j->got[i] != j->given[i])
            ranks_die(j->self,
                      "element %zu of the sparse sums: %g came out, %g went in", i,
                      j->got[i], j->given[i]);
    return st;
}

static uint64_t served(const struct job *j)
{
    trib_stats_t stats = {.size = sizeof(stats)};

    ranks_ok(j->self, trib_stats(j->self->comm, &stats));
    return stats.served;
}

/* Rank 0 decides whether there is another step. */
struct end {
    uint64_t steps, served; /* since the fault */
    double by;
};

static int goes_on(const struct job *j, struct end *e)
{
    const enum place place = j->what->place;

    if (place == AT_LEAVING)
        return ++e->steps <= WARM_UP;
    if (phase(j) != JOB_FIRED)
        return 1;
    if (e->steps++ == 0) {
        e->served = served(j);
        e->by = ranks_seconds() + RETURN_S * (double)tribtest_slowness();
    }
    if (e->steps <= AFTER)
        return 1;
    if (!j->what->returns || served(j) >= e->served + SERVED)
        return 0;
    if (ranks_seconds() > e->by)
        ranks_die(j->self, "no service sums again");
    return 1;
}

static trib_status_t work(struct job *j)
{
    struct end end = {0};
    trib_status_t st = make(j);

    if (st == TRIB_OK)
        mark(j, AT_FIRST, true);
    for (uint64_t step = 0; st == TRIB_OK; step++) {
        int32_t on = j->self->rank == 0 && goes_on(j, &end);
        if (step > 0)
            st = trib_broadcast(j->self->comm, &on, 1, TRIB_I32, 0);
        if (st != TRIB_OK || (step > 0 && !on))
            break;
        if (step >= WARM_UP)
            mark(j, AT_SUMS, false);
        st = step_once(j, step);
    }
    return st == TRIB_OK ? drain(j) : st;
}

static void drop(struct job *j)
{
    for (int p = 0; p < PLANS; p++) {
        if (j->plan[p])
            ranks_ok(j->self, trib_plan_free(j->plan[p]));
        if (p != WHOLE)
            free(j->x[p]);
    }
    if (j->x[WHOLE])
        ranks_ok(j->self, trib_free(j->self->comm, j->x[WHOLE]));
    free(j->given);
    free(j->got);
}

int served_act(struct ranks_self *self)
{
    struct job j = {.self = self, .what = self->arg};

    j.random = j.what->seed + (uint64_t)self->rank;
    mark(&j, AT_MEETING, false);
    const double begin = ranks_seconds();
    trib_status_t st = trib_init(&self->opts, &self->comm);
    if (phase(&j) == JOB_FIRED)
        j.longest = ranks_seconds() - begin;
    if (st == TRIB_OK)
        st = work(&j);
    if (st == TRIB_OK) {
        drop(&j);
        mark(&j, AT_LEAVING, true);
        st = trib_free_comm(self->comm);
        self->comm = NULL;
        j = (struct job){.self = self, .what = j.what, .longest = j.longest};
    }
    self->slot->begin = ranks_seconds();
    if (st == TRIB_OK)
        ranks_say(self, "longest wait %f s", j.longest);
    else
        ranks_say(self, "%s", trib_last_error(self->comm));
    atomic_store(&self->slot->count, (uint64_t)-st);
    if (self->comm) {
        drop(&j);
        /* A plan that could not be created has not failed its communicator:
         * trib_free_comm may be the first call to notice the loss. */
        const trib_status_t left = trib_free_comm(self->comm);
        if (left != st)
            ranks_ok(self, left);
    }
    return 0;
}
