/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contributions: the own one, as the plan's feedback wants it sent, and those of a
 * REDUCE in the order of ranks.
 */
#ifndef PIPELINE_PAYLOAD_CONTRIBUTION_H
#define PIPELINE_PAYLOAD_CONTRIBUTION_H

#include "pipeline/engine/run.h"

/* Work memory of an encode: the engine's, or a worker's. */
struct trib_bench {
    float *stage;  /* [piece] */
    void *scratch; /* of the codec */
};

/* The next contribution of a REDUCE. */
enum trib_contributor {
    TRIB_BY_VALUE, /* the value that was made here before: always the first */
    TRIB_BY_OWN,   /* the own contribution: in the place of this rank */
    TRIB_BY_PEER,  /* a frame of a peer, which is there */
};

struct trib_contrib {
    enum trib_contributor by;
    const struct trib_member *member; /* TRIB_BY_PEER, as the following */
    const struct trib_edge *edge;
    struct trib_cell *cell;
};

/* A walk over the contributions of a REDUCE, in the order of ranks, mine in its place.
 * Ranks that a quorum closes the chunk without are left out. */
struct trib_contrib_walk {
    struct trib_engine *engine;
    const struct trib_run *run;
    const struct trib_task *task;
    uint32_t next; /* member */
    bool mine;     /* this rank's is still to come: its own, or the value made before */
};

static inline struct trib_contrib_walk trib_contrib_begin(struct trib_engine *e,
                                                          const struct trib_run *run,
                                                          const struct trib_task *t)
{
    return (struct trib_contrib_walk){
        .engine = e, .run = run, .task = t, .mine = !(t->flags & TRIB_TASK_EMPTY)};
}

/** trib_contrib_next - the next one; false: there is none left. */
static inline bool trib_contrib_next(struct trib_contrib_walk *w,
                                     struct trib_contrib *out)
{
    const struct trib_program *p = &w->run->program;
    const struct trib_task *t = w->task;
    struct trib_engine *e = w->engine;

    while (w->next < t->n_members && (!w->mine || t->flags & TRIB_TASK_OWN)) {
        const struct trib_member *m = &p->members[t->member + w->next];
        const struct trib_edge *edge = &p->edges[m->edge];
        if (w->mine && edge->peer > e->rank)
            break;
        w->next++;
        if (!trib_quorum_counts(w->run, edge->peer))
            continue;
        *out = (struct trib_contrib){
            TRIB_BY_PEER, m, edge,
            trib_link_peek(&e->links[edge->peer], &e->arena, m->lane)};
        return true;
    }
    if (!w->mine)
        return false;
    w->mine = false;
    out->by = t->flags & TRIB_TASK_OWN ? TRIB_BY_OWN : TRIB_BY_VALUE;
    return true;
}

/** trib_contrib_received - where the payload of a peer's frame begins. */
static inline const uint8_t *trib_contrib_received(const struct trib_engine *e,
                                                   const struct trib_contrib *from)
{
    return trib_link_received(&e->links[from->edge->peer], &e->arena,
                              from->member->lane, from->cell);
}

/** trib_as_f32 - n elements at p as float32: in place where they are that, else in
 * stage. */
const float *trib_as_f32(const struct trib_engine *e, const struct trib_run *run,
                         const void *p, size_t n, float *stage);

/** trib_own_f32 - the own contribution of a chunk, as the plan's feedback wants it
 * sent: once per operation. */
const float *trib_own_f32(struct trib_engine *e, struct trib_run *run,
                          const struct trib_chunk *c);

/** trib_own_f32_staged - the same by a worker, whose stage is given. */
const float *trib_own_f32_staged(const struct trib_engine *e,
                                 const struct trib_run *run, const struct trib_chunk *c,
                                 float *stage);

#endif
