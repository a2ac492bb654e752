/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parameter server: tribd's store holds the parameters. Each rank pushes its gradient
 * and pulls the result, at its own pace. The store applies the optimizer to gradients
 * as its rule. staleness bounds the number of pushes by which ranks may differ; with 0
 * all ranks pull the same version.
 *
 * With period > 1 a rank takes local steps and pushes their change (Downpour). With
 * groups the ranks of a group average their gradients, and the group's first rank
 * pushes the mean.
 *
 * Dean et al., Downpour, NeurIPS 2012; Ho et al., stale synchronous, NeurIPS 2013;
 * Buchlovsky et al., TF-Replicator, 2019 (groups).
 */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tributary/elastic.h>
#include <tributary/store.h>

#include "train/trainer/trainer.h"

enum { STALENESS, PERIOD, GROUPS, KEYS };

static const struct trib_keyed_key keys[KEYS] = {
    [STALENESS] = {"staleness", -1, 1e6, true, "a number of pushes, or -1, no bound"},
    [PERIOD] = {"period", 1, 1e6, true, "a number of steps from 1 to 1e6"},
    [GROUPS] = {"groups", 0, 65536, true, "a number of groups, or 0, each rank"},
};
static const double server_defaults[KEYS] = {[STALENESS] = -1, [PERIOD] = 1};
static const double downpour_defaults[KEYS] = {[STALENESS] = -1, [PERIOD] = 4};
static const double hybrid_defaults[KEYS] = {
    [STALENESS] = -1, [PERIOD] = 1, [GROUPS] = 2};

struct server {
    float *x; /* [count] the last pull plus the rank's local steps */
    float *pulled; /* [count] the last pull; NULL unless period > 1 */
    float *gradient; /* [count] */
    float *model; /* [count] result of the last server_finish */
    float *residual; /* [count] residual of pushes with a codec; or NULL */
    bool finished; /* no rank has pushed since the last server_finish */
    trib_comm_t *group; /* NULL: no groups */
    /* the first ranks of all groups; NULL: no groups, or not a first rank */
    trib_comm_t *heads;
    /* the surviving ranks, used only by server_finish; NULL: this rank has left because
     * its group failed */
    trib_comm_t *meet;
    trib_comm_t *left; /* `meet` after a shrink; owned by s; else NULL */
    bool pushes; /* this rank pushes */
    struct trib_train_sum *sum; /* over the group */
    trib_store_t *store;
    trib_vector_t *vector;
    uint64_t version; /* version of the last pull */
};

static bool has_period(const struct trib_trainer *t)
{
    return trib_train_number(t, PERIOD) > 1;
}

static bool pushes_codec(const struct trib_trainer *t)
{
    return t->parts.codec && trib_train_number(t, GROUPS) < 1;
}

static const struct trib_train_vector vectors[] = {
    {.at = offsetof(struct server, x), .params = true},
    {.at = offsetof(struct server, gradient), .peers = true},
    {.at = offsetof(struct server, pulled), .params = true, .when = has_period},
    {.at = offsetof(struct server, model)},
    {.at = offsetof(struct server, residual), .when = pushes_codec},
};

static trib_status_t store_taken(struct trib_trainer *t, const struct server *s,
                                 trib_status_t status)
{
    return status < 0 ? trib_fail(&t->err, status, "%s", trib_store_error(s->store))
                      : status;
}

/* Print the optimizer as a rule of the store. Each push carries the learning rate. */
static trib_status_t rule_of(struct trib_trainer *t, char *text, size_t bytes)
{
    const struct trib_train_optimizer *o = &t->optimizer;

    if (has_period(t))
        snprintf(text, bytes, "sum");
    else if (o->update)
        return trib_fail(
            &t->err, TRIB_ERR_UNSUPPORTED,
            "strategy %s: the store applies gradients itself, not by a callback: name "
            "an optimizer",
            t->choice.row->name);
    else
        trib_train_optimizer_rule(o, t->rate.rate, text, bytes);
    return TRIB_OK;
}

/* Return the communicator of the ranks that push. */
static trib_comm_t *pushers(const struct trib_trainer *t, const struct server *s)
{
    return s->heads ? s->heads : t->comm;
}

static trib_status_t pushers_taken(struct trib_trainer *t, const struct server *s,
                                   trib_status_t status)
{
    return status < 0 ? trib_fail(&t->err, status, "%s", trib_last_error(pushers(t, s)))
                      : status;
}

static trib_status_t make_vector(struct trib_trainer *t, struct server *s)
{
    trib_vector_desc_t desc = TRIB_VECTOR_DESC_INIT;
    char rule[160];

    trib_status_t st = rule_of(t, rule, sizeof(rule));
    if (st == TRIB_OK)
        st = trib_store_open(pushers(t, s), &s->store);
    if (st != TRIB_OK)
        return t->err.status ? st : pushers_taken(t, s, st);
    desc.name = "params";
    desc.count = t->count;
    desc.rule = rule;
    desc.initial = t->params;
    desc.push_codec = s->group ? NULL : t->parts.codec;
    st = trib_store_create(s->store, &desc, &s->vector);
    if (st == TRIB_OK)
        st = trib_store_set_staleness(s->store, (int)trib_train_number(t, STALENESS));
    return store_taken(t, s, st);
}

static trib_status_t make_groups(struct trib_trainer *t, struct server *s)
{
    const int asked = (int)trib_train_number(t, GROUPS),
              groups = t->moves && asked > t->ranks ? t->ranks : asked,
              group = (int)((int64_t)t->rank * groups / t->ranks);

    s->pushes = true;
    if (groups == 0)
        return trib_train_refuse_parts(t);
    if (has_period(t))
        return trib_fail(&t->err, TRIB_ERR_UNSUPPORTED,
                         "strategy %s: with groups=%d, period must be 1",
                         t->choice.row->name, groups);
    if (groups > t->ranks)
        return trib_fail(&t->err, TRIB_ERR_INVALID,
                         "strategy %s: groups=%d, but there are %d ranks",
                         t->choice.row->name, groups, t->ranks);
    trib_status_t st = trib_train_split(t, group, &s->group);
    if (st != TRIB_OK)
        return st;
    s->pushes = trib_rank(s->group) == 0;
    st = trib_train_split(t, s->pushes ? 0 : -1, &s->heads);
    return st != TRIB_OK ? st
                         : trib_train_make_sum_of(t, s->group, "gradient",
                                                  TRIB_FEED_WHOLE, &s->sum);
}

static trib_status_t server_create(struct trib_trainer *t)
{
    struct server *s = t->strategy;
    trib_status_t st = trib_train_split(t, 0, &s->meet);

    if (st == TRIB_OK)
        st = make_groups(t, s);
    return st == TRIB_OK && s->pushes ? make_vector(t, s) : st;
}

static void server_destroy(struct trib_trainer *t)
{
    const struct server *s = t->strategy;

    trib_store_free(s->store);
    trib_free_comm(s->left);
}

static trib_status_t push_and_pull(struct trib_trainer *t, struct server *s,
                                   const float *data)
{
    trib_push_opts_t opts = TRIB_PUSH_OPTS_INIT;
    const bool bounded = trib_train_number(t, STALENESS) >= 0;
    const uint64_t began = trib_train_now();
    uint64_t version = 0;

    if (!has_period(t)) /* 0 would select the rule's rate */
        opts.rate = fmax(trib_train_rate_at(&t->rate, t->number), DBL_MIN);
    opts.result = bounded ? NULL : s->x;
    trib_status_t st = trib_store_push(s->vector, data, &opts, &version);
    if (st == TRIB_OK && version > s->version)
        t->stats.stale += version - 1 - s->version;
    if (st == TRIB_OK && bounded)
        st = trib_store_pull(s->vector, s->x, NULL, &version);
    s->version = version;
    st = store_taken(t, s, st);
    if (st == TRIB_OK && trib_train_number(t, STALENESS) == 0)
        st = pushers_taken(t, s, trib_barrier(pushers(t, s)));
    t->stats.wait_ns += trib_train_now() - began;
    t->stats.rounds++;
    t->stats.dense_bytes += t->count * sizeof(float);
    return st;
}

/* Take a local step; at the end of a period push the accumulated change. */
static trib_status_t step_alone(struct trib_trainer *t, struct server *s)
{
    trib_train_update(t, s->x, s->gradient, trib_train_rate_at(&t->rate, t->number));
    if ((t->number + 1) % (uint64_t)trib_train_number(t, PERIOD) != 0)
        return TRIB_OK;
    for (size_t i = 0; i < t->count; i++)
        s->gradient[i] = s->x[i] - s->pulled[i];

    const trib_status_t st = push_and_pull(t, s, s->gradient);
    if (st == TRIB_OK)
        memcpy(s->pulled, s->x, t->count * sizeof(float));
    return st;
}

static trib_status_t step_in_group(struct trib_trainer *t, struct server *s)
{
    trib_status_t st = trib_train_start(t, s->sum, s->gradient);

    if (st == TRIB_OK)
        st = trib_train_wait(t, s->sum, NULL, NULL);
    if (st == TRIB_OK && s->pushes)
        st = push_and_pull(t, s, s->gradient);
    if (st != TRIB_OK)
        return st;
    return trib_train_set_group_error(
        t, s->group, trib_broadcast(s->group, s->x, t->count, TRIB_F32, 0));
}

/* This rank's group has failed: abort `meet`, so that the surviving ranks do not wait
 * for this rank. */
static void leave(struct trib_trainer *t, struct server *s)
{
    if (!s->meet)
        return;
    trib_comm_abort(s->meet, "its group has failed");
    if (s->left)
        trib_free_comm(s->left);
    else
        trib_train_unsplit(t, s->meet);
    s->meet = s->left = NULL;
}

static trib_status_t server_end(struct trib_trainer *t, double loss)
{
    struct server *s = t->strategy;

    (void)loss;
    s->finished = false;
    if (s->group) {
        const trib_status_t st = step_in_group(t, s);

        if (st != TRIB_OK)
            leave(t, s);
        return st;
    }
    return s->pulled ? step_alone(t, s) : push_and_pull(t, s, s->gradient);
}

/* Pull the current version, however stale other ranks are. */
static trib_status_t pull_newest(struct trib_trainer *t, struct server *s, float *out)
{
    trib_store_set_staleness(s->store, TRIB_STALE_ANY);
    const trib_status_t st = trib_store_pull(s->vector, out, NULL, NULL);
    trib_store_set_staleness(s->store, (int)trib_train_number(t, STALENESS));
    return st;
}

/* Pull after all ranks have arrived, when all pushes are complete. The first rank that
 * pushes pulls the vector and broadcasts its status and the vector. */
static trib_status_t pull_together(struct trib_trainer *t, struct server *s)
{
    int32_t from = s->pushes ? trib_rank(s->meet) : trib_size(s->meet),
            pulled = TRIB_OK;
    trib_status_t st = trib_allreduce(s->meet, NULL, &from, 1, TRIB_I32, TRIB_MIN);

    if (st == TRIB_OK && from == trib_rank(s->meet))
        pulled = pull_newest(t, s, s->model);
    if (st == TRIB_OK && from < trib_size(s->meet))
        st = trib_broadcast(s->meet, &pulled, 1, TRIB_I32, from);
    if (st == TRIB_OK && pulled == TRIB_OK && from < trib_size(s->meet))
        return trib_broadcast(s->meet, s->model, t->count, TRIB_F32, from);
    if (st != TRIB_OK)
        return st;
    return trib_fail(&t->err, pulled == TRIB_OK ? TRIB_ERR_PEER_LOST : pulled, "%s",
                     from == trib_rank(s->meet)
                         ? trib_store_error(s->store)
                         : "no rank has received the model of the store");
}

/* Include steps since the last push in the model, as if they had been pushed. The store
 * does not change: the next push contains them. */
static trib_status_t add_steps(struct trib_trainer *t, struct server *s,
                               float *model_out)
{
    int32_t since = s->pulled && memcmp(s->x, s->pulled, t->count * sizeof(float)) != 0;
    trib_status_t st = trib_allreduce(s->meet, NULL, &since, 1, TRIB_I32, TRIB_MAX);

    if (st != TRIB_OK || !since)
        return st;
    for (size_t i = 0; i < t->count; i++)
        s->gradient[i] = s->x[i] - s->pulled[i];
    st = trib_allreduce(s->meet, NULL, s->gradient, t->count, TRIB_F32, TRIB_SUM);
    for (size_t i = 0; i < t->count && st == TRIB_OK; i++)
        model_out[i] += s->gradient[i];
    return st;
}

/* Collect the model of all surviving ranks. */
static trib_status_t collect_model(struct trib_trainer *t, struct server *s,
                                   float *model_out)
{
    const trib_status_t st = pull_together(t, s);

    if (st != TRIB_OK)
        return st;
    memcpy(model_out, s->model, t->count * sizeof(float));
    return s->pulled ? add_steps(t, s, model_out) : TRIB_OK;
}

/* Return true if all other ranks are lost or have left. */
static bool is_alone(const struct server *s)
{
    const int ranks = trib_size(s->meet);
    int *lost = calloc((size_t)ranks, sizeof(*lost)), n = 0;
    bool mine = !lost || trib_comm_lost(s->meet, lost, ranks, &n) != TRIB_OK;

    for (int i = 0; i < n && !mine; i++)
        mine = lost[i] == trib_rank(s->meet);
    free(lost);
    return !mine && n == ranks - 1;
}

/* Compute the model of a rank that is alone. */
static trib_status_t own_model(struct trib_trainer *t, struct server *s,
                               float *model_out)
{
    const trib_status_t st = store_taken(t, s, pull_newest(t, s, s->model));

    if (st != TRIB_OK)
        return st;
    for (size_t i = 0; i < t->count; i++)
        model_out[i] = s->model[i] + (s->pulled ? s->x[i] - s->pulled[i] : 0);
    return TRIB_OK;
}

/* Continue without lost ranks. The last rank uses its own model, because a communicator
 * of one rank cannot be made. */
static trib_status_t shrink(struct trib_trainer *t, struct server *s, float *model_out)
{
    trib_comm_t *smaller;
    const trib_status_t st = trib_comm_shrink(s->meet, &smaller);

    if (st != TRIB_OK && s->pushes && is_alone(s))
        return own_model(t, s, model_out);
    if (st != TRIB_OK)
        return trib_fail(&t->err, st, "%s", trib_last_error(NULL));
    trib_free_comm(s->left);
    s->meet = s->left = smaller;
    return collect_model(t, s, model_out);
}

/* Collect the model; shrink and retry when ranks are lost, because a lost rank pushes
 * no further changes. */
static trib_status_t server_finish(struct trib_trainer *t, float *model_out)
{
    struct server *s = t->strategy;

    if (!s->meet)
        return trib_fail(&t->err, TRIB_ERR_PEER_LOST,
                         "the group of this rank has lost a rank");
    trib_status_t st = collect_model(t, s, model_out);
    while ((st == TRIB_ERR_PEER_LOST || st == TRIB_ERR_ABORTED) &&
           t->err.status == TRIB_OK)
        st = shrink(t, s, model_out);
    if (st < 0)
        return trib_fail(&t->err, st, "%s", trib_last_error(s->meet));
    s->finished = true;
    return TRIB_OK;
}

/* Return true if a save would miss pushes to the vector. */
static bool server_busy(const struct trib_trainer *t)
{
    const struct server *s = t->strategy;

    return !s->finished && t->number > 0;
}

static void server_model(struct trib_trainer *t, float *out)
{
    struct server *s = t->strategy;

    if (!s->vector || pull_newest(t, s, out) != TRIB_OK)
        memcpy(out, s->x, t->count * sizeof(float));
}

/* Prefer ranks that push as the source, because they can read the store. */
static uint64_t server_ahead(const struct trib_trainer *t)
{
    const struct server *s = t->strategy;

    return s->vector != NULL;
}

static trib_status_t server_collect(struct trib_trainer *t)
{
    const struct server *s = t->strategy;

    return s->residual
               ? store_taken(
                     t, s, trib_store_residual_get(s->vector, 0, t->count, s->residual))
               : TRIB_OK;
}

static trib_status_t give_residual(struct trib_trainer *t, const struct server *s)
{
    return s->residual
               ? store_taken(
                     t, s, trib_store_residual_set(s->vector, 0, t->count, s->residual))
               : TRIB_OK;
}

/* Restore the vector in the store. The state of its rule is reset. */
static trib_status_t server_loaded(struct trib_trainer *t)
{
    struct server *s = t->strategy;
    trib_status_t st = TRIB_OK;

    s->finished = true;
    if (s->vector)
        st = store_taken(
            t, s, trib_store_restore(s->store, s->vector, 0, s->model, &s->version));
    return st == TRIB_OK ? give_residual(t, s) : st;
}

static trib_status_t server_moved(struct trib_trainer *t,
                                  const struct trib_train_move *m)
{
    struct server *s = t->strategy;

    (void)m;
    if (s->group)
        memcpy(s->x, t->params, t->count * sizeof(float));
    return give_residual(t, s);
}

static int server_fields(struct trib_trainer *t,
                         struct trib_train_field out[TRIB_TRAIN_FIELDS])
{
    const struct server *s = t->strategy;
    const size_t bytes = t->count * sizeof(float);

    int n = 0;

    out[n++] = (struct trib_train_field){"own", s->x, bytes, false};
    out[n++] = (struct trib_train_field){"model", s->model, bytes, false};
    if (s->residual)
        out[n++] = (struct trib_train_field){"residual", s->residual, bytes, false};
    if (s->pulled)
        out[n++] = (struct trib_train_field){"pulled", s->pulled, bytes, false};
    return n;
}

static uint64_t server_store_bytes(const struct trib_trainer *t)
{
    const struct server *s = t->strategy;
    trib_store_stats_t stats = TRIB_STORE_STATS_INIT;

    return s->store && trib_store_stats(s->store, &stats) == TRIB_OK ? stats.sent_bytes
                                                                     : 0;
}

static void server_explain(const struct trib_trainer *t, char *text, size_t bytes)
{
    char late[64] = "ranks any number of pushes apart";

    if (trib_train_number(t, STALENESS) >= 0)
        snprintf(late, sizeof(late), "ranks at most %g pushes apart",
                 trib_train_number(t, STALENESS));
    snprintf(text, bytes, "pushes to a store in tribd every %g step%s, %s",
             trib_train_number(t, PERIOD), has_period(t) ? "s" : "", late);
}

#define SERVER(starts) \
    { \
        .apart = true, .keys = keys, .defaults = starts, .n_keys = KEYS, \
        .state_bytes = sizeof(struct server), .vectors = vectors, \
        .n_vectors = sizeof(vectors) / sizeof(*vectors), .create = server_create, \
        .destroy = server_destroy, .end = server_end, .finish = server_finish, \
        .busy = server_busy, .fields = server_fields, .collect = server_collect, \
        .loaded = server_loaded, .store_bytes = server_store_bytes, \
        .model = server_model, .ahead = server_ahead, .moved = server_moved, \
        .explain = server_explain \
    }

const struct trib_strategy_ops trib_strategy_ps = SERVER(server_defaults);
const struct trib_strategy_ops trib_strategy_downpour = SERVER(downpour_defaults);
const struct trib_strategy_ops trib_strategy_hybrid = SERVER(hybrid_defaults);
