/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a listener for newcomers, shared by its sources alone. */
#ifndef BOOT_TCP_LISTENER_PARTS_H
#define BOOT_TCP_LISTENER_PARTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/accept.h"
#include "base/log.h"
#include "base/log_pace.h"
#include "base/stranger.h"
#include "boot/newcomers.h"
#include "boot/tcp/tcp_newcomer.h"
#include "boot/tcp/tcp_server.h"

/*
 * Connections that have not knocked may be anybody's. Of these there are at most
 * UNPROVEN_MAX; a further one evicts the oldest of the source that has most, first one
 * that has sent nothing. A source keeps UNPROVEN_OF_SOURCE without question, and loses
 * its oldest beyond these once that had UNPROVEN_MS, many times what a proof takes. The
 * thread accepts a bounded number without the lock, so that trib_comm_grow never waits
 * for a flood.
 */
enum {
    UNPROVEN_MAX = 128,
    UNPROVEN_OF_SOURCE = 64,
    UNPROVEN_MS = 500,
    PLACES = UNPROVEN_MAX + 64, /* the rest is for newcomers that wait */
    ACCEPTS_AT_ONCE = 32, /* number accepted from a listener in one pass */
    HELLO_MS = 5000, /* time to knock after the connection */
    FAREWELL_MS = 1000, /* time to read the last frame */
    TICK_MS = TRIB_TCP_TICK_MS,
    UNLIMITED_SILENT_MS = 3000, /* of a newcomer, where stop_timeout_ms is 0 */
};

struct place {
    int fd; /* -1: free */
    uint8_t ip[16];
    uint64_t source; /* of base/crowd.h */
    uint64_t since; /* ns: time of the connection, or since when it is OVER */
    uint64_t heard; /* ns */
    uint64_t number; /* of its knock: who comes first is admitted first */
    bool is_counted; /* number is set */
    struct trib_newcomer n;
};

/* A connection that was accepted, and has no place yet. */
struct arrival {
    int fd;
    uint8_t ip[16];
};

struct trib_listen {
    pthread_t thread;
    _Atomic int asking; /* calls that want the lock, which the thread leaves to them */
    _Atomic int waiting; /* newcomers that have knocked and wait */
    uint64_t seed; /* random seed of sources */
    struct trib_accept_pause pause; /* of the thread */
    bool starved; /* of the thread: no descriptor was free for the last connection */
    pthread_mutex_t lock; /* for all below */
    pid_t pid; /* a forked child has no thread */
    bool stop;
    int wake; /* eventfd: the thread has something to send */
    int news; /* eventfd: the round has changed */
    struct trib_newcomer_rules rules;
    struct trib_log log;
    struct trib_log_pace pace;
    struct trib_strangers strangers;
    unsigned port;
    int fds[TRIB_TCP_LISTENERS_MAX], n_fds;
    int silent_ms;
    struct place places[PLACES];
    uint64_t knocks;
    uint64_t now, ticked;
    struct place *round[PLACES];
    int n_round;
};

/* With the lock: */

/** trib_listen_ring - wake up whoever polls this eventfd. */
void trib_listen_ring(int fd);

/** trib_places_older - whether that many ms have passed since that moment. */
bool trib_places_older(const struct trib_listen *l, uint64_t since, int ms);

/** trib_places_take - give an accepted connection a place, or close it. */
void trib_places_take(struct trib_listen *l, const struct arrival *a);

/** trib_places_make_room - evict a connection if this source, or all together, have too
 * many, or if `must`. */
void trib_places_make_room(struct trib_listen *l, uint64_t source, bool must);

/** trib_places_count_waiting - set l->waiting, which calls read without the lock. */
void trib_places_count_waiting(struct trib_listen *l);

/** trib_place_read - read and judge what the peer has sent. */
void trib_place_read(struct trib_listen *l, struct place *p);

/** trib_place_write - send the output that the socket accepts now. */
void trib_place_write(struct trib_listen *l, struct place *p);

/** trib_place_end - end the conversation, for this reason. */
void trib_place_end(struct trib_listen *l, struct place *p, const char *why);

/** trib_place_hang_up - close the connection; its place stays taken while the round may
 * name it. */
void trib_place_hang_up(struct trib_listen *l, struct place *p);

#endif
