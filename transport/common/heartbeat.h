/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Heartbeats between hosts, for backends whose peers this host's kernel knows nothing
 * of.
 *
 * Who is connected to a peer asks it over UDP a few times within stop_timeout_ms; the
 * peer answers at once. So its link, its host and its process are alive: a process that
 * is stopped does not answer, though its kernel still acknowledges what TCP brings.
 * Where a process has ended, the kernel of its host says so at once.
 *
 * Who asks and answers is a thread of its own: a rank that computes for minutes and
 * does not enter the library is in good health. Whether an operation goes on is for its
 * own time-out to say.
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
    uint8_t ip[16]; /* the one by which the backend reaches it; IPv4 is mapped */
    uint16_t port; /* of its trib_heartbeat_port */
    uint64_t key; /* of its trib_heartbeat_key */
    int pid; /* for sentences */
};

/**
 * trib_heartbeat_open - one UDP socket, one thread; silent until it watches or is
 * asked.
 *
 * opts     self, size, cfg, log, err, secret; they outlive the heartbeat
 * owner    the transport, for sentences
 * port     the range for the socket, as in trib_net_bind
 */
trib_status_t trib_heartbeat_open(const struct trib_transport_opts *opts,
                                  const char *owner, int port, int ports,
                                  struct trib_heartbeat **out);

/**
 * trib_heartbeat_help - have the thread of the heartbeats call `run` whenever fd is
 * readable, and when trib_heartbeat_soon asks for it.
 *
 * For what must not wait until the owner's thread comes to it. It must be short. There
 * is one helper at a time; run NULL: none. When this returns, the helper before does
 * not run any more. Not to be called by `run`, nor with a lock that it takes.
 *
 * fd       -1: none
 * run      returns true to run again TRIB_HEARTBEAT_SOON_MS later
 */
void trib_heartbeat_help(struct trib_heartbeat *heartbeat, int fd,
                         bool (*run)(void *arg), void *arg);

enum { TRIB_HEARTBEAT_SOON_MS = 2 };

/**
 * trib_heartbeat_soon - have the helper run once, TRIB_HEARTBEAT_SOON_MS from now.
 *
 * thread   any, with any lock; cheap if the helper is to run already
 */
void trib_heartbeat_soon(struct trib_heartbeat *heartbeat);

/** trib_heartbeat_fence - drop what comes by networks that were not chosen; see
 * trib_net_fence. */
void trib_heartbeat_fence(struct trib_heartbeat *heartbeat,
                          const struct trib_net_choice *choice);

/** trib_heartbeat_close - NULL is allowed; in a forked child it frees the child's
 * copy. */
void trib_heartbeat_close(struct trib_heartbeat *heartbeat);

uint16_t trib_heartbeat_port(const struct trib_heartbeat *heartbeat);
uint64_t trib_heartbeat_key(const struct trib_heartbeat *heartbeat);

/** trib_heartbeat_watch - begin to ask a peer. */
void trib_heartbeat_watch(struct trib_heartbeat *heartbeat, int peer,
                          const struct trib_heartbeat_peer *who);

/** trib_heartbeat_forget - ask it no more; harmless where it was not asked. */
void trib_heartbeat_forget(struct trib_heartbeat *heartbeat, int peer);

/**
 * trib_heartbeat_lost - has a watched peer been silent for stop_timeout_ms?
 *
 * why      then receives a clause: of whom nothing was heard, since when
 * thread   that of the transport, as all above; cheap while it is not so
 */
bool trib_heartbeat_lost(struct trib_heartbeat *heartbeat, int peer, char *why,
                         size_t bytes);

/**
 * trib_heartbeat_closed - does the host of a watched peer say that nobody has its port
 * any more?
 *
 * So the process has ended, or has closed its transport: what it sent before counts
 * first. false where its host says nothing, as behind many firewalls; then silence
 * tells.
 * thread   as trib_heartbeat_lost; cheap
 */
bool trib_heartbeat_closed(struct trib_heartbeat *heartbeat, int peer);

/** trib_heartbeat_ask - ask a watched peer now; returns the number of the question, 0:
 * it is not watched. */
uint64_t trib_heartbeat_ask(struct trib_heartbeat *heartbeat, int peer);

/** trib_heartbeat_answered - has it answered that question or a later one? So it lived
 * when that was asked. */
bool trib_heartbeat_answered(struct trib_heartbeat *heartbeat, int peer,
                             uint64_t number);

/**
 * trib_heartbeat_say_continues - tell a peer that the job has continued without it.
 *
 * Datagrams go several times, and nobody acknowledges them. They also reach a peer that
 * makes no call meanwhile, or is stopped.
 *
 * who      its socket, whether it is watched or not
 */
void trib_heartbeat_say_continues(struct trib_heartbeat *heartbeat, int peer,
                                  const struct trib_heartbeat_peer *who);

/** trib_heartbeat_continues - has a peer said that to this rank, ever? Cheap. */
bool trib_heartbeat_continues(struct trib_heartbeat *heartbeat, int peer);

/**
 * trib_heartbeat_away - how long this process was itself away lately, in ns, if peers
 * may have given it up meanwhile; else 0 (absence.h).
 *
 * maybe    also for a gap so short that a busy host may have caused it
 * thread   as trib_heartbeat_lost
 */
uint64_t trib_heartbeat_away(struct trib_heartbeat *heartbeat, bool maybe);

/** trib_heartbeat_heard - was anything heard of this peer? true where it is not
 * watched. */
bool trib_heartbeat_heard(struct trib_heartbeat *heartbeat, int peer);

#endif
