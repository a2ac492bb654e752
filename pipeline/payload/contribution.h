/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contributions: this rank's input after the plan's feedback rule, and the
 * contributions of a REDUCE in rank order.
 */
#ifndef PIPELINE_PAYLOAD_CONTRIBUTION_H
#define PIPELINE_PAYLOAD_CONTRIBUTION_H

#include <assert.h>

#include "pipeline/payload/partial.h"
#include "pipeline/run/chunk.h"
#include "pipeline/run/engine_state.h"

/* Work memory of an encode, one for the engine and one per worker. */
struct trib_encode_workspace {
    float *stage; /* [piece] */
    void *scratch; /* scratch memory of the codec */
};

/* The source of the next contribution of a REDUCE. */
enum trib_contributor {
    TRIB_BY_ACC, /* the accumulator, if an earlier task has filled it: first, or at this
                  * rank's position */
    TRIB_BY_INPUT, /* this rank's input, at this rank's position */
    TRIB_BY_PEER, /* a peer's frame, which has arrived */
};

struct trib_contrib_item {
    enum trib_contributor by;
    const struct trib_contrib *contrib; /* TRIB_BY_PEER, like the following members */
    const struct trib_neighbor *neighbor;
    struct trib_entry *entry;
};

/* An iterator over the contributions of a REDUCE in rank order, including this rank's.
 * Ranks that a quorum has excluded from the chunk are skipped. */
struct trib_contrib_walk {
    struct trib_engine *engine;
    const struct trib_run *run;
    const struct trib_task *task;
    uint32_t next; /* index of the next contrib */
    bool mine; /* this rank's input or accumulator is still due */
    bool acc_in_place; /* the accumulator also comes at this rank's position */
};

static inline struct trib_contrib_walk trib_contrib_begin(struct trib_engine *e,
                                                          const struct trib_run *run,
                                                          const struct trib_task *t)
{
    assert(t->kind == TRIB_TASK_REDUCE);
    return (struct trib_contrib_walk){
        .engine = e, .run = run, .task = t, .mine = !(t->flags & TRIB_TASK_EMPTY)};
}

/** trib_contrib_next - return the next contribution; false at the end. */
static inline bool trib_contrib_next(struct trib_contrib_walk *w,
                                     struct trib_contrib_item *out)
{
    const struct trib_program *p = &w->run->program;
    const struct trib_task *t = w->task;
    struct trib_engine *e = w->engine;

    while (w->next < t->n_contribs &&
           (!w->mine || t->flags & TRIB_TASK_INPUT || w->acc_in_place)) {
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

/** trib_contrib_received - return the payload of a peer's frame. */
static inline const uint8_t *trib_contrib_received(const struct trib_engine *e,
                                                   const struct trib_contrib_item *from)
{
    return trib_link_received(&e->links[from->neighbor->peer], &e->arena,
                              from->contrib->lane, from->entry);
}

/** trib_as_f32 - return n elements at p as float32: p itself if it is aligned float32,
 * else stage. */
const float *trib_as_f32(const struct trib_engine *e, const struct trib_run *run,
                         const void *p, size_t n, float *stage);

/** trib_input_f32 - return this rank's input of a chunk after the plan's feedback rule;
 * call once per operation. */
const float *trib_input_f32(struct trib_engine *e, struct trib_run *run,
                            const struct trib_chunk *c);

/** trib_input_f32_staged - as trib_input_f32, for a worker with its own stage. */
const float *trib_input_f32_staged(const struct trib_engine *e,
                                   const struct trib_run *run,
                                   const struct trib_chunk *c, float *stage);

#endif
