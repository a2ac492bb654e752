/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * State of a peer, common to all backends, and the checks that a call makes before it
 * touches the backend's own part of the peer.
 *
 *     UNKNOWN --connect--> CONNECTED --loss--> GOING --report--> LOST
 *        \___________________ \____disconnect____/________________> LEFT
 *
 * A backend's peer struct begins with `enum trib_peer_state`, or with the whole `struct
 * trib_peer_base` if the backend watches its peers itself.
 */
#ifndef TRANSPORT_COMMON_PEER_H
#define TRANSPORT_COMMON_PEER_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/status.h>

#include "base/process.h"
#include "transport/common/peer_liveness.h"
#include "transport/transport.h"

enum trib_peer_state {
    TRIB_PEER_UNKNOWN, /* not connected; data from the peer is received */
    TRIB_PEER_CONNECTED,
    TRIB_PEER_DRAINING, /* lost; data that the peer sent before is still delivered */
    TRIB_PEER_LOST, /* lost, and the loss has been reported */
    TRIB_PEER_LEFT, /* this rank disconnected */
};

struct trib_peer_base {
    enum trib_peer_state state;
    struct trib_process who;
    struct trib_peer_liveness liveness;
    uint64_t going_at; /* GOING: since when, by trib_now_ns */
    uint64_t asked; /* GOING: number of the liveness question; 0: none */
    char why[TRIB_WHY_MAX]; /* GOING: the reason, a clause */
    bool given_up; /* the peer said that it has declared this rank lost */
};

/* Reasons; the argument is the peer's process number. */
#define TRIB_PEER_ENDED "process %d has ended, or closed its connection"
#define TRIB_PEER_GAVE_UP \
    "process %d has declared this rank lost: see its error message"

/* All peers of a transport; `first` points to an array of the backend's structs. */
struct trib_peers {
    const void *first;
    size_t stride;
    int self;
    int size;
    struct trib_error *err; /* receives error messages; may be NULL */
};

/**
 * trib_peer_check_connect - check that a peer may be connected.
 *
 * returns  TRIB_OK also for a peer that is connected already
 * errors   TRIB_ERR_INVALID: no such peer, or this rank itself; TRIB_ERR_PEER_LOST: the
 *          peer was lost or disconnected before
 */
trib_status_t trib_peer_check_connect(const struct trib_peers *peers, int peer);

/**
 * trib_peer_check_import - check that memory of a peer may be imported.
 *
 * errors   TRIB_ERR_INVALID: no such peer, or not connected yet; TRIB_ERR_PEER_LOST
 */
trib_status_t trib_peer_check_import(const struct trib_peers *peers, int peer);

/** trib_peer_check_write - return TRIB_OK if a peer in this state accepts writes. */
static inline trib_status_t trib_peer_check_write(enum trib_peer_state state)
{
    if (state == TRIB_PEER_CONNECTED)
        return TRIB_OK;
    return state == TRIB_PEER_UNKNOWN ? TRIB_ERR_INVALID : TRIB_ERR_PEER_LOST;
}

/* The two regions of a write. */
struct trib_write_bounds {
    int owner; /* peer that owns the remote region */
    size_t local; /* bytes of the local region */
    size_t remote; /* bytes of the remote region */
};

/** trib_write_fits - return true if a write stays within regions of these lengths. */
static inline bool trib_write_fits(const struct trib_write *w, size_t local,
                                   size_t remote)
{
    return w->local_off <= local && w->len <= local - w->local_off &&
           w->remote_off <= remote && w->len <= remote - w->remote_off;
}

/** trib_peer_refuse_bounds - set the error of trib_peer_check_bounds. */
trib_status_t trib_peer_refuse_bounds(const struct trib_write *write, int peer,
                                      const struct trib_write_bounds *bounds,
                                      struct trib_error *err);

/**
 * trib_peer_check_bounds - check that a write stays within its two regions.
 *
 * bounds   NULL: a region is missing
 * errors   TRIB_ERR_INVALID: a region is missing, or is another peer's; TRIB_ERR_RANGE
 */
static inline trib_status_t trib_peer_check_bounds(
    const struct trib_write *write, int peer, const struct trib_write_bounds *bounds,
    struct trib_error *err)
{
    if (bounds && bounds->owner == peer &&
        trib_write_fits(write, bounds->local, bounds->remote))
        return TRIB_OK;
    return trib_peer_refuse_bounds(write, peer, bounds, err);
}

/** trib_peer_address - set an address to the `bytes` at `from`. */
void trib_peer_address(const void *from, size_t bytes, struct trib_address *out);

/**
 * trib_peer_read_address - copy an address out, if it belongs to this backend.
 *
 * owner    name of the backend, for the error message
 * out      must begin with the uint32_t `magic`; zeroed on error
 * errors   TRIB_ERR_INVALID
 */
trib_status_t trib_peer_read_address(const struct trib_address *address, int peer,
                                     const char *owner, uint32_t magic, void *out,
                                     size_t bytes, struct trib_error *err);

/** trib_peer_is_there - return true if the peer may still send: connected, or not
 * yet. */
static inline bool trib_peer_is_there(const struct trib_peer_base *p)
{
    return p->state == TRIB_PEER_CONNECTED || p->state == TRIB_PEER_UNKNOWN;
}

/** trib_peer_explain - set the reason for a loss. */
void trib_peer_explain(struct trib_peer_base *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** trib_peer_explain_end - set the reason to a closed connection, or to the peer's
 * death if known. */
void trib_peer_explain_end(struct trib_peer_base *p);

/** trib_peer_drain - start a peer's loss; n_draining counts the peers in this state. */
void trib_peer_drain(struct trib_peer_base *p, int *n_draining);

/** trib_peer_report - fill in the event that reports a loss. */
void trib_peer_report(const struct trib_peer_base *p, int peer, bool left,
                      struct trib_event *out);

#endif
