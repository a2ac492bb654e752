/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/protocol/session.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agg/protocol/control_conn.h"
#include "agg/protocol/crypt.h"
#include "base/error.h"
#include "base/time.h"
#include "base/wait.h"

#define MS UINT64_C(1000000)
/* Maximum reads per step, so that a busy peer does not delay other sessions. */
#define READS_MAX 4

_Static_assert(TRIB_CONTROL_SEAL_BYTES == TRIB_SEAL_BYTES,
               "must match agg/protocol/crypt.h");

enum state {
    HANDSHAKE, /* handshake in progress */
    READY,
    ENDED, /* ended with `status` */
};

struct trib_session {
    struct trib_session_opts opts;
    char peer[128];
    enum state state;
    trib_status_t status;
    struct trib_control_conn *conn;
    struct trib_handshake *handshake; /* NULL: lent to a question */
    struct trib_question *question; /* not taken by the caller yet, or NULL */
    struct trib_seal *seal; /* NULL: before READY, and with "none" */
    uint64_t deadline; /* end of the handshake */
    uint64_t heard;
    uint64_t sent;
    uint64_t now;
    uint8_t in[TRIB_CONTROL_FRAME_BYTES]; /* an unsealed payload */
    uint8_t out[TRIB_CONTROL_FRAME_BYTES]; /* a frame before sealing */
};

/* A frame whose handling may block, for another thread. The question owns the handshake
 * until it returns with the reply. */
struct trib_question {
    struct trib_handshake *handshake;
    enum trib_control_role from;
    trib_status_t status;
    struct trib_error err;
    size_t n;
    size_t reply_n;
    uint8_t frame[TRIB_CONTROL_EARLY_BYTES];
    uint8_t reply[TRIB_CONTROL_EARLY_BYTES];
};

static enum trib_control_role other_role(const struct trib_session *s)
{
    return s->opts.role == TRIB_CONTROL_JOB ? TRIB_CONTROL_AGGREGATOR
                                            : TRIB_CONTROL_JOB;
}

/* Sending -------------------------------------------------------------------------- */

static trib_status_t put_message(struct trib_session *s, const struct trib_control *m)
{
    size_t n;
    trib_status_t status = trib_control_put(m, s->out, sizeof(s->out), &n);

    if (status != TRIB_OK)
        return status;
    size_t all = n + (s->seal ? TRIB_SEAL_BYTES : 0);
    uint8_t *room = trib_control_conn_room(s->conn, all);
    if (!room)
        return TRIB_ERR_NO_RESOURCE;
    memcpy(room, s->out, s->seal ? TRIB_CONTROL_HEAD_BYTES : n);
    if (s->seal) {
        struct trib_seal_message sealed = {room, TRIB_CONTROL_HEAD_BYTES,
                                           s->out + TRIB_CONTROL_HEAD_BYTES,
                                           n - TRIB_CONTROL_HEAD_BYTES};
        trib_control_seal_head(room);
        trib_seal_close(s->seal, &sealed, room + TRIB_CONTROL_HEAD_BYTES);
    }
    trib_control_conn_add(s->conn, all);
    s->sent = s->now;
    return TRIB_OK;
}

trib_status_t trib_session_send(struct trib_session *session,
                                const struct trib_control *message)
{
    if (session->state == ENDED)
        return session->status;
    assert(session->state == READY);
    if (message->kind == TRIB_CONTROL_JOIN &&
        strcmp(message->join.job, trib_session_job(session)))
        return TRIB_ERR_INVALID;
    trib_status_t status = put_message(session, message);
    if (status == TRIB_OK)
        (void)trib_control_conn_flush(session->conn);
    return status;
}

bool trib_session_has_room(const struct trib_session *session)
{
    return trib_control_conn_fits(session->conn, TRIB_CONTROL_FRAME_BYTES);
}

/* The end -------------------------------------------------------------------------- */

static trib_status_t end(struct trib_session *s, trib_status_t status, const char *text)
{
    assert(s->state != ENDED && status != TRIB_OK);
    s->state = ENDED;
    s->status = status;
    return trib_fail(s->opts.err, status, "%s: %s", s->peer, text);
}

/* End the session and try to send the reason to the peer. */
static trib_status_t end_telling(struct trib_session *s, trib_status_t status,
                                 const char *text)
{
    struct trib_control m = {.kind = TRIB_CONTROL_ERROR};

    snprintf(m.said.text, sizeof(m.said.text), "%s", text);
    if (put_message(s, &m) == TRIB_OK)
        (void)trib_control_conn_flush(s->conn);
    return end(s, status, text);
}

trib_status_t trib_session_end(struct trib_session *session, trib_status_t status,
                               const char *fmt, ...)
{
    char text[sizeof(((struct trib_error *)0)->text)];
    va_list args;

    if (session->state == ENDED)
        return session->status;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    return end_telling(session, status, text);
}

static trib_status_t lost(struct trib_session *s, int error)
{
    char text[160];

    if (error == 0)
        snprintf(text, sizeof(text), "connection closed by peer%s",
                 s->state == HANDSHAKE ? " during authentication" : "");
    else
        snprintf(text, sizeof(text), "connection lost: %s", strerror(error));
    return end(s, TRIB_ERR_PEER_LOST, text);
}

static trib_status_t no_frame(struct trib_session *s, trib_status_t status)
{
    return end_telling(
        s, status,
        status == TRIB_ERR_UNSUPPORTED
            ? "the versions of the control protocol differ: install the same release "
              "on both sides"
            : "received data is not of the control protocol: check that both sides are "
              "programs of this library");
}

/* Receiving ------------------------------------------------------------------------ */

/* Continue after the handshake processed a frame; its reply is in the connection. */
static trib_status_t go_on(struct trib_session *s, enum trib_control_kind kind,
                           trib_status_t status, const struct trib_error *why)
{
    assert(s->state == HANDSHAKE && s->handshake);
    if (status < 0)
        return kind == TRIB_CONTROL_ERROR
                   ? end(s, status, trib_error_text(why))
                   : end_telling(s, status, trib_error_text(why));
    if (status == TRIB_OK) {
        s->seal = trib_handshake_seal(s->handshake);
        s->state = READY;
    }
    return TRIB_INPROGRESS;
}

static trib_status_t lend(struct trib_session *s,
                          const struct trib_control_frame *frame)
{
    struct trib_question *q = calloc(1, sizeof(*q));

    assert(s->handshake && !s->question);
    if (!q)
        return end_telling(s, TRIB_ERR_NO_MEMORY, "out of memory in agg");
    q->n = trib_control_frame_bytes(frame);
    assert(q->n <= sizeof(q->frame)); /* no frame of this kind is longer */
    memcpy(q->frame, frame->head, q->n);
    q->from = other_role(s);
    q->handshake = s->handshake;
    s->handshake = NULL;
    s->question = q;
    return TRIB_INPROGRESS;
}

static trib_status_t take_handshake(struct trib_session *s,
                                    const struct trib_control_frame *frame)
{
    struct trib_error one = {.status = TRIB_OK};
    uint8_t *reply = trib_control_conn_room(s->conn, TRIB_CONTROL_EARLY_BYTES);
    size_t n;

    if (!reply)
        return end(s, TRIB_ERR_PROTOCOL, "replies are not read");
    if (s->opts.lends && frame->kind == TRIB_CONTROL_AUTH &&
        trib_handshake_asks(s->handshake))
        return lend(s, frame);
    trib_status_t status = trib_handshake_take(s->handshake, frame, &one, reply, &n);
    trib_control_conn_add(s->conn, n);
    return go_on(s, frame->kind, status, &one);
}

static trib_status_t read_message(struct trib_session *s,
                                  const struct trib_control_frame *frame,
                                  struct trib_control *out)
{
    struct trib_seal_message sealed = {frame->head, TRIB_CONTROL_HEAD_BYTES,
                                       frame->payload, frame->length};
    const uint8_t *payload = frame->payload;
    size_t n = frame->length;
    char text[96];

    if (s->seal) {
        if (!trib_seal_open(s->seal, &sealed, s->in))
            return end_telling(s, TRIB_ERR_PROTOCOL,
                               "broken seal: a message was modified, replayed or "
                               "dropped");
        payload = s->in;
        n -= TRIB_SEAL_BYTES;
    }
    if (trib_control_get(frame->kind, payload, n, out) == TRIB_OK)
        return TRIB_OK;
    snprintf(text, sizeof(text), "invalid %s message", trib_control_name(frame->kind));
    return end_telling(s, TRIB_ERR_PROTOCOL, text);
}

/* Return TRIB_OK for a message that the caller must handle. */
static trib_status_t take_message(struct trib_session *s,
                                  const struct trib_control_frame *frame,
                                  struct trib_control *out)
{
    trib_status_t status = read_message(s, frame, out);

    if (status != TRIB_OK)
        return status;
    switch (out->kind) {
    case TRIB_CONTROL_ALIVE:
        return TRIB_INPROGRESS;
    case TRIB_CONTROL_ERROR:
        return end(s, TRIB_ERR_ABORTED, out->said.text);
    case TRIB_CONTROL_HELLO:
    case TRIB_CONTROL_WELCOME:
    case TRIB_CONTROL_AUTH:
        return end_telling(s, TRIB_ERR_PROTOCOL,
                           "authentication was restarted on the same connection");
    case TRIB_CONTROL_JOIN:
        if (strcmp(out->join.job, trib_session_job(s)))
            return end_telling(s, TRIB_ERR_PROTOCOL,
                               "JOIN names another job than the authenticated one");
        return TRIB_OK;
    default:
        return TRIB_OK;
    }
}

static trib_status_t take_all(struct trib_session *s, struct trib_control *out)
{
    struct trib_control_frame frame;
    int reads = 0;

    while (s->handshake) {
        trib_status_t status = trib_control_conn_take(
            s->conn, s->seal ? TRIB_SEAL_BYTES : 0, other_role(s), &frame);
        if (status < 0)
            return no_frame(s, status);
        if (status == TRIB_OK) {
            status = s->state == HANDSHAKE ? take_handshake(s, &frame)
                                           : take_message(s, &frame, out);
            if (status != TRIB_INPROGRESS)
                return status;
            continue;
        }
        if (reads++ == READS_MAX)
            return status;
        status = trib_control_conn_fill(s->conn);
        if (status < 0)
            return lost(s, errno);
        if (status == TRIB_INPROGRESS)
            return status;
        s->heard = s->now;
    }
    return TRIB_INPROGRESS;
}

/* Send ALIVE if nothing else was sent for a while. */
static void send_alive(struct trib_session *s)
{
    static const struct trib_control alive = {.kind = TRIB_CONTROL_ALIVE};

    if (s->state != READY || s->now - s->sent < TRIB_SESSION_ALIVE_MS * MS)
        return;
    (void)put_message(s, &alive); /* no room: the peer has data to read */
    s->sent = s->now;
}

void trib_session_keep_alive(struct trib_session *session)
{
    if (session->state != READY)
        return;
    session->now = trib_now_ns();
    send_alive(session);
    (void)trib_control_conn_flush(session->conn);
}

/* Called after all input was read, so time for which this process was stopped does not
 * count as silence of the peer. */
static trib_status_t check_times(struct trib_session *s)
{
    char text[128];

    if (s->state == HANDSHAKE && s->now >= s->deadline) {
        snprintf(text, sizeof(text),
                 s->handshake
                     ? "authentication did not complete within %d ms"
                     : "the credential could not be verified within %d ms: munged or "
                       "the user database of the service does not answer",
                 s->opts.handshake_ms);
        return end_telling(s, TRIB_ERR_TIMEOUT, text);
    }
    if (s->opts.silent_ms && s->state == READY &&
        s->now - s->heard >= (uint64_t)s->opts.silent_ms * MS) {
        snprintf(text, sizeof(text),
                 "silent for %d ms: it is stopped, or its host is unreachable",
                 s->opts.silent_ms);
        return s->opts.role == TRIB_CONTROL_JOB
                   ? end_telling(s, TRIB_ERR_PEER_LOST, text)
                   : end(s, TRIB_ERR_PEER_LOST, text);
    }
    send_alive(s);
    return TRIB_INPROGRESS;
}

trib_status_t trib_session_step(struct trib_session *session, struct trib_control *out)
{
    if (session->state == ENDED)
        return session->status;
    session->now = trib_now_ns();
    trib_status_t status = take_all(session, out);
    if (status == TRIB_INPROGRESS)
        status = check_times(session);
    else if (status == TRIB_OK) /* input may never run out for seconds */
        send_alive(session);
    if (status >= 0)
        (void)trib_control_conn_flush(session->conn);
    return status;
}

/* Questions for other threads ------------------------------------------------------ */

struct trib_question *trib_session_question(struct trib_session *session)
{
    struct trib_question *q = session->question;

    session->question = NULL;
    return q;
}

void trib_question_answer(struct trib_question *question)
{
    struct trib_control_frame frame;

    assert(question->handshake);
    question->status =
        trib_control_parse(question->frame, question->n, 0, question->from, &frame);
    assert(question->status == TRIB_OK); /* the session parsed this frame before */
    question->status = trib_handshake_take(question->handshake, &frame, &question->err,
                                           question->reply, &question->reply_n);
}

trib_status_t trib_session_answer(struct trib_session *session,
                                  struct trib_question *question)
{
    trib_status_t status = session->status;

    assert(!session->handshake && !session->question);
    session->handshake = question->handshake;
    question->handshake = NULL;
    if (session->state != ENDED) {
        uint8_t *room = trib_control_conn_room(session->conn, question->reply_n);
        session->now = trib_now_ns();
        assert(room); /* there was room at lending; nothing was sent since */
        memcpy(room, question->reply, question->reply_n);
        trib_control_conn_add(session->conn, question->reply_n);
        status = go_on(session, TRIB_CONTROL_AUTH, question->status, &question->err);
        (void)trib_control_conn_flush(session->conn);
    }
    trib_question_free(question);
    return status;
}

void trib_question_free(struct trib_question *question)
{
    if (!question)
        return;
    trib_handshake_free(question->handshake);
    free(question);
}

/* Waiting -------------------------------------------------------------------------- */

void trib_session_set_idle(struct trib_session *session, struct trib_idle *idle)
{
    session->opts.idle = idle;
}

/* Wait for a message, or, with `ready`, until the session is ready. */
static trib_status_t wait_for(struct trib_session *s, bool ready, uint64_t deadline,
                              struct trib_control *out)
{
    for (;;) {
        trib_status_t status = trib_session_step(s, out);
        if (status != TRIB_INPROGRESS || (ready && s->state == READY))
            return status == TRIB_INPROGRESS ? TRIB_OK : status;
        if (trib_deadline_passed(deadline))
            return TRIB_INPROGRESS;
        uint64_t due = trib_session_due(s);
        (void)trib_wait_fd(trib_session_fd(s), trib_session_events(s),
                           due < deadline ? due : deadline, s->opts.idle);
        if (trib_idle_answer(s->opts.idle))
            return TRIB_INPROGRESS;
    }
}

trib_status_t trib_session_ready_wait(struct trib_session *session, uint64_t deadline)
{
    struct trib_control none;

    if (session->state == READY)
        return TRIB_OK;
    return wait_for(session, true, deadline, &none);
}

trib_status_t trib_session_take_wait(struct trib_session *session, uint64_t deadline,
                                     struct trib_control *out)
{
    return wait_for(session, false, deadline, out);
}

trib_status_t trib_session_send_wait(struct trib_session *session, uint64_t deadline,
                                     const struct trib_control *message)
{
    bool put = false;

    for (;;) {
        if (!put) {
            trib_status_t status = trib_session_send(session, message);
            if (status != TRIB_OK && status != TRIB_ERR_NO_RESOURCE)
                return status;
            put = status == TRIB_OK;
        }
        trib_status_t flushed = trib_control_conn_flush(session->conn);
        if (put && flushed == TRIB_OK)
            return TRIB_OK;
        if (flushed == TRIB_INPROGRESS &&
            !trib_wait_fd(trib_session_fd(session), POLLOUT, deadline,
                          session->opts.idle))
            return trib_session_end(session, TRIB_ERR_TIMEOUT, "messages are not read");
    }
}

/* Start and accessors -------------------------------------------------------------- */

static trib_status_t begin(struct trib_session *s)
{
    struct trib_handshake_opts opts = {s->opts.auth, s->opts.role, s->opts.job};
    trib_status_t status = trib_handshake_new(&opts, s->opts.err, &s->handshake);
    uint8_t *room;
    size_t n;

    if (status != TRIB_OK || s->opts.role != TRIB_CONTROL_JOB)
        return status;
    room = trib_control_conn_room(s->conn, TRIB_CONTROL_EARLY_BYTES);
    status = trib_handshake_begin(s->handshake, s->opts.err, room, &n);
    if (status != TRIB_OK)
        return status;
    trib_control_conn_add(s->conn, n);
    (void)trib_control_conn_flush(s->conn);
    return TRIB_OK;
}

trib_status_t trib_session_open(const struct trib_session_opts *opts,
                                struct trib_session **out)
{
    struct trib_session *s = malloc(sizeof(*s));

    assert(opts->fd >= 0 && opts->auth && opts->peer);
    if (!s) {
        close(opts->fd);
        return trib_fail(opts->err, TRIB_ERR_NO_MEMORY, "out of memory in agg");
    }
    /* Do not clear the buffers: an unauthenticated session then touches few of their
     * pages. */
    memset(s, 0, offsetof(struct trib_session, in));
    s->opts = *opts;
    snprintf(s->peer, sizeof(s->peer), "%s", opts->peer);
    s->now = s->heard = s->sent = trib_now_ns();
    s->deadline = trib_deadline_ms(opts->handshake_ms);
    trib_status_t status = trib_control_conn_new(opts->fd, &s->conn);
    if (status != TRIB_OK)
        (void)trib_fail(opts->err, status, "%s: %m", s->peer);
    if (status == TRIB_OK)
        status = begin(s);
    if (status != TRIB_OK) {
        trib_session_free(s);
        return status;
    }
    *out = s;
    return TRIB_OK;
}

void trib_session_free(struct trib_session *session)
{
    if (!session)
        return;
    trib_seal_free(session->seal);
    trib_question_free(session->question);
    trib_handshake_free(session->handshake);
    trib_control_conn_free(session->conn);
    free(session);
}

void trib_session_adopt(struct trib_session *session, struct trib_error *err,
                        int silent_ms)
{
    session->opts.err = err;
    session->opts.silent_ms = silent_ms;
    session->heard = trib_now_ns();
}

bool trib_session_is_sealed(const struct trib_session *session)
{
    return session->seal != NULL;
}

int trib_session_fd(const struct trib_session *session)
{
    return session->conn->fd;
}

short trib_session_events(const struct trib_session *session)
{
    return session->handshake ? trib_control_conn_events(session->conn) : 0;
}

uint64_t trib_session_due(const struct trib_session *session)
{
    if (session->state == HANDSHAKE)
        return session->deadline;
    uint64_t due = session->sent + TRIB_SESSION_ALIVE_MS * MS;
    uint64_t silent = session->heard + (uint64_t)session->opts.silent_ms * MS;
    return session->opts.silent_ms && silent < due ? silent : due;
}

bool trib_session_ready(const struct trib_session *session)
{
    return session->state == READY;
}

struct trib_auth_peer trib_session_peer(const struct trib_session *session)
{
    assert(session->handshake); /* not lent to a question */
    return trib_handshake_peer(session->handshake);
}

const char *trib_session_job(const struct trib_session *session)
{
    return session->handshake ? trib_handshake_job(session->handshake) : "";
}
