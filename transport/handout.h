/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handing out descriptors of memory to processes of the same user on this host.
 *
 * Peers open each other's segments through /proc/PID/fd where they may. A user namespace
 * of its own bars that, so a process also has a socket (AF_UNIX, of the abstract names) at
 * which it hands the descriptor out to whom the kernel says is the same user (SO_PEERCRED),
 * and who knows the segment's key. Nothing of the asker's is opened or believed.
 *
 * The socket listens from the beginning and costs nothing else; a thread answers only once
 * somebody has asked, so that no asker waits for a rank that computes.
 */
#ifndef TRANSPORT_HANDOUT_H
#define TRANSPORT_HANDOUT_H

#include <stdbool.h>
#include <stdint.h>

#include <tributary/status.h>

struct trib_error;
struct trib_handout;

/**
 * trib_handout_open - a socket with a name that the kernel chooses.
 *
 * returns  NULL where there cannot be one: peers then have /proc alone
 */
struct trib_handout *trib_handout_open(void);

/** trib_handout_name - by which others find it; 0 for NULL. */
uint32_t trib_handout_name(const struct trib_handout *handout);

/** trib_handout_close - NULL is allowed; in a forked child it frees the child's copy. */
void trib_handout_close(struct trib_handout *handout);

/** trib_handout_add - from now on hand out a descriptor, which stays the caller's. */
trib_status_t trib_handout_add(struct trib_handout *handout, uint64_t key, int fd);

/** trib_handout_remove - no more; comes before the descriptor is closed. */
void trib_handout_remove(struct trib_handout *handout, uint64_t key);

/** trib_handout_asked - is somebody at the socket for whom no thread has been started? */
bool trib_handout_asked(const struct trib_handout *handout);

/** trib_handout_serve - start the thread that answers; harmless when done before. */
trib_status_t trib_handout_serve(struct trib_handout *handout, struct trib_error *err);

/**
 * trib_handout_knock - can a process's socket be reached, and is it of the same user?
 *
 * That process finds trib_handout_asked true. Waits for nothing.
 *
 * pid      for sentences
 * errors   TRIB_ERR_UNSUPPORTED: no (the sentence says why)
 */
trib_status_t trib_handout_knock(uint32_t name, int pid, struct trib_error *err);

/**
 * trib_handout_ask - get a descriptor of another process.
 *
 * errors   TRIB_ERR_PEER_LOST: the process has gone, or does not answer for some seconds;
 *          TRIB_ERR_INVALID: it has no such segment (any more); TRIB_ERR_UNSUPPORTED as
 *          trib_handout_knock
 * owner    the caller closes *fd_out
 */
trib_status_t trib_handout_ask(uint32_t name, uint64_t key, int pid, int *fd_out,
                               struct trib_error *err);

#endif
