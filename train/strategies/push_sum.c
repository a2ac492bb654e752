/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Push-sum: each rank takes a local step and sends shares of its parameters x, and of a
 * weight w, to some peers; the graph changes at each step. Gradients are computed at x
 * / w. With tau > 0 shares are added up to tau steps later, so that a slow rank does
 * not delay the others at once.
 *
 * Assran et al., Stochastic Gradient Push, ICML 2019 (SGP and overlapped SGP).
 */
#include <stdio.h>
#include <string.h>

#include <tributary/neighbors.h>

#include "train/strategies/push_weight.h"
#include "train/trainer/graph.h"

enum { GRAPH, PEERS, TAU, KEYS };

static const struct trib_keyed_key keys[KEYS] = {
    [GRAPH] = {.name = "graph",
               .must = "exponential, ring, bipartite or random",
               .words = trib_train_graph_words},
    [PEERS] = {"peers", 1, TRIB_TRAIN_GRAPH_PEERS, true, "a number from 1 to 16"},
    [TAU] = {"tau", 0, 1000, true, "a number of steps from 0 to 1000"},
};
static const double sgp_defaults[KEYS] = {[PEERS] = 1};
static const double osgp_defaults[KEYS] = {[PEERS] = 1, [TAU] = 1};

struct push_sum {
    struct trib_push push; /* x is in memory that peers can access */
    float *z; /* [count] x / w; during an exchange a copy of x */
    float *gradient; /* [count] */
    trib_plan_t *plan;
};

static const struct trib_train_vector vectors[] = {
    {.at = offsetof(struct push_sum, z)},
    {.at = offsetof(struct push_sum, gradient)},
    {.at = offsetof(struct push_sum, push.x), .peers = true, .params = true},
};

static trib_status_t make_plan(struct trib_trainer *t, struct push_sum *p)
{
    trib_neighbors_desc_t desc = TRIB_NEIGHBORS_DESC_INIT;

    desc.count = t->count;
    desc.late = (int)trib_train_number(t, TAU);
    desc.codec = t->parts.codec;
    return trib_train_set_comm_error(t, trib_plan_neighbors(t->comm, &desc, &p->plan));
}

static trib_status_t push_sum_create(struct trib_trainer *t)
{
    struct push_sum *p = t->strategy;
    const trib_status_t st = trib_train_refuse_parts(t);

    p->push.weight = 1;
    return st == TRIB_OK ? make_plan(t, p) : st;
}

static void push_sum_destroy(struct trib_trainer *t)
{
    struct push_sum *p = t->strategy;

    if (trib_plan_free(p->plan) == TRIB_ERR_BUSY) {
        if (trib_plan_start_drain(p->plan, p->push.x, &p->push.weight) == TRIB_OK)
            trib_plan_wait(p->plan);
        trib_plan_free(p->plan);
    }
}

static trib_status_t push_sum_begin(struct trib_trainer *t, trib_step_t *step)
{
    struct push_sum *p = t->strategy;

    (void)step;
    trib_push_unbias(t, &p->push, p->z);
    return TRIB_OK;
}

/* Wait for the operation started with status st. After an error restore x and w, so
 * that z is a point of this rank and not a mixture. */
static trib_status_t finish(struct trib_trainer *t, struct push_sum *p,
                            trib_status_t st, double weight)
{
    if (st == TRIB_OK)
        st = trib_plan_wait(p->plan);
    if (st != TRIB_OK) {
        memcpy(p->push.x, p->z, t->count * sizeof(float));
        p->push.weight = weight;
    }
    return trib_train_set_comm_error(t, st);
}

static trib_status_t exchange(struct trib_trainer *t, struct push_sum *p)
{
    int to[TRIB_TRAIN_GRAPH_PEERS], from[TRIB_TRAIN_GRAPH_PEERS];
    double shares[TRIB_TRAIN_GRAPH_PEERS];
    trib_neighbors_t graph = TRIB_NEIGHBORS_INIT;
    const int n = trib_train_graph_at(
        (enum trib_train_graph)trib_train_number(t, GRAPH), t->rank, t->ranks,
        (int)trib_train_number(t, PEERS), t->number, t->seed, to, from);

    for (int i = 0; i < n; i++)
        shares[i] = 1.0 / (n + 1);
    graph.to = to;
    graph.shares = shares;
    graph.n_to = n;
    graph.from = from;
    graph.n_from = n;
    t->stats.rounds++;
    t->stats.dense_bytes += (uint64_t)n * t->count * sizeof(float);

    const uint64_t began = trib_train_now();
    const double weight = p->push.weight;
    memcpy(p->z, p->push.x, t->count * sizeof(float));
    trib_status_t st =
        trib_plan_start_neighbors(p->plan, &graph, p->push.x, &p->push.weight);
    st = finish(t, p, st, weight);
    t->stats.wait_ns += trib_train_now() - began;
    return st;
}

static trib_status_t push_sum_end(struct trib_trainer *t, double loss)
{
    struct push_sum *p = t->strategy;

    (void)loss;
    trib_train_update(t, p->push.x, p->gradient,
                      trib_train_rate_at(&t->rate, t->number));
    return exchange(t, p);
}

static trib_status_t push_sum_finish(struct trib_trainer *t, float *model_out)
{
    struct push_sum *p = t->strategy;
    const double weight = p->push.weight;

    memcpy(p->z, p->push.x, t->count * sizeof(float));
    trib_status_t st = trib_plan_start_drain(p->plan, p->push.x, &p->push.weight);
    st = finish(t, p, st, weight);
    return st == TRIB_OK ? trib_train_mean(t, p->push.x, model_out) : st;
}

static bool push_sum_busy(const struct trib_trainer *t)
{
    const struct push_sum *p = t->strategy;
    trib_in_flight_t counts = TRIB_IN_FLIGHT_INIT;

    return trib_plan_in_flight(p->plan, &counts) == TRIB_OK &&
           counts.unsent + counts.awaited + counts.arrived > 0;
}

static void push_sum_stats(struct trib_trainer *t, trib_trainer_stats_t *stats)
{
    const struct push_sum *p = t->strategy;
    trib_in_flight_t counts = TRIB_IN_FLIGHT_INIT;

    stats->weight = p->push.weight;
    if (trib_plan_in_flight(p->plan, &counts) == TRIB_OK)
        stats->weight_under_way = counts.weight_given - counts.weight_added;
}

static void push_sum_explain(const struct trib_trainer *t, char *text, size_t bytes)
{
    snprintf(
        text, bytes,
        "shares of parameters and weights to %g peer%s of a graph that is %s, added "
        "%s",
        trib_train_number(t, PEERS), trib_train_number(t, PEERS) > 1 ? "s" : "",
        trib_train_graph_words[(int)trib_train_number(t, GRAPH)],
        trib_train_number(t, TAU) > 0 ? "late" : "at once");
}

#define PUSH_SUM(starts) \
    { \
        .apart = true, .keys = keys, .defaults = starts, .n_keys = KEYS, \
        .state_bytes = sizeof(struct push_sum), .vectors = vectors, \
        .n_vectors = sizeof(vectors) / sizeof(*vectors), .create = push_sum_create, \
        .destroy = push_sum_destroy, .begin = push_sum_begin, .end = push_sum_end, \
        .finish = push_sum_finish, .busy = push_sum_busy, .fields = trib_push_fields, \
        .model = trib_push_model, .moved = trib_push_moved, .stats = push_sum_stats, \
        .explain = push_sum_explain \
    }

const struct trib_strategy_ops trib_strategy_sgp = PUSH_SUM(sgp_defaults);
const struct trib_strategy_ops trib_strategy_osgp = PUSH_SUM(osgp_defaults);
