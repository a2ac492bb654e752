/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The trace decorator: count writes and events, log the totals at close.
 */
#include "base/log.h"
#include "transport/params.h"
#include "transport/decorators/decorator.h"

static trib_status_t trace_write(struct trib_transport *t, int peer,
                                 const struct trib_write *write)
{
    struct decorator *w = decorator_of(t);
    trib_status_t status = inner_of(t)->ops->write(inner_of(t), peer, write);

    if (status == TRIB_OK) {
        w->count.posted++;
        w->count.posted_bytes += write->len;
    } else if (status == TRIB_ERR_NO_RESOURCE) {
        w->count.refused++;
    }
    return status;
}

static void trace_event(struct decorator *w, const struct trib_event *e)
{
    switch (e->kind) {
    case TRIB_EVENT_ARRIVED:
        w->count.arrived++;
        w->count.arrived_bytes += e->len;
        break;
    case TRIB_EVENT_WRITE_DONE:
        w->count.done++;
        break;
    case TRIB_EVENT_PEER_LOST:
        w->count.lost++;
        trib_log(w->log, TRIB_LOG_INFO, "trace", "peer %d is lost: %s", e->peer,
                 e->why);
        break;
    }
}

static int trace_poll(struct trib_transport *t, struct trib_event *events, int max)
{
    struct decorator *w = decorator_of(t);
    int n = inner_of(t)->ops->poll(inner_of(t), events, max);

    assert(max >= 0);
    w->count.polls++;
    w->count.empty_polls += n == 0;
    for (int i = 0; i < n; i++)
        trace_event(w, &events[i]);
    return n;
}

static void trace_wait(struct trib_transport *t, int timeout_us)
{
    atomic_fetch_add_explicit(&decorator_of(t)->count.waits, 1, memory_order_relaxed);
    inner_of(t)->ops->wait(inner_of(t), timeout_us);
}

static void trace_close(struct trib_transport *t)
{
    struct decorator *w = decorator_of(t);
    const struct counters *c = &w->count;

    trib_log(
        w->log, TRIB_LOG_INFO, "trace",
        "%s: %llu writes posted with %llu bytes, %llu done, %llu refused by "
        "back-pressure; %llu arrived with %llu bytes; %llu polls, %llu of them empty; "
        "%llu waits; %llu peers lost",
        w->ops.name, (unsigned long long)c->posted, (unsigned long long)c->posted_bytes,
        (unsigned long long)c->done, (unsigned long long)c->refused,
        (unsigned long long)c->arrived, (unsigned long long)c->arrived_bytes,
        (unsigned long long)c->polls, (unsigned long long)c->empty_polls,
        (unsigned long long)atomic_load(&c->waits), (unsigned long long)c->lost);
    trib_decorator_close(t);
}

trib_status_t trib_decorate_trace(const struct trib_transport_opts *opts,
                                  struct decorator *w)
{
    trib_status_t status = trib_params_parse("trace", opts->params, NULL, 0, opts->err);

    w->ops.write = trace_write;
    w->ops.poll = trace_poll;
    w->ops.wait = trace_wait;
    w->ops.close = trace_close;
    return status;
}
