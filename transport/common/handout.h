/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handing out descriptors of memory to processes of this host.
 *
 * Ranks of one job open each other's segments through /proc/PID/fd where they may. A
 * user namespace of its own bars that, and between a rank and an aggregator it is not
 * done at all (transport/common/guard.h). So a process also has a socket (AF_UNIX, of
 * the abstract names) at which it hands descriptors out to whom the kernel names
 * (SO_PEERCRED), and who knows the segment's key. Nothing of the asker's is opened or
 * believed. An asker has the kernel name the owner of the socket before it says the
 * key. The socket of
 *
 *     a transport without a guard   serves processes of its own user
 *     a rank's, to aggregators      its own user's, and the processes whose addresses
 *                                   the aggregators gave over the sealed control
 *                                   connection
 *     an aggregator's, to a job     its own user's, and those of the one user of the
 *                                   job
 *
 * The second rule goes by the process and not by the user: a rank in a user namespace
 * of its own sees all other users as one.
 *
 * The socket listens from the beginning and costs nothing else; a thread answers only
 * once somebody has asked, so that no asker waits for a rank that computes.
 */
#ifndef TRANSPORT_COMMON_HANDOUT_H
#define TRANSPORT_COMMON_HANDOUT_H

#include <stdbool.h>
#include <stdint.h>

#include <tributary/status.h>

struct trib_error;
struct trib_guard;
struct trib_handout;

/* How long an asker waits for an answer, in all. */
#define TRIB_HANDOUT_MS 5000

/* The descriptors of one key. */
struct trib_handout_fds {
    int memory;
    int bell; /* the end of a socket by which its owner is woken; -1: none */
};

/**
 * trib_handout_open - a socket with a name that the kernel chooses.
 *
 * guard    of the transport, which it outlives; NULL: none
 * returns  NULL where there cannot be one: peers then have /proc alone
 */
struct trib_handout *trib_handout_open(struct trib_guard *guard);

/** trib_handout_name - by which others find it; 0 for NULL. */
uint32_t trib_handout_name(const struct trib_handout *handout);

/** trib_handout_close - NULL is allowed; in a forked child it frees the child's copy.
 * Waits for no asker. */
void trib_handout_close(struct trib_handout *handout);

/** trib_handout_add - from now on hand out descriptors, which stay the caller's. */
trib_status_t trib_handout_add(struct trib_handout *handout, uint64_t key,
                               struct trib_handout_fds fds);

/** trib_handout_remove - no more; comes before the descriptors are closed. */
void trib_handout_remove(struct trib_handout *handout, uint64_t key);

/** trib_handout_admit - of a rank's: serve an aggregator's process, too. */
trib_status_t trib_handout_admit(struct trib_handout *handout, int pid);

/** trib_handout_asked - is somebody at the socket for whom no thread has been
 * started? */
bool trib_handout_asked(const struct trib_handout *handout);

/** trib_handout_serve - start the thread that answers; harmless when done before. */
trib_status_t trib_handout_serve(struct trib_handout *handout, struct trib_error *err);

/* The process that owns the memory. */
struct trib_handout_owner {
    uint32_t name; /* trib_handout_name of its socket; 0: it has none */
    int pid; /* its process, as its address says */
    bool aggregator; /* it is none of the job's ranks */
    struct trib_guard *guard; /* of the asking transport; NULL: both are of one user */
};

/**
 * trib_handout_knock - can a process's socket be reached, and is it of whom it must be?
 *
 * That process finds trib_handout_asked true. Waits for nothing.
 *
 * errors   TRIB_ERR_UNSUPPORTED: no (the sentence says why)
 */
trib_status_t trib_handout_knock(const struct trib_handout_owner *owner,
                                 struct trib_error *err);

/**
 * trib_handout_ask - get the descriptors of a key from another process.
 *
 * Waits for at most TRIB_HANDOUT_MS.
 *
 * errors   TRIB_ERR_PEER_LOST: the process has gone, or does not answer in time;
 *          TRIB_ERR_INVALID: it has no such segment (any more); TRIB_ERR_UNSUPPORTED as
 *          trib_handout_knock
 * owner    the caller closes those of *out that are not -1
 */
trib_status_t trib_handout_ask(const struct trib_handout_owner *owner, uint64_t key,
                               struct trib_handout_fds *out, struct trib_error *err);

/* A question that is under way. Empty, and once it is answered, all zero. */
struct trib_handout_call {
    uint64_t until; /* 0: none is under way */
    uint64_t key;
    int fd; /* asked; 0: the other side's queue of connections was full so far */
    bool stalled; /* asked so late that the other side may have hung up before */
};

/**
 * trib_handout_step - the same without a wait: begin to ask, or look for the answer.
 *
 * One question at a time: of another key, while one is under way, TRIB_INPROGRESS.
 *
 * returns  TRIB_INPROGRESS: not yet; else as trib_handout_ask
 */
trib_status_t trib_handout_step(const struct trib_handout_owner *owner, uint64_t key,
                                struct trib_handout_call *call,
                                struct trib_handout_fds *out, struct trib_error *err);

/** trib_handout_drop - ask no longer; harmless where nothing is under way. */
void trib_handout_drop(struct trib_handout_call *call);

#endif
