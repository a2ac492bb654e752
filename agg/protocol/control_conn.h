/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Byte layer of a control connection: a non-blocking socket with bounded buffers of
 * received and unsent bytes. The caller waits (poll, epoll) and enforces deadlines.
 */
#ifndef AGG_PROTOCOL_CONTROL_CONN_H
#define AGG_PROTOCOL_CONTROL_CONN_H

#include <stdbool.h>

#include "agg/protocol/control.h"

struct trib_control_conn {
    int fd; /* -1: closed */
    size_t in_begin; /* received bytes not taken yet */
    size_t in_end;
    size_t out_begin; /* unsent bytes */
    size_t out_end;
    int broken; /* errno of a failed write; input received before may still be read */
    uint8_t in[TRIB_CONTROL_FRAME_BYTES];
    uint8_t out[2 * TRIB_CONTROL_FRAME_BYTES];
};

/**
 * trib_control_conn_new - create a connection on a socket and make it non-blocking.
 *
 * owner    the connection closes fd, even if this call fails
 * errors   TRIB_ERR_NO_MEMORY, TRIB_ERR_SYSTEM
 */
trib_status_t trib_control_conn_new(int fd, struct trib_control_conn **out);
void trib_control_conn_free(struct trib_control_conn *conn);

/**
 * trib_control_conn_take - return the next whole frame among the received bytes.
 *
 * out       valid until trib_control_conn_fill
 * returns   as trib_control_parse
 */
trib_status_t trib_control_conn_take(struct trib_control_conn *conn, uint32_t seal,
                                     enum trib_control_role from,
                                     struct trib_control_frame *out);

/**
 * trib_control_conn_fill - read available bytes, once.
 *
 * The caller must have taken all whole frames before; an incomplete frame may remain.
 *
 * returns   TRIB_OK: bytes arrived; TRIB_INPROGRESS: none did; TRIB_ERR_PEER_LOST: the
 *           connection is closed, with errno 0, or lost, with its errno
 */
trib_status_t trib_control_conn_fill(struct trib_control_conn *conn);

/** trib_control_conn_fits - return true if trib_control_conn_room has space for n
 * bytes. */
static inline bool trib_control_conn_fits(const struct trib_control_conn *conn,
                                          size_t n)
{
    return n <= sizeof(conn->out) - (conn->out_end - conn->out_begin);
}

/** trib_control_conn_room - return space for a frame of n bytes; NULL: flush first. */
uint8_t *trib_control_conn_room(struct trib_control_conn *conn, size_t n);

/** trib_control_conn_add - queue n bytes written to that space. */
void trib_control_conn_add(struct trib_control_conn *conn, size_t n);

/**
 * trib_control_conn_flush - send as many queued bytes as the socket accepts.
 *
 * returns   TRIB_OK: all sent; TRIB_INPROGRESS: some are left. A lost connection
 *           discards the bytes; trib_control_conn_fill reports the loss after all
 *           received bytes were read
 */
trib_status_t trib_control_conn_flush(struct trib_control_conn *conn);

/** trib_control_conn_events - return the events to poll for. */
short trib_control_conn_events(const struct trib_control_conn *conn);

#endif
