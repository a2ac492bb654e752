/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contributions: the own one, as the plan's feedback wants it sent, and those of a
 * REDUCE in the order of ranks.
 */
#ifndef PIPELINE_PAYLOAD_CONTRIBUTION_H
#define PIPELINE_PAYLOAD_CONTRIBUTION_H

#include <assert.h>

#include "pipeline/engine/chunk.h"
#include "pipeline/engine/engine_state.h"
#include "pipeline/payload/partial.h"

/* Work memory of an encode: the engine's, or a worker's. */
struct trib_encode_workspace {
    float *stage;  /* [piece] */
    void *scratch; /* of the codec */
};

/* The next contribution of a REDUCE. */
enum trib_contributor {
    TRIB_BY_ACC, /* the value that was made here before: always the first */
    TRIB_BY_INPUT, /* the own contribution: in the place of this rank */
    TRIB_BY_PEER, /* a frame of a peer, which is there */
};

struct trib_contrib_item {
    enum trib_contributor by;
    const struct trib_contrib *contrib; /* TRIB_BY_PEER, as the following */
    const struct trib_neighbor *neighbor;
    struct trib_entry *entry;
};

/* A walk over the contributions of a REDUCE, in the order of ranks, mine in its place.
 * Ranks that a quorum closes the chunk without are left out. */
struct trib_contrib_walk {
    struct trib_engine *engine;
    const struct trib_run *run;
    const struct trib_task *task;
    uint32_t next; /* contrib */
    bool mine;     /* this rank's is still to come: its own, or the value made before */
};

static inline struct trib_contrib_walk trib_contrib_begin(struct trib_engine *e,
                                                          const struct trib_run *run,
                                                          const struct trib_task *t)
{
    assert(t->kind == TRIB_TASK_REDUCE);
    return (struct trib_contrib_walk){
        .engine = e, .run = run, .task = t, .mine = !(t->flags & TRIB_TASK_EMPTY)};
}

/** trib_contrib_next - the next one; false: there is none left. */
static inline bool trib_contrib_next(struct trib_contrib_walk *w,
                                     struct trib_contrib_item *out)
{
    const struct trib_program *p = &w->run->program;
    const struct trib_task *t = w->task;
    struct trib_engine *e = w->engine;

    while (w->next < t->n_contribs && (!w->mine || t->flags & TRIB_TASK_INPUT)) {
        const struct trib_contrib *m = &p->contribs[t->contrib + w->next];
        const struct trib_neighbor *neighbor = &p->neighbors[m->neighbor];
        if (w->mine && neighbor->peer > e->rank)
            break;
        w->next++;
        if (!trib_quorum_counts(w->run, neighbor->peer))
            continue;
        *out = (struct trib_contrib_item){
            TRIB_BY_PEER, m, neighbor,
            trib_link_peek(&e->links[neighbor->peer], &e->arena, m->lane)};
        return true;
    }
    if (!w->mine)
        return false;
    w->mine = false;
    out->by = t->flags & TRIB_TASK_INPUT ? TRIB_BY_INPUT : TRIB_BY_ACC;
    return true;
}

/** trib_contrib_received - where the payload of a peer's frame begins. */
static inline const uint8_t *trib_contrib_received(const struct trib_engine *e,
                                                   const struct trib_contrib_item *from)
{
    return trib_link_received(&e->links[from->neighbor->peer], &e->arena,
                              from->contrib->lane, from->entry);
}

/** trib_as_f32 - n elements at p as float32: in place where they are that, else in
 * stage. */
const float *trib_as_f32(const struct trib_engine *e, const struct trib_run *run,
                         const void *p, size_t n, float *stage);

/** trib_input_f32 - the own contribution of a chunk, as the plan's feedback wants it
 * sent: once per operation. */
const float *trib_input_f32(struct trib_engine *e, struct trib_run *run,
                            const struct trib_chunk *c);

/** trib_input_f32_staged - the same by a worker, whose stage is given. */
const float *trib_input_f32_staged(const struct trib_engine *e,
                                   const struct trib_run *run,
                                   const struct trib_chunk *c, float *stage);

#endif
