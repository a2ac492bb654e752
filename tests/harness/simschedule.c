/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/simgraph.h"
#include "tests/harness/simvalues.h"

#define POISON UINT64_C(0xdeadbeefdeadbeef)

/* The state of a run. Step x of round t has the index t * n_nodes + x. */
struct run {
    struct trib_sim *sim;
    struct graph g;
    uint32_t n_chunks;
    size_t total; /* elements of a vector */
    uint64_t rng;
    /* Per rank, `total` elements each. */
    uint64_t *send;
    uint64_t *recv; /* the same as send when in place */
    uint64_t *expected; /* per rank, or the same for all */
    /* Per rank, round and chunk. */
    uint32_t *version; /* counts writes */
    uint8_t *has; /* recv has the value */
    uint8_t *partial; /* inside a run of RECV_REDUCE */
    /* Per step. */
    uint16_t *pending; /* unmet conditions */
    size_t *message; /* offset of a SEND's values in the arena */
    uint32_t *seen; /* version at the SEND */
    uint64_t *arena;
    uint32_t *lane_nodes; /* the SENDs of a lane in order, at lane_base of the first */
    uint32_t *lane_base;
    uint32_t *left; /* per rank and round: remaining steps */
    uint32_t *ready;
    uint32_t n_ready;
    uint32_t fired;
};

static uint32_t draw(struct run *u, uint32_t below)
{
    u->rng += SIM_ODD;
    return (uint32_t)(trib_sim_mix(u->rng) >> 32) % below;
}

static void *zeros(size_t n, size_t bytes)
{
    void *p = calloc(n + 1, bytes);

    if (!p)
        abort();
    return p;
}

static size_t state_of(const struct run *u, uint32_t rank, uint32_t round, uint32_t c)
{
    return ((size_t)rank * u->sim->rounds + round) * u->n_chunks + c;
}

/* ---- set-up ---- */

static void place_messages(struct run *u)
{
    uint32_t n = u->g.n_nodes;
    size_t used = 0;

    for (uint32_t t = 0; t < u->sim->rounds; t++)
        for (uint32_t x = 0; x < n; x++) {
            const struct trib_step *s = u->g.nodes[x].step;

            if (s->op != TRIB_STEP_SEND)
                continue;
            u->message[t * n + x] = used;
            used += trib_sim_chunk_end(u->sim, u->n_chunks, t, s->chunk) -
                    trib_sim_chunk_first(u->sim, u->n_chunks, t, s->chunk);
        }
    u->arena = zeros(used, sizeof(*u->arena));
}

static void place_lanes(struct run *u)
{
    uint32_t used = 0;

    for (uint32_t x = 0; x < u->g.n_nodes; x++) {
        const struct node *node = &u->g.nodes[x];

        if (node->step->op != TRIB_STEP_SEND || node->lane_at != 0)
            continue;
        u->lane_base[x] = used;
        for (uint32_t y = x; y != NODE_NONE; y = u->g.nodes[y].lane_next)
            u->lane_nodes[used++] = y;
    }
}

static void place_values(struct run *u)
{
    const struct trib_sim *sim = u->sim;
    uint32_t size = (uint32_t)trib_sim_size(sim);

    u->send = zeros(size * u->total, sizeof(*u->send));
    u->recv = sim->in_place ? u->send : zeros(size * u->total, sizeof(*u->recv));
    const uint32_t results = trib_sim_by_receiver(sim) ? size : 1;
    u->expected = zeros(results * u->total, sizeof(*u->expected));
    for (uint32_t r = 0; r < size; r++)
        for (size_t e = 0; e < u->total; e++) {
            u->recv[r * u->total + e] = POISON;
            if (r < (uint32_t)sim->shape.size)
                u->send[r * u->total + e] = trib_sim_contribution(sim, r, e);
        }
    for (uint32_t r = 0; r < results; r++)
        for (size_t e = 0; e < u->total; e++)
            u->expected[r * u->total + e] = trib_sim_expect(sim, r, e);
}

/* Return element e of a rank's expected result. */
static uint64_t expected(const struct run *u, uint32_t rank, size_t e)
{
    return u->expected[(trib_sim_by_receiver(u->sim) ? rank * u->total : 0) + e];
}

static uint16_t conditions(const struct run *u, uint32_t round, uint32_t x)
{
    const struct trib_sim *sim = u->sim;
    const struct node *n = &u->g.nodes[x];
    uint32_t n_conditions = n->step->dep != TRIB_STEP_NO_DEP;

    if (n->match != NODE_NONE)
        n_conditions += n->lane_prev != NODE_NONE || round > 0;
    if (n->step->op == TRIB_STEP_SEND)
        n_conditions += round * n->lane_count + n->lane_at >= sim->slots;
    if (is_recv(n->step))
        n_conditions += 1;
    if (sim->whole_runs && n->run_head == x)
        n_conditions += n->run_length - 1;
    n_conditions += round >= sim->window;
    return (uint16_t)n_conditions;
}

static void prepare(struct run *u)
{
    struct trib_sim *sim = u->sim;
    uint32_t n = u->g.n_nodes;
    uint32_t size = (uint32_t)trib_sim_size(sim);
    size_t steps = (size_t)n * sim->rounds;
    size_t states = (size_t)size * sim->rounds * u->n_chunks;

    u->version = zeros(states, sizeof(*u->version));
    u->has = zeros(states, 1);
    u->partial = zeros(states, 1);
    u->pending = zeros(steps, sizeof(*u->pending));
    u->message = zeros(steps, sizeof(*u->message));
    u->seen = zeros(steps, sizeof(*u->seen));
    u->ready = zeros(steps, sizeof(*u->ready));
    u->lane_nodes = zeros(n, sizeof(*u->lane_nodes));
    u->lane_base = zeros(n, sizeof(*u->lane_base));
    u->left = zeros((size_t)size * sim->rounds, sizeof(*u->left));
    place_messages(u);
    place_lanes(u);
    place_values(u);
    for (uint32_t t = 0; t < sim->rounds; t++)
        for (uint32_t x = 0; x < n; x++) {
            u->pending[t * n + x] = conditions(u, t, x);
            u->left[u->g.nodes[x].rank * sim->rounds + t]++;
            if (u->pending[t * n + x] == 0)
                u->ready[u->n_ready++] = t * n + x;
        }
}

static void clean_up(struct run *u)
{
    if (u->recv != u->send)
        free(u->recv);
    free(u->send);
    free(u->expected);
    free(u->version);
    free(u->has);
    free(u->partial);
    free(u->pending);
    free(u->message);
    free(u->seen);
    free(u->arena);
    free(u->lane_nodes);
    free(u->lane_base);
    free(u->left);
    free(u->ready);
    trib_graph_free(&u->g);
}

/* ---- execution of a step ---- */

struct at {
    uint32_t round;
    uint32_t x; /* node */
    const struct node *node;
    size_t first; /* elements of the chunk */
    size_t end;
    size_t state;
    uint64_t *recv; /* of the rank */
    uint64_t *value; /* current value of the chunk: recv or send of the rank */
};

static struct at locate(const struct run *u, uint32_t id)
{
    struct at a = {.round = id / u->g.n_nodes, .x = id % u->g.n_nodes};
    uint32_t c;
    size_t row;

    a.node = &u->g.nodes[a.x];
    c = a.node->step->chunk;
    row = a.node->rank * u->total;
    a.first = trib_sim_chunk_first(u->sim, u->n_chunks, a.round, c);
    a.end = trib_sim_chunk_end(u->sim, u->n_chunks, a.round, c);
    a.state = state_of(u, a.node->rank, a.round, c);
    a.recv = u->recv + row;
    a.value = u->has[a.state] ? u->recv + row : u->send + row;
    return a;
}

static uint64_t *message_at(const struct run *u, const struct at *a, uint32_t send)
{
    return u->arena + u->message[a->round * u->g.n_nodes + send];
}

static bool do_send(struct run *u, const struct at *a)
{
    uint64_t *to = message_at(u, a, a->x);

    if (u->partial[a->state])
        return trib_graph_say(&u->g, a->x, "sends a sum that is not complete");
    u->seen[a->round * u->g.n_nodes + a->x] = u->version[a->state];
    for (size_t e = a->first; e < a->end; e++) {
        to[e - a->first] = a->value[e];
        if ((a->node->step->flags & TRIB_STEP_FINAL) && !u->sim->real &&
            u->sim->shape.coll != TRIB_BARRIER && u->sim->shape.coll != TRIB_EXSCAN &&
            a->value[e] != expected(u, a->node->step->peer, e))
            return trib_graph_say(&u->g, a->x, "is final but not finished");
    }
    return true;
}

/* Read a STABLE message only now, from its sender's memory. */
static bool take_message(struct run *u, const struct at *a)
{
    uint32_t send = a->node->match;
    uint32_t send_id = a->round * u->g.n_nodes + send;
    struct at from = locate(u, send_id);
    uint64_t *to = message_at(u, a, send);

    if (!(from.node->step->flags & TRIB_STEP_STABLE))
        return true;
    if (u->version[from.state] != u->seen[send_id])
        return trib_graph_say(&u->g, send, "is not stable: written before it was read");
    for (size_t e = a->first; e < a->end; e++)
        to[e - a->first] = from.value[e];
    return true;
}

static void mark_written(struct run *u, const struct at *a)
{
    u->version[a->state]++;
    u->has[a->state] = 1;
}

/* Add up a whole run in rank order, including the local contribution. */
static void sum_run(struct run *u, const struct at *a)
{
    uint32_t head = a->node->run_head;
    uint32_t n_messages = a->x - head + 1;
    const uint64_t *parts[64 + 1];
    uint32_t ranks[64 + 1];
    uint32_t n = 0;

    bool empty = a->node->rank >= (uint32_t)u->sim->shape.size && !u->has[a->state];

    for (uint32_t i = 0; i < n_messages + !empty; i++) {
        bool own = i == n_messages;
        uint32_t rank = own ? a->node->rank : u->g.nodes[head + i].step->peer;
        uint32_t at = n++;

        for (; at > 0 && ranks[at - 1] > rank; at--) {
            ranks[at] = ranks[at - 1];
            parts[at] = parts[at - 1];
        }
        ranks[at] = rank;
        parts[at] =
            own ? a->value + a->first : message_at(u, a, u->g.nodes[head + i].match);
    }
    for (size_t e = 0; e < a->end - a->first; e++) {
        uint64_t x = parts[0][e];

        for (uint32_t i = 1; i < n; i++)
            x = trib_sim_combine(u->sim, x, parts[i][e]);
        a->recv[a->first + e] = x;
    }
}

static bool do_recv_reduce(struct run *u, const struct at *a)
{
    uint32_t head = a->node->run_head;
    bool last = a->x - head + 1 == u->g.nodes[head].run_length;

    if (!take_message(u, a))
        return false;
    u->partial[a->state] = !last;
    if (!last) {
        u->version[a->state]++; /* an engine may add at once */
        return true;
    }
    sum_run(u, a);
    mark_written(u, a);
    return true;
}

static bool do_recv_copy(struct run *u, const struct at *a)
{
    if (!take_message(u, a))
        return false;
    memcpy(a->recv + a->first, message_at(u, a, a->node->match),
           (a->end - a->first) * sizeof(*a->recv));
    mark_written(u, a);
    return true;
}

static bool do_scale(struct run *u, const struct at *a)
{
    if (u->partial[a->state])
        return trib_graph_say(&u->g, a->x, "scales a sum that is not complete");
    for (size_t e = a->first; e < a->end; e++)
        a->recv[e] = trib_sim_scaled(u->sim, a->value[e]);
    mark_written(u, a);
    return true;
}

static bool do_copy(struct run *u, const struct at *a)
{
    if (u->has[a->state])
        return trib_graph_say(&u->g, a->x, "copies over a value");
    for (size_t e = a->first; e < a->end; e++)
        a->recv[e] = a->value[e];
    u->has[a->state] = 1;
    return true;
}

static bool do_step(struct run *u, uint32_t id)
{
    struct at a = locate(u, id);

    switch (a.node->step->op) {
    case TRIB_STEP_SEND:
        return do_send(u, &a);
    case TRIB_STEP_RECV_REDUCE:
        return do_recv_reduce(u, &a);
    case TRIB_STEP_RECV_COPY:
        return do_recv_copy(u, &a);
    case TRIB_STEP_SCALE:
        return do_scale(u, &a);
    default:
        return do_copy(u, &a);
    }
}

/* ---- choice of the next step ---- */

static void satisfy(struct run *u, uint32_t round, uint32_t x)
{
    uint32_t id = round * u->g.n_nodes + x;

    if (--u->pending[id] == 0)
        u->ready[u->n_ready++] = id;
}

/* Reading a message frees its slot for the SEND that is `slots` later on the lane. */
static void free_slot(struct run *u, uint32_t round, const struct node *send)
{
    uint32_t k = round * send->lane_count + send->lane_at + u->sim->slots;
    uint32_t base = u->lane_base[send->lane_first];

    if (k / send->lane_count < u->sim->rounds)
        satisfy(u, k / send->lane_count, u->lane_nodes[base + k % send->lane_count]);
}

static void end_step(struct run *u, uint32_t round, const struct node *n)
{
    const struct trib_sim *sim = u->sim;
    const struct graph *g = &u->g;
    uint32_t later = round + sim->window;

    if (--u->left[n->rank * sim->rounds + round] > 0 || later >= sim->rounds)
        return;
    for (uint32_t x = g->base[n->rank]; x < g->base[n->rank + 1]; x++)
        satisfy(u, later, x);
}

static void release(struct run *u, uint32_t id)
{
    uint32_t round = id / u->g.n_nodes;
    uint32_t x = id % u->g.n_nodes;
    const struct node *nodes = u->g.nodes;
    const struct node *n = &nodes[x];

    for (uint32_t c = n->child; c != NODE_NONE; c = nodes[c].sibling)
        satisfy(u, round, c);
    if (n->match != NODE_NONE && n->lane_next != NODE_NONE)
        satisfy(u, round, n->lane_next);
    else if (n->match != NODE_NONE && round + 1 < u->sim->rounds)
        satisfy(u, round + 1, n->lane_first);
    if (n->step->op == TRIB_STEP_SEND) {
        uint32_t head = nodes[n->match].run_head;

        satisfy(u, round, n->match);
        if (u->sim->whole_runs && head != NODE_NONE && head != n->match)
            satisfy(u, round, head);
    }
    if (is_recv(n->step))
        free_slot(u, round, &nodes[n->match]);
    end_step(u, round, n);
}

/* Choose evenly, the newest first, or one rank as late as possible. */
static uint32_t pick(struct run *u)
{
    uint32_t victim = (uint32_t)(u->sim->seed / 3 % (uint64_t)trib_sim_size(u->sim));
    uint32_t at = draw(u, u->n_ready);
    uint32_t id;

    if (u->sim->seed % 3 == 1)
        at = u->n_ready - 1;
    for (int tries = 0; tries < 16 && u->sim->seed % 3 == 2; tries++) {
        if (u->g.nodes[u->ready[at] % u->g.n_nodes].rank != victim)
            break;
        at = draw(u, u->n_ready);
    }
    id = u->ready[at];
    u->ready[at] = u->ready[--u->n_ready];
    return id;
}

static bool run_all(struct run *u)
{
    uint32_t steps = u->g.n_nodes * u->sim->rounds;

    for (; u->n_ready > 0; u->fired++) {
        uint32_t id = pick(u);

        if (!do_step(u, id))
            return false;
        release(u, id);
    }
    for (uint32_t id = 0; id < steps && u->fired < steps; id++)
        if (u->pending[id] != 0)
            return trib_graph_say(&u->g, id % u->g.n_nodes,
                                  "dead-lock: waits for ever");
    return true;
}

/* ---- results ---- */

static bool has_result(const struct trib_sim *sim, uint32_t rank, size_t e)
{
    if (sim->shape.coll == TRIB_REDUCE || sim->shape.coll == TRIB_GATHER)
        return rank == (uint32_t)sim->shape.root;
    if (sim->shape.coll == TRIB_EXSCAN)
        return rank > 0;
    if (sim->shape.coll == TRIB_REDUCE_SCATTER || sim->shape.coll == TRIB_SCATTER)
        return trib_sim_block_of(sim, e) == rank;
    return sim->shape.coll != TRIB_BARRIER;
}

static bool same(const struct trib_sim *sim, uint64_t got, uint64_t want)
{
    if (sim->real && !sim->rank_order)
        return fabs(trib_sim_real(got) - trib_sim_real(want)) < 1e-12 * sim->shape.size;
    return got == want;
}

static bool check_results(struct run *u)
{
    struct trib_sim *sim = u->sim;
    uint32_t size = (uint32_t)sim->shape.size;

    for (size_t e = 0; e < u->total; e++) {
        const uint64_t *first = NULL;

        for (uint32_t r = 0; r < size; r++) {
            const uint64_t *got = &u->recv[r * u->total + e];

            if (!has_result(sim, r, e))
                continue;
            if (!same(sim, *got, expected(u, r, e))) {
                snprintf(sim->why, sizeof(sim->why),
                         "rank %u, element %zu: the result is wrong", r, e);
                return false;
            }
            if (first && *first != *got && !trib_sim_by_receiver(sim)) {
                snprintf(sim->why, sizeof(sim->why),
                         "rank %u, element %zu: the bits differ between ranks", r, e);
                return false;
            }
            first = got;
        }
    }
    return true;
}

static void count_sent(struct run *u)
{
    struct trib_sim *sim = u->sim;

    memset(sim->sent_up, 0, (size_t)trib_sim_size(sim) * sizeof(*sim->sent_up));
    memset(sim->sent_down, 0, (size_t)trib_sim_size(sim) * sizeof(*sim->sent_down));
    for (uint32_t x = 0; x < u->g.n_nodes; x++) {
        const struct node *n = &u->g.nodes[x];
        uint64_t *sent = n->step->lane == TRIB_LANE_UP ? sim->sent_up : sim->sent_down;

        if (n->step->op == TRIB_STEP_SEND)
            sent[n->rank] += trib_sim_chunk(sim, n->step->chunk);
    }
}

bool trib_sim_run(struct trib_sim *sim)
{
    struct run u = {.sim = sim, .rng = sim->seed};
    bool ok;

    if (!trib_graph_build(&u.g, sim))
        return false;
    u.n_chunks = sim->lists[0].n_chunks;
    u.total = trib_sim_total(sim);
    prepare(&u);
    ok = run_all(&u) && check_results(&u);
    if (ok)
        count_sent(&u);
    clean_up(&u);
    return ok;
}

int trib_sim_size(const struct trib_sim *sim)
{
    return sim->shape.size + sim->shape.aggregators;
}

bool trib_sim_build(struct trib_sim *sim, const struct trib_algo *algo,
                    const struct trib_shape *shape)
{
    sim->shape = *shape;
    size_t size = (size_t)trib_sim_size(sim);

    sim->lists = zeros(size, sizeof(*sim->lists));
    sim->sent_up = zeros(size, sizeof(*sim->sent_up));
    sim->sent_down = zeros(size, sizeof(*sim->sent_down));
    for (size_t r = 0; r < size; r++) {
        struct trib_shape of_rank = *shape;
        char text[160] = "";

        of_rank.rank = (int)r;
        if (algo->build(&of_rank, &sim->lists[r]) != TRIB_OK ||
            trib_schedule_check(&sim->lists[r], &of_rank, text, sizeof(text)) !=
                TRIB_OK) {
            snprintf(sim->why, sizeof(sim->why), "rank %zu: %s", r, text);
            return false;
        }
        if (sim->lists[r].n_chunks != sim->lists[0].n_chunks) {
            snprintf(sim->why, sizeof(sim->why), "rank %zu: other chunks than rank 0",
                     r);
            return false;
        }
    }
    return true;
}

void trib_sim_free(struct trib_sim *sim)
{
    for (int r = 0; r < trib_sim_size(sim) && sim->lists; r++)
        trib_schedule_free(&sim->lists[r]);
    free(sim->lists);
    free(sim->sent_up);
    free(sim->sent_down);
    *sim = (struct trib_sim){0};
}
