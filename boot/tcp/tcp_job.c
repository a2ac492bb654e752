/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/tcp/tcp_job.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/addresses.h"
#include "base/log.h"
#include "base/time.h"

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
            s->conns[i].pending |= TRIB_SEND_FAIL;
}

void trib_tcp_close_listeners(struct trib_tcp_server *s)
{
    for (int i = 0; i < s->opts.n_listeners; i++)
        close(s->opts.listeners[i]);
    s->opts.n_listeners = 0;
}

/* Close a connection without consequences. */
static void drop(struct trib_tcp_conn *c)
{
    close(c->fd);
    c->fd = -1;
    c->hello = false;
    c->proof.step = TRIB_PROOF_NEW;
    c->pending = 0;
    c->out_len = 0;
}

void trib_tcp_reject(struct trib_tcp_server *s, struct trib_tcp_conn *c, bool notable,
                     const char *what)
{
    bool known = trib_net_is_set(c->ip);
    char ip[TRIB_IP_TEXT_BYTES] = "somewhere";

    if (known)
        trib_net_text(c->ip, ip, sizeof(ip));
    if (notable)
        snprintf(s->note, sizeof(s->note), "; one that connected from %.60s %.80s", ip,
                 what);
    trib_unauthenticated_warn(&s->unauthenticated, s->opts.log, "boot",
                              known ? c->ip : NULL, s->opts.port, what);
    drop(c);
}

/* Exchanges ------------------------------------------------------------------------ */

static void blame_gone(struct trib_tcp_server *s, int rank,
                       const struct trib_rank_name *who)
{
    char text[TRIB_RANK_NAME_BYTES];

    s->gone[rank] = true;
    trib_tcp_fail_all(s, TRIB_ERR_PEER_LOST,
                      "%s is gone: its connection closed, phase %s of the start",
                      trib_rank_name_format(who, text), s->phase);
}

bool trib_tcp_busy(const struct trib_tcp_server *s)
{
    return s->joined < s->size || s->contributed > 0;
}

static bool is_member(const struct trib_tcp_server *s, const struct trib_tcp_conn *c)
{
    return c->hello && c->who.rank < s->size && s->ranks[c->who.rank] == c;
}

static const char unproved[] = TRIB_PROOF_UNPROVED " (TRIB_KEY)";

void trib_tcp_lose(struct trib_tcp_server *s, struct trib_tcp_conn *c)
{
    if (c->proof.step != TRIB_PROOF_NEW && !c->hello) {
        trib_tcp_reject(s, c, true, unproved);
        return;
    }
    if (is_member(s, c)) {
        s->gone[c->who.rank] = true;
        if (trib_tcp_busy(s))
            blame_gone(s, c->who.rank, &c->who);
    }
    if (c->own) {
        int ms = s->failed ? TRIB_TCP_LINGER_MS : s->opts.stop_timeout_ms;
        if (s->failed && s->failure.status == TRIB_ERR_ABORTED)
            ms = TRIB_TCP_ABORT_MS;
        s->leaving = true;
        s->linger_until = trib_deadline_later(s->now, trib_limit_ns(ms));
    }
    drop(c);
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
        s->deadline =
            trib_deadline_later(s->now, trib_limit_ns(s->opts.boot_timeout_ms));
    for (int i = 0; i < s->size; i++)
        if (s->gone[i] && s->ranks[i])
            blame_gone(s, i, &s->ranks[i]->who);
    return !s->failed;
}

static void end_exchange(struct trib_tcp_server *s)
{
    for (int i = 0; i < s->size; i++)
        s->ranks[i]->pending |= TRIB_SEND_RESULT;
    s->contributed = 0;
    s->exchange++;
}

static void take_gather(struct trib_tcp_server *s, struct trib_tcp_conn *c,
                        const struct trib_tcp_frame *frame)
{
    struct trib_tcp_gather gather;
    char who[TRIB_RANK_NAME_BYTES];

    trib_tcp_parse_gather(frame, &gather);
    if (frame->exchange != s->exchange || c->exchange >= s->exchange) {
        trib_tcp_fail_all(
            s, TRIB_ERR_PROTOCOL, "%s is in exchange %u of the start, the others in %u",
            trib_rank_name_format(&c->who, who), frame->exchange, s->exchange);
        return;
    }
    if (s->contributed == 0 && !begin_exchange(s, &gather))
        return;
    if (gather.bytes != s->bytes || strcmp(gather.phase, s->phase)) {
        trib_tcp_fail_all(
            s, TRIB_ERR_MISMATCH,
            "%s is in phase %s of the start with %u bytes, others in phase %s with "
            "%u: install the same build of Tributary everywhere",
            trib_rank_name_format(&c->who, who), gather.phase, gather.bytes, s->phase,
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

/* Joining -------------------------------------------------------------------------- */

/* Check that a HELLO belongs to this job; if not, notify all ranks. */
static bool check_hello(struct trib_tcp_server *s, const struct trib_tcp_hello *hello)
{
    char who[TRIB_RANK_NAME_BYTES];
    char other[TRIB_RANK_NAME_BYTES];

    trib_rank_name_format(&hello->who, who);
    if (hello->size != s->size) {
        trib_tcp_fail_all(
            s, TRIB_ERR_MISMATCH,
            "%s was started with %d ranks, %s with %d: set the same TRIB_SIZE on all "
            "ranks",
            who, hello->size, trib_rank_name_format(&s->opts.self.who, other), s->size);
    } else if (hello->who.rank >= s->size) {
        trib_tcp_fail_all(
            s, TRIB_ERR_MISMATCH,
            "%s is out of range: with TRIB_SIZE=%d, TRIB_RANK goes from 0 to %d", who,
            s->size, s->size - 1);
    } else if (strcmp(hello->library, s->opts.self.library)) {
        trib_tcp_fail_all(s, TRIB_ERR_MISMATCH,
                          "%s runs Tributary %s, %s runs %s: install the same version",
                          who, hello->library,
                          trib_rank_name_format(&s->opts.self.who, other),
                          s->opts.self.library);
    } else if (s->ranks[hello->who.rank]) {
        trib_rank_name_format(&s->ranks[hello->who.rank]->who, other);
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

/* Refuse a connection that does not belong to the job, with one non-blocking send, and
 * close it. */
static void refuse(struct trib_tcp_server *s, struct trib_tcp_conn *c,
                   const struct trib_tcp_failure *failure, const char *what)
{
    size_t len = trib_tcp_put_fail(c->small, failure);

    trib_log(s->opts.log, TRIB_LOG_DEBUG, "boot", "refused: %s", failure->text);
    if (send(c->fd, c->small, len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        trib_log(s->opts.log, TRIB_LOG_DEBUG, "boot", "it has gone: %m");
    trib_tcp_reject(s, c, true, what);
}

/* Refuse a HELLO after all ranks have joined; other ranks are unaffected. */
static void refuse_latecomer(struct trib_tcp_server *s, struct trib_tcp_conn *c)
{
    struct trib_tcp_failure failure = {.status = TRIB_ERR_MISMATCH};
    char who[TRIB_RANK_NAME_BYTES];

    snprintf(failure.text, sizeof(failure.text),
             "%s came too late: all %d ranks of the job at this TRIB_ROOT have joined",
             trib_rank_name_format(&c->who, who), s->size);
    refuse(s, c, &failure, "came when all ranks had joined");
}

/* Register the rank of an authenticated connection. */
static void seat(struct trib_tcp_server *s, struct trib_tcp_conn *c,
                 const struct trib_tcp_hello *hello)
{
    c->who = hello->who;
    if (s->joined == s->size && !s->failed) {
        refuse_latecomer(s, c);
        return;
    }
    if (!check_hello(s, hello)) {
        c->hello = true;
        c->pending = TRIB_SEND_FAIL;
        return;
    }
    c->hello = true;
    c->pending = TRIB_SEND_WELCOME;
    s->ranks[c->who.rank] = c;
    if (++s->joined == s->size)
        trib_tcp_close_listeners(s);
}

/* Only one side has a secret. Unauthenticated peers can also claim this, so no other
 * rank is notified. */
static void refuse_secret(struct trib_tcp_server *s, struct trib_tcp_conn *c,
                          const struct trib_tcp_hello *hello)
{
    struct trib_tcp_failure failure = {.status = TRIB_ERR_MISMATCH};
    char who[TRIB_RANK_NAME_BYTES], self[TRIB_RANK_NAME_BYTES];

    trib_rank_name_format(&hello->who, who);
    trib_rank_name_format(&s->opts.self.who, self);
    snprintf(
        failure.text, sizeof(failure.text),
        "%s has %s, and %s has %s: give all ranks the same TRIB_KEY, or none, and all "
        "hosts libsodium",
        who, hello->has_secret ? "a secret" : "no secret", self,
        hello->has_secret ? "none" : "one");
    refuse(s, c, &failure,
           hello->has_secret ? "has a secret (TRIB_KEY), where this job has none"
                             : "has no secret, where this job has one (TRIB_KEY)");
}

static void challenge(struct trib_tcp_server *s, struct trib_tcp_conn *c,
                      const struct trib_tcp_hello *hello)
{
    c->said = *hello;
    c->proof = trib_tcp_proof(hello);
    if (trib_proof_challenge(&s->opts.secret, &c->proof, &c->challenge))
        c->pending = TRIB_SEND_CHALLENGE;
    else
        trib_tcp_fail_all(s, TRIB_ERR_SYSTEM,
                          "rank 0 has no random bytes: getrandom: %m");
}

static void take_hello(struct trib_tcp_server *s, struct trib_tcp_conn *c,
                       const struct trib_tcp_frame *frame)
{
    struct trib_tcp_hello hello;

    if (trib_tcp_parse_hello(frame, &hello) != TRIB_OK)
        trib_tcp_reject(s, c, false, "sent no HELLO of the boot protocol");
    else if (c->own)
        seat(s, c, &hello);
    else if (hello.has_secret != s->opts.secret.is_set)
        refuse_secret(s, c, &hello);
    else if (hello.has_secret)
        challenge(s, c, &hello);
    else
        seat(s, c, &hello);
}

static void take_proof(struct trib_tcp_server *s, struct trib_tcp_conn *c,
                       const struct trib_tcp_frame *frame)
{
    if (trib_proof_check(&s->opts.secret, &c->proof, frame->payload, TRIB_PROOF_BYTES))
        seat(s, c, &c->said);
    else
        trib_tcp_reject(s, c, true, unproved);
}

/* Handle a frame of a connection that has not joined yet. */
static void take_early(struct trib_tcp_server *s, struct trib_tcp_conn *c,
                       const struct trib_tcp_frame *frame)
{
    const bool challenged = c->proof.step != TRIB_PROOF_NEW;

    if (frame->kind == TRIB_TCP_HELLO && !challenged)
        take_hello(s, c, frame);
    else if (frame->kind == TRIB_TCP_PROOF && c->proof.step == TRIB_PROOF_CHALLENGED)
        take_proof(s, c, frame);
    else if (frame->kind != TRIB_TCP_TICK || !challenged)
        trib_tcp_reject(s, c, challenged,
                        challenged ? unproved : "began with something else than HELLO");
}

static void take_failure(struct trib_tcp_server *s, struct trib_tcp_conn *c,
                         const struct trib_tcp_frame *frame)
{
    struct trib_tcp_failure failure;
    char who[TRIB_RANK_NAME_BYTES];

    trib_tcp_parse_fail(frame, &failure);
    if (failure.status == TRIB_ERR_ABORTED) { /* the message names the rank */
        trib_tcp_fail_all(s, failure.status, "%s", failure.text);
        return;
    }
    trib_tcp_fail_all(s, failure.status, "%s failed during the start: %.300s",
                      trib_rank_name_format(&c->who, who), failure.text);
}

void trib_tcp_take_frame(struct trib_tcp_server *s, struct trib_tcp_conn *c,
                         const struct trib_tcp_frame *frame)
{
    char who[TRIB_RANK_NAME_BYTES];

    if (!c->hello) {
        take_early(s, c, frame);
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
                          trib_rank_name_format(&c->who, who), (int)frame->kind);
        break;
    }
}

/* A rank of another version, or arbitrary bytes of any peer: no other rank is
 * notified. */
static void refuse_version(struct trib_tcp_server *s, struct trib_tcp_conn *c)
{
    struct trib_tcp_failure failure = {.status = TRIB_ERR_MISMATCH};
    char who[TRIB_RANK_NAME_BYTES], what[80];

    snprintf(what, sizeof(what), "speaks version %d of the start's protocol, not %d",
             c->in[4], TRIB_TCP_VERSION);
    snprintf(
        failure.text, sizeof(failure.text),
        "a rank %s, which is that of %s: install the same version of Tributary on all "
        "hosts",
        what, trib_rank_name_format(&s->opts.self.who, who));
    refuse(s, c, &failure, what);
}

void trib_tcp_not_a_frame(struct trib_tcp_server *s, struct trib_tcp_conn *c,
                          trib_status_t status)
{
    char who[TRIB_RANK_NAME_BYTES];

    if (c->hello) {
        trib_tcp_fail_all(s, TRIB_ERR_PROTOCOL,
                          "%s sent bytes that are no frame of the start",
                          trib_rank_name_format(&c->who, who));
        trib_tcp_lose(s, c);
    } else if (status == TRIB_ERR_UNSUPPORTED) {
        refuse_version(s, c);
    } else {
        trib_tcp_reject(s, c, false, "does not speak the boot protocol");
    }
}
