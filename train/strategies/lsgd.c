/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Leaders: each rank takes steps of its own and is pulled towards the best rank of its
 * group, and of all, by the mean of its newest losses. Every `period` steps a group
 * elects its leader, which broadcasts its parameters; every `global` steps all do.
 * Between elections each step pulls a little towards the leaders as they were.
 *
 * Teng et al., Leader Stochastic Gradient Descent, NeurIPS 2019.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/trainer.h"

enum { PERIOD, GLOBAL, PULL, GROUPS, KEYS };

static const struct trib_keyed_key keys[KEYS] = {
    [PERIOD] = {"period", 1, 1e6, true, "a number of steps from 1 to 1e6"},
    [GLOBAL] = {"global", 0, 1e6, true, "a multiple of the period, or 0"},
    [PULL] = {"pull", 0, 1, false, "a number from 0 to 1"},
    [GROUPS] = {"groups", 1, 1024, true, "a number of groups from 1 to 1024"},
};
static const double defaults[KEYS] = {[PERIOD] = 4, [PULL] = 0.1, [GROUPS] = 1};

/* Leaders of one set of ranks. */
struct circle {
    trib_comm_t *comm;
    int rank, ranks;
    uint64_t period; /* steps between elections; 0: none */
    float *leader; /* [count] its parameters at the last election; in reach of peers */
    bool elected;
};

struct leader {
    float *x; /* [count] the rank's own parameters */
    float *gradient; /* [count] */
    struct circle group, all;
    double loss; /* sum since the last election of the group */
    uint64_t losses;
    double newest; /* mean at the last election */
};

static trib_status_t make_circle(struct trib_trainer *t, trib_comm_t *comm,
                                 uint64_t period, struct circle *c)
{
    void *memory;

    c->comm = comm;
    c->rank = trib_rank(comm);
    c->ranks = trib_size(comm);
    c->period = period;
    const trib_status_t st = trib_alloc(comm, t->count * sizeof(float), &memory);
    if (st != TRIB_OK)
        return trib_fail(&t->err, st, "%s", trib_last_error(comm));
    c->leader = memory;
    return TRIB_OK;
}

static trib_status_t make_groups(struct trib_trainer *t, struct leader *l)
{
    const int groups = (int)trib_train_number(t, GROUPS);
    const uint64_t period = (uint64_t)trib_train_number(t, PERIOD);
    uint64_t global = (uint64_t)trib_train_number(t, GLOBAL);
    trib_comm_t *comm;

    if (groups > t->ranks)
        return trib_fail(&t->err, TRIB_ERR_INVALID,
                         "strategy lsgd: groups=%d, and there are %d ranks", groups,
                         t->ranks);
    if (global % period != 0)
        return trib_fail(&t->err, TRIB_ERR_INVALID,
                         "strategy lsgd: global=%g is not a multiple of period=%g",
                         trib_train_number(t, GLOBAL), trib_train_number(t, PERIOD));
    if (groups == 1)
        return make_circle(t, t->comm, period, &l->all);

    trib_status_t st = trib_train_taken(
        t, trib_split(t->comm, (int)((int64_t)t->rank * groups / t->ranks), t->rank,
                      &comm));
    if (st == TRIB_OK)
        st = make_circle(t, comm, period, &l->group);
    global = global ? global : 4 * period;
    return st == TRIB_OK ? make_circle(t, t->comm, global, &l->all) : st;
}

static trib_status_t leader_create(struct trib_trainer *t)
{
    struct leader *l = t->strategy = calloc(1, sizeof(*l));

    if (!l)
        return trib_fail(&t->err, TRIB_ERR_NO_MEMORY, "no memory for a strategy");
    if (t->parts.codec)
        return trib_fail(&t->err, TRIB_ERR_UNSUPPORTED,
                         "strategy lsgd broadcasts parameters as they are, and not by "
                         "codec \"%s\"",
                         t->parts.codec);
    trib_status_t st = trib_train_calloc(t, t->count, &l->x);
    if (st == TRIB_OK)
        st = trib_train_calloc(t, t->count, &l->gradient);
    if (st != TRIB_OK)
        return st;
    memcpy(l->x, t->params, t->count * sizeof(float));
    return make_groups(t, l);
}

static void leader_destroy(struct trib_trainer *t)
{
    struct leader *l = t->strategy;

    if (l->group.comm) {
        trib_free(l->group.comm, l->group.leader);
        trib_free_comm(l->group.comm);
    }
    trib_free(t->comm, l->all.leader);
    free(l->x);
    free(l->gradient);
    free(l);
}

static trib_status_t leader_begin(struct trib_trainer *t, trib_step_t *step)
{
    const struct leader *l = t->strategy;

    step->params = l->x;
    step->gradient = l->gradient;
    return TRIB_OK;
}

static void pull(const struct trib_trainer *t, float *restrict x,
                 const float *restrict leader, double by)
{
    const float a = (float)by;

    for (size_t i = 0; i < t->count; i++)
        x[i] += a * (leader[i] - x[i]);
}

/* The rank of the least loss; of equal ones the lowest rank. Losses that are not
 * numbers lose. */
static int best_of(const double *losses, int ranks)
{
    int best = 0;

    for (int r = 1; r < ranks; r++)
        if (losses[r] < losses[best] || (isnan(losses[best]) && !isnan(losses[r])))
            best = r;
    return best;
}

static trib_status_t elect(struct trib_trainer *t, struct leader *l, struct circle *c)
{
    double *losses = calloc((size_t)c->ranks, sizeof(*losses));
    const uint64_t began = trib_train_now();

    if (!losses)
        return trib_fail(&t->err, TRIB_ERR_NO_MEMORY, "no memory for losses");
    trib_status_t st = trib_allgather(c->comm, &l->newest, losses, 1, TRIB_F64);
    const int best = best_of(losses, c->ranks);

    free(losses);
    if (st == TRIB_OK && best == c->rank)
        memcpy(c->leader, l->x, t->count * sizeof(float));
    if (st == TRIB_OK)
        st = trib_broadcast(c->comm, c->leader, t->count, TRIB_F32, best);
    t->stats.wait_ns += trib_train_now() - began;
    t->stats.rounds++;
    t->stats.dense_bytes += t->count * sizeof(float);
    if (st != TRIB_OK)
        return trib_fail(&t->err, st, "%s", trib_last_error(c->comm));
    c->elected = true;
    pull(t, l->x, c->leader, trib_train_number(t, PULL));
    return TRIB_OK;
}

static trib_status_t follow(struct trib_trainer *t, struct leader *l, struct circle *c)
{
    if (c->period == 0)
        return TRIB_OK;
    if (c->elected)
        pull(t, l->x, c->leader, trib_train_number(t, PULL) / (double)c->period);
    return (t->number + 1) % c->period == 0 ? elect(t, l, c) : TRIB_OK;
}

static trib_status_t leader_end(struct trib_trainer *t, double loss)
{
    struct leader *l = t->strategy;

    trib_train_update(t, l->x, l->gradient, trib_train_rate_at(&t->rate, t->number));
    l->loss += loss;
    l->losses++;
    if ((t->number + 1) % (uint64_t)trib_train_number(t, PERIOD) == 0) {
        l->newest = l->loss / (double)l->losses;
        l->loss = 0;
        l->losses = 0;
    }
    const trib_status_t st = follow(t, l, &l->group);
    return st == TRIB_OK ? follow(t, l, &l->all) : st;
}

static trib_status_t leader_settle(struct trib_trainer *t, float *model_out)
{
    const struct leader *l = t->strategy;

    return trib_train_mean(t, l->x, model_out);
}

static bool leader_busy(const struct trib_trainer *t)
{
    (void)t;
    return false;
}

static int leader_fields(struct trib_trainer *t,
                         struct trib_train_field out[TRIB_TRAIN_FIELDS])
{
    struct leader *l = t->strategy;
    const size_t bytes = t->count * sizeof(float);
    int n = 0;

    out[n++] = (struct trib_train_field){l->x, bytes, true};
    out[n++] = (struct trib_train_field){l->all.leader, bytes, true};
    out[n++] = (struct trib_train_field){&l->all.elected, sizeof(l->all.elected), true};
    if (l->group.comm) {
        out[n++] = (struct trib_train_field){l->group.leader, bytes, true};
        out[n++] = (struct trib_train_field){&l->group.elected,
                                             sizeof(l->group.elected), true};
    }
    out[n++] = (struct trib_train_field){&l->loss, sizeof(l->loss), false};
    out[n++] = (struct trib_train_field){&l->losses, sizeof(l->losses), false};
    out[n++] = (struct trib_train_field){&l->newest, sizeof(l->newest), false};
    return n;
}

static void leader_explain(const struct trib_trainer *t, char *text, size_t bytes)
{
    snprintf(text, bytes, "every %g steps pulled by %g towards the best rank%s",
             trib_train_number(t, PERIOD), trib_train_number(t, PULL),
             trib_train_number(t, GROUPS) > 1 ? " of the group, more rarely of all"
                                              : "");
}

const struct trib_strategy_ops trib_strategy_lsgd = {
    .keys = keys,
    .defaults = defaults,
    .n_keys = KEYS,
    .create = leader_create,
    .destroy = leader_destroy,
    .begin = leader_begin,
    .end = leader_end,
    .settle = leader_settle,
    .busy = leader_busy,
    .fields = leader_fields,
    .explain = leader_explain,
};
