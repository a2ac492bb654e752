/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For callers: find, check and open a transport, and import memory of a peer.
 */
#ifndef TRANSPORT_OPEN_H
#define TRANSPORT_OPEN_H

#include <tributary/status.h>

#include "transport/ops.h"

struct trib_candidate;
struct trib_config;
struct trib_error;
struct trib_guard;
struct trib_heartbeat;
struct trib_idle;
struct trib_log;
struct trib_net_met;
struct trib_secret;

struct trib_transport_opts {
    int self;
    int size;
    /* number of this rank among the ranks of its host, as far as known; ranks of a host
     * take different devices by it */
    int place;
    const char *params; /* text after "name:"; "" for none */
    /* for backends that choose among others; set by trib_transport_open */
    const struct trib_candidate *candidates;
    const struct trib_config *cfg; /* outlives the transport */
    const struct trib_log *log; /* may be NULL */
    struct trib_error *err; /* receives error messages; may be NULL */
    /* shared heartbeats; NULL: a backend that needs heartbeats starts its own */
    struct trib_heartbeat *heartbeat;
    /* network over which the ranks bootstrapped; NULL: unknown. Read only by open */
    const struct trib_net_met *met;
    /* protects against peers that run as another user (transport/common/guard.h) and
     * outlives the transport; NULL: all peers belong to this user's own job */
    struct trib_guard *guard;
    /* secret with which peers authenticate each other, armed; NULL or not set: any
     * process that knows the address is trusted. Outlives the transport */
    const struct trib_secret *secret;
    /* set to true if open fails because this host's device lacks a feature that the
     * backend needs; may be NULL */
    bool *unfit_out;
    /* called while connect waits; may be NULL. If the caller cancels, connect fails at
     * once. Outlives the transport */
    struct trib_idle *idle;
};

/**
 * trib_transports - the backends in order of preference, terminated by NULL.
 *
 * No other file knows which backends are built in.
 */
extern const struct trib_transport_ops *const trib_transports[];

/** trib_transport_find - return a backend by name; NULL if this build has none. */
const struct trib_transport_ops *trib_transport_find(const char *name);

/** trib_transport_links - return true if a backend connects processes by itself. */
static inline bool trib_transport_links(const struct trib_transport_ops *ops)
{
    return !ops->composite && !ops->one_process;
}

/* A backend missing from this build. */
struct trib_absent {
    const char *name;
    /* how to get it, a clause such as "install libucx-dev and build it again" */
    const char *cure;
};

/** trib_absents - the backends missing from this build, terminated by a NULL name. */
extern const struct trib_absent trib_absents[];

/** trib_transport_absent - return the cure for a backend missing from this build; else
 * NULL. */
const char *trib_transport_absent(const char *name);

/**
 * trib_transport_devices - write one line that describes a backend's devices on this
 * host, as that backend would choose them for a transport text.
 *
 * transport    as for trib_transport_open; parameters for other backends are ignored
 */
void trib_transport_devices(const struct trib_transport_ops *ops, const char *transport,
                            char *text, size_t bytes);

/**
 * trib_transport_check - validate all names and parameters of a text for
 * trib_transport_open, without opening anything.
 *
 * errors   as trib_transport_open for unknown names and parameters
 */
trib_status_t trib_transport_check(const char *text, struct trib_error *err);

/**
 * trib_transport_open - open a backend, wrapped by decorators, as described by a text.
 *
 * text     "shm", "loop", "shm+trace",
 *          "loop:depth=8+delay:us=50+kill:after=3,signal=9"; "auto" chooses a backend
 *          per peer
 * errors   TRIB_ERR_CONFIG for unknown names or parameters, with a message in opts->err
 */
trib_status_t trib_transport_open(const char *text,
                                  const struct trib_transport_opts *opts,
                                  struct trib_transport **out);

/**
 * trib_transport_import - import a region of a peer in which this rank will address
 * `least` bytes.
 *
 * Code that computes offsets into a peer's memory itself must use this function instead
 * of the `import` slot: a peer may claim a region shorter than required.
 *
 * errors   as import; TRIB_ERR_RANGE: the region is too short, the message names the
 *          peer. On any error *out is unchanged
 */
trib_status_t trib_transport_import(struct trib_transport *t, int peer,
                                    const struct trib_blob *blob, size_t least,
                                    struct trib_remote **out);

#endif
