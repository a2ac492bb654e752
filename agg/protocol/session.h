/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A control connection with authentication: it exchanges whole messages between a job
 * and an aggregator, each verified to come from the peer.
 *
 * Only functions named _wait block, at most until their deadline. Exception: queries to
 * munged, two per side, which take 1 ms, or 2 s if munged is stopped. A thread that
 * must not block delegates them:
 *
 *     thread of the session                          any other thread
 *      trib_session_step … TRIB_INPROGRESS
 *      q = trib_session_question ──────────────────▶ trib_question_answer(q)
 *      trib_session_answer(session, q) ◀────────────
 *
 * A session is not thread-safe: the caller serialises its use.
 */
#ifndef AGG_PROTOCOL_SESSION_H
#define AGG_PROTOCOL_SESSION_H

#include "agg/protocol/auth.h"

struct trib_session;
struct trib_question;

#define TRIB_SESSION_ALIVE_MS 1000 /* idle time before an ALIVE is sent */

struct trib_session_opts {
    int fd; /* connected; the session closes it, even if opening fails */
    enum trib_control_role role; /* role of this end */
    const struct trib_auth *auth; /* must outlive the session */
    const char *job; /* name of the job, for TRIB_CONTROL_JOB */
    const char *peer; /* the peer in messages, such as "tribd at node7:4700" */
    int handshake_ms; /* time limit of the handshake */
    int silent_ms; /* a peer silent for this long is lost; 0: never. A lost job is not
                    * notified: it may reconnect */
    struct trib_error *err; /* receives the message that ends the session */
    struct trib_idle *idle; /* called by the _wait functions, or NULL; outlives it */
    bool lends; /* the caller handles trib_session_question */
};

/**
 * trib_session_open - start a session; a job sends HELLO.
 *
 * errors   TRIB_ERR_INVALID: the name of the job; TRIB_ERR_NO_MEMORY, TRIB_ERR_SYSTEM
 */
trib_status_t trib_session_open(const struct trib_session_opts *opts,
                                struct trib_session **out);

/** trib_session_set_idle - change trib_session_opts.idle. */
void trib_session_set_idle(struct trib_session *session, struct trib_idle *idle);

/** trib_session_adopt - for a new owner of the session: change err and silent_ms of
 * trib_session_opts, and restart the timeout. */
void trib_session_adopt(struct trib_session *session, struct trib_error *err,
                        int silent_ms);

/** trib_session_free - close it and discard unsent messages; NULL is allowed. */
void trib_session_free(struct trib_session *session);

/** trib_session_fd, trib_session_events - return the descriptor and the events to poll
 * for; 0 events: do not poll, not even for a closed connection. */
int trib_session_fd(const struct trib_session *session);
short trib_session_events(const struct trib_session *session);

/** trib_session_is_sealed - return true if messages are encrypted: after the handshake,
 * except with method none. */
bool trib_session_is_sealed(const struct trib_session *session);

/** trib_session_due - return the latest time for trib_session_step, on the clock of
 * trib_now_ns. */
uint64_t trib_session_due(const struct trib_session *session);

/**
 * trib_session_step - make progress, when the socket is ready and when due.
 *
 * Reads at most 128 KiB, so the socket may stay ready: edge-triggered epoll does not
 * work.
 *
 * out       valid until the next call; never HELLO, WELCOME, AUTH, ALIVE or ERROR. A
 *           JOIN always names the authenticated job
 * returns   TRIB_OK: a message, and there may be more; TRIB_INPROGRESS: none yet; an
 *           error, permanently: the session has ended, and the peer was notified
 * errors    as trib_handshake_take; TRIB_ERR_TIMEOUT: the handshake took too long;
 *           TRIB_ERR_PEER_LOST; TRIB_ERR_PROTOCOL: malformed message, or broken seal;
 *           TRIB_ERR_ABORTED: the peer ended the session and sent the reason
 */
trib_status_t trib_session_step(struct trib_session *session, struct trib_control *out);

/**
 * trib_session_question - return the question that blocks the handshake.
 *
 * There is one only with opts.lends, after a step, and it is returned once. Until it is
 * answered, the session processes no frame, and the handshake may time out.
 *
 * owner    the caller, until trib_session_answer or trib_question_free
 * returns  NULL: none
 */
struct trib_question *trib_session_question(struct trib_session *session);

/** trib_question_answer - query munged and the user database, which may take seconds.
 * Thread: any; of the session, it uses only the constant `auth`. */
void trib_question_answer(struct trib_question *question);

/**
 * trib_session_answer - continue the handshake with an answered question, and free it.
 *
 * returns  TRIB_INPROGRESS: continue with trib_session_step; or its errors
 */
trib_status_t trib_session_answer(struct trib_session *session,
                                  struct trib_question *question);

/** trib_question_free - free the question of a session that was freed; NULL is
 * allowed. */
void trib_question_free(struct trib_question *question);

/** trib_session_ready - return true once the peer is authenticated: messages may be
 * sent. */
bool trib_session_ready(const struct trib_session *session);

/** trib_session_peer, trib_session_job - return the peer and the name of its job; valid
 * once the session is ready. */
struct trib_auth_peer trib_session_peer(const struct trib_session *session);
const char *trib_session_job(const struct trib_session *session);

/** trib_session_keep_alive - send ALIVE if due, from a thread that receives no messages
 * for a while. The session must be ready. */
void trib_session_keep_alive(struct trib_session *session);

/**
 * trib_session_send - send a message; the session must be ready.
 *
 * errors    TRIB_ERR_NO_RESOURCE: the send buffer is full, retry after a step;
 *           TRIB_ERR_INVALID: a number or name out of range, or a JOIN for another job;
 *           the error that ended the session
 */
trib_status_t trib_session_send(struct trib_session *session,
                                const struct trib_control *message);

/** trib_session_has_room - return true if trib_session_send would accept any message
 * now. */
bool trib_session_has_room(const struct trib_session *session);

/** trib_session_end - send the reason to the peer and end the session with `status`. */
trib_status_t trib_session_end(struct trib_session *session, trib_status_t status,
                               const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/**
 * trib_session_ready_wait - wait until the session is ready.
 *
 * returns   as trib_session_step; TRIB_INPROGRESS at the deadline
 */
trib_status_t trib_session_ready_wait(struct trib_session *session, uint64_t deadline);

/** trib_session_take_wait - wait for the next message; TRIB_INPROGRESS at the
 * deadline. */
trib_status_t trib_session_take_wait(struct trib_session *session, uint64_t deadline,
                                     struct trib_control *out);

/**
 * trib_session_send_wait - send a message and wait until all of it is written.
 *
 * This call reads nothing, so the peer must keep reading.
 *
 * returns   as trib_session_send; TRIB_ERR_TIMEOUT at the deadline
 */
trib_status_t trib_session_send_wait(struct trib_session *session, uint64_t deadline,
                                     const struct trib_control *message);

#endif
