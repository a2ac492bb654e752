/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/common/peer.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/time.h"

static enum trib_peer_state state_of(const struct trib_peers *peers, int peer)
{
    enum trib_peer_state state;

    assert(peer >= 0 && peer < peers->size);
    memcpy(&state, (const uint8_t *)peers->first + (size_t)peer * peers->stride,
           sizeof(state));
    assert(state <= TRIB_PEER_LEFT);
    return state;
}

trib_status_t trib_peer_check_connect(const struct trib_peers *peers, int peer)
{
    if (peer < 0 || peer >= peers->size || peer == peers->self)
        return trib_fail(peers->err, TRIB_ERR_INVALID,
                         "peer %d of %d cannot be connected", peer, peers->size);
    const enum trib_peer_state state = state_of(peers, peer);
    if (state == TRIB_PEER_UNKNOWN || state == TRIB_PEER_CONNECTED)
        return TRIB_OK;
    return trib_fail(peers->err, TRIB_ERR_PEER_LOST, "peer %d was lost or left before",
                     peer);
}

trib_status_t trib_peer_check_import(const struct trib_peers *peers, int peer)
{
    if (peer < 0 || peer >= peers->size || state_of(peers, peer) == TRIB_PEER_UNKNOWN)
        return trib_fail(peers->err, TRIB_ERR_INVALID,
                         "peer %d is not connected: cannot import its memory", peer);
    if (state_of(peers, peer) != TRIB_PEER_CONNECTED)
        return trib_fail(peers->err, TRIB_ERR_PEER_LOST, "peer %d is lost", peer);
    return TRIB_OK;
}

trib_status_t trib_peer_refuse_bounds(const struct trib_write *write, int peer,
                                      const struct trib_write_bounds *bounds,
                                      struct trib_error *err)
{
    if (!bounds || bounds->owner != peer)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "a write to peer %d needs a local region and a region of that "
                         "peer",
                         peer);
    return trib_fail(
        err, TRIB_ERR_RANGE,
        "a write of %zu bytes from offset %zu of %zu to offset %zu of %zu exceeds "
        "a region",
        write->len, write->local_off, bounds->local, write->remote_off, bounds->remote);
}

void trib_peer_address(const void *from, size_t bytes, struct trib_address *out)
{
    assert(bytes <= sizeof(out->bytes));
    memset(out, 0, sizeof(*out));
    out->len = (uint16_t)bytes;
    memcpy(out->bytes, from, bytes);
}

trib_status_t trib_peer_read_address(const struct trib_address *address, int peer,
                                     const char *owner, uint32_t magic, void *out,
                                     size_t bytes, struct trib_error *err)
{
    uint32_t first;

    assert(bytes >= sizeof(first) && bytes <= sizeof(address->bytes));
    memset(out, 0, bytes);
    if (address->len == bytes)
        memcpy(out, address->bytes, bytes);
    memcpy(&first, out, sizeof(first));
    if (first == magic)
        return TRIB_OK;
    memset(out, 0, bytes);
    return trib_fail(err, TRIB_ERR_INVALID, "peer %d: not an address of %s", peer,
                     owner);
}

void trib_peer_explain(struct trib_peer_base *p, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(p->why, sizeof(p->why), format, args);
    va_end(args);
}

void trib_peer_explain_end(struct trib_peer_base *p)
{
    const bool dead = p->liveness.by == TRIB_LIVENESS_BY_KERNEL &&
                      trib_peer_liveness_dead(&p->liveness);

    trib_peer_explain(p, "process %d %s", p->who.pid,
                      dead ? "has died" : "closed its connection");
}

void trib_peer_drain(struct trib_peer_base *p, int *n_draining)
{
    assert(trib_peer_is_there(p));
    p->state = TRIB_PEER_DRAINING;
    p->going_at = trib_now_ns();
    p->asked = 0;
    ++*n_draining;
}

void trib_peer_report(const struct trib_peer_base *p, int peer, bool left,
                      struct trib_event *out)
{
    assert(p->state == TRIB_PEER_DRAINING);
    *out = (struct trib_event){.kind = TRIB_EVENT_PEER_LOST,
                               .peer = peer,
                               .left = left,
                               .given_up = p->given_up,
                               .dead = p->liveness.by == TRIB_LIVENESS_BY_KERNEL &&
                                       trib_peer_liveness_dead(&p->liveness)};
    out->lives =
        !left && !p->given_up && trib_peer_liveness_answered(&p->liveness, p->asked);
    /* After `answered`, which waits until all input is read: the notice arrives before
     * the host's report that the port is closed. */
    out->continues = !left && trib_peer_liveness_continues(&p->liveness);
    memcpy(out->why, p->why, sizeof(out->why));
}
