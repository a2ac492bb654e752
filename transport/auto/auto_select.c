/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * auto: choice of the inner transport for each pair of ranks.
 *
 * Both ends must choose alike if one of them stores directly into the other's memory:
 * the receiver then polls for stores and not for events. So the choice follows from
 * data that both ends have, in this order:
 *
 *   1. addresses: candidates that opened at both ends and may serve this kind of
 *      pair. Ranks with equal boot id and pid namespace are near, all others far
 *      (host names prove nothing)
 *   2. caps: caps() checks whether this rank can open the memory of all near ranks.
 *      A rank that cannot uses no load/store for any of them. So each pair knows by
 *      the caps of both ends
 *   3. a mapping candidate comes first and is then the only choice. Among the others
 *      the cheapest that connects is taken. There the two ends may differ, because
 *      events are accepted from any inner
 *
 * If memory cannot be registered (limit of locked memory), the next choice is used,
 * too, as long as nothing was written: writes to a peer must arrive in order.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "base/time.h"
#include "transport/auto/auto.h"

trib_status_t trib_auto_address(struct trib_transport *t, struct trib_address *out)
{
    struct auto_transport *c = auto_of(t);
    struct auto_address head = {.magic = AUTO_MAGIC,
                                .near = c->near,
                                .far = c->far,
                                .boot = c->me.boot,
                                .space = c->me.space,
                                .ranks_per_host = (int32_t)c->ranks_per_host,
                                .pid = c->me.pid};
    size_t at = sizeof(head);

    memset(out, 0, sizeof(*out));
    for (int i = 0; i < c->n_inners; i++) {
        const struct auto_inner *inner = &c->inners[i];
        struct trib_address a;
        if (!inner->t)
            continue;
        trib_status_t status = inner->t->ops->address(inner->t, &a);
        if (status != TRIB_OK)
            return trib_auto_pass_error(c, status);
        if (!trib_auto_put(out->bytes, sizeof(out->bytes), &at, inner->row->id, a.bytes,
                           a.len))
            return trib_fail(c->err, TRIB_ERR_OVERFLOW,
                             "the addresses of %d transports do not fit into %d bytes",
                             c->n_inners, TRIB_ADDRESS_MAX);
    }
    memcpy(out->bytes, &head, sizeof(head));
    out->len = (uint16_t)at;
    return TRIB_OK;
}

/* Return true if a peer claims to be this process. */
static bool is_this_process(const struct auto_transport *c,
                            const struct auto_address *a)
{
    return a->pid == c->me.pid && a->boot == c->me.boot && a->space == c->me.space;
}

/* Remove mapping candidates for a peer that cannot map. */
static void without_maps(const struct auto_transport *c, struct auto_peer *p)
{
    for (int i = 0; i < c->n_inners; i++)
        if (c->inners[i].row->maps)
            p->choices &= (uint16_t)~auto_bit(&c->inners[i]);
}

/* Rule 3: a mapping candidate is the only choice. */
static void prefer_maps(const struct auto_transport *c, struct auto_peer *p)
{
    int i = trib_auto_first_choice(c, p->choices);

    if (i >= 0 && c->inners[i].row->maps)
        p->choices = auto_bit(&c->inners[i]);
}

/* Rule 1: examine a peer's address. */
static trib_status_t read_address(struct auto_transport *c, int peer,
                                  const struct trib_address *address)
{
    struct auto_peer *p = &c->peers[peer];
    struct auto_address a = {0};

    assert(peer >= 0 && peer < c->size && peer != c->self);
    if (address->len >= sizeof(a) && address->len <= TRIB_ADDRESS_MAX)
        memcpy(&a, address->bytes, sizeof(a));
    if (a.magic != AUTO_MAGIC)
        return trib_fail(
            c->err, TRIB_ERR_MISMATCH,
            "peer %d does not use the transport \"auto\" as this rank does: set the "
            "same TRIB_TRANSPORT on all ranks",
            peer);
    if (a.ranks_per_host != c->ranks_per_host)
        return trib_fail(c->err, TRIB_ERR_MISMATCH,
                         "peer %d has auto:ranks_per_host=%d, this rank %d", peer,
                         a.ranks_per_host, (int)c->ranks_per_host);
    p->host = a.boot;
    p->near = a.boot == c->me.boot && a.space == c->me.space;
    if (c->ranks_per_host)
        p->near = p->near && peer / c->ranks_per_host == c->self / c->ranks_per_host;
    p->choices = p->near ? c->near & a.near : c->far & a.far;
    p->foreign = c->serves && is_this_process(c, &a);
    if (p->foreign)
        without_maps(c, p);
    p->known = true;
    return TRIB_OK;
}

/* Rule 2: check whether this rank can open the memory of all near ranks. */
static void try_near(struct auto_transport *c, const struct trib_address *addresses)
{
    struct trib_address a;

    for (int r = 0; r < c->size; r++) {
        struct auto_peer *p = &c->peers[r];
        int i = r == c->self ? -1 : trib_auto_first_choice(c, p->choices);
        if (i < 0 || !c->inners[i].row->maps ||
            !trib_auto_inner_address(&addresses[r], c->inners[i].row->id, &a))
            continue;
        struct trib_transport *t = c->inners[i].t;
        trib_status_t status = t->ops->reach(t, r, &a);
        if (status == TRIB_ERR_UNSUPPORTED) {
            trib_auto_note_refused(p, t->ops->name, c->inner_err.text);
            if (c->serves && (c->used & auto_bit(&c->inners[i])))
                trib_log(c->log, TRIB_LOG_INFO, TRIB_AUTO,
                         "%s is not used for the job, because it does not reach rank "
                         "%d: %s",
                         t->ops->name, r, c->inner_err.text);
            c->used &= (uint16_t)~auto_bit(&c->inners[i]);
        }
        trib_error_clear(&c->inner_err); /* connect() reports a dead peer */
    }
}

/* Return the inners worth registering with: the cheap ones, and each peer's first
 * choice. */
static uint16_t worth_using(const struct auto_transport *c)
{
    uint16_t used = 0;

    for (int i = 0; i < c->n_inners; i++) {
        if (c->inners[i].t && c->inners[i].row->cheap && c->size > 1)
            used |= auto_bit(&c->inners[i]);
    }
    for (int r = 0; r < c->size; r++) {
        int i = r == c->self ? -1
                             : trib_auto_first_choice(c, c->peers[r].choices & c->used);
        if (i >= 0)
            used |= auto_bit(&c->inners[i]);
    }
    int any = trib_auto_first_choice(c, c->used);
    return used || any < 0 ? used : auto_bit(&c->inners[any]);
}

/* Warn once per host, by its first rank, if devices that cannot be used make ranks of
 * other hosts use a slower transport. */
static void warn_of_unfit(struct auto_transport *c)
{
    bool any_far = false;

    c->warns = true;
    for (int r = 0; r < c->size; r++) {
        if (r == c->self)
            continue;
        any_far = any_far || !c->peers[r].near;
        c->warns = c->warns && (r > c->self || c->peers[r].host != c->me.boot);
    }
    for (int i = 0; any_far && c->warns && i < c->n_inners; i++) {
        const struct auto_inner *inner = &c->inners[i];
        const char *name = inner->row->ops->name;
        const int next = trib_auto_first_choice(c, c->far);
        if (inner->unfit)
            trib_log(c->log, TRIB_LOG_WARN, TRIB_AUTO,
                     "%s is used for ranks of other hosts instead of %s: %s",
                     next < 0 ? "no transport" : c->inners[next].row->ops->name, name,
                     trib_auto_short_reason(name, inner->why));
    }
}

trib_status_t trib_auto_caps(struct trib_transport *t,
                             const struct trib_address *addresses, uint32_t *caps_out)
{
    struct auto_transport *c = auto_of(t);
    bool maps = true, reads = true;

    for (int r = 0; r < c->size; r++) {
        trib_status_t status =
            r == c->self ? TRIB_OK : read_address(c, r, &addresses[r]);
        if (status != TRIB_OK)
            return status;
    }
    try_near(c, addresses);
    warn_of_unfit(c);
    c->used = worth_using(c);
    for (int r = 0; r < c->size; r++) {
        int i = trib_auto_first_choice(c, c->peers[r].choices & c->used);
        if (r != c->self && !c->peers[r].foreign && (i < 0 || !c->inners[i].row->maps))
            maps = false;
        if (r != c->self && i >= 0 && c->inners[i].row->maps && !trib_auto_reads(t, r))
            reads = false;
    }
    *caps_out = (uint32_t)c->used << TRIB_CAP_BACKEND | (maps ? TRIB_CAP_MAPS : 0) |
                (reads ? TRIB_CAP_READS : 0);
    return TRIB_OK;
}

void trib_auto_agree(struct trib_transport *t, const uint32_t *caps)
{
    struct auto_transport *c = auto_of(t);
    uint16_t needed = 0;

    for (int r = 0; r < c->size; r++) {
        struct auto_peer *p = &c->peers[r];
        if (r == c->self)
            continue;
        p->choices &= (uint16_t)((caps[c->self] & caps[r]) >> TRIB_CAP_BACKEND);
        prefer_maps(c, p);
        needed |= p->choices;
    }
    if (c->size == 1)
        needed = c->used;
    c->agreed = true;
    c->asked = false;
    c->n_sleep = 0;
    for (int i = 0; i < c->n_inners; i++) {
        uint16_t bit = auto_bit(&c->inners[i]);
        if (c->inners[i].t && !(needed & bit))
            trib_auto_close_inner(
                c, i, (c->near | c->far) & bit ? "no rank needs it" : "not selected");
        else if (c->inners[i].t && c->inners[i].row->maps)
            c->inners[i].t->ops->agree(c->inners[i].t, caps);
    }
    trib_auto_close_heartbeat(c);
}

/* Explain why no inner before `chosen` serves the peer. */
static void why_not_better(const struct auto_transport *c, int peer, int chosen,
                           char *text, size_t bytes)
{
    const struct auto_peer *p = &c->peers[peer];
    size_t n = 0;

    assert(chosen >= 0 && chosen <= c->n_inners);
    text[0] = '\0';
    if (p->refused)
        n = (size_t)snprintf(text, bytes, "%s", p->refused);
    for (int i = 0; i < chosen && n < bytes; i++) {
        const struct auto_inner *inner = &c->inners[i];
        const char *name = inner->row->ops->name;
        if ((inner->row->maps && !p->near) || (p->refused && strstr(p->refused, name)))
            continue;
        bool allowed = (p->near ? c->near : c->far) & auto_bit(inner);
        const char *why = !inner->t  ? trib_auto_short_reason(name, inner->why)
                          : !allowed ? "not selected"
                          : p->foreign && inner->row->maps
                              ? "it claims to be this process"
                              : "not available at the other end";
        /* Omit the cure: a missing device is no fault. */
        n += (size_t)snprintf(text + n, bytes - n, "%s%s: %.*s", n ? "; " : "", name,
                              (int)strcspn(why, ";"), why);
    }
}

void trib_auto_route(struct trib_transport *t, int peer, struct trib_route *out)
{
    const struct auto_transport *c = auto_of(t);
    const struct auto_peer *p = &c->peers[peer];
    int i = p->state == AUTO_PEER_UNKNOWN ? trib_auto_first_choice(c, p->choices)
                                          : p->inner;

    assert(peer >= 0 && peer < c->size);
    out->apart = peer != c->self && p->known && !p->near;
    if (peer == c->self || i < 0) {
        out->name = "none";
        snprintf(out->why, sizeof(out->why), "%s", peer == c->self ? "itself" : "");
        if (peer != c->self)
            why_not_better(c, peer, c->n_inners, out->why, sizeof(out->why));
        return;
    }
    char why[TRIB_WHY_MAX];
    struct trib_route route = {.name = "none"};
    out->name = c->inners[i].row->ops->name;
    c->inners[i].t->ops->route(c->inners[i].t, peer, &route);
    out->mbps = route.mbps;
    why_not_better(c, peer, i, why, sizeof(why));
    if (why[0] && (p->near || p->refused))
        memcpy(out->why, why, sizeof(out->why));
    else
        snprintf(out->why, sizeof(out->why), "%s host%s%.140s",
                 p->near ? "same" : "another", why[0] ? "; " : "", why);
}

trib_status_t trib_auto_reach(struct trib_transport *t, int peer,
                              const struct trib_address *address)
{
    struct auto_transport *c = auto_of(t);
    trib_status_t status =
        peer < 0 || peer >= c->size || peer == c->self
            ? trib_fail(c->err, TRIB_ERR_INVALID, "peer %d of %d cannot be connected",
                        peer, c->size)
            : TRIB_OK;

    if (status == TRIB_OK && !c->peers[peer].known)
        status = read_address(c, peer, address);
    if (status != TRIB_OK || trib_auto_first_choice(c, c->peers[peer].choices) >= 0)
        return status;
    char why[2 * TRIB_WHY_MAX];
    why_not_better(c, peer, c->n_inners, why, sizeof(why));
    return trib_fail(c->err, TRIB_ERR_UNSUPPORTED, "no transport reaches it: %s", why);
}

/* Keep the address while another choice remains, to connect again through it. */
static trib_status_t keep_address(struct auto_transport *c, struct auto_peer *p,
                                  const struct trib_address *address)
{
    uint16_t others = p->choices & (uint16_t)~auto_bit(&c->inners[p->inner]);

    assert(p->inner >= 0 && !p->address);
    if (trib_auto_first_choice(c, others) < 0)
        return TRIB_OK;
    p->address = malloc(sizeof(*p->address));
    if (!p->address)
        return trib_fail(c->err, TRIB_ERR_NO_MEMORY, "out of memory");
    *p->address = *address;
    return TRIB_OK;
}

trib_status_t trib_auto_connect(struct trib_transport *t, int peer,
                                const struct trib_address *address)
{
    struct auto_transport *c = auto_of(t);
    bool exists = peer >= 0 && peer < c->size;

    if (exists && c->peers[peer].state == AUTO_PEER_CONNECTED)
        return TRIB_OK;
    if (exists && c->peers[peer].state != AUTO_PEER_UNKNOWN)
        return trib_fail(c->err, TRIB_ERR_PEER_LOST, "peer %d was lost or left before",
                         peer);
    trib_status_t status = trib_auto_reach(t, peer, address);
    if (status != TRIB_OK)
        return status;
    if (!c->agreed)
        prefer_maps(c, &c->peers[peer]);
    status = trib_auto_connect_first(c, peer, address);
    if (status == TRIB_OK)
        status = keep_address(c, &c->peers[peer], address);
    if (status == TRIB_OK)
        c->peers[peer].state = AUTO_PEER_CONNECTED;
    return status;
}

/* Return the inner that connect would try first, or NULL. */
static struct auto_inner *first_inner(struct auto_transport *c,
                                      const struct trib_target *dial)
{
    if (dial->peer < 0 || dial->peer >= c->size ||
        c->peers[dial->peer].state != AUTO_PEER_UNKNOWN)
        return NULL;
    struct auto_peer *p = &c->peers[dial->peer];
    if (trib_auto_reach(&c->base, dial->peer, dial->address) != TRIB_OK) {
        trib_error_clear(c->err); /* connect reports it */
        return NULL;
    }
    if (!c->agreed)
        prefer_maps(c, p);
    struct auto_inner *inner = &c->inners[trib_auto_first_choice(c, p->choices)];
    return inner->t && !inner->poor[0] ? inner : NULL;
}

enum { DIALS = 128 }; /* inner addresses at a time */

/* Return the number of these peers that an inner serves. */
static int list_for(struct auto_transport *c, const struct auto_inner *inner,
                    const struct trib_target *dials, int n, struct trib_address *room,
                    struct trib_target *out)
{
    int used = 0;

    assert(n <= DIALS && inner->t);
    for (int i = 0; i < n; i++) {
        if (first_inner(c, &dials[i]) != inner ||
            !trib_auto_inner_address(dials[i].address, inner->row->id, &room[used]))
            continue;
        out[used] = (struct trib_target){dials[i].peer, &room[used], false, 0};
        used++;
    }
    return used;
}

/* An inner connects to these peers. Return false if it has left some to connect. */
static bool connect_part(struct auto_transport *c, struct trib_transport *inner,
                         struct trib_target *part, int n)
{
    bool all = true;

    inner->ops->connect_many(inner, part, n);
    for (int i = 0; i < n; i++) {
        c->peers[part[i].peer].tried = part[i].tried;
        c->peers[part[i].peer].failed_ns = part[i].failed_ns;
        all &= part[i].tried;
    }
    return all;
}

void trib_auto_connect_many(struct trib_transport *t, struct trib_target *dials, int n)
{
    struct auto_transport *c = auto_of(t);
    struct trib_address *room = malloc(DIALS * sizeof(*room));
    struct trib_target *part = malloc(DIALS * sizeof(*part));

    bool answer = true;

    for (int i = 0; i < n; i++)
        trib_target_reset(&dials[i]);
    for (int first = 0; room && part && answer && first < n; first += DIALS) {
        const int most = n - first < DIALS ? n - first : DIALS;
        const uint64_t begin = trib_now_ns();
        for (int i = 0; i < c->n_inners; i++) {
            struct trib_transport *inner = c->inners[i].t;
            if (!inner || inner->ops->connect_many == trib_no_connect_many)
                continue;
            const int used =
                list_for(c, &c->inners[i], dials + first, most, room, part);
            answer &= !used || connect_part(c, inner, part, used);
        }
        answer |= trib_now_ns() - begin < TRIB_SILENT_NS;
    }
    free(part);
    free(room);
}
