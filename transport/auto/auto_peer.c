/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * auto: the choices of one peer. A peer is connected through the first of them that
 * answers; a choice that fails is removed, and the reason is kept for messages.
 */
#include "transport/auto/auto_peer.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "base/time.h"
#include "transport/op_defaults.h"

/* A peer that does not answer costs seconds. So it counts for all ranks of its host,
 * and each inner spends at most WASTE_NS on such peers. */
#define WASTE_NS UINT64_C(5000000000)

bool trib_auto_inner_address(const struct trib_address *whole, int id,
                             struct trib_address *out)
{
    size_t len;
    const uint8_t *bytes =
        trib_auto_get(whole->bytes, whole->len, sizeof(struct auto_address), id, &len);

    memset(out, 0, sizeof(*out));
    if (!bytes)
        return false;
    out->len = (uint16_t)len;
    memcpy(out->bytes, bytes, len);
    return true;
}

int trib_auto_first_choice(const struct auto_transport *c, uint16_t choices)
{
    for (int i = 0; i < c->n_inners; i++) {
        if (c->inners[i].t && (choices & auto_bit(&c->inners[i])))
            return i;
    }
    return -1;
}

bool trib_auto_in_use(const struct auto_transport *c, int i)
{
    assert(i >= 0 && i < c->n_inners);
    return c->inners[i].t && (c->used & auto_bit(&c->inners[i]));
}

/* Return the inner in use for a peer, or its first choice; NULL: none. */
static struct trib_transport *inner_of(const struct auto_transport *c, int peer)
{
    const struct auto_peer *p = &c->peers[peer];
    int i = atomic_load_explicit(&p->inner, memory_order_relaxed);

    for (int k = 0; i < 0 && k < c->n_inners; k++)
        if (trib_auto_in_use(c, k) && (p->choices & auto_bit(&c->inners[k])))
            i = k;
    return i < 0 ? NULL : c->inners[i].t;
}

bool trib_auto_reads(struct trib_transport *t, int peer)
{
    struct trib_transport *inner = inner_of(auto_of(t), peer);

    return inner && inner->ops->reads(inner, peer);
}

trib_status_t trib_auto_read(struct trib_transport *t, int peer, uint64_t from,
                             void *to, size_t len)
{
    struct auto_transport *c = auto_of(t);
    struct trib_transport *inner = inner_of(c, peer);

    if (!inner)
        return trib_no_read(t, peer, from, to, len);
    return trib_auto_pass_error(c, inner->ops->read(inner, peer, from, to, len));
}

const char *trib_auto_short_reason(const char *name, const char *why)
{
    size_t n = strlen(name);
    char over[32];

    if (strncmp(why, name, n) == 0 && strncmp(why + n, ": ", 2) == 0)
        return why + n + 2;
    snprintf(over, sizeof(over), " over %s at ", name);
    const char *at = strstr(why, over);
    return at ? at + strlen(over) - 3 : why;
}

void trib_auto_note_refused(struct auto_peer *p, const char *name, const char *why)
{
    char text[2 * TRIB_WHY_MAX];

    snprintf(text, sizeof(text), "%s%s%s: %.150s", p->refused ? p->refused : "",
             p->refused ? "; " : "", name, trib_auto_short_reason(name, why));
    free(p->refused);
    p->refused = strdup(text);
}

/* Return why an inner is not tried, or NULL if it is. */
static const char *not_worth_trying(const struct auto_transport *c, int peer, int i)
{
    const struct auto_inner *inner = &c->inners[i];

    if (inner->poor[0])
        return inner->poor;
    for (int r = 0; r < c->size; r++) {
        if ((c->peers[r].silent & auto_bit(inner)) &&
            c->peers[r].host == c->peers[peer].host)
            return "another rank of its host did not answer there";
    }
    return inner->wasted_ns < WASTE_NS
               ? NULL
               : "not tried: too many peers did not answer there";
}

static trib_status_t connect_timed(struct auto_transport *c, int peer, int i,
                                   const struct trib_address *address)
{
    struct auto_inner *inner = &c->inners[i];
    uint64_t begin = trib_now_ns();
    trib_status_t status = inner->t->ops->connect(inner->t, peer, address);
    uint64_t took = trib_now_ns() - begin + c->peers[peer].failed_ns;

    assert(inner->t);
    if (status != TRIB_OK && took >= TRIB_SILENT_NS) {
        inner->wasted_ns += took;
        c->peers[peer].silent |= auto_bit(inner);
    }
    return status;
}

/* Remove an inner from a peer's choices and log the fallback. */
static void fall_back(struct auto_transport *c, int peer, int i, const char *why)
{
    struct auto_inner *inner = &c->inners[i];
    struct auto_peer *p = &c->peers[peer];
    const char *name = inner->row->ops->name;

    assert(i >= 0 && i < c->n_inners);
    p->choices &= (uint16_t)~auto_bit(inner);
    trib_auto_note_refused(p, name, why);
    if (!inner->fallback_logged && trib_auto_first_choice(c, p->choices) >= 0)
        trib_log(c->log, c->warns ? TRIB_LOG_WARN : TRIB_LOG_INFO, TRIB_AUTO,
                 "peer %d is not reached by %s, falling back to the next transport: %s "
                 "(trib-info --reach shows all peers)",
                 peer, name, trib_auto_short_reason(name, why));
    inner->fallback_logged = true;
}

trib_status_t trib_auto_connect_first(struct auto_transport *c, int peer,
                                      const struct trib_address *address)
{
    struct auto_peer *p = &c->peers[peer];
    trib_status_t status = TRIB_ERR_UNSUPPORTED;
    struct trib_address a;

    assert(p->state == AUTO_PEER_UNKNOWN || p->state == AUTO_PEER_CONNECTED);
    for (int i = 0; i < c->n_inners; i++) {
        struct auto_inner *inner = &c->inners[i];
        if (!inner->t || !(p->choices & auto_bit(inner)) ||
            !trib_auto_inner_address(address, inner->row->id, &a))
            continue;
        bool last =
            trib_auto_first_choice(c, p->choices & (uint16_t)~auto_bit(inner)) < 0;
        const char *why = last || p->tried ? NULL : not_worth_trying(c, peer, i);
        status = why ? TRIB_ERR_UNSUPPORTED : connect_timed(c, peer, i, &a);
        p->tried = false;
        p->failed_ns = 0;
        if (status == TRIB_OK) {
            p->inner = i;
            trib_log(c->log, TRIB_LOG_DEBUG, TRIB_AUTO, "peer %d is reached by %s%s%s",
                     peer, inner->row->ops->name, p->refused ? ": " : "",
                     p->refused ? p->refused : "");
            return TRIB_OK;
        }
        if (last && !p->refused)
            return trib_auto_pass_error(c, status);
        fall_back(c, peer, i, why ? why : trib_error_text(&c->inner_err));
        trib_error_clear(&c->inner_err);
    }
    return trib_fail(c->err, status, "%s",
                     p->refused ? p->refused : "no transport reaches it");
}

trib_status_t trib_auto_connect_next(struct auto_transport *c, int peer,
                                     trib_status_t reason, const char *why)
{
    struct auto_peer *p = &c->peers[peer];

    assert(p->state == AUTO_PEER_CONNECTED && !p->wrote);
    if (!p->address)
        return trib_fail(c->err, reason, "%s", why);
    fall_back(c, peer, p->inner, why);
    trib_error_clear(&c->inner_err);
    return trib_auto_connect_first(c, peer, p->address);
}
