/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/tcp/tcp_client.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/time.h"

#define REFUSED_MS 1000 /* a rank 0 that refuses after having answered has exited */

/* Output --------------------------------------------------------------------------- */

static uint8_t *out_end(struct trib_tcp_client *t, size_t need)
{
    assert(sizeof(t->out) - t->out_len >= need);
    return t->out + t->out_len;
}

void trib_tcp_client_put_tick(struct trib_tcp_client *t)
{
    t->out_len +=
        trib_tcp_put_head(out_end(t, TRIB_TCP_HEAD_BYTES), TRIB_TCP_TICK, 0, 0);
}

void trib_tcp_client_put_hello(struct trib_tcp_client *t)
{
    t->out_len +=
        trib_tcp_put_hello(out_end(t, TRIB_TCP_SMALL_BYTES), TRIB_TCP_HELLO, &t->hello);
}

void trib_tcp_client_put_gather(struct trib_tcp_client *t,
                                const struct trib_tcp_gather *mine)
{
    t->out_len +=
        trib_tcp_put_gather(out_end(t, TRIB_TCP_SMALL_BYTES), t->exchange, mine);
}

/* Send as much as the socket accepts; return 0 or the errno of a lost connection. */
int trib_tcp_client_flush(struct trib_tcp_client *t)
{
    while (t->out_len) {
        ssize_t n = send(t->fd, t->out, t->out_len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? 0 : errno;
        t->out_len -= (size_t)n;
        memmove(t->out, t->out + n, t->out_len);
    }
    return 0;
}

/* Connecting ----------------------------------------------------------------------- */

trib_status_t trib_tcp_client_no_answer(struct trib_tcp_client *t, const char *why)
{
    char from[64];

    if (t->is_newcomer && t->welcome)
        return trib_fail(t->err, TRIB_ERR_BOOT,
                         "the job at %s port %s has not taken this newcomer in within "
                         "%d ms: its ranks must call trib_comm_grow; raise "
                         "TRIB_BOOT_TIMEOUT_MS if they come later",
                         t->root.host, t->root.port, t->boot_timeout_ms);
    if (t->is_newcomer)
        return trib_fail(t->err, TRIB_ERR_BOOT,
                         "no job takes newcomers at %s port %s within %d ms (%s): a "
                         "rank of it must have called trib_listener_open, and its "
                         "trib_listener_text must lead there",
                         t->root.host, t->root.port, t->boot_timeout_ms, why);
    return trib_fail(
        t->err, TRIB_ERR_BOOT,
        "rank %d found no rank 0 at %s port %s within %d ms (%s): start rank 0 "
        "on that host, check that address (%s), or raise TRIB_BOOT_TIMEOUT_MS",
        t->hello.who.rank, t->root.host, t->root.port, t->boot_timeout_ms, why,
        trib_tcp_root_from(&t->root, from));
}

trib_status_t trib_tcp_client_gives_up(struct trib_tcp_client *t, const char *phase)
{
    char name[TRIB_RANK_NAME_BYTES];

    assert(trib_idle_answer(t->idle));
    if (t->is_newcomer)
        return trib_idle_fail(
            t->idle, t->err, "the newcomer (process %d on %s) has given up in phase %s",
            t->hello.who.pid, t->hello.who.host, phase);
    return trib_idle_fail(t->idle, t->err, "%s has given up in phase %s of the start",
                          trib_rank_name_format(&t->hello.who, name), phase);
}

/*
 * Connect and send HELLO. again: there was a connection before, so a refusing server
 * has exited; otherwise it may not have started yet.
 */
trib_status_t trib_tcp_client_connect(struct trib_tcp_client *t, bool again)
{
    char why[128] = "", from[64];
    char last[sizeof(why)] = "";
    char name[TRIB_RANK_NAME_BYTES];
    uint64_t refused = trib_deadline_ms(REFUSED_MS);
    bool warned = again;

    t->retry.ms = TRIB_TCP_RETRY_MS;
    while ((t->fd = trib_sockets_connect(&t->root, t->deadline, t->idle, last,
                                         sizeof(last))) < 0) {
        int error = errno;
        if (trib_idle_answer(t->idle))
            return trib_tcp_client_gives_up(t, "join");
        bool over = trib_deadline_passed(t->deadline);
        if (!over || !why[0]) /* an interrupted attempt does not show the cause */
            memcpy(why, last, sizeof(why));
        if (again && error == ECONNREFUSED && trib_deadline_passed(refused))
            return trib_fail(
                t->err, TRIB_ERR_PEER_LOST,
                "%s at %s port %s is gone: it closed the connection before "
                "it answered, phase join of the start",
                trib_rank_name_format(&t->server_name, name), t->root.host,
                t->root.port);
        if (over)
            return trib_tcp_client_no_answer(t, why);
        if (!warned && error == 0)
            trib_log(t->log, TRIB_LOG_WARN, "boot", "%s (%s): %s; trying again",
                     t->root.host, trib_tcp_root_from(&t->root, from), why);
        warned = true;
        trib_dial_pause(&t->retry, t->deadline, t->idle);
    }
    trib_net_met_by(t->fd, &t->boot.met);
    t->heard = trib_now_ns();
    t->in_len = 0;
    t->out_len = 0;
    t->proof = trib_tcp_proof(&t->hello);
    if (t->hello.has_secret && !trib_proof_begin(&t->proof, t->hello.nonce))
        return trib_fail(t->err, TRIB_ERR_SYSTEM,
                         "rank %d has no random bytes: getrandom: %m",
                         t->hello.who.rank);
    trib_tcp_client_put_hello(t);
    trib_tcp_client_flush(t);
    return TRIB_OK;
}

/* Responses of rank 0 -------------------------------------------------------------- */

trib_status_t trib_tcp_client_lost(struct trib_tcp_client *t,
                                   const struct trib_tcp_exchange *q)
{
    char name[TRIB_RANK_NAME_BYTES];

    return trib_fail(t->err, TRIB_ERR_PEER_LOST,
                     "%s is gone: its connection closed, phase %s of the start",
                     trib_rank_name_format(&t->server_name, name), q->phase);
}

static trib_status_t not_ours(struct trib_tcp_client *t, trib_status_t status)
{
    char from[64];

    if (status == TRIB_ERR_UNSUPPORTED)
        return trib_fail(
            t->err, TRIB_ERR_MISMATCH,
            "rank 0 at %s port %s speaks version %d of the start's protocol, "
            "rank %d version %d: install the same version of Tributary",
            t->root.host, t->root.port, t->in[4], t->hello.who.rank, TRIB_TCP_VERSION);
    return trib_fail(
        t->err, TRIB_ERR_BOOT,
        "the peer at %s port %s (%s) is not rank 0 of Tributary: choose another port%s",
        t->root.host, t->root.port, trib_tcp_root_from(&t->root, from),
        t->root.launcher ? " by TRIB_ROOT=host:port, the same for all ranks" : "");
}

static trib_status_t other_secret(struct trib_tcp_client *t)
{
    char who[24] = "this newcomer";

    if (!t->is_newcomer)
        snprintf(who, sizeof(who), "rank %d", t->hello.who.rank);
    return trib_fail(t->err, TRIB_ERR_MISMATCH,
                     "authentication failed at %s port %s: the peer does not have the "
                     "key of %s: set the same TRIB_KEY on all ranks of the job",
                     t->root.host, t->root.port, who);
}

/* Verify the server's proof of the secret and send this rank's proof. */
static trib_status_t take_challenge(struct trib_tcp_client *t,
                                    const struct trib_tcp_frame *frame,
                                    struct trib_tcp_exchange *q)
{
    struct trib_challenge challenge;
    uint8_t proof[TRIB_PROOF_BYTES];

    if (t->proof.step != TRIB_PROOF_BEGUN ||
        trib_tcp_parse_challenge(frame, &challenge) != TRIB_OK)
        return not_ours(t, TRIB_ERR_PROTOCOL);
    if (!trib_proof_answer(&t->boot.secret, &t->proof, &challenge, proof))
        return other_secret(t);
    t->out_len += trib_tcp_put_proof(out_end(t, TRIB_TCP_SMALL_BYTES), proof);
    q->done |= q->proves;
    trib_tcp_client_flush(t);
    return TRIB_OK;
}

/* Until its proof is verified, rank 0 may only send the proof, refuse, or tick. */
static bool too_early(const struct trib_tcp_client *t, enum trib_tcp_kind kind)
{
    return t->proof.step == TRIB_PROOF_BEGUN && kind != TRIB_TCP_CHALLENGE &&
           kind != TRIB_TCP_FAIL && kind != TRIB_TCP_TICK;
}

static trib_status_t take_frame(struct trib_tcp_client *t,
                                const struct trib_tcp_frame *frame,
                                struct trib_tcp_exchange *q)
{
    struct trib_tcp_hello hello;
    struct trib_tcp_failure failure;

    if (too_early(t, frame->kind))
        return not_ours(t, TRIB_ERR_PROTOCOL);
    switch (frame->kind) {
    case TRIB_TCP_CHALLENGE:
        return take_challenge(t, frame, q);
    case TRIB_TCP_WELCOME:
        if (trib_tcp_parse_hello(frame, &hello) != TRIB_OK ||
            (hello.who.rank != 0 && !t->is_newcomer))
            return not_ours(t, TRIB_ERR_PROTOCOL);
        t->server_name = hello.who;
        t->welcome = true;
        t->deadline =
            trib_limit_deadline(trib_limit_sum(t->boot_timeout_ms, t->stop_timeout_ms));
        return TRIB_OK;
    case TRIB_TCP_RESULT:
        if (!t->welcome || q->done || frame->exchange != t->exchange ||
            frame->length != q->bytes)
            return not_ours(t, TRIB_ERR_PROTOCOL);
        if (q->bytes)
            memcpy(q->out, frame->payload, q->bytes);
        q->done = true;
        return TRIB_OK;
    case TRIB_TCP_FAIL:
        trib_tcp_parse_fail(frame, &failure);
        return trib_fail(t->err, failure.status, "%s", failure.text);
    case TRIB_TCP_TICK:
        return TRIB_OK;
    default:
        return not_ours(t, TRIB_ERR_PROTOCOL);
    }
}

trib_status_t trib_tcp_client_parse(struct trib_tcp_client *t,
                                    struct trib_tcp_exchange *q)
{
    struct trib_tcp_frame frame;
    size_t done = 0;
    size_t used = 0;
    trib_status_t status = TRIB_OK;

    /* Frames after the result belong to the next exchange. */
    while (status == TRIB_OK && !q->done) {
        status =
            trib_tcp_parse(t->in + done, t->in_len - done, q->bytes, &frame, &used);
        if (status == TRIB_INPROGRESS)
            break;
        if (status != TRIB_OK)
            return not_ours(t, status);
        status = take_frame(t, &frame, q);
        done += used;
    }
    memmove(t->in, t->in + done, t->in_len - done);
    t->in_len -= done;
    return status == TRIB_INPROGRESS ? TRIB_OK : status;
}
