/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The steps of all ranks as one graph: one node per step, with its partners.
 */
#ifndef HARNESS_SIMGRAPH_H
#define HARNESS_SIMGRAPH_H

#include "tests/harness/simschedule.h"

#define NODE_NONE UINT32_MAX

struct node {
    const struct trib_step *step;
    uint32_t rank;
    uint32_t match; /* RECV of a SEND, SEND of a RECV */
    uint32_t lane_prev; /* on the same lane and in the same direction */
    uint32_t lane_next;
    uint32_t lane_first;
    uint32_t lane_at; /* position on its lane */
    uint32_t lane_count; /* steps of its lane per round */
    uint32_t child; /* first step that has this one as dep */
    uint32_t sibling; /* next step with the same dep */
    uint32_t run_head; /* first RECV_REDUCE of a run; NODE_NONE outside of runs */
    uint32_t run_length; /* at the head */
};

struct graph {
    struct node *nodes;
    uint32_t *base; /* first node of a rank; base[size] is n_nodes */
    uint32_t n_nodes;
    int size;
    char *why;
    size_t why_bytes;
};

/** trib_graph_build - link the steps; false with an error message in sim->why. */
bool trib_graph_build(struct graph *g, struct trib_sim *sim);
void trib_graph_free(struct graph *g);

/** trib_graph_say - write a step and its error to why; always return false. */
bool trib_graph_say(const struct graph *g, uint32_t node, const char *text);

static inline bool is_recv(const struct trib_step *s)
{
    return s->op == TRIB_STEP_RECV_REDUCE || s->op == TRIB_STEP_RECV_COPY;
}

static inline bool is_write(const struct trib_step *s)
{
    return is_recv(s) || s->op == TRIB_STEP_SCALE;
}

#endif
