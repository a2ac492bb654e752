/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/simgraph.h"

#include <stdio.h>
#include <stdlib.h>

/* The ends of a list of steps: a lane between two ranks, in one direction. */
struct ends {
    uint32_t first;
    uint32_t last;
    uint32_t count;
};

bool trib_graph_say(const struct graph *g, uint32_t node, const char *text)
{
    static const char *const ops[] = {
        "send", "recv_reduce", "recv_copy", "scale", "copy",
    };
    const struct node *n = &g->nodes[node];

    snprintf(g->why, g->why_bytes, "rank %u, step %u (%s chunk %u, peer %u): %s",
             n->rank, node - g->base[n->rank], ops[n->step->op], n->step->chunk,
             n->step->peer, text);
    return false;
}

static void link_lane(struct graph *g, struct ends *e, uint32_t node)
{
    struct node *n = &g->nodes[node];

    n->lane_at = e->count++;
    n->lane_prev = n->lane_at == 0 ? NODE_NONE : e->last;
    if (n->lane_at == 0)
        e->first = node;
    else
        g->nodes[e->last].lane_next = node;
    n->lane_first = e->first;
    e->last = node;
}

/* Add a RECV_REDUCE to the run of the previous step, or to a new one. */
static void link_run(struct graph *g, uint32_t node)
{
    struct node *n = &g->nodes[node];
    uint32_t before = node - 1;

    n->run_head = node;
    n->run_length = 1;
    if (node == g->base[n->rank] || n->step->dep != before - g->base[n->rank])
        return;
    if (g->nodes[before].step->op != TRIB_STEP_RECV_REDUCE ||
        g->nodes[before].step->chunk != n->step->chunk)
        return;
    n->run_head = g->nodes[before].run_head;
    g->nodes[n->run_head].run_length++;
}

static void link_step(struct graph *g, struct ends *sends, struct ends *recvs,
                      uint32_t node)
{
    struct node *n = &g->nodes[node];
    const struct trib_step *s = n->step;
    size_t size = (size_t)g->size;

    if (s->dep != TRIB_STEP_NO_DEP) {
        struct node *dep = &g->nodes[g->base[n->rank] + s->dep];

        n->sibling = dep->child;
        dep->child = node;
    }
    if (s->op == TRIB_STEP_SEND)
        link_lane(g, &sends[(n->rank * size + s->peer) * TRIB_LANES + s->lane], node);
    if (is_recv(s))
        link_lane(g, &recvs[(s->peer * size + n->rank) * TRIB_LANES + s->lane], node);
    if (s->op == TRIB_STEP_RECV_REDUCE)
        link_run(g, node);
}

static bool match_lane(struct graph *g, const struct ends *send,
                       const struct ends *recv)
{
    uint32_t s = send->first;
    uint32_t r = recv->first;

    if (send->count > recv->count)
        return trib_graph_say(g, send->last, "is never received");
    if (recv->count > send->count)
        return trib_graph_say(g, recv->last, "is never sent");
    for (uint32_t i = 0; i < send->count; i++) {
        struct node *a = &g->nodes[s];
        struct node *b = &g->nodes[r];

        if (a->step->chunk != b->step->chunk)
            return trib_graph_say(g, s, "meets a receive of another chunk");
        if (((a->step->flags ^ b->step->flags) & TRIB_STEP_FINAL) != 0)
            return trib_graph_say(g, s, "meets a receive of another kind");
        a->match = r;
        b->match = s;
        a->lane_count = b->lane_count = send->count;
        s = a->lane_next;
        r = b->lane_next;
    }
    return true;
}

static uint32_t place_nodes(struct graph *g, const struct trib_sim *sim)
{
    uint32_t n = 0;

    for (int r = 0; r < g->size; r++) {
        g->base[r] = n;
        for (uint32_t i = 0; i < sim->lists[r].n_steps; i++) {
            g->nodes[n++] = (struct node){
                .step = &sim->lists[r].steps[i],
                .rank = (uint32_t)r,
                .match = NODE_NONE,
                .lane_prev = NODE_NONE,
                .lane_next = NODE_NONE,
                .child = NODE_NONE,
                .sibling = NODE_NONE,
                .run_head = NODE_NONE,
            };
        }
    }
    g->base[g->size] = n;
    return n;
}

bool trib_graph_build(struct graph *g, struct trib_sim *sim)
{
    size_t size = (size_t)(sim->shape.size + sim->shape.aggregators);
    size_t lanes = size * size * TRIB_LANES;
    struct ends *sends = calloc(lanes, sizeof(*sends));
    struct ends *recvs = calloc(lanes, sizeof(*recvs));
    size_t total = 0;
    bool ok = true;

    *g = (struct graph){
        .size = (int)size, .why = sim->why, .why_bytes = sizeof(sim->why)};
    for (size_t r = 0; r < size; r++)
        total += sim->lists[r].n_steps;
    g->nodes = calloc(total + 1, sizeof(*g->nodes));
    g->base = calloc(size + 1, sizeof(*g->base));
    if (!sends || !recvs || !g->nodes || !g->base)
        abort();
    g->n_nodes = place_nodes(g, sim);
    for (uint32_t n = 0; n < g->n_nodes; n++)
        link_step(g, sends, recvs, n);
    for (size_t i = 0; i < lanes && ok; i++)
        ok = match_lane(g, &sends[i], &recvs[i]);
    free(sends);
    free(recvs);
    if (!ok)
        trib_graph_free(g);
    return ok;
}

void trib_graph_free(struct graph *g)
{
    free(g->nodes);
    free(g->base);
    g->nodes = NULL;
    g->base = NULL;
}
