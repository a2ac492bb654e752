/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/tcp/tcp_newcomer.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Output --------------------------------------------------------------------------- */

/* Reserve bytes at the end of the output; NULL: out of memory, the state is OVER. */
static uint8_t *room(struct trib_newcomer *n, size_t bytes)
{
    if (n->out_cap - n->out_len < bytes) {
        uint8_t *out = realloc(n->out, n->out_len + bytes);
        if (!out) {
            trib_newcomer_end(n, "found no memory here");
            return NULL;
        }
        n->out = out;
        n->out_cap = n->out_len + bytes;
    }
    return n->out + n->out_len;
}

void trib_newcomer_end(struct trib_newcomer *n, const char *why)
{
    if (n->state != TRIB_NEWCOMER_OVER)
        snprintf(n->why, sizeof(n->why), "%s", why);
    n->state = TRIB_NEWCOMER_OVER;
}

void trib_newcomer_refuse(struct trib_newcomer *n, trib_status_t status,
                          const char *fmt, ...)
{
    struct trib_tcp_failure failure = {.status = status};
    char why[400];
    va_list args;
    uint8_t *to;

    assert(status < TRIB_OK);
    if (n->state == TRIB_NEWCOMER_OVER)
        return;
    va_start(args, fmt);
    vsnprintf(failure.text, sizeof(failure.text), fmt, args);
    va_end(args);
    to = room(n, TRIB_TCP_SMALL_BYTES);
    if (to)
        n->out_len += trib_tcp_put_fail(to, &failure);
    snprintf(why, sizeof(why), "was refused: %.300s", failure.text);
    trib_newcomer_end(n, why);
}

void trib_newcomer_tick(struct trib_newcomer *n)
{
    uint8_t *to = n->out_len ? NULL : room(n, TRIB_TCP_HEAD_BYTES);

    if (to)
        n->out_len += trib_tcp_put_head(to, TRIB_TCP_TICK, 0, 0);
}

void trib_newcomer_answer(struct trib_newcomer *n, const void *result, size_t bytes)
{
    uint8_t *to;

    assert(n->state == TRIB_NEWCOMER_ADMITTED || n->state == TRIB_NEWCOMER_OVER);
    if (n->state == TRIB_NEWCOMER_OVER)
        return;
    assert(bytes > 0);
    if (n->given == n->answered) {
        trib_newcomer_refuse(n, TRIB_ERR_PEER_LOST, "this newcomer came too late");
        return;
    }
    to = room(n, TRIB_TCP_HEAD_BYTES + bytes);
    if (!to)
        return;
    n->answered = n->given;
    n->out_len += trib_tcp_put_head(to, TRIB_TCP_RESULT, n->answered, bytes);
    memcpy(to + TRIB_TCP_HEAD_BYTES, result, bytes);
    n->out_len += bytes;
}

/* Frames --------------------------------------------------------------------------- */

static void welcome(struct trib_newcomer *n, const struct trib_newcomer_rules *rules)
{
    uint8_t *to = room(n, TRIB_TCP_SMALL_BYTES);

    if (!to)
        return;
    n->out_len += trib_tcp_put_hello(to, TRIB_TCP_WELCOME, &rules->self);
    n->state = TRIB_NEWCOMER_WELCOME;
}

static void challenge(struct trib_newcomer *n, const struct trib_newcomer_rules *rules)
{
    struct trib_challenge c;
    uint8_t *to = room(n, TRIB_TCP_SMALL_BYTES);

    if (!to)
        return;
    n->proof = trib_tcp_proof(&n->said);
    if (!trib_proof_challenge(&rules->secret, &n->proof, &c)) {
        trib_newcomer_end(n, "found no random bytes here");
        return;
    }
    n->out_len += trib_tcp_put_challenge(to, &c);
    n->state = TRIB_NEWCOMER_CHALLENGED;
}

static void take_hello(struct trib_newcomer *n, const struct trib_newcomer_rules *rules,
                       const struct trib_tcp_frame *frame)
{
    char self[TRIB_RANK_NAME_BYTES];

    trib_rank_name_format(&rules->self.who, self);
    if (frame->kind != TRIB_TCP_HELLO ||
        trib_tcp_parse_hello(frame, &n->said) != TRIB_OK)
        trib_newcomer_end(n, "sent no HELLO of the boot protocol");
    else if (n->said.size != 0)
        trib_newcomer_refuse(
            n, TRIB_ERR_MISMATCH,
            "%s listens here for newcomers of a job that runs, not for rank %d of a "
            "start: call trib_join, or start at another TRIB_ROOT",
            self, n->said.who.rank);
    else if (strcmp(n->said.library, rules->self.library) != 0)
        trib_newcomer_refuse(
            n, TRIB_ERR_MISMATCH,
            "the newcomer has Tributary %s, %s has %s: install the same version",
            n->said.library, self, rules->self.library);
    else if (n->said.has_secret != rules->secret.is_set)
        trib_newcomer_refuse(
            n, TRIB_ERR_MISMATCH,
            "the newcomer has %s, and %s has %s: give it the whole text of "
            "trib_listener_text, or the TRIB_KEY of the job, and its host libsodium",
            n->said.has_secret ? "a secret" : "no secret", self,
            n->said.has_secret ? "none" : "one");
    else if (n->said.has_secret)
        challenge(n, rules);
    else
        welcome(n, rules);
}

static void take_proof(struct trib_newcomer *n, const struct trib_newcomer_rules *rules,
                       const struct trib_tcp_frame *frame)
{
    if (frame->kind == TRIB_TCP_TICK)
        return;
    if (frame->kind == TRIB_TCP_PROOF &&
        trib_proof_check(&rules->secret, &n->proof, frame->payload, TRIB_PROOF_BYTES))
        welcome(n, rules);
    else
        trib_newcomer_end(n, TRIB_PROOF_UNPROVED);
}

static void take_request(struct trib_newcomer *n,
                         const struct trib_newcomer_rules *rules)
{
    char why[TRIB_TCP_TEXT_BYTES] = "";

    if (n->bytes != rules->request_bytes)
        trib_newcomer_refuse(n, TRIB_ERR_MISMATCH,
                             "the newcomer says %u bytes of itself, and %u are "
                             "expected: install the same version of Tributary",
                             n->bytes, rules->request_bytes);
    else if (!rules->fits(rules->request, n->blob, why, sizeof(why)))
        trib_newcomer_refuse(n, TRIB_ERR_MISMATCH, "%s", why);
    else
        n->state = TRIB_NEWCOMER_WAITS;
}

static void take_gather(struct trib_newcomer *n,
                        const struct trib_newcomer_rules *rules,
                        const struct trib_tcp_frame *frame)
{
    struct trib_tcp_gather gather;

    if (n->state == TRIB_NEWCOMER_WAITS || frame->exchange != n->answered + 1 ||
        n->given == frame->exchange ||
        trib_tcp_parse_gather(frame, &gather) != TRIB_OK) {
        trib_newcomer_end(n, "sent something out of turn");
        return;
    }
    assert(gather.bytes <= sizeof(n->blob));
    n->bytes = gather.bytes;
    if (gather.bytes)
        memcpy(n->blob, gather.blob, gather.bytes);
    n->given = frame->exchange;
    if (n->state == TRIB_NEWCOMER_WELCOME)
        take_request(n, rules);
}

static void take_failure(struct trib_newcomer *n, const struct trib_tcp_frame *frame)
{
    struct trib_tcp_failure failure;
    char why[TRIB_TCP_TEXT_BYTES];

    if (trib_tcp_parse_fail(frame, &failure) != TRIB_OK)
        return;
    snprintf(why, sizeof(why), "cannot go on: %.400s", failure.text);
    trib_newcomer_end(n, why);
}

static void take_frame(struct trib_newcomer *n, const struct trib_newcomer_rules *rules,
                       const struct trib_tcp_frame *frame)
{
    if (n->state == TRIB_NEWCOMER_CAME)
        take_hello(n, rules, frame);
    else if (n->state == TRIB_NEWCOMER_CHALLENGED)
        take_proof(n, rules, frame);
    else if (frame->kind == TRIB_TCP_GATHER)
        take_gather(n, rules, frame);
    else if (frame->kind == TRIB_TCP_FAIL)
        take_failure(n, frame);
    else if (frame->kind != TRIB_TCP_TICK)
        trib_newcomer_end(n, "sent a frame that is the listener's");
}

void trib_newcomer_take(struct trib_newcomer *n,
                        const struct trib_newcomer_rules *rules)
{
    struct trib_tcp_frame frame;
    size_t used = 0, done = 0;
    trib_status_t st = TRIB_OK;

    while (n->state != TRIB_NEWCOMER_OVER) {
        st = trib_tcp_parse(n->in + done, n->in_len - done, 0, &frame, &used);
        if (st != TRIB_OK)
            break;
        take_frame(n, rules, &frame);
        done += used;
    }
    if (st == TRIB_ERR_UNSUPPORTED && n->state == TRIB_NEWCOMER_CAME)
        trib_newcomer_refuse(n, TRIB_ERR_MISMATCH,
                             "the newcomer speaks version %d of the start's protocol, "
                             "not %d: install the same version of Tributary",
                             n->in[4], TRIB_TCP_VERSION);
    else if (st != TRIB_INPROGRESS)
        trib_newcomer_end(n, "does not speak the boot protocol");
    memmove(n->in, n->in + done, n->in_len - done);
    n->in_len -= done;
}

void trib_newcomer_free(struct trib_newcomer *n)
{
    free(n->out);
    n->out = NULL;
    n->out_len = n->out_cap = n->in_len = 0;
}
