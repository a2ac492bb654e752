/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The replay runs tasks as the engine does: a task runs once its dependency is done and
 * it has its frames or a slot. Instead of scanning all tasks, each event checks the few
 * that may have waited for it.
 */
#include <stdlib.h>
#include <string.h>

#include "perf/sim/sim_port.h"
#include "perf/sim/sim_rank.h"
#include "pipeline/run/chunk.h"

static void run_next(struct sim_rank *r);
static void wake(struct sim_rank *r);

/* --- what can run --- */

static bool at(const struct sim_cursor *c, const struct trib_task *t, uint32_t ordinal)
{
    return c->round == t->done && c->ordinal == ordinal;
}

static bool is_due(const struct sim_lane *l, const struct trib_task *t,
                   uint32_t ordinal)
{
    return l->arrived != l->taken && at(&l->recv, t, ordinal);
}

/* Contributions of a linear codec need the scales agreed on one round earlier. */
static bool agreement_there(const struct sim_rank *r, const struct trib_task *t)
{
    const struct trib_run *run = &r->replay->run;

    if (!run->desc.share_piece || trib_share_task(run, t) ||
        !(t->flags & (TRIB_TASK_INPUT | TRIB_TASK_INPUT_SENT)))
        return true;
    return r->agreed[t->done - 1] == r->share_tasks;
}

static bool can_run(const struct sim_rank *r, const struct trib_task *t)
{
    if (t->dep != TRIB_STEP_NO_DEP && r->program.tasks[t->dep].done <= t->done)
        return false;
    if (!agreement_there(r, t))
        return false;
    const struct sim_lane *l;
    switch ((enum trib_task_kind)t->kind) {
    case TRIB_TASK_SEND:
        l = &r->edges[t->neighbor].lane[t->lane];
        return at(&l->send, t, t->ordinal) && l->sent - l->released < r->replay->window;
    case TRIB_TASK_REDUCE:
        for (uint32_t k = 0; k < t->n_contribs; k++) {
            const struct trib_contrib *m = &r->program.contribs[t->contrib + k];
            if (!is_due(&r->edges[m->neighbor].lane[m->lane], t, m->ordinal))
                return false;
        }
        return true;
    case TRIB_TASK_COPY_IN:
        return is_due(&r->edges[t->neighbor].lane[t->lane], t, t->ordinal);
    default:
        return true;
    }
}

/* Consume a frame; the next one may have arrived already. */
static void take(struct sim_rank *r, uint16_t neighbor, uint8_t lane)
{
    const struct trib_neighbor *n = &r->program.neighbors[neighbor];
    struct sim_lane *l = &r->edges[neighbor].lane[lane];

    l->taken++;
    sim_cursor_next(r->replay, &l->recv, n->recvs[lane], n->share_recvs[lane]);
}

static void reserve(struct sim_rank *r, const struct trib_task *t)
{
    const struct trib_neighbor *n = &r->program.neighbors[t->neighbor];

    if (t->kind == TRIB_TASK_SEND) {
        struct sim_lane *l = &r->edges[t->neighbor].lane[t->lane];
        l->sent++;
        sim_cursor_next(r->replay, &l->send, n->sends[t->lane],
                        n->share_sends[t->lane]);
    } else if (t->kind == TRIB_TASK_COPY_IN) {
        take(r, t->neighbor, t->lane);
    }
    for (uint32_t k = 0; t->kind == TRIB_TASK_REDUCE && k < t->n_contribs; k++) {
        const struct trib_contrib *m = &r->program.contribs[t->contrib + k];
        take(r, m->neighbor, m->lane);
    }
}

/* Count the contributions in a value, after the frames of its task were consumed. */
static void merge(struct sim_rank *r, const struct trib_task *t)
{
    const uint32_t window = r->replay->window;
    uint32_t n = t->flags & TRIB_TASK_INPUT ? 1 : r->merged[t->chunk];

    if (t->flags & TRIB_TASK_EMPTY)
        n = 0;
    for (uint32_t k = 0; k < t->n_contribs; k++) {
        const struct trib_contrib *m = &r->program.contribs[t->contrib + k];
        const struct sim_lane *l = &r->edges[m->neighbor].lane[m->lane];
        n += l->merged[(l->taken - 1) % window];
    }
    r->merged[t->chunk] = (uint16_t)n;
}

static void queue_if_ready(struct sim_rank *r, uint32_t i)
{
    struct trib_task *t = &r->program.tasks[i];

    if (!r->started || r->queued[i] || trib_task_over(&r->replay->run, t) ||
        !can_run(r, t))
        return;
    reserve(r, t);
    if (t->kind == TRIB_TASK_REDUCE) {
        merge(r, t);
        r->cost[i] = (float)sim_cost_reduce(r, t);
    }
    r->queued[i] = 1;
    r->ready[r->ready_tail++ % r->ready_size] = i;
    if (r->running == SIM_NONE)
        wake(r);
}

static void queue_send(struct sim_rank *r, uint16_t neighbor, int lane)
{
    const struct sim_lane *l = &r->edges[neighbor].lane[lane];

    if (l->send.round < r->replay->run.desc.rounds)
        queue_if_ready(r, l->send_task[l->send.ordinal]);
}

static void queue_recv(struct sim_rank *r, uint16_t neighbor, int lane)
{
    const struct sim_lane *l = &r->edges[neighbor].lane[lane];

    if (l->arrived != l->taken)
        queue_if_ready(r, l->recv_task[l->recv.ordinal]);
}

/* --- the wire --- */

static void put_on_wire(struct sim_edge *e);

static void arrive(void *arg)
{
    struct sim_edge *e = arg;
    struct sim_replay *replay = e->replay;
    struct sim_rank *to = &replay->ranks[e->to];
    const struct sim_message m = e->flying[e->fly_head++ % (2 * replay->window)];
    struct sim_lane *l = &to->edges[e->back].lane[m.lane];

    l->merged[l->arrived++ % replay->window] = m.merged;
    sim_port_arrived(e, &m);
    queue_recv(to, e->back, m.lane);
}

static void sent(void *arg)
{
    struct sim_edge *e = arg;
    struct sim_replay *replay = e->replay;

    e->busy = false;
    if (e->route.n) {
        replay->busy_out[sim_plan_host(replay->plan, e->from)]--;
        replay->busy_in[sim_plan_host(replay->plan, e->to)]--;
    }
    sim_port_sent(e, &e->flying[(e->fly_tail - 1) % (2 * replay->window)]);
    simnet_after(e->delay_s, arrive, e);
    put_on_wire(e);
}

static void count(const struct sim_edge *e, double bytes)
{
    struct sim_replay *replay = e->replay;

    for (int i = 0; i < e->route.n; i++)
        replay->link_bytes[e->route.link[i]] += bytes;
    replay->wire += bytes;
}

/*
 * Return the slowdown of a link shared by several TCP connections. Each connection
 * finds its share on its own. If the far link is shared, too, each link sometimes idles
 * while its bytes are held up at the other one. This is worst if both have equally many
 * connections.
 */
static double crowd(double crowding, double out, double in)
{
    const double k = out < in ? out : in, more = out < in ? in : out;

    return 1 + crowding * (k - 1) / (k + 1) * k / more;
}

static void put_on_wire(struct sim_edge *e)
{
    struct sim_replay *replay = e->replay;
    const uint32_t ring = 2 * replay->window;
    const int from = sim_plan_host(replay->plan, e->from),
              to = sim_plan_host(replay->plan, e->to);

    if (e->busy || e->head == e->admit)
        return;
    const struct sim_message m = e->queue[e->head++ % ring];
    e->flying[e->fly_tail++ % ring] = m;
    e->busy = true;
    count(e, m.bytes);
    if (!e->route.n) {
        simnet_after(m.bytes / replay->args->rates.near_Bps, sent, e);
        return;
    }
    const double out = ++replay->busy_out[from], in = ++replay->busy_in[to];
    simnet_send(from, to, m.bytes * crowd(replay->args->crowding, out, in), sent, e);
}

static void post(void *arg)
{
    struct sim_edge *e = arg;

    sim_port_admit(e, post);
    put_on_wire(e);
}

/* --- credits --- */

/* Release a slot at the sender. */
static void credit(void *arg)
{
    struct sim_edge *e = arg;
    struct sim_rank *to = &e->replay->ranks[e->to];
    const uint8_t lane = e->credits[e->credit_head++ % (2 * e->replay->window)];

    to->edges[e->back].lane[lane].released++;
    queue_send(to, e->back, lane);
}

static void give_back(struct sim_rank *r, uint16_t neighbor, uint8_t lane)
{
    struct sim_edge *e = &r->edges[neighbor];

    e->credits[e->credit_tail++ % (2 * e->replay->window)] = lane;
    simnet_after(e->delay_s, credit, e);
}

/* --- end of a task --- */

static void finish_rank(struct sim_rank *r)
{
    struct sim_replay *replay = r->replay;

    r->done_s = simnet_now();
    if (--replay->left == 0)
        simnet_stop();
}

/* Stop a replay that would take too long; its second half is extrapolated. */
static void count_message(struct sim_replay *replay)
{
    const double most = (double)replay->args->messages;

    replay->messages++;
    if (!replay->args->messages || replay->total <= most)
        return;
    if (replay->messages == (double)(size_t)(most / 2)) {
        replay->half_s = simnet_now();
        replay->half_messages = replay->messages;
    }
    if (replay->messages >= most)
        simnet_stop();
}

static void effect(struct sim_rank *r, const struct trib_task *t,
                   const struct sim_message *m)
{
    struct sim_replay *replay = r->replay;

    if (t->kind == TRIB_TASK_SEND) {
        struct sim_edge *e = &r->edges[t->neighbor];
        e->queue[e->tail++ % (2 * replay->window)] = *m;
        post(e);
        count_message(replay);
    } else if (t->kind == TRIB_TASK_COPY_IN) {
        give_back(r, t->neighbor, t->lane);
    }
    if (t->kind != TRIB_TASK_REDUCE)
        return;
    for (uint32_t k = 0; k < t->n_contribs; k++) {
        const struct trib_contrib *c = &r->program.contribs[t->contrib + k];
        give_back(r, c->neighbor, c->lane);
    }
}

static void queue_dependents(struct sim_rank *r, uint32_t i)
{
    const struct trib_task *t = &r->program.tasks[i];

    for (uint32_t d = r->dependent[i]; d != SIM_NONE; d = r->sister[d])
        queue_if_ready(r, d);
    queue_if_ready(r, i);
    if (t->kind == TRIB_TASK_SEND)
        queue_send(r, t->neighbor, t->lane);
    else if (t->kind == TRIB_TASK_COPY_IN)
        queue_recv(r, t->neighbor, t->lane);
    for (uint32_t k = 0; t->kind == TRIB_TASK_REDUCE && k < t->n_contribs; k++) {
        const struct trib_contrib *m = &r->program.contribs[t->contrib + k];
        queue_recv(r, m->neighbor, m->lane);
    }
}

/* A round of the agreement may be complete: its chunks may then be encoded. */
static void note_agreement(struct sim_rank *r, const struct trib_task *t)
{
    if (++r->agreed[t->done - 1] < r->share_tasks)
        return;
    for (uint32_t i = 0; i < r->program.n_tasks; i++)
        queue_if_ready(r, i);
}

/* Namespaces of one machine share its cores, first come, first served. */
static bool take_core(struct sim_rank *r)
{
    struct sim_replay *replay = r->replay;

    if (!replay->args->cores)
        return true;
    if (replay->busy_cores < replay->args->cores) {
        replay->busy_cores++;
        return true;
    }
    if (!r->waits)
        replay->waiting[replay->waiting_tail++ % (uint32_t)replay->plan->n] =
            (uint32_t)r->rank;
    r->waits = true;
    return false;
}

static void leave_core(struct sim_replay *replay)
{
    if (!replay->args->cores)
        return;
    replay->busy_cores--;
    if (replay->waiting_head == replay->waiting_tail)
        return;
    struct sim_rank *next = &replay->ranks[replay->waiting[replay->waiting_head++ %
                                                           (uint32_t)replay->plan->n]];
    next->waits = false;
    run_next(next);
}

static void end(void *arg)
{
    struct sim_rank *r = arg;
    const uint32_t i = r->running;
    struct trib_task *t = &r->program.tasks[i];
    const struct trib_run *run = &r->replay->run;
    const struct sim_message m = r->message;

    r->running = SIM_NONE;
    r->queued[i] = 0;
    effect(r, t, &m);
    t->done++;
    if (trib_task_over(run, t) && --r->remaining == 0)
        finish_rank(r);
    if (trib_share_task(run, t))
        note_agreement(r, t);
    queue_dependents(r, i);
    leave_core(r->replay);
    if (r->running == SIM_NONE)
        run_next(r);
    r->asleep = r->running == SIM_NONE && r->ready_head == r->ready_tail;
}

static void run_next(struct sim_rank *r)
{
    if (r->ready_head == r->ready_tail || !take_core(r))
        return;
    r->running = r->ready[r->ready_head++ % r->ready_size];
    const struct trib_task *t = &r->program.tasks[r->running];
    const double s = t->kind == TRIB_TASK_REDUCE ? (double)r->cost[r->running]
                                                 : sim_cost(r, t, &r->message);
    r->cpu_s += s;
    simnet_after(s, end, r);
}

static void woken(void *arg)
{
    struct sim_rank *r = arg;

    r->waking = r->asleep = false;
    if (r->running == SIM_NONE)
        run_next(r);
}

/* An idle rank runs wake_s after its first task can run. */
static void wake(struct sim_rank *r)
{
    const double wake_s = r->replay->args->rates.wake_s;

    if (r->waking)
        return;
    if (!r->asleep || !(wake_s > 0)) {
        run_next(r);
        return;
    }
    r->waking = true;
    simnet_after(wake_s, woken, r);
}

/* --- all --- */

static void begin(void *arg)
{
    struct sim_rank *r = arg;

    r->started = true;
    if (r->remaining == 0)
        finish_rank(r);
    for (uint32_t i = 0; i < r->program.n_tasks; i++)
        queue_if_ready(r, i);
}

void sim_replay_start(void *arg)
{
    struct sim_replay *replay = arg;

    for (int r = 0; r < replay->plan->n; r++) {
        const bool late = r == replay->args->late_rank;
        simnet_after(late ? replay->args->late_s : 0, begin, &replay->ranks[r]);
    }
}
