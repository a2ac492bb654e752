/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asynchronous push-sum: no step waits for another rank. Each rank takes steps at its
 * own pace, adds the shares that have arrived, and sends half of its parameters x and
 * weight w to the rank 1, 2, 4, … further on, in turn. An edge buffers one share. If
 * the receiver has not taken it yet, the sender tries the next hop; if all hops are
 * full, it keeps everything. So the data in flight is bounded, and a slow rank receives
 * only as much as it takes: it gathers weight until it sends as much as it receives.
 *
 * Assran and Rabbat, Asynchronous Gradient-Push, IEEE Trans. Automatic Control, 2021.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <tributary/send.h>

#include "train/strategies/push_weight.h"

/* a tag that user messages in the communicator do not use */
enum { HOPS = 31, TAG = 1 << 30 };

/* Trailer of a share, in place of floats. */
struct note {
    double weight;
    uint64_t step; /* the latest step that the sender knows of */
};
enum { NOTE_FLOATS = sizeof(struct note) / sizeof(float) };

/* A rank with less weight sends nothing until it has received a share. */
static const double least = 0.5;

/* Weight of a closing message, which has no share. */
static const double closing_weight = -1;

/* Messages to or from the rank at a given hop. */
struct edge {
    float *share; /* [count + NOTE_FLOATS] memory that the peer can access */
    trib_plan_t *plan;
    bool under_way, closed;
};

struct async_push_sum {
    struct trib_push push;
    float *z; /* [count] x / w */
    float *gradient; /* [count] */
    /* latest step of any rank, as far as known here; determines the rate */
    uint64_t step;
    double sent, added; /* total weight sent and received */
    struct edge to[HOPS], from[HOPS];
    int hops, turn;
    bool open; /* receives are posted */
};

static const struct trib_train_vector vectors[] = {
    {.at = offsetof(struct async_push_sum, z)},
    {.at = offsetof(struct async_push_sum, gradient)},
    {.at = offsetof(struct async_push_sum, push.x), .params = true},
};

static trib_status_t make_edge(struct trib_trainer *t, struct edge *e, int peer,
                               bool gives)
{
    const size_t count = t->count + NOTE_FLOATS;
    const trib_status_t st = trib_train_alloc(t, count, &e->share);

    if (st != TRIB_OK)
        return st;
    return trib_train_set_comm_error(
        t,
        gives
            ? trib_plan_send(t->comm, e->share, count, TRIB_F32, peer, TAG, &e->plan)
            : trib_plan_recv(t->comm, e->share, count, TRIB_F32, peer, TAG, &e->plan));
}

static trib_status_t make_edges(struct trib_trainer *t, struct async_push_sum *p)
{
    trib_status_t st = TRIB_OK;

    for (int hop = 1; st == TRIB_OK && p->hops < HOPS && hop < t->ranks; hop *= 2) {
        const int i = p->hops++;
        st = make_edge(t, &p->to[i], (t->rank + hop) % t->ranks, true);
        if (st == TRIB_OK)
            st =
                make_edge(t, &p->from[i], (t->rank + t->ranks - hop) % t->ranks, false);
    }
    return st;
}

static trib_status_t async_push_sum_create(struct trib_trainer *t)
{
    struct async_push_sum *p = t->strategy;
    const trib_status_t st = trib_train_refuse_codecs(t, "sends shares of parameters");

    p->push.weight = 1;
    return st == TRIB_OK ? make_edges(t, p) : st;
}

/* --- messages --- */

static trib_status_t start(struct trib_trainer *t, struct edge *e)
{
    const trib_status_t st = trib_plan_start(e->plan);

    e->under_way = st == TRIB_OK;
    return trib_train_set_comm_error(t, st);
}

/* Poll a message and record its completion. */
static trib_status_t poll_edge(struct trib_trainer *t, struct edge *e)
{
    const trib_status_t st = e->under_way ? trib_plan_test(e->plan) : TRIB_OK;

    if (st == TRIB_INPROGRESS)
        return TRIB_OK;
    e->under_way = false;
    return trib_train_set_comm_error(t, st);
}

static trib_status_t open_edges(struct trib_trainer *t, struct async_push_sum *p)
{
    trib_status_t st = TRIB_OK;

    for (int i = 0; i < p->hops && st == TRIB_OK && !p->open; i++) {
        p->to[i].closed = p->from[i].closed = false;
        st = start(t, &p->from[i]);
    }
    p->open = p->hops > 0;
    return st;
}

static void add(struct trib_trainer *t, struct async_push_sum *p, struct edge *e)
{
    const float *restrict share = e->share;
    float *restrict x = p->push.x;
    struct note note;

    memcpy(&note, share + t->count, sizeof(note));
    e->closed = note.weight < 0;
    if (e->closed)
        return;
    for (size_t i = 0; i < t->count; i++)
        x[i] += share[i];
    p->push.weight += note.weight;
    p->added += note.weight;
    if (p->step < note.step)
        p->step = note.step;
}

/* Add the shares that have arrived, at most one per edge, and post the next
 * receives. */
static trib_status_t add_arrived(struct trib_trainer *t, struct async_push_sum *p)
{
    trib_status_t st = TRIB_OK;

    for (int i = 0; i < p->hops && st == TRIB_OK; i++) {
        struct edge *e = &p->from[i];

        if (e->closed)
            continue;
        st = poll_edge(t, e);
        if (st != TRIB_OK || e->under_way)
            continue;
        add(t, p, e);
        if (!e->closed)
            st = start(t, e);
    }
    return st;
}

static trib_status_t send_by(struct trib_trainer *t, struct async_push_sum *p,
                             struct edge *e)
{
    float *restrict share = e->share, *restrict x = p->push.x;

    for (size_t i = 0; i < t->count; i++)
        share[i] = x[i] *= 0.5f;
    p->push.weight *= 0.5;
    p->sent += p->push.weight;
    const struct note note = {p->push.weight, p->step};
    memcpy(share + t->count, &note, sizeof(note));
    t->stats.rounds++;
    t->stats.dense_bytes += t->count * sizeof(float);
    return start(t, e);
}

/* Send a share on the first of the next edges that is free. */
static trib_status_t send_share(struct trib_trainer *t, struct async_push_sum *p)
{
    if (p->push.weight < least)
        return TRIB_OK;
    for (int k = 0; k < p->hops; k++) {
        const int i = (p->turn + k) % p->hops;
        const trib_status_t st = poll_edge(t, &p->to[i]);

        if (st != TRIB_OK)
            return st;
        if (p->to[i].under_way)
            continue;
        p->turn = (i + 1) % p->hops;
        return send_by(t, p, &p->to[i]);
    }
    return TRIB_OK;
}

/* --- steps --- */

static trib_status_t async_push_sum_begin(struct trib_trainer *t, trib_step_t *step)
{
    struct async_push_sum *p = t->strategy;

    (void)step;
    trib_push_unbias(t, &p->push, p->z);
    return open_edges(t, p);
}

/* Use the learning rate of the latest step known from shares. Otherwise the few steps
 * of a slow rank would be the longest late in the run. */
static trib_status_t async_push_sum_end(struct trib_trainer *t, double loss)
{
    struct async_push_sum *p = t->strategy;

    (void)loss;
    if (p->step < t->number)
        p->step = t->number;
    trib_train_update(t, p->push.x, p->gradient, trib_train_rate_at(&t->rate, p->step));

    const uint64_t began = trib_train_now();
    trib_status_t st = add_arrived(t, p);
    if (st == TRIB_OK)
        st = send_share(t, p);
    t->stats.wait_ns += trib_train_now() - began;
    return st;
}

/* --- completion --- */

/* Send a closing message on each edge after its last share. */
static trib_status_t close_edges(struct trib_trainer *t, struct async_push_sum *p)
{
    const struct note closing = {closing_weight, 0};
    trib_status_t st = TRIB_OK;

    for (int i = 0; i < p->hops && st == TRIB_OK; i++) {
        struct edge *e = &p->to[i];

        st = poll_edge(t, e);
        if (st != TRIB_OK || e->under_way || e->closed)
            continue;
        memcpy(e->share + t->count, &closing, sizeof(closing));
        e->closed = true;
        st = start(t, e);
    }
    return st;
}

static bool is_closed(const struct async_push_sum *p)
{
    for (int i = 0; i < p->hops; i++)
        if (!p->from[i].closed || !p->to[i].closed || p->to[i].under_way)
            return false;
    return true;
}

/* Collective: add all shares in flight. All ranks take part when edges close. */
static trib_status_t drain(struct trib_trainer *t, struct async_push_sum *p)
{
    const struct timespec nap = {0, 50000};
    double any = p->open;
    trib_status_t st = trib_train_set_comm_error(
        t, trib_allreduce(t->comm, NULL, &any, 1, TRIB_F64, TRIB_MAX));

    if (st != TRIB_OK || any == 0)
        return st;
    st = open_edges(t, p);
    while (st == TRIB_OK && !is_closed(p)) {
        st = add_arrived(t, p);
        if (st == TRIB_OK)
            st = close_edges(t, p);
        if (st == TRIB_OK && !is_closed(p))
            (void)nanosleep(&nap, NULL);
    }
    p->open = st != TRIB_OK;
    return st;
}

static trib_status_t async_push_sum_finish(struct trib_trainer *t, float *model_out)
{
    struct async_push_sum *p = t->strategy;
    const trib_status_t st = drain(t, p);

    return st == TRIB_OK ? trib_train_mean(t, p->push.x, model_out) : st;
}

static void free_edge(struct trib_trainer *t, struct edge *e)
{
    if (e->under_way) /* in a failed communicator */
        (void)trib_plan_wait(e->plan);
    trib_plan_free(e->plan);
    trib_free(t->comm, e->share);
}

static void async_push_sum_destroy(struct trib_trainer *t)
{
    struct async_push_sum *p = t->strategy;

    if (p->open)
        (void)drain(t, p);
    for (int i = 0; i < p->hops; i++) {
        free_edge(t, &p->to[i]);
        free_edge(t, &p->from[i]);
    }
}

/* --- operations of the trainer --- */

static bool async_push_sum_busy(const struct trib_trainer *t)
{
    const struct async_push_sum *p = t->strategy;

    return p->open;
}

static void async_push_sum_stats(struct trib_trainer *t, trib_trainer_stats_t *stats)
{
    const struct async_push_sum *p = t->strategy;

    stats->weight = p->push.weight;
    stats->weight_under_way = p->sent - p->added;
}

static void async_push_sum_explain(const struct trib_trainer *t, char *text,
                                   size_t bytes)
{
    (void)t;
    snprintf(text, bytes,
             "shares of parameters and weights to the ranks 1, 2, 4, … further on, in "
             "turn, added on arrival; no step waits for a rank");
}

const struct trib_strategy_ops trib_strategy_agp = {
    .apart = true,
    .state_bytes = sizeof(struct async_push_sum),
    .vectors = vectors,
    .n_vectors = sizeof(vectors) / sizeof(*vectors),
    .create = async_push_sum_create,
    .destroy = async_push_sum_destroy,
    .begin = async_push_sum_begin,
    .end = async_push_sum_end,
    .finish = async_push_sum_finish,
    .busy = async_push_sum_busy,
    .fields = trib_push_fields,
    .model = trib_push_model,
    .moved = trib_push_moved,
    .stats = async_push_sum_stats,
    .explain = async_push_sum_explain,
};
