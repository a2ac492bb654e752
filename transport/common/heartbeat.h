/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Heartbeats between hosts, for backends whose peers are outside the reach of this
 * host's kernel.
 *
 * A rank asks each connected peer over UDP a few times per stop_timeout_ms, and the
 * peer answers at once. An answer shows that link, host and process are alive: a
 * stopped process does not answer, although its kernel still acknowledges TCP data.
 * When a process ends, its host's kernel reports that at once.
 *
 * A separate thread asks and answers: a rank that computes for minutes without entering
 * the library is healthy. Whether an operation makes progress is decided by the
 * operation's own time-out.
 */
#ifndef TRANSPORT_COMMON_HEARTBEAT_H
#define TRANSPORT_COMMON_HEARTBEAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/status.h>

struct trib_net_choice;
struct trib_transport_opts;
struct trib_heartbeat;

/* The heartbeat socket of a peer. */
struct trib_heartbeat_peer {
    /* the address that the backend uses for this peer; IPv4 is mapped */
    uint8_t ip[16];
    uint16_t port; /* its trib_heartbeat_port */
    uint64_t key; /* its trib_heartbeat_key */
    int pid; /* for messages */
};

/**
 * trib_heartbeat_open - open one UDP socket and start one thread. Sends nothing until a
 * peer is watched or asks.
 *
 * opts     self, size, cfg, log, err, secret; they outlive the heartbeat
 * owner    name of the transport, for messages
 * port     range for the socket, as in trib_net_bind
 */
trib_status_t trib_heartbeat_open(const struct trib_transport_opts *opts,
                                  const char *owner, int port, int ports,
                                  struct trib_heartbeat **out);

/**
 * trib_heartbeat_help - let the heartbeat thread call `run` whenever fd is readable,
 * and when trib_heartbeat_soon requests it.
 *
 * For short work that must not wait for the owner's thread. There is one helper at a
 * time; run NULL removes it. On return, the previous helper no longer runs. Do not call
 * from `run`, nor with a lock held that `run` takes.
 *
 * fd       -1: none
 * run      returns true to run again TRIB_HEARTBEAT_SOON_MS later
 */
void trib_heartbeat_help(struct trib_heartbeat *heartbeat, int fd,
                         bool (*run)(void *arg), void *arg);

enum { TRIB_HEARTBEAT_SOON_MS = 2 };

/**
 * trib_heartbeat_soon - schedule the helper to run once, TRIB_HEARTBEAT_SOON_MS from
 * now.
 *
 * thread   any, with any lock held; cheap if the helper is scheduled already
 */
void trib_heartbeat_soon(struct trib_heartbeat *heartbeat);

/** trib_heartbeat_fence - drop packets from networks that were not chosen; see
 * trib_net_fence. */
void trib_heartbeat_fence(struct trib_heartbeat *heartbeat,
                          const struct trib_net_choice *choice);

/** trib_heartbeat_close - stop and free; NULL is allowed. In a forked child, free the
 * child's copy. */
void trib_heartbeat_close(struct trib_heartbeat *heartbeat);

uint16_t trib_heartbeat_port(const struct trib_heartbeat *heartbeat);
uint64_t trib_heartbeat_key(const struct trib_heartbeat *heartbeat);

/** trib_heartbeat_watch - start asking a peer. */
void trib_heartbeat_watch(struct trib_heartbeat *heartbeat, int peer,
                          const struct trib_heartbeat_peer *who);

/** trib_heartbeat_forget - stop asking a peer; no-op if it is not watched. */
void trib_heartbeat_forget(struct trib_heartbeat *heartbeat, int peer);

/**
 * trib_heartbeat_lost - return true if a watched peer has been silent for
 * stop_timeout_ms.
 *
 * why      then receives a clause: which peer is silent, since when
 * thread   the transport's, as for all functions above; cheap while false
 */
bool trib_heartbeat_lost(struct trib_heartbeat *heartbeat, int peer, char *why,
                         size_t bytes);

/**
 * trib_heartbeat_closed - return true if a watched peer's host reports its port closed.
 *
 * So the process has ended, or has closed its transport; process the data that it sent
 * before first. Returns false if the host reports nothing, as behind many firewalls;
 * then only silence reveals the loss.
 * thread   as trib_heartbeat_lost; cheap
 */
bool trib_heartbeat_closed(struct trib_heartbeat *heartbeat, int peer);

/** trib_heartbeat_ask - ask a watched peer now; return the number of the question, or 0
 * if the peer is not watched. */
uint64_t trib_heartbeat_ask(struct trib_heartbeat *heartbeat, int peer);

/** trib_heartbeat_answered - return true if the peer answered this question or a later
 * one, so it was alive when this question was sent. */
bool trib_heartbeat_answered(struct trib_heartbeat *heartbeat, int peer,
                             uint64_t number);

/**
 * trib_heartbeat_send_continues - notify a peer that the job has continued without it.
 *
 * Sends several datagrams, which are not acknowledged. They also reach a peer that is
 * stopped or makes no call.
 *
 * who      its heartbeat socket; the peer need not be watched
 */
void trib_heartbeat_send_continues(struct trib_heartbeat *heartbeat, int peer,
                                   const struct trib_heartbeat_peer *who);

/** trib_heartbeat_continues - return true if a peer ever sent that notice. Cheap. */
bool trib_heartbeat_continues(struct trib_heartbeat *heartbeat, int peer);

/**
 * trib_heartbeat_away - return for how many ns this process was itself recently away,
 * if peers may have declared it lost since; else 0 (absence.h).
 *
 * maybe    also report gaps so short that a busy host may have caused them
 * thread   as trib_heartbeat_lost
 */
uint64_t trib_heartbeat_away(struct trib_heartbeat *heartbeat, bool maybe);

/**
 * trib_heartbeat_note_away - note a gap that has ended, because peers are checked now.
 *
 * Else the next loss, however much later, would be blamed on that gap. NULL is allowed.
 * thread   as trib_heartbeat_lost
 */
void trib_heartbeat_note_away(struct trib_heartbeat *heartbeat);

/** trib_heartbeat_heard - return true if the peer has sent any heartbeat, or is not
 * watched. */
bool trib_heartbeat_heard(struct trib_heartbeat *heartbeat, int peer);

#endif
