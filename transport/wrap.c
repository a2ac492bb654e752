/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decorators. Each is a transport whose ops forward to the one inside, except for those
 * that it replaces; so they stack, and work over every backend.
 */
#include <assert.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "base/error.h"
#include "base/log.h"
#include "base/time.h"
#include "base/trace.h"
#include "transport/decorators.h"
#include "transport/params.h"

#define DELAY_SLOTS 1024u

/* A region as the caller gave it: who corrupts must find the bytes of a source. */
struct wrap_region {
    const struct trib_region *region;
    const uint8_t *ptr;
    struct wrap_region *next;
};

struct delayed {
    uint64_t due;
    struct trib_event event;
};

struct counters {
    uint64_t posted, posted_bytes;
    uint64_t refused; /* writes that met back-pressure */
    uint64_t arrived, arrived_bytes;
    uint64_t done, lost;
    uint64_t polls, empty_polls, waits;
};

/* One struct for all decorators; each uses its part. */
struct wrap {
    struct trib_transport base;
    struct trib_transport_ops ops; /* the forwarders with the own functions */
    struct trib_transport *inner;
    const struct trib_log *log;
    struct trib_error *err;
    int self;
    uint64_t writes; /* drop, corrupt, kill: posted so far */
    uint64_t nth;
    int signal_number;
    /* corrupt */
    struct wrap_region *regions;
    uint8_t *spoilt; /* the copy that was sent; lives as long as the transport */
    struct trib_region *spoilt_region;
    /* delay */
    uint64_t delay_ns;
    struct delayed *held;
    uint32_t held_head, held_tail;
    /* trace */
    struct counters count;
    struct trib_trace trace;
};

static struct wrap *wrap_of(struct trib_transport *t)
{
    return (struct wrap *)t;
}

static struct trib_transport *inner_of(struct trib_transport *t)
{
    return wrap_of(t)->inner;
}

/* Forwarders ----------------------------------------------------------------------- */

static trib_status_t fwd_open(const struct trib_transport_opts *opts,
                              struct trib_transport **out)
{
    (void)out;
    return trib_fail(opts->err, TRIB_ERR_UNSUPPORTED, "a decorator is opened by its text");
}

static void fwd_close(struct trib_transport *t)
{
    struct trib_transport *inner = inner_of(t);

    inner->ops->close(inner);
    free(t);
}

static trib_status_t fwd_address(struct trib_transport *t, struct trib_blob *out)
{
    return inner_of(t)->ops->address(inner_of(t), out);
}

static trib_status_t fwd_connect(struct trib_transport *t, int peer,
                                 const struct trib_blob *address)
{
    return inner_of(t)->ops->connect(inner_of(t), peer, address);
}

static void fwd_disconnect(struct trib_transport *t, int peer)
{
    inner_of(t)->ops->disconnect(inner_of(t), peer);
}

static trib_status_t fwd_alloc(struct trib_transport *t, size_t len, void **ptr_out,
                               struct trib_region **region_out)
{
    return inner_of(t)->ops->alloc(inner_of(t), len, ptr_out, region_out);
}

static trib_status_t fwd_reg(struct trib_transport *t, void *ptr, size_t len,
                             struct trib_region **out)
{
    return inner_of(t)->ops->reg(inner_of(t), ptr, len, out);
}

static void fwd_dereg(struct trib_transport *t, struct trib_region *region)
{
    inner_of(t)->ops->dereg(inner_of(t), region);
}

static trib_status_t fwd_export(struct trib_transport *t, const struct trib_region *region,
                                struct trib_blob *out)
{
    return inner_of(t)->ops->export_region(inner_of(t), region, out);
}

static trib_status_t fwd_import(struct trib_transport *t, int peer,
                                const struct trib_blob *blob, struct trib_remote **out)
{
    return inner_of(t)->ops->import_region(inner_of(t), peer, blob, out);
}

static void fwd_release(struct trib_transport *t, struct trib_remote *remote)
{
    inner_of(t)->ops->release(inner_of(t), remote);
}

static void *fwd_map(struct trib_transport *t, const struct trib_remote *remote)
{
    return inner_of(t)->ops->map(inner_of(t), remote);
}

static trib_status_t fwd_write(struct trib_transport *t, int peer,
                               const struct trib_write *write)
{
    return inner_of(t)->ops->write(inner_of(t), peer, write);
}

static int fwd_poll(struct trib_transport *t, struct trib_event *events, int max)
{
    return inner_of(t)->ops->poll(inner_of(t), events, max);
}

static void fwd_arm(struct trib_transport *t)
{
    inner_of(t)->ops->arm(inner_of(t));
}

static void fwd_wait(struct trib_transport *t, int timeout_us)
{
    inner_of(t)->ops->wait(inner_of(t), timeout_us);
}

static void fwd_wake(struct trib_transport *t, int peer)
{
    inner_of(t)->ops->wake(inner_of(t), peer);
}

static const struct trib_transport_ops forward_ops = {
    .open = fwd_open,
    .close = fwd_close,
    .address = fwd_address,
    .connect = fwd_connect,
    .disconnect = fwd_disconnect,
    .alloc = fwd_alloc,
    .reg = fwd_reg,
    .dereg = fwd_dereg,
    .export_region = fwd_export,
    .import_region = fwd_import,
    .release = fwd_release,
    .map = fwd_map,
    .write = fwd_write,
    .poll = fwd_poll,
    .arm = fwd_arm,
    .wait = fwd_wait,
    .wake = fwd_wake,
};

/* A decorator that does nothing yet; it goes by the name of what is inside. */
static struct wrap *wrap_make(const struct trib_transport_opts *opts,
                              struct trib_transport *inner)
{
    struct wrap *w = calloc(1, sizeof(*w));

    if (!w) {
        trib_fail(opts->err, TRIB_ERR_NO_MEMORY, "out of memory");
        return NULL;
    }
    w->ops = forward_ops;
    w->ops.name = inner->ops->name;
    w->ops.detail = inner->ops->detail;
    w->base.ops = &w->ops;
    w->inner = inner;
    w->log = opts->log;
    w->err = opts->err;
    w->self = opts->self;
    return w;
}

/* A decorator that acts at a certain write. */
static trib_status_t wrap_nth(const struct trib_transport_opts *opts,
                              struct trib_transport *inner, const char *owner,
                              struct wrap **out)
{
    int64_t nth = 1;
    const struct trib_param params[] = {
        {.name = "nth", .min = 1, .max = INT64_MAX, .value = &nth},
    };
    trib_status_t status = trib_params_parse(owner, opts->params, params, 1, opts->err);

    if (status != TRIB_OK)
        return status;
    *out = wrap_make(opts, inner);
    if (!*out)
        return TRIB_ERR_NO_MEMORY;
    (*out)->nth = (uint64_t)nth;
    return TRIB_OK;
}

/* nomap: no load/store reach, so that the write path is taken ---------------------- */

static trib_status_t nomap_wrap(const struct trib_transport_opts *opts,
                                struct trib_transport *inner, struct trib_transport **out)
{
    trib_status_t status = trib_params_parse("nomap", opts->params, NULL, 0, opts->err);
    struct wrap *w = status == TRIB_OK ? wrap_make(opts, inner) : NULL;

    if (!w)
        return status == TRIB_OK ? TRIB_ERR_NO_MEMORY : status;
    w->ops.map = trib_no_map;
    *out = &w->base;
    return TRIB_OK;
}

/* drop: one write is lost on the way ------------------------------------------------ */

static trib_status_t drop_write(struct trib_transport *t, int peer,
                                const struct trib_write *write)
{
    struct wrap *w = wrap_of(t);
    struct trib_write empty = {
        .quiet = true, .signal = write->signal, .token = write->token};
    bool now = w->writes + 1 == w->nth;
    /* The sender learns nothing: it still gets its WRITE_DONE. */
    trib_status_t status = fwd_write(t, peer, now ? &empty : write);

    w->writes += status == TRIB_OK;
    return status;
}

static trib_status_t drop_wrap(const struct trib_transport_opts *opts,
                               struct trib_transport *inner, struct trib_transport **out)
{
    struct wrap *w = NULL;
    trib_status_t status = wrap_nth(opts, inner, "drop", &w);

    if (status != TRIB_OK)
        return status;
    w->ops.write = drop_write;
    *out = &w->base;
    return TRIB_OK;
}

/* corrupt: one write arrives with a wrong byte -------------------------------------- */

static trib_status_t remember(struct wrap *w, const struct trib_region *region,
                              const void *ptr)
{
    struct wrap_region *r = calloc(1, sizeof(*r));

    if (!r)
        return trib_fail(w->err, TRIB_ERR_NO_MEMORY, "out of memory");
    *r = (struct wrap_region){.region = region, .ptr = ptr, .next = w->regions};
    w->regions = r;
    return TRIB_OK;
}

static trib_status_t corrupt_alloc(struct trib_transport *t, size_t len, void **ptr_out,
                                   struct trib_region **region_out)
{
    trib_status_t status = fwd_alloc(t, len, ptr_out, region_out);

    if (status == TRIB_OK)
        status = remember(wrap_of(t), *region_out, *ptr_out);
    return status;
}

static trib_status_t corrupt_reg(struct trib_transport *t, void *ptr, size_t len,
                                 struct trib_region **out)
{
    trib_status_t status = fwd_reg(t, ptr, len, out);

    if (status == TRIB_OK)
        status = remember(wrap_of(t), *out, ptr);
    return status;
}

static void corrupt_dereg(struct trib_transport *t, struct trib_region *region)
{
    for (struct wrap_region **p = &wrap_of(t)->regions; *p; p = &(*p)->next) {
        struct wrap_region *r = *p;
        if (r->region != region)
            continue;
        *p = r->next;
        free(r);
        break;
    }
    fwd_dereg(t, region);
}

/* Makes the copy with its middle byte inverted; NULL if memory is short. */
static const struct trib_region *spoil(struct wrap *w, const struct trib_write *write)
{
    const struct wrap_region *r = w->regions;

    if (w->spoilt_region)
        return w->spoilt_region;
    while (r && r->region != write->local)
        r = r->next;
    w->spoilt = r ? malloc(write->len) : NULL;
    if (!w->spoilt)
        return NULL;
    memcpy(w->spoilt, r->ptr + write->local_off, write->len);
    w->spoilt[write->len / 2] ^= 0xff;
    if (fwd_reg(&w->base, w->spoilt, write->len, &w->spoilt_region) != TRIB_OK)
        return NULL;
    return w->spoilt_region;
}

static trib_status_t corrupt_write(struct trib_transport *t, int peer,
                                   const struct trib_write *write)
{
    struct wrap *w = wrap_of(t);
    struct trib_write changed = *write;

    if (w->writes + 1 == w->nth) {
        if (write->len == 0)
            changed.imm ^= 1;
        else
            changed.local = spoil(w, write);
        changed.local_off = 0;
        if (write->len && !changed.local)
            return trib_fail(w->err, TRIB_ERR_NO_MEMORY, "out of memory");
    }
    trib_status_t status = fwd_write(t, peer, &changed);
    w->writes += status == TRIB_OK;
    return status;
}

static void corrupt_close(struct trib_transport *t)
{
    struct wrap *w = wrap_of(t);
    uint8_t *spoilt = w->spoilt;

    if (w->spoilt_region)
        fwd_dereg(t, w->spoilt_region);
    while (w->regions) {
        struct wrap_region *r = w->regions;
        w->regions = r->next;
        free(r);
    }
    fwd_close(t);
    free(spoilt);
}

static trib_status_t corrupt_wrap(const struct trib_transport_opts *opts,
                                  struct trib_transport *inner, struct trib_transport **out)
{
    struct wrap *w = NULL;
    trib_status_t status = wrap_nth(opts, inner, "corrupt", &w);

    if (status != TRIB_OK)
        return status;
    w->ops.alloc = corrupt_alloc;
    w->ops.reg = corrupt_reg;
    w->ops.dereg = corrupt_dereg;
    w->ops.write = corrupt_write;
    w->ops.close = corrupt_close;
    *out = &w->base;
    return TRIB_OK;
}

/* kill: this process gets a signal at a certain write ------------------------------- */

static trib_status_t kill_write(struct trib_transport *t, int peer,
                                const struct trib_write *write)
{
    struct wrap *w = wrap_of(t);

    if (++w->writes == w->nth)
        kill(getpid(), w->signal_number);
    return fwd_write(t, peer, write);
}

static trib_status_t kill_wrap(const struct trib_transport_opts *opts,
                               struct trib_transport *inner, struct trib_transport **out)
{
    int64_t after = 1, number = SIGKILL, rank = -1;
    const struct trib_param params[] = {
        {.name = "after", .min = 1, .max = INT64_MAX, .value = &after},
        {.name = "signal", .min = 1, .max = 64, .value = &number},
        {.name = "rank", .min = -1, .max = 65535, .value = &rank},
    };
    trib_status_t status = trib_params_parse("kill", opts->params, params, 3, opts->err);
    struct wrap *w = status == TRIB_OK ? wrap_make(opts, inner) : NULL;

    if (!w)
        return status == TRIB_OK ? TRIB_ERR_NO_MEMORY : status;
    w->nth = (uint64_t)after;
    w->signal_number = (int)number;
    if (rank < 0 || rank == opts->self)
        w->ops.write = kill_write;
    *out = &w->base;
    return TRIB_OK;
}

/* delay: events come later, in their order ------------------------------------------ */

static int delay_poll(struct trib_transport *t, struct trib_event *events, int max)
{
    struct wrap *w = wrap_of(t);
    uint64_t now = trib_now_ns();
    int n = 0;

    while (w->held_tail - w->held_head < DELAY_SLOTS) {
        struct delayed *d = &w->held[w->held_tail % DELAY_SLOTS];
        if (fwd_poll(t, &d->event, 1) != 1)
            break;
        d->due = now + w->delay_ns;
        w->held_tail++;
    }
    while (n < max && w->held_head != w->held_tail) {
        const struct delayed *d = &w->held[w->held_head % DELAY_SLOTS];
        if (d->due > now)
            break;
        events[n++] = d->event;
        w->held_head++;
    }
    return n;
}

static void delay_wait(struct trib_transport *t, int timeout_us)
{
    struct wrap *w = wrap_of(t);

    if (w->held_head != w->held_tail) {
        uint64_t due = w->held[w->held_head % DELAY_SLOTS].due, now = trib_now_ns();
        uint64_t us = due > now ? (due - now) / 1000 + 1 : 0;
        if (us < (uint64_t)timeout_us)
            timeout_us = (int)us;
    }
    fwd_wait(t, timeout_us);
}

static void delay_close(struct trib_transport *t)
{
    free(wrap_of(t)->held);
    fwd_close(t);
}

static trib_status_t delay_wrap(const struct trib_transport_opts *opts,
                                struct trib_transport *inner, struct trib_transport **out)
{
    int64_t us = 10;
    const struct trib_param params[] = {
        {.name = "us", .min = 0, .max = 10000000, .value = &us},
    };
    trib_status_t status = trib_params_parse("delay", opts->params, params, 1, opts->err);
    struct wrap *w = status == TRIB_OK ? wrap_make(opts, inner) : NULL;

    if (!w)
        return status == TRIB_OK ? TRIB_ERR_NO_MEMORY : status;
    w->delay_ns = (uint64_t)us * 1000u;
    w->held = calloc(DELAY_SLOTS, sizeof(*w->held));
    if (!w->held) {
        free(w);
        return trib_fail(opts->err, TRIB_ERR_NO_MEMORY, "out of memory");
    }
    w->ops.poll = delay_poll;
    w->ops.wait = delay_wait;
    w->ops.close = delay_close;
    *out = &w->base;
    return TRIB_OK;
}

/* trace: count, keep the newest events, tell at the end ----------------------------- */

static trib_status_t trace_write(struct trib_transport *t, int peer,
                                 const struct trib_write *write)
{
    struct wrap *w = wrap_of(t);
    trib_status_t status = fwd_write(t, peer, write);

    if (status == TRIB_OK) {
        w->count.posted++;
        w->count.posted_bytes += write->len;
        trib_trace_now(&w->trace, TRIB_TRACE_POST, peer, write->imm, write->len);
    } else if (status == TRIB_ERR_NO_RESOURCE) {
        w->count.refused++;
        trib_trace_now(&w->trace, TRIB_TRACE_BLOCKED, peer, write->imm, write->len);
    }
    return status;
}

static void trace_event(struct wrap *w, const struct trib_event *e)
{
    switch (e->kind) {
    case TRIB_EVENT_ARRIVED:
        w->count.arrived++;
        w->count.arrived_bytes += e->len;
        trib_trace_now(&w->trace, TRIB_TRACE_ARRIVED, e->peer, e->imm, e->len);
        break;
    case TRIB_EVENT_WRITE_DONE:
        w->count.done++;
        trib_trace_now(&w->trace, TRIB_TRACE_WRITE_DONE, e->peer, 0, e->token);
        break;
    case TRIB_EVENT_PEER_LOST:
        w->count.lost++;
        trib_trace_now(&w->trace, TRIB_TRACE_PEER_LOST, e->peer, 0, 0);
        trib_log(w->log, TRIB_LOG_INFO, "trace", "peer %d is lost: %s", e->peer, e->why);
        break;
    }
}

static int trace_poll(struct trib_transport *t, struct trib_event *events, int max)
{
    struct wrap *w = wrap_of(t);
    int n = fwd_poll(t, events, max);

    w->count.polls++;
    w->count.empty_polls += n == 0;
    for (int i = 0; i < n; i++)
        trace_event(w, &events[i]);
    return n;
}

static void trace_wait(struct trib_transport *t, int timeout_us)
{
    wrap_of(t)->count.waits++;
    fwd_wait(t, timeout_us);
}

static void trace_close(struct trib_transport *t)
{
    struct wrap *w = wrap_of(t);
    const struct counters *c = &w->count;

    trib_log(w->log, TRIB_LOG_INFO, "trace",
             "%s: %llu writes posted with %llu bytes, %llu done, %llu refused for now; %llu "
             "arrived with %llu bytes; %llu polls, %llu of them empty; %llu waits; %llu "
             "peers lost",
             w->ops.name, (unsigned long long)c->posted, (unsigned long long)c->posted_bytes,
             (unsigned long long)c->done, (unsigned long long)c->refused,
             (unsigned long long)c->arrived, (unsigned long long)c->arrived_bytes,
             (unsigned long long)c->polls, (unsigned long long)c->empty_polls,
             (unsigned long long)c->waits, (unsigned long long)c->lost);
    trib_trace_destroy(&w->trace);
    fwd_close(t);
}

static trib_status_t trace_wrap(const struct trib_transport_opts *opts,
                                struct trib_transport *inner, struct trib_transport **out)
{
    trib_status_t status = trib_params_parse("trace", opts->params, NULL, 0, opts->err);
    struct wrap *w = status == TRIB_OK ? wrap_make(opts, inner) : NULL;
    size_t events = opts->cfg ? opts->cfg->trace : 0;

    if (!w)
        return status == TRIB_OK ? TRIB_ERR_NO_MEMORY : status;
    status = trib_trace_create(&w->trace, events, opts->self);
    if (status != TRIB_OK) {
        free(w);
        return trib_fail(opts->err, status, "no memory for a trace of %zu events", events);
    }
    w->ops.write = trace_write;
    w->ops.poll = trace_poll;
    w->ops.wait = trace_wait;
    w->ops.close = trace_close;
    *out = &w->base;
    return TRIB_OK;
}

const struct trib_decorator trib_decorators[] = {
    {"trace", "counts writes and events, logs the sums at the end (level info)", trace_wrap},
    {"delay", "us=N: events come N microseconds later", delay_wrap},
    {"drop", "nth=N: the N-th write vanishes", drop_wrap},
    {"corrupt", "nth=N: one byte of the N-th write is wrong", corrupt_wrap},
    {"kill", "after=N,signal=S,rank=R: rank R (-1: each) gets a signal at its N-th write",
     kill_wrap},
    {"nomap", "peers' memory is reached by writes only", nomap_wrap},
    {NULL, NULL, NULL},
};
