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

#include "transport/op_defaults.h"
#include "transport/open.h"
#include "transport/tcp/tcp_peer.h"
#include "transport/tcp/tcp_wire.h"

/* tcp_devices.c */
void trib_tcp_devices(const char *params, char *text, size_t bytes);

/* tcp_seal.c: encrypted records. */
/* Allocate a peer's keys if TRIB_SEAL is set; false: out of memory. */
bool trib_tcp_alloc_seals(struct tcp *tcp, int peer);
void trib_tcp_free_seals(struct tcp_peer *p);
/* Derive the keys of the connection on which `about` was proved, if TRIB_SEAL is
 * set. */
void trib_tcp_seal_own(struct tcp *tcp, int peer, const struct trib_proof *about);
void trib_tcp_seal_in(struct tcp *tcp, int peer, const struct trib_proof *about);
/* Send a control frame back on the peer's connection; in a record if TRIB_SEAL is
 * set. */
void trib_tcp_reply(struct tcp *tcp, int peer, int fd, enum tcp_kind kind);
/* Send the next bytes of the queue in a record. Return how many of them are sent, or
 * the result of send(). tcp.lock is held. */
ssize_t trib_tcp_send_record(struct tcp_peer *p, const struct iovec *iov, int n);
/* Decrypt the next record into the inlet's buffer. Return 0: incomplete; TCP_FORGED:
 * authentication failed; another negative value: the stream has ended. */
ssize_t trib_tcp_read_record(struct tcp_inlet *in);
/* Read the next control frame that came back on `own`. Return 1, or the result of
 * trib_tcp_read_record. `sealed`: the frame was encrypted. */
int trib_tcp_read_control(struct tcp_peer *p, struct tcp_head *head, bool *sealed);

/* tcp_proof.c: mutual proof that both sides have the job's secret. */
/* Fill in the hello for a peer, and begin the proof; false: the kernel has no random
 * bytes. */
bool trib_tcp_make_hello(const struct tcp *tcp, int peer, struct tcp_hello *out,
                         struct trib_proof *proof);
/* Send the challenge; return false on failure. */
bool trib_tcp_send_challenge(struct tcp *tcp, struct tcp_pending_conn *pending);
/* Wait for the peer's proof on `own`; then, or at once without a secret, writes may be
 * sent. */
void trib_tcp_await_proof(struct tcp *tcp, int peer, const struct trib_proof *proof);
/* Answer the peer's challenge on `own` if it has come. Any thread. */
void trib_tcp_poll_challenge(struct tcp *tcp, int peer);
void trib_tcp_cancel_proof(struct tcp *tcp, struct tcp_peer *p);
enum trib_proof_step trib_tcp_proof_state(struct tcp *tcp, int peer);

/* tcp_send.c */
bool trib_tcp_detach(struct trib_transport *t, int peer);
trib_status_t trib_tcp_write(struct trib_transport *t, int peer,
                             const struct trib_write *write);
void trib_tcp_wake(struct trib_transport *t, int peer);
/* Try to send the queue once more; true: the kernel has accepted everything. */
bool trib_tcp_flush(struct tcp *tcp, int peer);
int trib_tcp_reap(struct tcp *tcp, struct trib_event *events, int max);
/* Called by the heartbeat thread: send queued writes if the owner has not polled since
 * the last call. true: some are still queued. */
bool trib_tcp_push_for_owner(struct tcp *tcp);
void trib_tcp_send_disconnect(struct tcp *tcp, int peer);
/* Send an abort notice to a lost peer that may still run, in place of queued writes. It
 * is delivered if the peer's kernel has room. */
void trib_tcp_send_given_up(struct tcp *tcp, int peer);
/* Queue TCP_LAST here, and continue on the peer's connection; false: no room now. */
bool trib_tcp_enqueue_move(struct tcp *tcp, int peer);

/* tcp_duplex.c: one connection for both directions of a pair. */
/* Receive frames of the peer on this connection from now on; false: out of memory. */
bool trib_tcp_attach_inlet(struct tcp *tcp, int peer, int fd);
/* If both sides have connected and this rank is the higher one, start moving its frames
 * to the peer's connection. */
void trib_tcp_move(struct tcp *tcp, int peer);
/* Read control frames that come back on this rank's connection, until frames follow;
 * for one peer, or for the next `peers` peers in turn. */
void trib_tcp_poll_outlet(struct tcp *tcp, int peer);
void trib_tcp_poll_outlets(struct tcp *tcp, int peers);
/* Handle TCP_LAST; false: this peer has no reason to send it. */
bool trib_tcp_handle_last(struct tcp *tcp, int peer);
void trib_tcp_close_inlet(struct tcp *tcp, int peer);
/* Close both directions and drop the queue. */
void trib_tcp_close_peer(struct tcp *tcp, int peer);

/* tcp_listen.c: incoming connections. */
trib_status_t trib_tcp_listen(struct tcp *tcp, int first_port, int ports);
void trib_tcp_accept(struct tcp *tcp);
void trib_tcp_progress_pending(struct tcp *tcp);
/* Accept connections and read proofs, on the heartbeat thread. tcp.lock is held. */
void trib_tcp_progress_listener(struct tcp *tcp);
/* Wait briefly for proofs in flight before this rank closes, so that those peers do not
 * take it for dead. */
void trib_tcp_drain_pending(struct tcp *tcp);

/* tcp_helper.c: the transport's work on the heartbeat thread. */
/* Call once heartbeats run: their thread then helps with proofs, and sends for an owner
 * that does not poll. false and errno: no descriptor. */
bool trib_tcp_helper_open(struct tcp *tcp);
void trib_tcp_helper_close(struct tcp *tcp);

/* tcp_connect.c: opening and closing connections to peers. */
TRIB_TRANSPORT_PEERS(trib_tcp);
void trib_tcp_disconnect(struct trib_transport *t, int peer);
void trib_tcp_leave(struct trib_transport *t, const bool *which);
void trib_tcp_tick(struct tcp *tcp);
int trib_tcp_report_losses(struct tcp *tcp, struct trib_event *events, int max);

/* tcp_mem.c */
TRIB_TRANSPORT_MEMORY(trib_tcp);
trib_status_t trib_tcp_borrow(struct trib_transport *t, void *ptr, size_t len,
                              bool written, struct trib_region **out);
void trib_tcp_give_back(struct trib_transport *t, struct trib_region *region,
                        bool broken);
/* Return the destination of a peer's write; NULL: not inside a region. */
uint8_t *trib_tcp_place(struct tcp *tcp, const struct tcp_head *head);

/* tcp_receive.c */
int trib_tcp_receive(struct tcp *tcp, int peer, struct trib_event *events, int max);

#endif
