/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The order of steps that every run obeys: a step comes after its dep, after the
 * previous step on its lane, and after the SEND that it receives. `after[x]` is the
 * set of all steps after x.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/harness/simgraph.h"

struct order {
    struct graph g;
    uint32_t *sorted; /* nodes in topological order */
    uint64_t *after; /* n_nodes sets of n_nodes bits */
    size_t words; /* per set */
};

static bool comes_after(const struct order *o, uint32_t first, uint32_t second)
{
    return o->after[first * o->words + second / 64] >> (second % 64) & 1;
}

static uint32_t received_by(const struct node *n)
{
    return n->step->op == TRIB_STEP_SEND ? n->match : NODE_NONE;
}

static void release(uint32_t *pending, uint32_t *sorted, uint32_t *n_sorted, uint32_t x)
{
    if (x != NODE_NONE && --pending[x] == 0)
        sorted[(*n_sorted)++] = x;
}

static bool sort_nodes(struct order *o)
{
    struct graph *g = &o->g;
    uint32_t *pending = calloc(g->n_nodes + 1, sizeof(*pending));
    uint32_t n_sorted = 0;
    bool ok;

    if (!pending)
        abort();
    for (uint32_t x = 0; x < g->n_nodes; x++) {
        const struct node *n = &g->nodes[x];

        pending[x] = 1 + (n->step->dep != TRIB_STEP_NO_DEP) +
                     (n->lane_prev != NODE_NONE) + (is_recv(n->step) ? 1 : 0);
    }
    for (uint32_t x = 0; x < g->n_nodes; x++)
        release(pending, o->sorted, &n_sorted, x);
    for (uint32_t i = 0; i < n_sorted; i++) {
        const struct node *n = &g->nodes[o->sorted[i]];

        for (uint32_t c = n->child; c != NODE_NONE; c = g->nodes[c].sibling)
            release(pending, o->sorted, &n_sorted, c);
        release(pending, o->sorted, &n_sorted, n->lane_next);
        release(pending, o->sorted, &n_sorted, received_by(n));
    }
    ok = n_sorted == g->n_nodes;
    for (uint32_t x = 0; x < g->n_nodes && !ok; x++)
        if (pending[x] != 0) {
            trib_graph_say(g, x, "waits for itself: dead-lock");
            break;
        }
    free(pending);
    return ok;
}

static void join(struct order *o, uint32_t x, uint32_t later)
{
    uint64_t *to = &o->after[x * o->words];

    if (later == NODE_NONE)
        return;
    for (size_t w = 0; w < o->words; w++)
        to[w] |= o->after[later * o->words + w];
    to[later / 64] |= UINT64_C(1) << (later % 64);
}

static void close_sets(struct order *o)
{
    for (uint32_t i = o->g.n_nodes; i-- > 0;) {
        uint32_t x = o->sorted[i];
        const struct node *n = &o->g.nodes[x];

        for (uint32_t c = n->child; c != NODE_NONE; c = o->g.nodes[c].sibling)
            join(o, x, c);
        join(o, x, n->lane_next);
        join(o, x, received_by(n));
    }
}

/* Check x and y, in list order, of one chunk of one rank. */
static bool prove_pair(const struct order *o, uint32_t x, uint32_t y)
{
    const struct trib_step *a = o->g.nodes[x].step;
    const struct trib_step *b = o->g.nodes[y].step;
    uint32_t read;

    if (a->chunk != b->chunk || !(is_write(a) || is_write(b)))
        return true;
    if (a->op == TRIB_STEP_COPY || b->op == TRIB_STEP_COPY)
        return trib_graph_say(&o->g, y, "shares its chunk with a copy");
    if (!comes_after(o, x, y))
        return trib_graph_say(&o->g, y, "may run before an earlier step on its chunk");
    if (a->op != TRIB_STEP_SEND || !(a->flags & TRIB_STEP_STABLE))
        return true;
    read = o->g.nodes[x].match;
    if (!comes_after(o, read, y))
        return trib_graph_say(&o->g, x,
                              "is not stable: it may be written before it is read");
    return true;
}

static bool prove_rank(const struct order *o, int rank)
{
    for (uint32_t y = o->g.base[rank]; y < o->g.base[rank + 1]; y++)
        for (uint32_t x = o->g.base[rank]; x < y; x++)
            if (!prove_pair(o, x, y))
                return false;
    return true;
}

/* r leaves after all of its steps, so one of them after q's first step
 * suffices. */
static bool waits_for(const struct order *o, int r, int q)
{
    const uint32_t *base = o->g.base;
    bool after = false;

    for (uint32_t i = base[r]; i < base[r + 1] && base[q] < base[q + 1] && !after; i++)
        after = comes_after(o, base[q], i);
    return after;
}

static bool prove_barrier(const struct order *o, int ranks)
{
    for (int q = 0; q < ranks; q++)
        for (int r = 0; r < ranks; r++) {
            if (q == r)
                continue;
            if (!waits_for(o, r, q)) {
                snprintf(o->g.why, o->g.why_bytes,
                         "rank %d may leave the barrier before rank %d is in it", r, q);
                return false;
            }
        }
    return true;
}

bool trib_sim_prove(struct trib_sim *sim)
{
    struct order o = {0};
    bool ok;

    if (!trib_graph_build(&o.g, sim))
        return false;
    o.words = (o.g.n_nodes + 63) / 64;
    o.sorted = calloc(o.g.n_nodes + 1, sizeof(*o.sorted));
    o.after = calloc(o.g.n_nodes * o.words + 1, sizeof(*o.after));
    if (!o.sorted || !o.after)
        abort();
    ok = sort_nodes(&o);
    if (ok)
        close_sets(&o);
    if (ok && sim->shape.coll == TRIB_BARRIER)
        ok = prove_barrier(&o, sim->shape.size);
    for (int r = 0; r < o.g.size && ok && sim->shape.coll != TRIB_BARRIER; r++)
        ok = prove_rank(&o, r);
    free(o.after);
    free(o.sorted);
    trib_graph_free(&o.g);
    return ok;
}
