/* SPDX-License-Identifier: BSD-3-Clause */
/* State of a listener for newcomers, shared only by its sources. */
#ifndef BOOT_TCP_LISTENER_PARTS_H
#define BOOT_TCP_LISTENER_PARTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/acceptor.h"
#include "base/log.h"
#include "base/log_pace.h"
#include "boot/newcomers.h"
#include "boot/tcp/tcp_newcomer.h"
#include "boot/tcp/tcp_server.h"

/*
 * At most UNPROVEN_MAX connections may be unauthenticated (base/acceptor.h). A source
 * keeps UNPROVEN_OF_SOURCE unconditionally. Beyond these, its oldest may be evicted
 * after UNPROVEN_MS, many times the duration of a proof. The thread accepts a bounded
 * number while it holds the lock, so a flood never blocks trib_comm_grow.
 */
enum {
    UNPROVEN_MAX = 128,
    UNPROVEN_OF_SOURCE = 64,
    UNPROVEN_MS = 500,
    SLOTS = UNPROVEN_MAX + 64, /* the rest is for waiting newcomers */
    ACCEPTS_AT_ONCE = 32, /* maximum accepted from a listener per pass */
    HELLO_MS = 5000, /* timeout for the join request after the connection */
    LINGER_MS = 1000, /* time for the peer to read the last frame */
    TICK_MS = TRIB_TCP_TICK_MS,
    UNLIMITED_SILENT_MS = 3000, /* silence limit of a newcomer if stop_timeout_ms is
                                 * 0 */
};

struct newcomer_slot {
    struct trib_pending base; /* fd -1: free */
    uint64_t heard; /* ns */
    uint64_t over; /* ns: time of becoming OVER */
    uint64_t number; /* sequence number of its join request; admitted in this
                      * order */
    bool is_counted; /* number is set */
    struct trib_newcomer n;
};

struct trib_listen {
    pthread_t thread;
    _Atomic int asking; /* calls that want the lock; the thread yields to them */
    _Atomic int waiting; /* newcomers whose join request waits */
    pthread_mutex_t lock; /* protects all fields below */
    pid_t pid; /* a forked child has no thread */
    bool stop;
    int wake; /* eventfd: the thread has output to send */
    int news; /* eventfd: the round has changed */
    struct trib_newcomer_rules rules;
    struct trib_log log;
    struct trib_log_pace pace;
    struct trib_acceptor acceptor; /* of connections before their join request */
    int fds[TRIB_TCP_LISTENERS_MAX], n_fds;
    int silent_ms;
    struct newcomer_slot slots[SLOTS];
    uint64_t n_requests;
    uint64_t now, ticked;
    struct newcomer_slot *round[SLOTS];
    int n_round;
};

/* Caller holds the lock: */

/** trib_listen_wake - wake the thread that polls this eventfd. */
void trib_listen_wake(int fd);

/** trib_listen_elapsed - return true if `ms` have passed since `since`. */
bool trib_listen_elapsed(const struct trib_listen *l, uint64_t since, int ms);

/** trib_listen_acceptor_ops - accept connections into slots; owner: the listener. */
extern const struct trib_acceptor_ops trib_listen_acceptor_ops;

/** trib_listen_count_waiting - update l->waiting, which is read without the lock. */
void trib_listen_count_waiting(struct trib_listen *l);

/** trib_listen_read - read and handle the peer's bytes. */
void trib_listen_read(struct trib_listen *l, struct newcomer_slot *p);

/** trib_listen_write - send the output that the socket accepts now. */
void trib_listen_write(struct trib_listen *l, struct newcomer_slot *p);

/** trib_listen_end - end the connection for this reason. */
void trib_listen_end(struct trib_listen *l, struct newcomer_slot *p, const char *why);

/** trib_listen_hang_up - close the connection; its slot stays taken while the round may
 * name it. */
void trib_listen_hang_up(struct trib_listen *l, struct newcomer_slot *p);

#endif
