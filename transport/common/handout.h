/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handing out descriptors of memory to other processes on this host.
 *
 * Ranks of one job open each other's segments through /proc/PID/fd if allowed. A
 * separate user namespace forbids that, and between a rank and an aggregator /proc is
 * never used (transport/common/guard.h). So a process also has a socket (AF_UNIX,
 * abstract name) from which it hands out descriptors. A requester must know the
 * segment's key, and the kernel must confirm its identity (SO_PEERCRED). Nothing that
 * the requester owns is opened or trusted. A requester has the kernel name the owner of
 * the socket before it sends the key. The socket of
 *
 *     a transport without a guard   serves processes of its own user
 *     a rank, for aggregators       serves its own user's processes, and the processes
 *                                   whose addresses the aggregators sent over the
 *                                   encrypted control connection
 *     an aggregator, for a job      serves its own user's processes, and those of the
 *                                   job's one user
 *
 * The second rule checks the process and not the user: a rank in a separate user
 * namespace sees all other users as one.
 *
 * The socket listens from the start at no further cost. The thread that answers starts
 * only after the first request, so that no requester waits for a rank that computes.
 */
#ifndef TRANSPORT_COMMON_HANDOUT_H
#define TRANSPORT_COMMON_HANDOUT_H

#include <stdbool.h>
#include <stdint.h>

#include <tributary/status.h>

struct trib_error;
struct trib_guard;
struct trib_log;
struct trib_handout;

/* Total time that a requester waits for an answer. */
#define TRIB_HANDOUT_MS 5000

/* The descriptors registered under one key. */
struct trib_handout_fds {
    int memory;
    int bell; /* socket end through which the owner is woken; -1: none */
};

/**
 * trib_handout_open - open a socket whose name the kernel chooses.
 *
 * guard    of the transport; outlives the handout; may be NULL
 * returns  NULL if the socket cannot be created: peers then use /proc only
 */
struct trib_handout *trib_handout_open(struct trib_guard *guard);

/** trib_handout_name - return the socket's name for other processes; 0 for NULL. */
uint32_t trib_handout_name(const struct trib_handout *handout);

/** trib_handout_close - close and free; NULL is allowed. In a forked child, free the
 * child's copy. Does not wait for requesters. */
void trib_handout_close(struct trib_handout *handout);

/** trib_handout_add - start handing out descriptors; the caller keeps owning them. */
trib_status_t trib_handout_add(struct trib_handout *handout, uint64_t key,
                               struct trib_handout_fds fds);

/** trib_handout_remove - stop handing out a key; call before its descriptors are
 * closed. */
void trib_handout_remove(struct trib_handout *handout, uint64_t key);

/** trib_handout_admit - let a rank's socket serve an aggregator's process, too. */
trib_status_t trib_handout_admit(struct trib_handout *handout, int pid);

/** trib_handout_asked - return true if a request is waiting and no thread runs yet. */
bool trib_handout_asked(const struct trib_handout *handout);

/** trib_handout_serve - start the thread that answers; no-op if it runs already. */
trib_status_t trib_handout_serve(struct trib_handout *handout, struct trib_error *err);

/* The process that owns the memory. */
struct trib_handout_owner {
    uint32_t name; /* trib_handout_name of its socket; 0: none */
    int pid; /* process id, from its address */
    bool aggregator; /* it is not a rank of the job */
    /* of the requesting transport; NULL: both run as one user */
    struct trib_guard *guard;
    const struct trib_log *log; /* of the requesting transport; may be NULL */
};

/**
 * trib_handout_probe - check that a process's socket can be reached and has the right
 * owner.
 *
 * The other process then finds trib_handout_asked true. Does not block.
 *
 * errors   TRIB_ERR_UNSUPPORTED: no (the message gives the reason)
 */
trib_status_t trib_handout_probe(const struct trib_handout_owner *owner,
                                 struct trib_error *err);

/**
 * trib_handout_ask - request the descriptors of a key from another process.
 *
 * Blocks for at most TRIB_HANDOUT_MS. If the owner closes the connection without an
 * answer, asks again: only a refused connection shows that it has ended.
 *
 * errors   TRIB_ERR_PEER_LOST: the process ended, or does not answer in time;
 *          TRIB_ERR_INVALID: it has no such segment (any longer); TRIB_ERR_SYSTEM:
 *          descriptors cannot be sent or received; TRIB_ERR_UNSUPPORTED as
 *          trib_handout_probe
 * owner    the caller closes the descriptors of *out that are not -1
 */
trib_status_t trib_handout_ask(const struct trib_handout_owner *owner, uint64_t key,
                               struct trib_handout_fds *out, struct trib_error *err);

/* A request in flight. All zero if there is none, also after the answer. */
struct trib_handout_call {
    uint64_t until; /* deadline; 0: no request in flight */
    uint64_t key;
    /* connection with the request sent; 0: the owner's connection queue was full so
     * far */
    int fd;
    int closed; /* number of connections that the owner closed without an answer */
};

/**
 * trib_handout_step - like trib_handout_ask, but without blocking: send a request, or
 * check for its answer.
 *
 * One request at a time: while one is in flight, another key returns TRIB_INPROGRESS.
 *
 * returns  TRIB_INPROGRESS: not yet; else as trib_handout_ask
 */
trib_status_t trib_handout_step(const struct trib_handout_owner *owner, uint64_t key,
                                struct trib_handout_call *call,
                                struct trib_handout_fds *out, struct trib_error *err);

/** trib_handout_drop - cancel the request in flight; no-op if there is none. */
void trib_handout_drop(struct trib_handout_call *call);

#endif
