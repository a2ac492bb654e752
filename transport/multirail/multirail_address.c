/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rails: addresses, and pairing of inner transports with the peer's.
 *
 * Both ends form the same pairs, because the pairs follow from the two addresses alone.
 * Inner transports of the same network are paired first, then the remaining ones, in
 * the order of the lower rank's inner transports. A pair that does not connect is a
 * rail lost before its first write.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/multirail/multirail.h"

static trib_status_t put_blobs(struct multirail *r,
                               const struct multirail_region *region, uint8_t *bytes,
                               size_t room, size_t *at)
{
    struct trib_blob b[2] = {{.len = 0}};

    for (int i = 0; i < r->n; i++) {
        struct trib_blob *one = &b[i % 2], *before = &b[(i + 1) % 2];
        trib_status_t status =
            r->inner[i]->ops->export_region(r->inner[i], region->inner[i], one);
        if (status != TRIB_OK)
            return trib_multirail_take_error(r, i, status);
        if (!trib_multirail_put(bytes, room, at,
                                (struct multirail_bytes){one->bytes, one->len},
                                (struct multirail_bytes){before->bytes, before->len}))
            return trib_fail(r->err, TRIB_ERR_OVERFLOW,
                             "the regions of %d rails do not fit into %zu bytes: use "
                             "fewer rails",
                             r->n, room);
    }
    return TRIB_OK;
}

trib_status_t trib_multirail_export(struct trib_transport *t,
                                    const struct trib_region *region,
                                    struct trib_blob *out)
{
    uint32_t magic = MULTIRAIL_MAGIC;
    size_t at = sizeof(magic);

    memset(out, 0, sizeof(*out));
    memcpy(out->bytes, &magic, sizeof(magic));
    trib_status_t status =
        put_blobs(multirail_of(t), (const struct multirail_region *)region, out->bytes,
                  sizeof(out->bytes), &at);
    out->len = (uint16_t)at;
    return status;
}

/* Append the inner addresses. *fits: there is room for them. */
static trib_status_t put_addresses(struct multirail *r, struct trib_address *out,
                                   size_t *at, bool *fits)
{
    struct trib_address *a = calloc(2, sizeof(*a));
    trib_status_t status = TRIB_OK;

    *fits = true;
    if (!a)
        return trib_fail(r->err, TRIB_ERR_NO_MEMORY, "out of memory");
    for (int i = 0; i < r->n && *fits && status == TRIB_OK; i++) {
        struct trib_address *one = &a[i % 2], *before = &a[(i + 1) % 2];
        status = r->inner[i]->ops->address(r->inner[i], one);
        if (status != TRIB_OK)
            status = trib_multirail_take_error(r, i, status);
        else
            *fits = trib_multirail_put(
                out->bytes, MULTIRAIL_ADDRESS_MAX, at,
                (struct multirail_bytes){one->bytes, one->len},
                (struct multirail_bytes){before->bytes, before->len});
    }
    free(a);
    return status;
}

/* Write the address as far as it fits. */
static trib_status_t write_address(struct multirail *r, struct trib_address *out,
                                   bool *fits)
{
    struct multirail_address head = {.magic = MULTIRAIL_MAGIC, .n = (uint32_t)r->n};
    size_t at = sizeof(head);

    memset(out, 0, sizeof(*out));
    memcpy(head.net, r->net, sizeof(head.net));
    memcpy(head.speed, r->speed, sizeof(head.speed));
    memcpy(out->bytes, &head, sizeof(head));
    trib_status_t status = put_addresses(r, out, &at, fits);
    if (status != TRIB_OK || !*fits)
        return status;
    status = put_blobs(r, r->board, out->bytes, MULTIRAIL_ADDRESS_MAX, &at);
    out->len = (uint16_t)at;
    *fits = status != TRIB_ERR_OVERFLOW;
    return *fits ? status : TRIB_OK;
}

static bool shorten_all(struct multirail *r)
{
    bool any = false;

    for (int i = 0; i < r->n && r->shorten; i++)
        any |= r->shorten(r->inner[i]);
    return any;
}

trib_status_t trib_multirail_address(struct trib_transport *t, struct trib_address *out)
{
    struct multirail *r = multirail_of(t);
    bool fits = false;

    for (;;) {
        const trib_status_t status = write_address(r, out, &fits);
        if (status != TRIB_OK || fits)
            return status;
        trib_error_clear(r->err);
        if (!shorten_all(r))
            return trib_fail(r->err, TRIB_ERR_OVERFLOW,
                             "the addresses of %d rails do not fit into %d bytes: use "
                             "fewer rails",
                             r->n, MULTIRAIL_ADDRESS_MAX);
    }
}

/* Return true if one of two ranks has one device and the other several. */
static bool is_plain(int n, int peers)
{
    return (n == 1) != (peers == 1);
}

/* Read a record into room, which receives its predecessor first, if there is one.
 * Return its length, or 0 for an invalid one. */
static uint16_t parse_record(struct multirail_bytes from, size_t *at, uint8_t *room,
                             size_t room_bytes, struct multirail_bytes previous)
{
    assert(previous.len <= room_bytes);
    if (previous.len)
        memcpy(room, previous.at, previous.len);
    return trib_multirail_get(from, at, room, room_bytes, previous.len);
}

/* Read the inner addresses, then the inner blobs of the boards. */
static bool parse_records(const struct trib_address *address,
                          struct multirail_parsed_address *out)
{
    const struct multirail_bytes from = {address->bytes, address->len},
                                 none = {NULL, 0};
    size_t at = sizeof(struct multirail_address);

    assert(out->n >= 1 && out->n <= MULTIRAIL_MAX);
    for (int i = 0; i < out->n; i++) {
        struct trib_address *one = &out->inner[i];
        one->len = parse_record(from, &at, one->bytes, sizeof(one->bytes),
                                i ? (struct multirail_bytes){one[-1].bytes, one[-1].len}
                                  : none);
        if (!one->len)
            return false;
    }
    for (int i = 0; i < out->n; i++) {
        struct trib_blob *one = &out->board[i];
        one->len = parse_record(from, &at, one->bytes, sizeof(one->bytes),
                                i ? (struct multirail_bytes){one[-1].bytes, one[-1].len}
                                  : none);
        if (!one->len)
            return false;
    }
    return true;
}

static bool parse_address(const struct trib_address *address,
                          struct multirail_parsed_address *out)
{
    struct multirail_address head = {0};
    const size_t len = address->len;

    memset(out, 0, sizeof(*out));
    if (len > TRIB_ADDRESS_MAX)
        return false;
    memcpy(&head, address->bytes, len < sizeof(head) ? len : sizeof(head));
    if (head.magic != MULTIRAIL_MAGIC) {
        out->n = 1;
        out->plain = true;
        out->inner[0] = *address;
        return true;
    }
    if (head.n < 1 || head.n > MULTIRAIL_MAX)
        return false;
    out->n = (int)head.n;
    memcpy(out->net, head.net, sizeof(out->net));
    memcpy(out->speed, head.speed, sizeof(out->speed));
    return parse_records(address, out);
}

struct side {
    int n;
    const uint64_t *net;
};

/* Pair inner low[k] of the lower rank with high[k] of the higher rank as rail k. Return
 * the number of rails. */
static int pair_up(struct side lower, struct side higher, int low[MULTIRAIL_MAX],
                   int high[MULTIRAIL_MAX])
{
    unsigned used_low = 0, used_high = 0;
    int n = 0;

    for (int same = 1; same >= 0; same--) {
        for (int i = 0; i < lower.n; i++) {
            for (int j = 0; j < higher.n; j++) {
                if ((used_low >> i & 1) || (used_high >> j & 1) ||
                    (same && (!lower.net[i] || lower.net[i] != higher.net[j])))
                    continue;
                used_low |= 1u << i;
                used_high |= 1u << j;
                low[n] = i;
                high[n++] = j;
            }
        }
    }
    return n;
}

/* Return the speed of a rail between these ports; 0: unknown. */
static uint32_t slower(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

trib_status_t trib_multirail_match(struct multirail *r, int peer,
                                   const struct trib_address *address,
                                   struct multirail_parsed_address *out)
{
    struct multirail_peer *p = &r->peers[peer];
    int own[MULTIRAIL_MAX], other[MULTIRAIL_MAX];

    if (!parse_address(address, out))
        return trib_fail(r->err, TRIB_ERR_INVALID, "peer %d: not an address of rails",
                         peer);
    out->plain |= is_plain(r->n, out->n);
    if (out->plain && out->n > 1)
        out->inner[0] = *address;
    struct side here = {r->n, r->net}, there = {out->n, out->net};
    int n = r->self < peer ? pair_up(here, there, own, other)
                           : pair_up(there, here, other, own);
    if (p->n && p->n != n)
        return trib_fail(r->err, TRIB_ERR_MISMATCH,
                         "peer %d writes over %d rails, but its address implies %d",
                         peer, p->n, n);
    if (!p->n) {
        uint32_t speed[MULTIRAIL_MAX];
        for (int k = 0; k < n; k++)
            speed[k] = slower(r->speed[own[k]], out->speed[other[k]]);
        p->n = n;
        trib_multirail_set_shares(p, speed);
        trib_multirail_set_order(&p->in, p);
    }
    p->plain = out->plain;
    for (int k = 0; k < n && !p->plain; k++) {
        p->rails[k].inner = own[k];
        p->rails[k].other = other[k];
    }
    return TRIB_OK;
}

trib_status_t trib_multirail_reach(struct trib_transport *t, int peer,
                                   const struct trib_address *address)
{
    struct multirail *r = multirail_of(t);
    struct multirail_parsed_address *whole;

    if (peer < 0 || peer >= r->size || peer == r->self)
        return trib_fail(r->err, TRIB_ERR_INVALID, "peer %d of %d cannot be connected",
                         peer, r->size);
    whole = malloc(sizeof(*whole));
    if (!whole)
        return trib_fail(r->err, TRIB_ERR_NO_MEMORY, "out of memory");
    trib_status_t status = trib_multirail_match(r, peer, address, whole);
    const struct multirail_peer *p = &r->peers[peer];
    int n = p->plain ? r->n : p->n;
    bool any = false;
    for (int k = 0; status == TRIB_OK && k < n && !any; k++) {
        int own = p->plain ? k : p->rails[k].inner;
        trib_status_t one = r->inner[own]->ops->reach(
            r->inner[own], peer, &whole->inner[p->plain ? 0 : p->rails[k].other]);
        any = one == TRIB_OK;
        if (!any && k + 1 == n)
            status = trib_multirail_take_error(r, own, one);
        trib_error_clear(&r->inner_err[own]);
    }
    free(whole);
    return status;
}

/* Split a blob into the inner blobs. The first is the whole blob if it has no rails, or
 * if this rank has one device and the peer several: the inner transport then picks the
 * part of the peer's device that it has connected to. */
static void split_blob(const struct trib_blob *blob, bool whole,
                       struct trib_blob inner[MULTIRAIL_MAX])
{
    uint32_t magic = 0;
    size_t at = sizeof(magic);

    memset(inner, 0, MULTIRAIL_MAX * sizeof(*inner));
    if (blob->len >= sizeof(magic) && blob->len <= TRIB_BLOB_MAX)
        memcpy(&magic, blob->bytes, sizeof(magic));
    if (whole || magic != MULTIRAIL_MAGIC) {
        inner[0] = *blob;
        return;
    }
    for (int j = 0; j < MULTIRAIL_MAX; j++) {
        const uint16_t before = j ? inner[j - 1].len : 0;
        if (j)
            memcpy(inner[j].bytes, inner[j - 1].bytes, before);
        inner[j].len =
            trib_multirail_get((struct multirail_bytes){blob->bytes, blob->len}, &at,
                               inner[j].bytes, sizeof(inner[j].bytes), before);
        if (!inner[j].len)
            return;
    }
}

/* Import the inner blobs for these rails. */
static trib_status_t import_rails(struct multirail *r, struct multirail_remote *remote,
                                  const struct trib_blob *blob, unsigned rails)
{
    const struct multirail_peer *p = &r->peers[remote->peer];
    struct trib_blob inner[MULTIRAIL_MAX];

    split_blob(blob, p->plain && r->n == 1, inner);
    for (int k = 0; k < p->n; k++) {
        struct trib_transport *t = r->inner[p->rails[k].inner];
        if (!(rails >> k & 1) || remote->rail[k])
            continue;
        trib_status_t status = t->ops->import_region(
            t, remote->peer, &inner[p->rails[k].other], &remote->rail[k]);
        if (status == TRIB_ERR_PEER_LOST) { /* the inner will report its loss */
            remote->rail[k] = NULL;
            trib_error_clear(&r->inner_err[p->rails[k].inner]);
        } else if (status != TRIB_OK) {
            remote->rail[k] = NULL;
            return trib_multirail_take_error(r, p->rails[k].inner, status);
        }
    }
    return TRIB_OK;
}

/* Keep the blob for rails that are lost now and may return. */
static trib_status_t keep_blob(struct multirail *r, struct multirail_remote *remote,
                               const struct trib_blob *blob)
{
    for (int k = 0; r->revive && k < r->peers[remote->peer].n; k++) {
        if (remote->rail[k] || remote->later)
            continue;
        remote->later = malloc(sizeof(*blob));
        if (!remote->later)
            return trib_fail(r->err, TRIB_ERR_NO_MEMORY, "out of memory");
        *remote->later = *blob;
    }
    return TRIB_OK;
}

bool trib_multirail_import_later(struct multirail *r, int peer, unsigned rails)
{
    struct multirail_remote *remote;

    LIST_FOREACH(remote, &r->remotes, entry)
    {
        if (remote->peer == peer && remote->later &&
            import_rails(r, remote, remote->later, rails) != TRIB_OK) {
            trib_error_clear(r->err);
            return false;
        }
    }
    return true;
}

trib_status_t trib_multirail_import(struct trib_transport *t, int peer,
                                    const struct trib_blob *blob,
                                    struct trib_remote **out)
{
    struct multirail *r = multirail_of(t);

    if (peer < 0 || peer >= r->size || r->peers[peer].state == TRIB_PEER_UNKNOWN)
        return trib_fail(r->err, TRIB_ERR_INVALID,
                         "peer %d is not connected: cannot import its memory", peer);
    if (r->peers[peer].state != TRIB_PEER_CONNECTED)
        return trib_fail(r->err, TRIB_ERR_PEER_LOST, "peer %d is lost", peer);
    struct multirail_remote *remote = calloc(1, sizeof(*remote));
    if (!remote)
        return trib_fail(r->err, TRIB_ERR_NO_MEMORY, "out of memory");
    remote->peer = peer;
    LIST_INSERT_HEAD(&r->remotes, remote, entry);
    const struct multirail_peer *p = &r->peers[peer];
    trib_status_t status =
        import_rails(r, remote, blob,
                     multirail_all(p) & ~(unsigned)(p->dead | p->failing | p->left));
    if (status == TRIB_OK)
        status = keep_blob(r, remote, blob);
    if (status != TRIB_OK) {
        trib_multirail_release(t, (struct trib_remote *)remote);
        return status;
    }
    *out = (struct trib_remote *)remote;
    return TRIB_OK;
}
