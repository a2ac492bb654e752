/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Newcomers of a running job: they connect to a port at which one of its ranks listens,
 * identify themselves, and wait until the ranks admit them. Whatever a newcomer sends,
 * or fails to send, affects only that newcomer.
 *
 * The frames are those of a boot (boot/tcp/tcp_proto.h). A newcomer sends a HELLO with
 * 0 ranks and, as in a boot, gets a WELCOME of the listening rank. Exchanges follow,
 * each a GATHER of the newcomer and a RESULT. The first one, the join request, stays
 * open until the newcomer is admitted.
 */
#ifndef BOOT_NEWCOMERS_H
#define BOOT_NEWCOMERS_H

#include "boot/boot.h"

struct trib_listen;

/* Compare a join request with the listener's own; return false with a message in
 * `why`. */
typedef bool (*trib_join_request_fits_fn)(const void *ours, const void *theirs,
                                          char *why, size_t bytes);

struct trib_listen_opts {
    const char *root; /* "host,address:port", without a secret */
    int rank, size; /* of this process in its communicator */
    int stop_timeout_ms;
    const struct trib_log *log; /* copied */
    const struct trib_secret *secret; /* the job's secret; copied; may be unset */
    const void *request; /* what this rank itself would send; copied */
    size_t request_bytes; /* <= TRIB_BOOT_BLOB_MAX */
    trib_join_request_fits_fn fits; /* called by a thread of the listener */
    struct trib_idle *idle; /* called while the port is in use; or NULL */
};

/**
 * trib_listen_open - listen in a thread.
 *
 * errors   TRIB_ERR_BOOT: the port; TRIB_ERR_ABORTED: the caller gave up;
 *          TRIB_ERR_SYSTEM, TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_listen_open(const struct trib_listen_opts *opts,
                               struct trib_error *err, struct trib_listen **out);

/** trib_listen_close - stop listening and disconnect all newcomers; NULL is allowed. */
void trib_listen_close(struct trib_listen *l);

/** trib_listen_waiting - return the number of newcomers waiting to be admitted. */
int trib_listen_waiting(struct trib_listen *l);

/*
 * A round: some newcomers are admitted and take part in exchanges. One round at a time,
 * from one thread.
 */

/** trib_listen_begin - begin a round with at most `most` newcomers, those waiting
 * longest; return their number. */
int trib_listen_begin(struct trib_listen *l, int most);

/** trib_listen_answer - complete the current exchange of newcomer i with this
 * RESULT. */
void trib_listen_answer(struct trib_listen *l, int i, const void *result, size_t n);

/**
 * trib_listen_collect - collect the contributions of all newcomers of the round to the
 * next exchange.
 *
 * out      receives `bytes` from each
 * ms       timeout; 0: wait as long as they live
 * idle     called while waiting; or NULL
 * errors   TRIB_ERR_PEER_LOST, TRIB_ERR_TIMEOUT, TRIB_ERR_PROTOCOL: the message names
 *          the newcomer; TRIB_ERR_ABORTED: by the idle function
 */
trib_status_t trib_listen_collect(struct trib_listen *l, size_t bytes, void *out,
                                  int ms, struct trib_idle *idle,
                                  struct trib_error *err);

/** trib_listen_put_back - end a round before any answer; its newcomers wait again. */
void trib_listen_put_back(struct trib_listen *l);

/** trib_listen_dismiss - end a round: notify its newcomers and disconnect them. */
void trib_listen_dismiss(struct trib_listen *l, trib_status_t status, const char *text);

/** trib_listen_finish - end a round after the last answer to all its newcomers. */
void trib_listen_finish(struct trib_listen *l);

/*
 * Newcomer side: trib_boot_open with opts->is_newcomer returns a boot without
 * allgather.
 */

/**
 * trib_boot_request - do one exchange: send `bytes`, wait for `out_bytes`.
 *
 * errors   as for allgather of a boot; TRIB_ERR_ABORTED: the job restarted the round,
 *          and this newcomer may connect again
 */
trib_status_t trib_boot_request(struct trib_boot *b, const char *phase, const void *in,
                                size_t bytes, void *out, size_t out_bytes);

#endif
