/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/tcp_job.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"

void trib_tcp_fail_all(struct trib_tcp_server *s, trib_status_t status, const char *fmt,
                       ...)
{
    va_list args;

    if (s->failed)
        return;
    s->failed = true;
    s->failure.status = status;
    va_start(args, fmt);
    vsnprintf(s->failure.text, sizeof(s->failure.text), fmt, args);
    va_end(args);
    for (int i = 0; i < trib_tcp_conns(s); i++)
        if (s->conns[i].fd >= 0 && s->conns[i].hello)
            s->conns[i].tell |= TRIB_TELL_FAIL;
}

void trib_tcp_close_listeners(struct trib_tcp_server *s)
{
    for (int i = 0; i < s->opts.n_listeners; i++)
        close(s->opts.listeners[i]);
    s->opts.n_listeners = 0;
}

void trib_tcp_drop(struct trib_tcp_conn *c)
{
    close(c->fd);
    c->fd = -1;
    c->hello = false;
}

/* Exchanges ---------------------------------------------------------------------------
 */

static void blame_gone(struct trib_tcp_server *s, int rank, const struct trib_who *who)
{
    char text[TRIB_WHO_BYTES];

    s->gone[rank] = true;
    trib_tcp_fail_all(s, TRIB_ERR_PEER_LOST,
                      "%s is gone: its connection closed, phase %s of the start",
                      trib_who_format(who, text), s->phase);
}

bool trib_tcp_busy(const struct trib_tcp_server *s)
{
    return s->joined < s->size || s->contributed > 0;
}

static bool is_member(const struct trib_tcp_server *s, const struct trib_tcp_conn *c)
{
    return c->hello && c->who.rank < s->size && s->ranks[c->who.rank] == c;
}

void trib_tcp_lose(struct trib_tcp_server *s, struct trib_tcp_conn *c)
{
    if (is_member(s, c)) {
        s->gone[c->who.rank] = true;
        if (trib_tcp_busy(s))
            blame_gone(s, c->who.rank, &c->who);
    }
    if (c->own) {
        int ms = s->failed ? TRIB_TCP_FAREWELL_MS : s->opts.stop_timeout_ms;
        s->leaving = true;
        s->farewell = s->now + (uint64_t)ms * TRIB_TCP_MS;
    }
    trib_tcp_drop(c);
}

static bool begin_exchange(struct trib_tcp_server *s,
                           const struct trib_tcp_gather *gather)
{
    size_t len = TRIB_TCP_HEAD_BYTES + (size_t)s->size * gather->bytes;
    uint8_t *result = realloc(s->results[s->exchange & 1], len);

    if (!result) {
        trib_tcp_fail_all(s, TRIB_ERR_NO_MEMORY, "rank 0 is out of memory in boot");
        return false;
    }
    s->results[s->exchange & 1] = result;
    s->result_len[s->exchange & 1] = len;
    s->bytes = gather->bytes;
    memcpy(s->phase, gather->phase, sizeof(s->phase));
    trib_tcp_put_head(result, TRIB_TCP_RESULT, s->exchange, len - TRIB_TCP_HEAD_BYTES);
    if (s->exchange > 1)
        s->deadline = s->now + (uint64_t)s->opts.boot_timeout_ms * TRIB_TCP_MS;
    for (int i = 0; i < s->size; i++)
        if (s->gone[i] && s->ranks[i])
            blame_gone(s, i, &s->ranks[i]->who);
    return !s->failed;
}

static void end_exchange(struct trib_tcp_server *s)
{
    for (int i = 0; i < s->size; i++)
        s->ranks[i]->tell |= TRIB_TELL_RESULT;
    s->contributed = 0;
    s->exchange++;
}

static void take_gather(struct trib_tcp_server *s, struct trib_tcp_conn *c,
                        const struct trib_tcp_frame *frame)
{
    struct trib_tcp_gather gather;
    char who[TRIB_WHO_BYTES];

    trib_tcp_parse_gather(frame, &gather);
    if (frame->exchange != s->exchange || c->exchange >= s->exchange) {
        trib_tcp_fail_all(s, TRIB_ERR_PROTOCOL,
                          "%s is in exchange %u of the start, the others in %u",
                          trib_who_format(&c->who, who), frame->exchange, s->exchange);
        return;
    }
    if (s->contributed == 0 && !begin_exchange(s, &gather))
        return;
    if (gather.bytes != s->bytes || strcmp(gather.phase, s->phase)) {
        trib_tcp_fail_all(
            s, TRIB_ERR_MISMATCH,
            "%s is in phase %s of the start with %u bytes, others in phase %s with "
            "%u: do all run the same version?",
            trib_who_format(&c->who, who), gather.phase, gather.bytes, s->phase,
            s->bytes);
        return;
    }
    c->exchange = s->exchange;
    memcpy(s->results[s->exchange & 1] + TRIB_TCP_HEAD_BYTES +
               (size_t)c->who.rank * s->bytes,
           gather.blob, gather.bytes);
    if (++s->contributed == s->size)
        end_exchange(s);
}

/* Joining -----------------------------------------------------------------------------
 */

/* Is this hello of our job? If not, everyone is told. */
static bool check_hello(struct trib_tcp_server *s, const struct trib_tcp_hello *hello)
{
    char who[TRIB_WHO_BYTES];
    char other[TRIB_WHO_BYTES];

    trib_who_format(&hello->who, who);
    if (hello->size != s->size) {
        trib_tcp_fail_all(
            s, TRIB_ERR_MISMATCH,
            "%s was told of %d ranks, %s of %d: give all the same TRIB_SIZE", who,
            hello->size, trib_who_format(&s->opts.self.who, other), s->size);
    } else if (hello->who.rank >= s->size) {
        trib_tcp_fail_all(
            s, TRIB_ERR_MISMATCH,
            "%s is out of range: with TRIB_SIZE=%d, TRIB_RANK goes from 0 to %d", who,
            s->size, s->size - 1);
    } else if (strcmp(hello->library, s->opts.self.library)) {
        trib_tcp_fail_all(s, TRIB_ERR_MISMATCH,
                          "%s runs Tributary %s, %s runs %s: install the same version",
                          who, hello->library,
                          trib_who_format(&s->opts.self.who, other),
                          s->opts.self.library);
    } else if (s->ranks[hello->who.rank]) {
        trib_who_format(&s->ranks[hello->who.rank]->who, other);
        trib_tcp_fail_all(
            s, TRIB_ERR_MISMATCH,
            "%s has joined already as process %d on %s: give each process a "
            "TRIB_RANK of its own, and each job a port of its own",
            other, hello->who.pid, hello->who.host);
    } else {
        return !s->failed;
    }
    return false;
}

/* Answer somebody who does not belong to us, as far as one attempt goes, and hang up.
 */
static void refuse(struct trib_tcp_server *s, struct trib_tcp_conn *c,
                   const struct trib_tcp_failure *failure)
{
    size_t len = trib_tcp_put_fail(c->small, failure);

    trib_log(s->opts.log, TRIB_LOG_DEBUG, "boot", "refused: %s", failure->text);
    if (send(c->fd, c->small, len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        trib_log(s->opts.log, TRIB_LOG_DEBUG, "boot", "it has gone: %m");
    trib_tcp_drop(c);
}

/* A process that says hello once all have joined disturbs nobody else. */
static void refuse_latecomer(struct trib_tcp_server *s, struct trib_tcp_conn *c)
{
    struct trib_tcp_failure failure = {.status = TRIB_ERR_MISMATCH};
    char who[TRIB_WHO_BYTES];

    snprintf(failure.text, sizeof(failure.text),
             "%s came too late: all %d ranks of the job at this TRIB_ROOT have joined",
             trib_who_format(&c->who, who), s->size);
    refuse(s, c, &failure);
}

static void take_hello(struct trib_tcp_server *s, struct trib_tcp_conn *c,
                       const struct trib_tcp_frame *frame)
{
    struct trib_tcp_hello hello;

    if (trib_tcp_parse_hello(frame, &hello) != TRIB_OK) {
        trib_tcp_drop(c);
        return;
    }
    c->who = hello.who;
    if (s->joined == s->size && !s->failed) {
        refuse_latecomer(s, c);
        return;
    }
    if (!check_hello(s, &hello)) {
        c->hello = true;
        c->tell = TRIB_TELL_FAIL;
        return;
    }
    c->hello = true;
    c->tell = TRIB_TELL_WELCOME;
    s->ranks[c->who.rank] = c;
    if (++s->joined == s->size)
        trib_tcp_close_listeners(s);
}

static void take_failure(struct trib_tcp_server *s, struct trib_tcp_conn *c,
                         const struct trib_tcp_frame *frame)
{
    struct trib_tcp_failure failure;
    char who[TRIB_WHO_BYTES];

    trib_tcp_parse_fail(frame, &failure);
    trib_tcp_fail_all(s, failure.status, "%s failed during the start: %.300s",
                      trib_who_format(&c->who, who), failure.text);
}

void trib_tcp_take_frame(struct trib_tcp_server *s, struct trib_tcp_conn *c,
                         const struct trib_tcp_frame *frame)
{
    char who[TRIB_WHO_BYTES];

    if (!c->hello) {
        if (frame->kind == TRIB_TCP_HELLO)
            take_hello(s, c, frame);
        else
            trib_tcp_drop(c);
        return;
    }
    if (s->failed)
        return;
    switch (frame->kind) {
    case TRIB_TCP_GATHER:
        take_gather(s, c, frame);
        break;
    case TRIB_TCP_FAIL:
        take_failure(s, c, frame);
        break;
    case TRIB_TCP_TICK:
        break;
    default:
        trib_tcp_fail_all(s, TRIB_ERR_PROTOCOL,
                          "%s sent a frame of kind %d, which is rank 0's",
                          trib_who_format(&c->who, who), (int)frame->kind);
        break;
    }
}

void trib_tcp_not_a_frame(struct trib_tcp_server *s, struct trib_tcp_conn *c,
                          trib_status_t status)
{
    char who[TRIB_WHO_BYTES];

    if (c->hello) {
        trib_tcp_fail_all(s, TRIB_ERR_PROTOCOL,
                          "%s sent bytes that are no frame of the start",
                          trib_who_format(&c->who, who));
    } else if (status == TRIB_ERR_UNSUPPORTED) {
        trib_tcp_fail_all(
            s, TRIB_ERR_MISMATCH,
            "a rank speaks version %d of the start's protocol, %s version %d: install "
            "the same version of Tributary on all hosts",
            c->in[4], trib_who_format(&s->opts.self.who, who), TRIB_TCP_VERSION);
        refuse(s, c, &s->failure);
        return;
    } else {
        trib_log(s->opts.log, TRIB_LOG_DEBUG, "boot", "a stranger connected: dropped");
    }
    trib_tcp_lose(s, c);
}
