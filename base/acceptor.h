/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Listener for connections of unauthenticated peers: accept, table of pending
 * connections with deadlines, eviction, pause without descriptors.
 *
 * A connection is pending until its peer has authenticated. A flood of connections thus
 * occupies at most `max` entries. A further connection evicts one, first among those
 * without a valid hello: the one with the earliest deadline or, with limits per source,
 * the oldest of the source address that has most.
 *
 * A listener embeds struct trib_pending as the first member of its own record. It may
 * read its connections itself (boot, tribd), or have trib_acceptor_progress read hello
 * and proof into its buffers (tcp, ucx, verbs):
 *
 *     judge() returns false    continue reading, until the deadline
 *     judge() returns true     call finish(), which accepts, closes or refuses
 *     refused                  close after the peer has read the refusal, or after 1 s
 *
 * thread   one at a time: the caller's lock protects an acceptor shared by threads
 */
#ifndef BASE_ACCEPTOR_H
#define BASE_ACCEPTOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/accept.h"
#include "base/unauthenticated.h"

/* A connection whose peer has not authenticated. Zero-initialised: none. */
struct trib_pending {
    int fd;
    int slot; /* 1 + index in the table; 0: not in the table */
    uint8_t ip[16];
    uint64_t source; /* digest of its address, if sources are limited */
    uint64_t since; /* ns: time of the connection */
    uint64_t until; /* deadline */
    bool spoke; /* set by the listener after a valid hello: evicted after the others */
    /* The message that trib_acceptor_progress reads; see trib_pending_expect. */
    uint8_t *to;
    size_t want, have;
    bool ended; /* the stream has ended, or failed */
    bool judged; /* nothing more is to be read */
    bool refused; /* a refusal was sent; the peer may read it until `until` */
};

/* Reason for which a connection leaves the table. */
enum trib_pending_end {
    TRIB_PENDING_JUDGED, /* judge() has returned true */
    TRIB_PENDING_ENDED, /* the peer has closed it before that */
    TRIB_PENDING_LATE, /* its deadline has passed */
    TRIB_PENDING_EVICTED, /* to admit another connection */
};

enum trib_pending_fate {
    TRIB_PENDING_CLOSE, /* the acceptor closes the descriptor */
    TRIB_PENDING_REFUSED, /* the same, once the peer has had time to read a refusal */
    TRIB_PENDING_TAKEN, /* the descriptor has another owner */
};

struct trib_acceptor_ops {
    /**
     * admit - return a record for an accepted connection; the acceptor fills in its
     * struct trib_pending.
     *
     * returns  NULL: none; the callee has closed the descriptor
     */
    struct trib_pending *(*admit)(void *owner, int fd, const uint8_t ip[16]);
    /** judge - check a message that is read up to p->have; return true if nothing more
     * is to be read. NULL: the listener reads. */
    bool (*judge)(void *owner, struct trib_pending *p);
    /** finish - decide on a connection that has left the table. May release and retake
     * the caller's lock. */
    enum trib_pending_fate (*finish)(void *owner, struct trib_pending *p,
                                     enum trib_pending_end why);
    /** watch - add a descriptor, of a connection or the listener, to the caller's epoll
     * set, or remove it. NULL: the caller polls them all. */
    void (*watch)(void *owner, int fd, bool on);
    /** starved - no descriptor is left: close something; return true to accept again at
     * once. Errno has the failure. NULL: pause only. */
    bool (*starved)(void *owner, int listener);
    /** free - free a record after finish(). NULL: the listener keeps its records. */
    void (*free)(void *record);
};

struct trib_acceptor {
    /* Set by the listener before trib_acceptor_open: */
    const struct trib_acceptor_ops *ops;
    void *owner;
    const struct trib_log *log;
    const char *component; /* of log lines */
    char cannot[64]; /* message of a failed accept(); "": starved() reports */
    unsigned port; /* for warnings */
    int max; /* pending connections */
    int batch; /* maximum accepted per call */
    int hello_ms; /* time to authenticate */
    /* A source keeps this number unconditionally. Beyond it, its oldest is evicted
     * after source_ms. 0: sources do not count, only deadlines. */
    int per_source;
    int source_ms;

    struct trib_pending **pending; /* [max] */
    _Atomic int n; /* may be read without the caller's lock */
    uint64_t seed; /* random: no address can be chosen to share a counter */
    struct trib_accept_pause pause;
    bool unwatched; /* the listener is paused, and not in the epoll set */
    struct trib_unauthenticated unauthenticated;
};

/** trib_acceptor_open - allocate the table; false: out of memory. */
bool trib_acceptor_open(struct trib_acceptor *a);

/** trib_acceptor_close - close and free all pending connections without sending
 * anything, as a forked child must; safe if not open. */
void trib_acceptor_close(struct trib_acceptor *a);

/** trib_acceptor_accept - accept what waits at a listener, up to the batch. During a
 * pause nothing happens. */
void trib_acceptor_accept(struct trib_acceptor *a, int listener);

/** trib_acceptor_help - accept while there is room: no eviction, no pause, no log. For
 * a thread that helps the listener. */
void trib_acceptor_help(struct trib_acceptor *a, int listener);

/** trib_acceptor_evict - evict one connection; false: none is pending. */
bool trib_acceptor_evict(struct trib_acceptor *a);

/** trib_acceptor_remove - remove a record from the table, if it is in it: it has
 * authenticated, or the listener has closed it. */
void trib_acceptor_remove(struct trib_acceptor *a, struct trib_pending *p);

/** trib_acceptor_expire - finish the connections whose deadline has passed. */
void trib_acceptor_expire(struct trib_acceptor *a);

/** trib_acceptor_forgive - extend all deadlines: this process did not run. */
void trib_acceptor_forgive(struct trib_acceptor *a, uint64_t ns);

/** trib_pending_expect - receive the next message into `to`. */
void trib_pending_expect(struct trib_pending *p, void *to, size_t bytes);

/** trib_acceptor_read - read and judge all pending connections, without finishing
 * any. */
void trib_acceptor_read(struct trib_acceptor *a);

/** trib_acceptor_progress - read and judge all pending connections; finish those that
 * are judged, ended or late. */
void trib_acceptor_progress(struct trib_acceptor *a);

/** trib_acceptor_wait_ms - return the time until trib_acceptor_accept or _progress has
 * work without an event; -1: never. */
int trib_acceptor_wait_ms(const struct trib_acceptor *a);

/** trib_acceptor_warn - log that a pending connection failed to authenticate, limited
 * in rate. */
void trib_acceptor_warn(struct trib_acceptor *a, const struct trib_pending *p,
                        const char *what);

#endif
