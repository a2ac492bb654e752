/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * State machine of one newcomer at a listener: bytes in, bytes out. No socket, no
 * timers.
 */
#ifndef BOOT_TCP_TCP_NEWCOMER_H
#define BOOT_TCP_TCP_NEWCOMER_H

#include "boot/newcomers.h"
#include "boot/tcp/tcp_proto.h"

enum trib_newcomer_state {
    TRIB_NEWCOMER_CAME, /* unauthenticated */
    TRIB_NEWCOMER_CHALLENGED, /* HELLO received; valid once proved */
    TRIB_NEWCOMER_WELCOME, /* has yet to send its join request */
    TRIB_NEWCOMER_WAITS, /* has sent it */
    TRIB_NEWCOMER_ADMITTED, /* is in a round */
    TRIB_NEWCOMER_OVER, /* to be closed once its output is sent */
};

/* Constants shared by all newcomers of a listener. */
struct trib_newcomer_rules {
    struct trib_tcp_hello self; /* contents of a WELCOME */
    struct trib_secret secret;
    uint8_t request[TRIB_BOOT_BLOB_MAX];
    uint32_t request_bytes;
    trib_join_request_fits_fn fits;
};

struct trib_newcomer {
    enum trib_newcomer_state state;
    struct trib_tcp_hello said;
    struct trib_proof proof;
    uint32_t given; /* last exchange it contributed to */
    uint32_t answered; /* last completed exchange */
    uint32_t bytes; /* of blob */
    uint8_t blob[TRIB_BOOT_BLOB_MAX];
    char why[TRIB_TCP_TEXT_BYTES]; /* OVER: a clause, "has left"; "": no error */
    size_t in_len;
    uint8_t in[TRIB_TCP_SMALL_BYTES];
    uint8_t *out; /* [out_cap]; out_len bytes are pending */
    size_t out_len, out_cap;
};

/** trib_newcomer_take - handle the frames in `in`. */
void trib_newcomer_take(struct trib_newcomer *n,
                        const struct trib_newcomer_rules *rules);

/** trib_newcomer_answer - append the RESULT of its current exchange. */
void trib_newcomer_answer(struct trib_newcomer *n, const void *result, size_t bytes);

/** trib_newcomer_refuse - append a FAIL and set OVER. */
void trib_newcomer_refuse(struct trib_newcomer *n, trib_status_t status,
                          const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/** trib_newcomer_tick - append a TICK if no output is pending. */
void trib_newcomer_tick(struct trib_newcomer *n);

/** trib_newcomer_end - set OVER without notifying the newcomer. why: a clause. */
void trib_newcomer_end(struct trib_newcomer *n, const char *why);

/** trib_newcomer_free - free its memory. */
void trib_newcomer_free(struct trib_newcomer *n);

#endif
