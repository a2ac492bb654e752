/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Internals of the tcp transport, shared by its .c files. The order is bottom to
 * top: each file calls only tcp_peer.c and the files listed before it.
 */
#ifndef TRANSPORT_TCP_TCP_H
#define TRANSPORT_TCP_TCP_H

#include <stdbool.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "transport/tcp/tcp_peer.h"
#include "transport/tcp/tcp_wire.h"
#include "transport/transport.h"

/* tcp_devices.c */
void trib_socket_devices(char *text, size_t bytes);

/* tcp_seal.c: encrypted records. */
/* Allocate a peer's keys if TRIB_SEAL is set; false: out of memory. */
bool trib_socket_seals(struct tcp *tcp, int peer);
void trib_socket_free_seals(struct tcp_peer *p);
/* Derive the keys of the connection on which `about` was proved, if TRIB_SEAL is
 * set. */
void trib_socket_seal_own(struct tcp *tcp, int peer, const struct trib_proof *about);
void trib_socket_seal_in(struct tcp *tcp, int peer, const struct trib_proof *about);
/* Send a control frame back on the peer's connection; in a record if TRIB_SEAL is
 * set. */
void trib_socket_say_back(struct tcp *tcp, int peer, int fd, enum tcp_kind kind);
/* Send the next bytes of the queue in a record. Return how many of them are sent, or
 * the result of send(). tcp.lock is held. */
ssize_t trib_socket_send_record(struct tcp_peer *p, const struct iovec *iov, int n);
/* Decrypt the next record into the inlet's buffer. Return 0: incomplete; TCP_FORGED:
 * authentication failed; another negative value: the stream has ended. */
ssize_t trib_socket_take_record(struct tcp_inlet *in);
/* Read the next control frame that came back on `own`. Return 1, or the result of
 * trib_socket_take_record. `sealed`: the frame was encrypted. */
int trib_socket_take_word(struct tcp_peer *p, struct tcp_head *head, bool *sealed);

/* tcp_proof.c: mutual proof that both sides have the job's secret. */
/* Fill in the hello for a peer; false: the kernel has no random bytes. */
bool trib_socket_greeting(struct tcp *tcp, int peer, struct tcp_hello *out);
/* Send the challenge; return false on failure. */
bool trib_socket_challenge(struct tcp *tcp, struct tcp_pending_conn *g);
bool trib_socket_guest_proved(struct tcp *tcp, const struct tcp_pending_conn *g);
/* Write the statement that a pending connection proved; its keys derive from that. */
void trib_socket_claim_of(const struct tcp *tcp, const struct tcp_pending_conn *g,
                          struct trib_proof *out);
/* Wait for the peer's proof on `own`; then, or at once without a secret, writes may be
 * sent. */
void trib_socket_await_proof(struct tcp *tcp, int peer);
/* Answer the peer's challenge on `own` if it has come. Any thread. */
void trib_socket_poll_challenge(struct tcp *tcp, int peer);
void trib_socket_stop_proving(struct tcp *tcp, struct tcp_peer *p);
enum tcp_proof trib_socket_proof(struct tcp *tcp, int peer);

/* tcp_send.c */
trib_status_t trib_socket_write(struct trib_transport *t, int peer,
                                const struct trib_write *write);
void trib_socket_wake(struct trib_transport *t, int peer);
/* Try to send the queue once more; true: the kernel has accepted everything. */
bool trib_socket_flush(struct tcp *tcp, int peer);
int trib_socket_reap(struct tcp *tcp, struct trib_event *events, int max);
/* Called by the heartbeat thread: send queued writes if the owner has not polled since
 * the last call. true: some are still queued. */
bool trib_socket_push_for_owner(struct tcp *tcp);
void trib_socket_say_bye(struct tcp *tcp, int peer);
/* Send an abort notice to a lost peer that may still run, in place of queued writes. It
 * is delivered if the peer's kernel has room. */
void trib_socket_say_given_up(struct tcp *tcp, int peer);
/* Queue TCP_LAST here, and continue on the peer's connection; false: no room now. */
bool trib_socket_enqueue_move(struct tcp *tcp, int peer);

/* tcp_duplex.c: one connection for both directions of a pair. */
/* Receive frames of the peer on this connection from now on; false: out of memory. */
bool trib_socket_seat(struct tcp *tcp, int peer, int fd);
/* If both sides have connected and this rank is the higher one, start moving its frames
 * to the peer's connection. */
void trib_socket_move(struct tcp *tcp, int peer);
/* Read control frames that come back on this rank's connection, until frames follow;
 * for one peer, or for the next `peers` peers in turn. */
void trib_socket_look_at_outlet(struct tcp *tcp, int peer);
void trib_socket_look_at_outlets(struct tcp *tcp, int peers);
/* Handle TCP_LAST; false: this peer has no reason to send it. */
bool trib_socket_last(struct tcp *tcp, int peer);
void trib_socket_inlet_close(struct tcp *tcp, int peer);
/* Close both directions and drop the queue. */
void trib_socket_close_peer(struct tcp *tcp, int peer);

/* tcp_listen.c: incoming connections. */
trib_status_t trib_socket_listen(struct tcp *tcp, int first_port, int ports);
void trib_socket_accept(struct tcp *tcp);
void trib_socket_greet(struct tcp *tcp);
/* Accept connections and read proofs, on the heartbeat thread. tcp.lock is held. */
void trib_socket_keep_door(struct tcp *tcp);
/* Wait briefly for proofs in flight before this rank closes, so that those peers do not
 * take it for dead. */
void trib_socket_dismiss(struct tcp *tcp);

/* tcp_helper.c: the transport's work on the heartbeat thread. */
/* Call once heartbeats run: their thread then helps with proofs, and sends for an owner
 * that does not poll. false and errno: no descriptor. */
bool trib_socket_helper_open(struct tcp *tcp);
void trib_socket_helper_close(struct tcp *tcp);

/* tcp_connect.c: opening and closing connections to peers. */
TRIB_TRANSPORT_PEERS(trib_socket);
void trib_socket_disconnect(struct trib_transport *t, int peer);
void trib_socket_leave(struct trib_transport *t, const bool *which);
void trib_socket_tick(struct tcp *tcp);
int trib_socket_report_losses(struct tcp *tcp, struct trib_event *events, int max);

/* tcp_mem.c */
TRIB_TRANSPORT_MEMORY(trib_socket);
trib_status_t trib_socket_borrow(struct trib_transport *t, void *ptr, size_t len,
                                 bool written, struct trib_region **out);
void trib_socket_give_back(struct trib_transport *t, struct trib_region *region,
                           bool broken);
/* Return the destination of a peer's write; NULL: not inside a region. */
uint8_t *trib_socket_place(struct tcp *tcp, const struct tcp_head *head);

/* tcp_receive.c */
int trib_socket_receive(struct tcp *tcp, int peer, struct trib_event *events, int max);

#endif
