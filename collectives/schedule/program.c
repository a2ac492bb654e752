/* SPDX-License-Identifier: BSD-3-Clause */
#include "collectives/schedule/program.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* State of the lowering while it walks the list of steps. */
struct lowering {
    const struct trib_schedule *schedule;
    struct trib_program *out;
    bool is_aggregator; /* this is an aggregator, without a contribution */
    uint32_t *task_of;   /* [step] */
    bool *has_value;     /* [chunk]: true once something was received for it */
    bool *own_sent;      /* [chunk]: the local contribution was sent unchanged */
    int32_t *edge_of;    /* [peer], -1: none yet */
};

static uint16_t edge_to(struct lowering *w, uint32_t peer)
{
    struct trib_program *p = w->out;

    if (w->edge_of[peer] < 0) {
        w->edge_of[peer] = (int32_t)p->n_neighbors;
        p->neighbors[p->n_neighbors++].peer = (int)peer;
    }
    return (uint16_t)w->edge_of[peer];
}

static struct trib_task *add_task(struct lowering *w, uint32_t i,
                                  enum trib_task_kind kind)
{
    const struct trib_step *s = &w->schedule->steps[i];
    struct trib_program *p = w->out;
    struct trib_task *t = &p->tasks[p->n_tasks];

    t->kind = (uint8_t)kind;
    t->lane = s->lane & 1;
    t->chunk = s->chunk;
    t->dep = s->dep == TRIB_STEP_NO_DEP ? TRIB_STEP_NO_DEP : w->task_of[s->dep];
    t->flags = s->flags & (TRIB_STEP_FINAL | TRIB_STEP_FORWARD | TRIB_STEP_STABLE);
    if (!w->has_value[s->chunk])
        t->flags |= w->is_aggregator ? TRIB_TASK_EMPTY : TRIB_TASK_INPUT;
    w->task_of[i] = p->n_tasks++;
    return t;
}

static void add_member(struct lowering *w, struct trib_task *t, uint32_t i)
{
    const struct trib_step *s = &w->schedule->steps[i];
    struct trib_program *p = w->out;
    uint16_t neighbor = edge_to(w, s->peer);

    p->contribs[p->n_contribs++] = (struct trib_contrib){
        .neighbor = neighbor,
        .lane = (uint8_t)s->lane,
        .ordinal = p->neighbors[neighbor].recvs[s->lane]++,
    };
    t->n_contribs++;
    w->task_of[i] = (uint32_t)(t - p->tasks);
}

/* Lower the whole run of RECV_REDUCE that begins at step i; return its last step. */
static uint32_t lower_reduce(struct lowering *w, uint32_t i)
{
    const struct trib_step *steps = w->schedule->steps;
    uint32_t n = w->schedule->n_steps, chunk = steps[i].chunk;
    struct trib_task *t = add_task(w, i, TRIB_TASK_REDUCE);

    t->contrib = w->out->n_contribs;
    add_member(w, t, i);
    while (i + 1 < n && steps[i + 1].op == TRIB_STEP_RECV_REDUCE &&
           steps[i + 1].chunk == chunk && steps[i + 1].dep == i)
        add_member(w, t, ++i);
    if (w->own_sent[chunk])
        t->flags |= TRIB_TASK_INPUT_SENT;
    w->has_value[chunk] = true;
    return i;
}

static uint32_t lower_step(struct lowering *w, uint32_t i)
{
    const struct trib_step *s = &w->schedule->steps[i];
    struct trib_task *t;

    switch (s->op) {
    case TRIB_STEP_SEND:
        t = add_task(w, i, TRIB_TASK_SEND);
        t->neighbor = edge_to(w, s->peer);
        t->ordinal = w->out->neighbors[t->neighbor].sends[t->lane]++;
        if ((t->flags & TRIB_TASK_INPUT) && !(t->flags & TRIB_TASK_FINAL))
            w->own_sent[s->chunk] = true;
        return i;
    case TRIB_STEP_RECV_REDUCE:
        return lower_reduce(w, i);
    case TRIB_STEP_RECV_COPY:
        t = add_task(w, i, TRIB_TASK_COPY_IN);
        t->neighbor = edge_to(w, s->peer);
        t->ordinal = w->out->neighbors[t->neighbor].recvs[t->lane]++;
        w->has_value[s->chunk] = true;
        return i;
    case TRIB_STEP_SCALE:
        if (s->dep != TRIB_STEP_NO_DEP &&
            w->out->tasks[w->task_of[s->dep]].kind == TRIB_TASK_REDUCE) {
            w->out->tasks[w->task_of[s->dep]].flags |= TRIB_TASK_MEAN;
            w->task_of[i] = w->task_of[s->dep];
            return i;
        }
        /* A SCALE without a REDUCE divides the local contribution of a single rank: the
         * mean is the contribution itself. */
        add_task(w, i, TRIB_TASK_COPY);
        return i;
    default:
        assert(s->op == TRIB_STEP_COPY);
        add_task(w, i, TRIB_TASK_COPY);
        return i;
    }
}

/* Link the tasks of each chunk to a list in program order. */
static void link_chunks(struct trib_program *p)
{
    for (uint32_t c = 0; c < p->n_chunks; c++)
        p->first[c] = TRIB_STEP_NO_DEP;
    for (uint32_t i = p->n_tasks; i-- > 0;) {
        const struct trib_task *t = &p->tasks[i];
        assert(t->chunk < p->n_chunks);
        p->next[i] = p->first[t->chunk];
        p->first[t->chunk] = i;
    }
}

/* Mark the REDUCEs that finish their chunk: this rank neither reduces it again nor
 * sends it upwards. Also mark the COPY_INs that are forwarded. */
static void mark_finishers(struct trib_program *p)
{
    for (uint32_t i = 0; i < p->n_tasks; i++) {
        struct trib_task *t = &p->tasks[i];
        if (t->kind == TRIB_TASK_SEND && (t->flags & TRIB_TASK_FORWARD))
            for (uint32_t j = p->first[t->chunk]; j < i; j = p->next[j])
                if (p->tasks[j].kind == TRIB_TASK_COPY_IN)
                    p->tasks[j].flags |= TRIB_TASK_RELAYED;
        if (t->kind != TRIB_TASK_REDUCE)
            continue;
        bool finish = true;
        for (uint32_t j = p->next[i]; j != TRIB_STEP_NO_DEP; j = p->next[j]) {
            const struct trib_task *u = &p->tasks[j];
            if (u->kind == TRIB_TASK_REDUCE ||
                (u->kind == TRIB_TASK_SEND && !(u->flags & TRIB_TASK_FINAL)))
                finish = false;
        }
        if (finish)
            t->flags |= TRIB_TASK_FINISH;
    }
}

trib_status_t trib_program_create(const struct trib_schedule *schedule,
                                  const struct trib_shape *shape,
                                  struct trib_program *out)
{
    uint32_t n = schedule->n_steps ? schedule->n_steps : 1;
    int size = shape->size + shape->aggregators;
    struct lowering w = {.schedule = schedule,
                         .out = out,
                         .is_aggregator = trib_shape_is_aggregator(shape)};

    memset(out, 0, sizeof(*out));
    out->n_chunks = schedule->n_chunks;
    out->tasks = calloc(n, sizeof(*out->tasks));
    out->first = calloc(schedule->n_chunks, sizeof(*out->first));
    out->next = calloc(n, sizeof(*out->next));
    out->contribs = calloc(n, sizeof(*out->contribs));
    out->neighbors = calloc((size_t)size, sizeof(*out->neighbors));
    w.task_of = calloc(n, sizeof(*w.task_of));
    w.has_value = calloc(schedule->n_chunks, sizeof(*w.has_value));
    w.own_sent = calloc(schedule->n_chunks, sizeof(*w.own_sent));
    w.edge_of = calloc((size_t)size, sizeof(*w.edge_of));
    trib_status_t st = TRIB_ERR_NO_MEMORY;
    if (out->tasks && out->first && out->next && out->contribs && out->neighbors &&
        w.task_of && w.has_value && w.own_sent && w.edge_of) {
        for (int p = 0; p < size; p++)
            w.edge_of[p] = -1;
        for (uint32_t i = 0; i < schedule->n_steps; i++)
            i = lower_step(&w, i);
        link_chunks(out);
        mark_finishers(out);
        st = TRIB_OK;
    }
    free(w.task_of);
    free(w.has_value);
    free(w.own_sent);
    free(w.edge_of);
    if (st != TRIB_OK)
        trib_program_free(out);
    return st;
}

void trib_program_free(struct trib_program *p)
{
    free(p->tasks);
    free(p->first);
    free(p->next);
    free(p->contribs);
    free(p->neighbors);
    memset(p, 0, sizeof(*p));
}
