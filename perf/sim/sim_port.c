/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Senders fill the buffer of a port at the rate of their own links, so all bytes that
 * were posted to a port and have not left it count as buffered. A message that does not
 * fit is lost and sent again later (--resend), or pauses all further messages of its
 * sender, as priority flow control does.
 */
#include "perf/sim/sim_port.h"

#include <stdlib.h>

#include "pipeline/link/grants.h"

/* Edges that wait at a port, linked by sim_edge.next. */
struct queue {
    struct sim_edge *first, *last;
};

struct sim_port {
    struct queue asking; /* for a grant */
    struct queue paused; /* for room in the buffer */
    double given; /* bytes granted and not arrived */
    double under_way; /* bytes that senders have posted and the port has not sent */
    struct sim_edge *blocks; /* edge that pauses what this rank sends; or NULL */
};

static void append(struct queue *q, struct sim_edge *e)
{
    e->next = NULL;
    if (q->first)
        q->last->next = e;
    else
        q->first = e;
    q->last = e;
}

static struct sim_edge *take(struct queue *q)
{
    struct sim_edge *e = q->first;

    q->first = e->next;
    return e;
}

static struct sim_message *next_message(const struct sim_edge *e)
{
    return &e->queue[e->admit % (2 * e->replay->window)];
}

/* --- grants --- */

static void granted(void *arg)
{
    struct sim_edge *e = arg;

    next_message(e)->granted = true;
    e->asked = false;
    e->resume(e);
}

static void pass(struct sim_replay *replay, struct sim_port *port)
{
    while (port->asking.first) {
        const double bytes = next_message(port->asking.first)->bytes;
        if (port->given > 0 && port->given + bytes > (double)replay->args->in_flight)
            return;
        struct sim_edge *e = take(&port->asking);
        port->given += bytes;
        simnet_after(e->delay_s, granted, e);
    }
}

static void asks(void *arg)
{
    struct sim_edge *e = arg;
    struct sim_port *port = &e->replay->ports[e->to];

    append(&port->asking, e);
    pass(e->replay, port);
}

static bool must_ask(const struct sim_edge *e, const struct sim_message *m)
{
    const struct sim_replay *replay = e->replay;
    const uint32_t senders = replay->senders[m->lane];

    return replay->args->in_flight && senders > 1 && e->route.n &&
           m->bytes * replay->window * senders >
               (double)replay->args->in_flight * TRIB_GRANTS_FREE;
}

/* --- the buffer --- */

static bool fits(const struct sim_edge *e, const struct sim_port *port, double bytes)
{
    const double buffer = (double)e->replay->args->buffer;

    return !e->route.n || !(buffer > 0) || !(port->under_way > 0) ||
           port->under_way + bytes <= buffer;
}

static void resend(void *arg)
{
    struct sim_edge *e = arg;

    e->asked = false;
    e->resume(e);
}

/* Let the edges of a rank continue that was paused. */
static void unpause(struct sim_edge *e)
{
    struct sim_rank *from = &e->replay->ranks[e->from];

    e->replay->ports[e->from].blocks = NULL;
    e->asked = false;
    e->resume(e);
    for (uint32_t i = 0; i < from->program.n_neighbors; i++)
        if (from->edges[i].resume)
            from->edges[i].resume(&from->edges[i]);
}

void sim_port_sent(struct sim_edge *e, const struct sim_message *m)
{
    struct sim_port *port = &e->replay->ports[e->to];

    if (!e->route.n)
        return;
    port->under_way -= m->bytes;
    while (port->paused.first && fits(e, port, next_message(port->paused.first)->bytes))
        unpause(take(&port->paused));
}

void sim_port_arrived(struct sim_edge *e, const struct sim_message *m)
{
    struct sim_port *port = &e->replay->ports[e->to];

    if (!m->granted)
        return;
    port->given -= m->bytes;
    pass(e->replay, port);
}

/* Return true if the next message may enter the network now. */
static bool enters(struct sim_edge *e)
{
    struct sim_replay *replay = e->replay;
    struct sim_port *own = &replay->ports[e->from], *port = &replay->ports[e->to];
    const struct sim_message *m = next_message(e);

    if (e->asked || (own->blocks && e->route.n))
        return false;
    if (must_ask(e, m) && !m->granted) {
        e->asked = true;
        simnet_after(e->delay_s, asks, e);
        return false;
    }
    if (fits(e, port, m->bytes))
        return true;
    e->asked = true;
    replay->out->held++;
    if (replay->args->resend_s > 0) {
        simnet_after(replay->args->resend_s, resend, e);
    } else {
        own->blocks = e;
        append(&port->paused, e);
    }
    return false;
}

void sim_port_admit(struct sim_edge *e, void (*resume)(void *edge))
{
    struct sim_port *port = &e->replay->ports[e->to];
    double *most = &e->replay->out->backlog_most;

    e->resume = resume;
    while (e->admit != e->tail && enters(e)) {
        port->under_way += e->route.n ? next_message(e)->bytes : 0;
        *most = port->under_way > *most ? port->under_way : *most;
        e->admit++;
    }
}

bool sim_port_make(struct sim_replay *replay)
{
    const struct sim_plan *plan = replay->plan;

    for (int lane = 0; lane < TRIB_LANES; lane++)
        replay->senders[lane] = trib_algo_senders(plan->algo, &plan->shape, lane);
    replay->ports = calloc((size_t)plan->n, sizeof(*replay->ports));
    return replay->ports != NULL;
}
