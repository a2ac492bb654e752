/* SPDX-License-Identifier: BSD-3-Clause */
#include "perf/sim/sim_rank.h"

#include <stdlib.h>

#include "pipeline/run/chunk.h"

/* Advance to a frame that exists. With an agreement, its frames come first in a round;
 * the first round has no other frames, and the last round has none of the
 * agreement's. */
static void settle(const struct sim_replay *replay, struct sim_cursor *c, uint32_t all,
                   uint32_t share)
{
    const struct trib_run_desc *d = &replay->run.desc;
    const bool agrees = d->share_piece != 0;

    while (c->round < d->rounds) {
        const bool last = agrees && c->round == d->rounds - 1;
        const uint32_t end = agrees && c->round == 0 ? share : all;

        if (last && c->ordinal < share)
            c->ordinal = share;
        if (c->ordinal < end)
            return;
        c->round++;
        c->ordinal = 0;
    }
}

void sim_cursor_next(const struct sim_replay *replay, struct sim_cursor *c,
                     uint32_t all, uint32_t share)
{
    c->ordinal++;
    settle(replay, c, all, share);
}

static void count_share(struct sim_replay *replay, struct trib_program *p)
{
    for (uint32_t i = 0; i < p->n_tasks; i++) {
        const struct trib_task *t = &p->tasks[i];
        if (!trib_share_task(&replay->run, t))
            continue;
        if (t->kind == TRIB_TASK_SEND)
            p->neighbors[t->neighbor].share_sends[t->lane]++;
        if (t->kind == TRIB_TASK_COPY_IN)
            p->neighbors[t->neighbor].share_recvs[t->lane]++;
        for (uint32_t k = 0; t->kind == TRIB_TASK_REDUCE && k < t->n_contribs; k++) {
            const struct trib_contrib *m = &p->contribs[t->contrib + k];
            p->neighbors[m->neighbor].share_recvs[m->lane]++;
        }
    }
}

static bool make_edge(struct sim_rank *r, uint32_t i)
{
    struct sim_replay *replay = r->replay;
    const struct trib_neighbor *neighbor = &r->program.neighbors[i];
    struct sim_edge *e = &r->edges[i];
    bool room = true;

    e->replay = replay;
    e->from = r->rank;
    e->to = neighbor->peer;
    for (int lane = 0; lane < TRIB_LANES; lane++) {
        struct sim_lane *l = &e->lane[lane];
        l->send_task = calloc(neighbor->sends[lane] + 1, sizeof(*l->send_task));
        l->recv_task = calloc(neighbor->recvs[lane] + 1, sizeof(*l->recv_task));
        l->merged = calloc(replay->window, sizeof(*l->merged));
        room = room && l->send_task && l->recv_task && l->merged;
        settle(replay, &l->send, neighbor->sends[lane], neighbor->share_sends[lane]);
        settle(replay, &l->recv, neighbor->recvs[lane], neighbor->share_recvs[lane]);
    }
    e->queue = calloc(2 * replay->window, sizeof(*e->queue));
    e->flying = calloc(2 * replay->window, sizeof(*e->flying));
    e->credits = calloc(2 * replay->window, sizeof(*e->credits));
    return room && e->queue && e->flying && e->credits;
}

static void note_frames(struct sim_rank *r, uint32_t i)
{
    struct trib_task *t = &r->program.tasks[i];

    t->done = trib_task_first(&r->replay->run, t);
    r->remaining++;
    r->share_tasks += trib_share_task(&r->replay->run, t);
    if (t->kind == TRIB_TASK_SEND)
        r->edges[t->neighbor].lane[t->lane].send_task[t->ordinal] = i;
    if (t->kind == TRIB_TASK_COPY_IN)
        r->edges[t->neighbor].lane[t->lane].recv_task[t->ordinal] = i;
    for (uint32_t k = 0; t->kind == TRIB_TASK_REDUCE && k < t->n_contribs; k++) {
        const struct trib_contrib *m = &r->program.contribs[t->contrib + k];
        r->edges[m->neighbor].lane[m->lane].recv_task[m->ordinal] = i;
    }
    if (t->dep != TRIB_STEP_NO_DEP) {
        r->sister[i] = r->dependent[t->dep];
        r->dependent[t->dep] = i;
    }
}

bool sim_rank_make(struct sim_replay *replay, struct sim_rank *r)
{
    struct trib_program *p = &r->program;
    const size_t tasks = p->n_tasks + 1, chunks = p->n_chunks + 1;
    bool room = true;

    count_share(replay, p);
    r->replay = replay;
    r->running = SIM_NONE;
    r->edges = calloc(p->n_neighbors + 1, sizeof(*r->edges));
    r->dependent = malloc(tasks * sizeof(*r->dependent));
    r->sister = malloc(tasks * sizeof(*r->sister));
    r->queued = calloc(tasks, sizeof(*r->queued));
    r->merged = calloc(chunks, sizeof(*r->merged));
    r->encoded = calloc(chunks, sizeof(*r->encoded));
    r->cost = calloc(tasks, sizeof(*r->cost));
    r->ready_size = p->n_tasks + 1;
    r->ready = calloc(r->ready_size, sizeof(*r->ready));
    r->agreed = calloc(replay->run.desc.rounds + 1, sizeof(*r->agreed));
    if (!r->edges || !r->dependent || !r->sister || !r->queued || !r->merged ||
        !r->encoded || !r->ready || !r->agreed || !r->cost)
        return false;
    for (size_t i = 0; i < tasks; i++)
        r->dependent[i] = r->sister[i] = SIM_NONE;
    for (uint32_t i = 0; i < p->n_neighbors; i++)
        room = make_edge(r, i) && room;
    for (uint32_t i = 0; room && i < p->n_tasks; i++)
        note_frames(r, i);
    return room;
}

/* Tell each edge its number at the other end. */
void sim_rank_join(struct sim_replay *replay)
{
    const struct sim_args *args = replay->args;

    for (int r = 0; r < replay->plan->n; r++) {
        struct sim_rank *rank = &replay->ranks[r];
        for (uint32_t i = 0; i < rank->program.n_neighbors; i++) {
            struct sim_edge *e = &rank->edges[i];
            const struct sim_rank *other = &replay->ranks[e->to];
            while (other->edges[e->back].to != r)
                e->back++;
            simnet_route(sim_plan_host(replay->plan, r),
                         sim_plan_host(replay->plan, e->to), &e->route);
            e->delay_s = e->route.n ? e->route.n * args->latency_s : args->rates.near_s;
        }
    }
}
