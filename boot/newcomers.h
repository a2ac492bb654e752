/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Newcomers of a job that runs: they come to a port at which one of its ranks listens,
 * say what they are, and wait until the ranks take them in. Whatever a newcomer sends,
 * or does not send, concerns this newcomer alone.
 *
 * The frames are those of a start (boot/tcp/tcp_proto.h). A newcomer says HELLO of 0
 * ranks, and is answered as in a start, by a WELCOME of the rank that listens. Then
 * come exchanges, each a GATHER of the newcomer and a RESULT: the first one, "knock",
 * stays open until the newcomer is admitted.
 */
#ifndef BOOT_NEWCOMERS_H
#define BOOT_NEWCOMERS_H

#include "boot/boot.h"

struct trib_listen;

/* A knock is compared with the listener's own: false, and a sentence in `why`. */
typedef bool (*trib_knock_fits_fn)(const void *ours, const void *theirs, char *why,
                                   size_t bytes);

struct trib_listen_opts {
    const char *root; /* "host,address:port", without a secret */
    int rank, size; /* of this process in its communicator */
    int stop_timeout_ms;
    const struct trib_log *log; /* copied */
    const struct trib_secret *secret; /* of the job; copied; may be unset */
    const void *knock; /* what this rank would say itself; copied */
    size_t knock_bytes; /* <= TRIB_BOOT_BLOB_MAX */
    trib_knock_fits_fn fits; /* called by a thread of the listener */
};

/**
 * trib_listen_open - listen, in a thread.
 *
 * errors   TRIB_ERR_BOOT: the port; TRIB_ERR_SYSTEM, TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_listen_open(const struct trib_listen_opts *opts,
                               struct trib_error *err, struct trib_listen **out);

/** trib_listen_close - hang up on all newcomers; NULL is allowed. */
void trib_listen_close(struct trib_listen *l);

/** trib_listen_waiting - the number of newcomers that have knocked and wait. */
int trib_listen_waiting(struct trib_listen *l);

/*
 * A round: some newcomers are admitted, and take part in exchanges. One round at a
 * time; the calls are for one thread.
 */

/** trib_listen_begin - a round of at most `most` newcomers, those that have waited
 * longest; returns how many. */
int trib_listen_begin(struct trib_listen *l, int most);

/** trib_listen_answer - end the present exchange of newcomer i, with this RESULT. */
void trib_listen_answer(struct trib_listen *l, int i, const void *result, size_t n);

/**
 * trib_listen_collect - what all newcomers of the round give to the next exchange.
 *
 * out      receives `bytes` of each
 * ms       how long to wait for them; 0: as long as they live
 * idle     called meanwhile; or NULL
 * errors   TRIB_ERR_PEER_LOST, TRIB_ERR_TIMEOUT, TRIB_ERR_PROTOCOL: the sentence names
 *          the newcomer; TRIB_ERR_ABORTED: the idle function
 */
trib_status_t trib_listen_collect(struct trib_listen *l, size_t bytes, void *out,
                                  int ms, struct trib_idle *idle,
                                  struct trib_error *err);

/** trib_listen_put_back - end a round before any answer: its newcomers wait again. */
void trib_listen_put_back(struct trib_listen *l);

/** trib_listen_dismiss - end a round: its newcomers are told so, and hung up on. */
void trib_listen_dismiss(struct trib_listen *l, trib_status_t status, const char *text);

/** trib_listen_finish - end a round whose newcomers have all had their last answer. */
void trib_listen_finish(struct trib_listen *l);

/*
 * The newcomer's side: trib_boot_open with opts->knocks gives a boot without allgather.
 */

/**
 * trib_boot_ask - one exchange: give `bytes`, wait for `out_bytes`.
 *
 * errors   as allgather of a boot; TRIB_ERR_ABORTED: the job has begun a round anew,
 *          and this newcomer may come again
 */
trib_status_t trib_boot_ask(struct trib_boot *b, const char *phase, const void *in,
                            size_t bytes, void *out, size_t out_bytes);

#endif
