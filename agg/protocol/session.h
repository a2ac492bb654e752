/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A control connection with its authentication: what the job and the aggregator say to
 * each other, by whole messages, each of which is known to be the other side's.
 *
 * Nothing here blocks but what is called _wait, and that not beyond its deadline; the
 * questions to munged apart, of which each side has two, of 1 ms, and of 2 s where
 * munged is stopped. A thread that must not wait for them has another one ask:
 *
 *     thread of the session                          any other thread
 *      trib_session_step … TRIB_INPROGRESS
 *      q = trib_session_question ──────────────────▶ trib_question_answer(q)
 *      trib_session_answer(session, q) ◀────────────
 *
 * Belongs to one thread at a time.
 */
#ifndef AGG_PROTOCOL_SESSION_H
#define AGG_PROTOCOL_SESSION_H

#include "agg/protocol/auth.h"

struct trib_session;
struct trib_question;

#define TRIB_SESSION_ALIVE_MS \
    1000 /* an ALIVE is sent when nothing else was for so long */

struct trib_session_opts {
    int fd; /* connected; the session closes it, also where it cannot be opened */
    enum trib_control_role role; /* role of this end */
    const struct trib_auth *auth; /* must outlive the session */
    const char *job; /* name of the job, for TRIB_CONTROL_JOB */
    const char *peer; /* name of the peer for sentences, such as "tribd at
                       * node7:4700" */
    int handshake_ms; /* time that the other side has to prove its identity */
    int silent_ms; /* the other side is lost if it says nothing for so long; 0: never.
                    * A job that is lost is not told: it may connect again */
    struct trib_error *err; /* receives the sentence of whatever ends the session */
    struct trib_idle *idle; /* called by the waits below; or NULL. Outlives the
                             * session */
    bool lends; /* the caller has other threads answer trib_session_question */
};

/**
 * trib_session_open - begin; a job says HELLO.
 *
 * errors   TRIB_ERR_INVALID: the name of the job; TRIB_ERR_NO_MEMORY, TRIB_ERR_SYSTEM
 */
trib_status_t trib_session_open(const struct trib_session_opts *opts,
                                struct trib_session **out);

/** trib_session_set_idle - change trib_session_opts.idle. */
void trib_session_set_idle(struct trib_session *session, struct trib_idle *idle);

/** trib_session_set_error - change trib_session_opts.err: another owner has the session
 * from now on. */
void trib_session_set_error(struct trib_session *session, struct trib_error *err);

/** trib_session_set_silent - change trib_session_opts.silent_ms; the time begins
 * now. */
void trib_session_set_silent(struct trib_session *session, int silent_ms);

/** trib_session_free - close it. NULL is allowed. What is not written yet is lost. */
void trib_session_free(struct trib_session *session);

/** trib_session_fd, _events - the descriptor and the events to wait for; 0 events:
 * nothing now, not even the end of the connection. */
int trib_session_fd(const struct trib_session *session);
short trib_session_events(const struct trib_session *session);

/** trib_session_is_sealed - true if each message is encrypted: after the handshake,
 * unless by method none. */
bool trib_session_is_sealed(const struct trib_session *session);

/** trib_session_due - when to call trib_session_step at the latest; trib_now_ns's
 * clock. */
uint64_t trib_session_due(const struct trib_session *session);

/**
 * trib_session_step - go on, when the socket is ready and when it is due.
 *
 * Takes at most 128 KiB, so the socket may stay ready: epoll must not be
 * edge-triggered. out       valid until the next call; never HELLO, WELCOME, AUTH,
 * ALIVE or ERROR. A JOIN names the job that was authenticated, else it would have been
 * an error returns TRIB_OK: a message, and there may be another; TRIB_INPROGRESS: none
 * yet; an error, for good: the session has ended, and the other side was told why
 * errors    of trib_handshake_take; TRIB_ERR_TIMEOUT: the handshake took too long;
 *           TRIB_ERR_PEER_LOST; TRIB_ERR_PROTOCOL: not a message, or not as it was
 *           sealed; TRIB_ERR_ABORTED: the other side has ended it, and says why
 */
trib_status_t trib_session_step(struct trib_session *session, struct trib_control *out);

/**
 * trib_session_question - take the question that the session cannot go on without.
 *
 * It exists only with opts.lends, after a step, and is given out once. Until it is
 * answered the session takes no frame, and its handshake may end by its deadline.
 * owner    the caller, until trib_session_answer or trib_question_free
 * returns  NULL: there is none
 */
struct trib_question *trib_session_question(struct trib_session *session);

/** trib_question_answer - ask munged and the database of users: this takes seconds
 * where they do not answer. Thread: any one; it uses nothing of the session but its
 * auth. */
void trib_question_answer(struct trib_question *question);

/**
 * trib_session_answer - go on with what was found; the question is freed.
 *
 * returns  TRIB_INPROGRESS, and trib_session_step goes on; an error, for good, as there
 */
trib_status_t trib_session_answer(struct trib_session *session,
                                  struct trib_question *question);

/** trib_question_free - free the question of a session that is gone. NULL is
 * allowed. */
void trib_question_free(struct trib_question *question);

/** trib_session_ready - is the other side who it says? Then messages may be sent. */
bool trib_session_ready(const struct trib_session *session);

/** trib_session_peer, _job - the peer, and the name of its job; valid once the session
 * is ready. */
struct trib_auth_peer trib_session_peer(const struct trib_session *session);
const char *trib_session_job(const struct trib_session *session);

/** trib_session_version - the version of the messages on which both sides have agreed;
 * valid once the session is ready. */
uint32_t trib_session_version(const struct trib_session *session);

/** trib_session_keep_alive - say that this side is not stopped, if that is due: for a
 * thread that takes no messages for a while. Once the session is ready. */
void trib_session_keep_alive(struct trib_session *session);

/**
 * trib_session_send - one message, once the session is ready.
 *
 * errors    TRIB_ERR_NO_RESOURCE: too much is waiting already, try again after a step;
 *           TRIB_ERR_INVALID: a number or a name beyond its limits, or a JOIN for
 * another job; what ended the session
 */
trib_status_t trib_session_send(struct trib_session *session,
                                const struct trib_control *message);

/** trib_session_has_room - true if trib_session_send takes any message now: it need not
 * be composed in vain. */
bool trib_session_has_room(const struct trib_session *session);

/** trib_session_end - tell the other side why, and end it with this status. */
trib_status_t trib_session_end(struct trib_session *session, trib_status_t status,
                               const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/**
 * trib_session_meet_wait - wait until the session is ready.
 *
 * returns   of trib_session_step; TRIB_INPROGRESS at the deadline
 */
trib_status_t trib_session_meet_wait(struct trib_session *session, uint64_t deadline);

/** trib_session_take_wait - the next message; TRIB_INPROGRESS at the deadline. */
trib_status_t trib_session_take_wait(struct trib_session *session, uint64_t deadline,
                                     struct trib_control *out);

/**
 * trib_session_send_wait - send, and have all of it written.
 *
 * The other side must read meanwhile: nothing is read here.
 * returns   of trib_session_send; TRIB_ERR_TIMEOUT at the deadline
 */
trib_status_t trib_session_send_wait(struct trib_session *session, uint64_t deadline,
                                     const struct trib_control *message);

#endif
