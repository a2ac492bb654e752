/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Code shared by all decorators: operations that forward to the inner transport.
 */
#include "transport/decorators/decorator.h"

#include <stdlib.h>

#include "base/error.h"
#include "transport/params.h"

static trib_status_t fwd_open(const struct trib_transport_opts *opts,
                              struct trib_transport **out)
{
    (void)out;
    return trib_fail(opts->err, TRIB_ERR_UNSUPPORTED,
                     "a decorator is opened by its text");
}

void trib_decorator_close(struct trib_transport *t)
{
    struct trib_transport *inner = inner_of(t);

    inner->ops->close(inner);
    free(t);
}

static trib_status_t fwd_address(struct trib_transport *t, struct trib_address *out)
{
    return inner_of(t)->ops->address(inner_of(t), out);
}

static trib_status_t fwd_reach(struct trib_transport *t, int peer,
                               const struct trib_address *address)
{
    return inner_of(t)->ops->reach(inner_of(t), peer, address);
}

static void fwd_pinned_limit(struct trib_transport *t, bool near,
                             struct trib_pinned_limit *out)
{
    inner_of(t)->ops->pinned_limit(inner_of(t), near, out);
}

static trib_status_t fwd_caps(struct trib_transport *t,
                              const struct trib_address *addresses, uint32_t *caps_out)
{
    return inner_of(t)->ops->caps(inner_of(t), addresses, caps_out);
}

static void fwd_agree(struct trib_transport *t, const uint32_t *caps)
{
    inner_of(t)->ops->agree(inner_of(t), caps);
}

static void fwd_route(struct trib_transport *t, int peer, struct trib_route *out)
{
    inner_of(t)->ops->route(inner_of(t), peer, out);
}

static trib_status_t fwd_connect(struct trib_transport *t, int peer,
                                 const struct trib_address *address)
{
    return inner_of(t)->ops->connect(inner_of(t), peer, address);
}

static void fwd_connect_many(struct trib_transport *t, struct trib_target *dials, int n)
{
    inner_of(t)->ops->connect_many(inner_of(t), dials, n);
}

static void fwd_disconnect(struct trib_transport *t, int peer)
{
    inner_of(t)->ops->disconnect(inner_of(t), peer);
}

static void fwd_leave(struct trib_transport *t, const bool *which)
{
    inner_of(t)->ops->leave(inner_of(t), which);
}

static trib_status_t fwd_alloc(struct trib_transport *t, size_t len, void **ptr_out,
                               struct trib_region **region_out)
{
    return inner_of(t)->ops->alloc(inner_of(t), len, ptr_out, region_out);
}

static trib_status_t fwd_alloc_user(struct trib_transport *t, size_t len,
                                    void **ptr_out, struct trib_region **region_out)
{
    return inner_of(t)->ops->alloc_user(inner_of(t), len, ptr_out, region_out);
}

static trib_status_t fwd_reg(struct trib_transport *t, void *ptr, size_t len,
                             struct trib_region **out)
{
    return inner_of(t)->ops->reg(inner_of(t), ptr, len, out);
}

static trib_status_t fwd_reg_dmabuf(struct trib_transport *t,
                                    const struct trib_dmabuf *d,
                                    struct trib_region **out)
{
    return inner_of(t)->ops->reg_dmabuf(inner_of(t), d, out);
}

static trib_status_t fwd_borrow(struct trib_transport *t, void *ptr, size_t len,
                                bool written, struct trib_region **out)
{
    return inner_of(t)->ops->borrow(inner_of(t), ptr, len, written, out);
}

static void fwd_give_back(struct trib_transport *t, struct trib_region *region,
                          bool broken)
{
    inner_of(t)->ops->give_back(inner_of(t), region, broken);
}

static void fwd_release_pages(struct trib_transport *t, struct trib_region *region)
{
    inner_of(t)->ops->release_pages(inner_of(t), region);
}

static void fwd_dereg(struct trib_transport *t, struct trib_region *region)
{
    inner_of(t)->ops->dereg(inner_of(t), region);
}

static trib_status_t fwd_export(struct trib_transport *t,
                                const struct trib_region *region, struct trib_blob *out)
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

static size_t fwd_length(struct trib_transport *t, const struct trib_remote *remote)
{
    return inner_of(t)->ops->length(inner_of(t), remote);
}

static bool fwd_stale(struct trib_transport *t, const struct trib_remote *remote)
{
    return inner_of(t)->ops->stale(inner_of(t), remote);
}

static void *fwd_map(struct trib_transport *t, const struct trib_remote *remote,
                     size_t *len_out)
{
    return inner_of(t)->ops->map(inner_of(t), remote, len_out);
}

static bool fwd_reads(struct trib_transport *t, int peer)
{
    return inner_of(t)->ops->reads(inner_of(t), peer);
}

static trib_status_t fwd_read(struct trib_transport *t, int peer, uint64_t from,
                              void *to, size_t len)
{
    return inner_of(t)->ops->read(inner_of(t), peer, from, to, len);
}

static trib_status_t fwd_write(struct trib_transport *t, int peer,
                               const struct trib_write *write)
{
    return inner_of(t)->ops->write(inner_of(t), peer, write);
}

static bool fwd_detach(struct trib_transport *t, int peer)
{
    return inner_of(t)->ops->detach(inner_of(t), peer);
}

static int fwd_poll(struct trib_transport *t, struct trib_event *events, int max)
{
    return inner_of(t)->ops->poll(inner_of(t), events, max);
}

static int fwd_event_fd(struct trib_transport *t)
{
    return inner_of(t)->ops->event_fd(inner_of(t));
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

static uint64_t fwd_away(struct trib_transport *t, bool maybe)
{
    return inner_of(t)->ops->away(inner_of(t), maybe);
}

static void fwd_trouble(struct trib_transport *t, char *text, size_t bytes)
{
    inner_of(t)->ops->trouble(inner_of(t), text, bytes);
}

static const struct trib_transport_ops forward_ops = {
    .open = fwd_open,
    .close = trib_decorator_close,
    .address = fwd_address,
    .reach = fwd_reach,
    .pinned_limit = fwd_pinned_limit,
    .caps = fwd_caps,
    .agree = fwd_agree,
    .route = fwd_route,
    .connect = fwd_connect,
    .connect_many = fwd_connect_many,
    .disconnect = fwd_disconnect,
    .leave = fwd_leave,
    .alloc = fwd_alloc,
    .alloc_user = fwd_alloc_user,
    .reg = fwd_reg,
    .reg_dmabuf = fwd_reg_dmabuf,
    .borrow = fwd_borrow,
    .give_back = fwd_give_back,
    .release_pages = fwd_release_pages,
    .dereg = fwd_dereg,
    .export_region = fwd_export,
    .import_region = fwd_import,
    .release = fwd_release,
    .length = fwd_length,
    .stale = fwd_stale,
    .map = fwd_map,
    .reads = fwd_reads,
    .read = fwd_read,
    .write = fwd_write,
    .detach = fwd_detach,
    .poll = fwd_poll,
    .event_fd = fwd_event_fd,
    .arm = fwd_arm,
    .wait = fwd_wait,
    .wake = fwd_wake,
    .away = fwd_away,
    .trouble = fwd_trouble,
};

trib_status_t trib_decorate(const struct trib_decorator *decorator,
                            const struct trib_transport_opts *opts,
                            struct trib_transport *inner, struct trib_transport **out)
{
    struct decorator *w = calloc(1, sizeof(*w));

    if (!w)
        return trib_fail(opts->err, TRIB_ERR_NO_MEMORY, "out of memory");
    w->ops = forward_ops;
    w->base.ops = &w->ops;
    w->inner = inner;
    w->log = opts->log;
    w->err = opts->err;
    w->self = opts->self;
    const trib_status_t status = decorator->install(opts, w);
    if (status != TRIB_OK) { /* trib_transport_check passes no `inner` and ends here */
        free(w);
        return status;
    }
    assert(inner);
    if (!inner->ops->borrow) {
        w->ops.borrow = NULL;
        w->ops.give_back = NULL;
    }
    w->ops.name = inner->ops->name;
    w->ops.detail = inner->ops->detail;
    w->ops.devices = inner->ops->devices;
    *out = &w->base;
    return TRIB_OK;
}
