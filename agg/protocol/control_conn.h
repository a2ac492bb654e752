/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A control connection as bytes: a socket that never blocks, and what has come and is
 * to go, within bounds. Whoever drives it, by poll(), epoll or a wait with a deadline,
 * looks at the clock.
 */
#ifndef AGG_PROTOCOL_CONTROL_CONN_H
#define AGG_PROTOCOL_CONTROL_CONN_H

#include <stdbool.h>

#include "agg/protocol/control.h"

struct trib_control_conn {
    int fd; /* -1: closed */
    size_t in_begin; /* range of bytes read and not yet taken */
    size_t in_end;
    size_t out_begin; /* range of bytes to be written */
    size_t out_end;
    int broken; /* errno of a write: what the peer said before may still be read */
    uint8_t in[TRIB_CONTROL_FRAME_BYTES];
    uint8_t out[2 * TRIB_CONTROL_FRAME_BYTES];
};

/**
 * trib_control_conn_new - take over a socket, which is made not to block.
 *
 * owner    the connection closes fd, also where this fails
 * errors   TRIB_ERR_NO_MEMORY, TRIB_ERR_SYSTEM
 */
trib_status_t trib_control_conn_new(int fd, struct trib_control_conn **out);
void trib_control_conn_free(struct trib_control_conn *conn);

/**
 * trib_control_conn_take - the next whole frame among what was read.
 *
 * out       valid until trib_control_conn_fill
 * returns   as trib_control_parse
 */
trib_status_t trib_control_conn_take(struct trib_control_conn *conn, uint32_t seal,
                                     enum trib_control_role from,
                                     struct trib_control_frame *out);

/**
 * trib_control_conn_fill - read what has come, once.
 *
 * Frames must have been taken before: the rest of one is what may be left.
 * returns   TRIB_OK: something has; TRIB_INPROGRESS: nothing; TRIB_ERR_PEER_LOST: the
 *           connection is closed, with errno 0, or lost, with its errno
 */
trib_status_t trib_control_conn_fill(struct trib_control_conn *conn);

/** trib_control_conn_fits - true if trib_control_conn_room gives a place for n
 * bytes. */
static inline bool trib_control_conn_fits(const struct trib_control_conn *conn,
                                          size_t n)
{
    return n <= sizeof(conn->out) - (conn->out_end - conn->out_begin);
}

/** trib_control_conn_room - a place for a frame of n bytes; NULL: not before some went.
 */
uint8_t *trib_control_conn_room(struct trib_control_conn *conn, size_t n);

/** trib_control_conn_add - n bytes in that place are to go. */
void trib_control_conn_add(struct trib_control_conn *conn, size_t n);

/**
 * trib_control_conn_flush - write what the socket takes.
 *
 * returns   TRIB_OK: all has gone; TRIB_INPROGRESS: not all. A connection that is lost
 *           swallows it: trib_control_conn_fill says so once all is read that had come
 */
trib_status_t trib_control_conn_flush(struct trib_control_conn *conn);

/** trib_control_conn_events - the events for which poll() must wait. */
short trib_control_conn_events(const struct trib_control_conn *conn);

#endif
