/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decorators that inject faults: delayed, lost and corrupted messages, dead processes.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/time.h"
#include "transport/params.h"
#include "transport/decorators/decorator.h"

/* Parse the parameters of a decorator that acts on the nth write. corrupt counts only
 * writes of at least `least` bytes. */
static trib_status_t parse_nth(const struct trib_transport_opts *opts,
                               const char *owner, struct decorator *w)
{
    int64_t nth = 1, least = 0;
    const struct trib_param params[] = {
        {.name = "nth", .min = 1, .max = INT64_MAX, .value = &nth},
        {.name = "least", .min = 0, .max = INT64_MAX, .value = &least},
    };
    const size_t n = strcmp(owner, "corrupt") == 0 ? 2 : 1;
    trib_status_t status = trib_params_parse(owner, opts->params, params, n, opts->err);

    w->nth = (uint64_t)nth;
    w->least = (uint64_t)least;
    return status;
}

/* drop: lose one write */

static trib_status_t drop_write(struct trib_transport *t, int peer,
                                const struct trib_write *write)
{
    struct decorator *w = decorator_of(t);
    struct trib_write empty = {
        .quiet = true, .signal = write->signal, .token = write->token};
    bool now = w->writes + 1 == w->nth;
    /* The sender does not notice: it still gets its WRITE_DONE. */
    trib_status_t status =
        inner_of(t)->ops->write(inner_of(t), peer, now ? &empty : write);

    assert(w->nth > 0);
    w->writes += status == TRIB_OK;
    return status;
}

trib_status_t trib_decorate_drop(const struct trib_transport_opts *opts,
                                 struct decorator *w)
{
    w->ops.write = drop_write;
    return parse_nth(opts, "drop", w);
}

/* repeat: deliver one write twice, which no transport may do */

static trib_status_t repeat_write(struct trib_transport *t, int peer,
                                  const struct trib_write *write)
{
    struct decorator *w = decorator_of(t);
    struct trib_write before = *write;
    trib_status_t status = TRIB_OK;

    assert(w->nth > 0);
    before.signal = false; /* the source is kept until the second write completes */
    if (w->writes + 1 == w->nth)
        status = inner_of(t)->ops->write(inner_of(t), peer, &before);
    if (status != TRIB_OK)
        return status;
    /* if the second write is refused, a retry posts it only once */
    w->writes += w->writes + 1 == w->nth;
    status = inner_of(t)->ops->write(inner_of(t), peer, write);
    w->writes += status == TRIB_OK;
    return status;
}

trib_status_t trib_decorate_repeat(const struct trib_transport_opts *opts,
                                   struct decorator *w)
{
    w->ops.write = repeat_write;
    return parse_nth(opts, "repeat", w);
}

/* corrupt: change one byte of one write */

static trib_status_t remember(struct decorator *w, const struct trib_region *region,
                              const void *ptr)
{
    struct decorator_region *r = calloc(1, sizeof(*r));

    if (!r)
        return trib_fail(w->err, TRIB_ERR_NO_MEMORY, "out of memory");
    *r = (struct decorator_region){.region = region, .ptr = ptr, .next = w->regions};
    w->regions = r;
    return TRIB_OK;
}

static trib_status_t corrupt_alloc(struct trib_transport *t, size_t len, void **ptr_out,
                                   struct trib_region **region_out)
{
    trib_status_t status =
        inner_of(t)->ops->alloc(inner_of(t), len, ptr_out, region_out);

    if (status == TRIB_OK)
        status = remember(decorator_of(t), *region_out, *ptr_out);
    return status;
}

static trib_status_t corrupt_alloc_user(struct trib_transport *t, size_t len,
                                        void **ptr_out, struct trib_region **region_out)
{
    trib_status_t status =
        inner_of(t)->ops->alloc_user(inner_of(t), len, ptr_out, region_out);

    if (status == TRIB_OK)
        status = remember(decorator_of(t), *region_out, *ptr_out);
    return status;
}

static trib_status_t corrupt_reg(struct trib_transport *t, void *ptr, size_t len,
                                 struct trib_region **out)
{
    trib_status_t status = inner_of(t)->ops->reg(inner_of(t), ptr, len, out);

    if (status == TRIB_OK)
        status = remember(decorator_of(t), *out, ptr);
    return status;
}

static trib_status_t corrupt_reg_dmabuf(struct trib_transport *t,
                                        const struct trib_dmabuf *d,
                                        struct trib_region **out)
{
    trib_status_t status = inner_of(t)->ops->reg_dmabuf(inner_of(t), d, out);

    if (status == TRIB_OK)
        status = remember(decorator_of(t), *out, d->ptr);
    return status;
}

static void corrupt_dereg(struct trib_transport *t, struct trib_region *region)
{
    for (struct decorator_region **p = &decorator_of(t)->regions; *p; p = &(*p)->next) {
        struct decorator_region *r = *p;
        if (r->region != region)
            continue;
        *p = r->next;
        free(r);
        break;
    }
    inner_of(t)->ops->dereg(inner_of(t), region);
}

/* Copy the source and invert its middle byte; return NULL if out of memory. */
static const struct trib_region *spoil(struct decorator *w,
                                       const struct trib_write *write)
{
    const struct decorator_region *r = w->regions;

    assert(write->len > 0);
    if (w->spoilt_region)
        return w->spoilt_region;
    while (r && r->region != write->local)
        r = r->next;
    w->spoilt = r ? malloc(write->len) : NULL;
    if (!w->spoilt)
        return NULL;
    memcpy(w->spoilt, r->ptr + write->local_off, write->len);
    w->spoilt[write->len / 2] ^= 0xff;
    if (inner_of(&w->base)->ops->reg(inner_of(&w->base), w->spoilt, write->len,
                                     &w->spoilt_region) != TRIB_OK)
        return NULL;
    return w->spoilt_region;
}

static trib_status_t corrupt_write(struct trib_transport *t, int peer,
                                   const struct trib_write *write)
{
    struct decorator *w = decorator_of(t);
    struct trib_write changed = *write;

    if (write->len < w->least)
        return inner_of(t)->ops->write(inner_of(t), peer, write);
    if (w->writes + 1 == w->nth) {
        if (write->len == 0)
            changed.imm ^= 1;
        else
            changed.local = spoil(w, write);
        changed.local_off = 0;
        if (write->len && !changed.local)
            return trib_fail(w->err, TRIB_ERR_NO_MEMORY, "out of memory");
    }
    trib_status_t status = inner_of(t)->ops->write(inner_of(t), peer, &changed);
    w->writes += status == TRIB_OK;
    return status;
}

static void corrupt_close(struct trib_transport *t)
{
    struct decorator *w = decorator_of(t);
    uint8_t *spoilt = w->spoilt;

    if (w->spoilt_region)
        inner_of(t)->ops->dereg(inner_of(t), w->spoilt_region);
    while (w->regions) {
        struct decorator_region *r = w->regions;
        w->regions = r->next;
        free(r);
    }
    trib_decorator_close(t);
    free(spoilt);
}

trib_status_t trib_decorate_corrupt(const struct trib_transport_opts *opts,
                                    struct decorator *w)
{
    w->ops.alloc = corrupt_alloc;
    w->ops.alloc_user = corrupt_alloc_user;
    w->ops.reg = corrupt_reg;
    w->ops.reg_dmabuf = corrupt_reg_dmabuf;
    w->ops.borrow = NULL; /* the bytes of each write must be known */
    w->ops.give_back = NULL;
    w->ops.dereg = corrupt_dereg;
    w->ops.write = corrupt_write;
    w->ops.close = corrupt_close;
    return parse_nth(opts, "corrupt", w);
}

/* kill: send this process a signal at the nth write */

static trib_status_t kill_write(struct trib_transport *t, int peer,
                                const struct trib_write *write)
{
    struct decorator *w = decorator_of(t);

    assert(w->nth > 0 && w->signal_number > 0);
    if (++w->writes == w->nth)
        kill(getpid(), w->signal_number);
    return inner_of(t)->ops->write(inner_of(t), peer, write);
}

trib_status_t trib_decorate_kill(const struct trib_transport_opts *opts,
                                 struct decorator *w)
{
    int64_t after = 1, number = SIGKILL, rank = -1;
    const struct trib_param params[] = {
        {.name = "after", .min = 1, .max = INT64_MAX, .value = &after},
        {.name = "signal", .min = 1, .max = 64, .value = &number},
        {.name = "rank", .min = -1, .max = 65535, .value = &rank},
    };
    trib_status_t status =
        trib_params_parse("kill", opts->params, params, 3, opts->err);

    w->nth = (uint64_t)after;
    w->signal_number = (int)number;
    if (rank < 0 || rank == opts->self)
        w->ops.write = kill_write;
    return status;
}

/* delay: deliver events later, in order */

/* Publish for delay_wait when the first held event is due. A thread may wait while
 * another one polls, so only delay_poll accesses the ring of held events. */
static void publish_due(struct decorator *w)
{
    const bool none = w->held_head == w->held_tail;

    atomic_store_explicit(
        &w->next_due, none ? UINT64_MAX : w->held[w->held_head % TRIB_DELAY_SLOTS].due,
        memory_order_relaxed);
}

static int delay_poll(struct trib_transport *t, struct trib_event *events, int max)
{
    struct decorator *w = decorator_of(t);
    uint64_t now = trib_now_ns();
    int n = 0;

    assert(w->held_tail - w->held_head <= TRIB_DELAY_SLOTS);
    while (w->held_tail - w->held_head < TRIB_DELAY_SLOTS) {
        struct delayed *d = &w->held[w->held_tail % TRIB_DELAY_SLOTS];
        if (inner_of(t)->ops->poll(inner_of(t), &d->event, 1) != 1)
            break;
        d->due = now + w->delay_ns;
        w->held_tail++;
    }
    while (n < max && w->held_head != w->held_tail) {
        const struct delayed *d = &w->held[w->held_head % TRIB_DELAY_SLOTS];
        if (d->due > now)
            break;
        events[n++] = d->event;
        w->held_head++;
    }
    publish_due(w);
    return n;
}

static void delay_wait(struct trib_transport *t, int timeout_us)
{
    struct decorator *w = decorator_of(t);
    const uint64_t due = atomic_load_explicit(&w->next_due, memory_order_relaxed);

    if (due != UINT64_MAX) {
        const uint64_t now = trib_now_ns();
        const uint64_t us = due > now ? (due - now) / 1000 + 1 : 0;
        if (us < (uint64_t)timeout_us)
            timeout_us = (int)us;
    }
    inner_of(t)->ops->wait(inner_of(t), timeout_us);
}

static void delay_close(struct trib_transport *t)
{
    free(decorator_of(t)->held);
    trib_decorator_close(t);
}

trib_status_t trib_decorate_delay(const struct trib_transport_opts *opts,
                                  struct decorator *w)
{
    int64_t us = 10;
    const struct trib_param params[] = {
        {.name = "us", .min = 0, .max = 10000000, .value = &us},
    };
    trib_status_t status =
        trib_params_parse("delay", opts->params, params, 1, opts->err);

    assert(!w->held);
    if (status != TRIB_OK)
        return status;
    w->delay_ns = (uint64_t)us * 1000u;
    w->held = calloc(TRIB_DELAY_SLOTS, sizeof(*w->held));
    if (!w->held)
        return trib_fail(opts->err, TRIB_ERR_NO_MEMORY, "out of memory");
    publish_due(w);
    w->ops.poll = delay_poll;
    w->ops.wait = delay_wait;
    w->ops.close = delay_close;
    return TRIB_OK;
}
