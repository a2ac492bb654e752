/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ops for slots that a backend does not support, and the one checked way to import a
 * region.
 */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "transport/op_defaults.h"
#include "transport/open.h"

void trib_no_devices(const char *params, char *text, size_t bytes)
{
    (void)params;
    (void)bytes;
    text[0] = '\0';
}

void trib_no_pinned_limit(struct trib_transport *t, bool near,
                          struct trib_pinned_limit *out)
{
    (void)t;
    (void)near;
    *out = (struct trib_pinned_limit){.bytes = SIZE_MAX};
}

trib_status_t trib_no_caps(struct trib_transport *t,
                           const struct trib_address *addresses, uint32_t *caps_out)
{
    (void)t;
    (void)addresses;
    *caps_out = 0;
    return TRIB_OK;
}

void trib_no_agree(struct trib_transport *t, const uint32_t *caps)
{
    (void)t;
    (void)caps;
}

void trib_only_route(struct trib_transport *t, int peer, struct trib_route *out)
{
    (void)peer;
    out->name = t->ops->name;
    out->apart = false;
    out->mbps = 0;
    snprintf(out->why, sizeof(out->why), "asked for by name");
}

trib_status_t trib_mapped_reg_dmabuf(struct trib_transport *t,
                                     const struct trib_dmabuf *d,
                                     struct trib_region **out)
{
    return t->ops->reg(t, d->ptr, d->len, out);
}

void trib_no_release_pages(struct trib_transport *t, struct trib_region *region)
{
    (void)t;
    (void)region;
}

bool trib_no_stale(struct trib_transport *t, const struct trib_remote *remote)
{
    (void)t;
    (void)remote;
    return false;
}

void *trib_no_map(struct trib_transport *t, const struct trib_remote *remote,
                  size_t *len_out)
{
    (void)t;
    (void)remote;
    if (len_out)
        *len_out = 0;
    return NULL;
}

bool trib_no_reads(struct trib_transport *t, int peer)
{
    (void)t;
    (void)peer;
    return false;
}

trib_status_t trib_no_read(struct trib_transport *t, int peer, uint64_t from, void *to,
                           size_t len)
{
    assert(t && peer >= 0);
    (void)from;
    (void)to;
    return trib_fail(t->err, TRIB_ERR_UNSUPPORTED,
                     "%s cannot read %zu bytes by address from peer %d", t->ops->name,
                     len, peer);
}

void trib_no_connect_many(struct trib_transport *t, struct trib_target *dials, int n)
{
    (void)t;
    (void)dials;
    (void)n;
}

bool trib_no_detach(struct trib_transport *t, int peer)
{
    (void)t;
    (void)peer;
    return false;
}

int trib_no_event_fd(struct trib_transport *t)
{
    (void)t;
    return -1;
}

uint64_t trib_no_away(struct trib_transport *t, bool maybe)
{
    (void)t;
    (void)maybe;
    return 0;
}

void trib_no_trouble(struct trib_transport *t, char *text, size_t bytes)
{
    (void)t;
    assert(bytes > 0);
    text[0] = '\0';
}

void trib_no_arm(struct trib_transport *t)
{
    (void)t;
}

trib_status_t trib_transport_import(struct trib_transport *t, int peer,
                                    const struct trib_blob *blob, size_t least,
                                    struct trib_remote **out)
{
    struct trib_remote *remote = NULL;

    if (blob->len > TRIB_BLOB_MAX)
        return trib_fail(t->err, TRIB_ERR_INVALID,
                         "rank %d: invalid exported region of %u bytes", peer,
                         blob->len);
    trib_status_t status = t->ops->import_region(t, peer, blob, &remote);
    if (status != TRIB_OK)
        return status;
    const size_t len = t->ops->length(t, remote);
    if (len >= least) {
        *out = remote;
        return TRIB_OK;
    }
    t->ops->release(t, remote);
    return trib_fail(
        t->err, TRIB_ERR_RANGE,
        "rank %d exported %zu bytes of memory, but this rank must address %zu: it runs "
        "another library, or its settings differ from the ones that it announced",
        peer, len, least);
}
