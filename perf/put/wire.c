/* SPDX-License-Identifier: BSD-3-Clause */
#include "perf/put/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/dial.h"
#include "base/error.h"
#include "base/time.h"

#define MAGIC UINT32_C(0x54726250) /* "TrbP": never changes */
#define FAIL_MS 1000

void put_wire_open(struct put_wire *wire, int fd, const char *who,
                   struct trib_error *err)
{
    wire->fd = fd;
    wire->err = err;
    snprintf(wire->who, sizeof(wire->who), "%s", who);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

void put_wire_close(struct put_wire *wire)
{
    if (wire->fd >= 0)
        close(wire->fd);
    wire->fd = -1;
}

static trib_status_t gone(struct put_wire *wire)
{
    return trib_fail(wire->err, TRIB_ERR_PEER_LOST,
                     "%s closed the connection: see the messages there", wire->who);
}

/* Report why an exchange failed. */
static trib_status_t failed(struct put_wire *wire)
{
    if (errno != ETIMEDOUT)
        return gone(wire);
    return trib_fail(wire->err, TRIB_ERR_TIMEOUT,
                     "no answer from %s: is it stopped, or is it another program? "
                     "TRIB_BOOT_TIMEOUT_MS and TRIB_TIMEOUT_MS limit the wait",
                     wire->who);
}

static trib_status_t send_all(struct put_wire *wire, const void *bytes, size_t len,
                              uint64_t deadline)
{
    const struct trib_dialled peer = {.fd = wire->fd, .deadline = deadline};

    return trib_dial_send(&peer, bytes, len) ? TRIB_OK : failed(wire);
}

trib_status_t put_wire_send(struct put_wire *wire, enum put_kind kind, const void *body,
                            size_t len, uint64_t deadline)
{
    struct put_head head = {.magic = MAGIC, .kind = kind, .len = (uint32_t)len};
    trib_status_t status = send_all(wire, &head, sizeof(head), deadline);

    return status == TRIB_OK ? send_all(wire, body, len, deadline) : status;
}

static trib_status_t receive_all(struct put_wire *wire, void *bytes, size_t len,
                                 uint64_t deadline)
{
    const struct trib_dialled peer = {.fd = wire->fd, .deadline = deadline};

    return trib_dial_receive(&peer, bytes, len) ? TRIB_OK : failed(wire);
}

static trib_status_t strange(struct put_wire *wire)
{
    return trib_fail(
        wire->err, TRIB_ERR_PROTOCOL,
        "%s does not use the protocol of trib-perf put: is it another program, or "
        "another version?",
        wire->who);
}

/* Replace unprintable characters in another process's text. */
static void clean(char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
            text[i] = '?';
    }
    text[len] = '\0';
}

static trib_status_t receive_failure(struct put_wire *wire, size_t len,
                                     uint64_t deadline)
{
    char sentence[PUT_SENTENCE_MAX + 1];

    if (len > PUT_SENTENCE_MAX)
        return strange(wire);
    trib_status_t status = receive_all(wire, sentence, len, deadline);
    if (status != TRIB_OK)
        return status;
    clean(sentence, len);
    return trib_fail(wire->err, TRIB_ERR_PEER_LOST, "%s: %s", wire->who, sentence);
}

/* Receive a header; a failure message becomes an error. */
static trib_status_t receive_head(struct put_wire *wire, struct put_head *head,
                                  uint64_t deadline)
{
    trib_status_t status = receive_all(wire, head, sizeof(*head), deadline);

    if (status != TRIB_OK)
        return status;
    if (head->magic != MAGIC)
        return strange(wire);
    return head->kind == PUT_FAIL ? receive_failure(wire, head->len, deadline)
                                  : TRIB_OK;
}

trib_status_t put_wire_hello(struct put_wire *wire, bool answers,
                             const struct put_hello *mine, struct put_hello *theirs,
                             uint64_t deadline)
{
    struct put_head head;
    size_t version = sizeof(theirs->version);
    trib_status_t status = TRIB_OK;

    if (!answers)
        status = put_wire_send(wire, PUT_HELLO, mine, sizeof(*mine), deadline);
    if (status == TRIB_OK)
        status = receive_head(wire, &head, deadline);
    if (status != TRIB_OK)
        return status;
    if (head.kind != PUT_HELLO || head.len < version)
        return strange(wire);
    status = receive_all(wire, theirs->version, version, deadline);
    if (status == TRIB_OK && answers)
        status = put_wire_send(wire, PUT_HELLO, mine, sizeof(*mine), deadline);
    if (status != TRIB_OK)
        return status;
    clean(theirs->version, strnlen(theirs->version, version - 1));
    if (strcmp(theirs->version, mine->version) != 0)
        return trib_fail(wire->err, TRIB_ERR_MISMATCH,
                         "%s has trib-perf %s, this is %s: install the same version",
                         wire->who, theirs->version, mine->version);
    if (head.len != sizeof(*theirs))
        return strange(wire);
    status = receive_all(wire, theirs->host, sizeof(*theirs) - version, deadline);
    clean(theirs->host, strnlen(theirs->host, sizeof(theirs->host) - 1));
    return status;
}

trib_status_t put_wire_receive(struct put_wire *wire, enum put_kind kind, void *body,
                               size_t len, uint64_t deadline)
{
    struct put_head head;
    trib_status_t status = receive_head(wire, &head, deadline);

    if (status != TRIB_OK)
        return status;
    if (head.kind != (uint32_t)kind || head.len != len)
        return strange(wire);
    return receive_all(wire, body, len, deadline);
}

trib_status_t put_wire_receive_any(struct put_wire *wire, enum put_kind *kind_out,
                                   struct put_phase *phase_out, uint64_t deadline)
{
    struct put_head head;
    trib_status_t status = receive_head(wire, &head, deadline);

    if (status != TRIB_OK)
        return status;
    *kind_out = (enum put_kind)head.kind;
    if (head.kind == PUT_END && head.len == 0)
        return TRIB_OK;
    if (head.kind != PUT_PHASE || head.len != sizeof(*phase_out))
        return strange(wire);
    return receive_all(wire, phase_out, sizeof(*phase_out), deadline);
}

void put_wire_fail(struct put_wire *wire, const char *sentence)
{
    struct trib_error *err = wire->err;
    size_t len = strnlen(sentence, PUT_SENTENCE_MAX);

    if (wire->fd < 0)
        return;
    wire->err = NULL; /* keep the cause, whatever happens while sending it */
    put_wire_send(wire, PUT_FAIL, sentence, len, trib_deadline_ms(FAIL_MS));
    wire->err = err;
}

trib_status_t put_wire_said(struct put_wire *wire)
{
    struct put_head head;
    ssize_t n = recv(wire->fd, &head, sizeof(head), MSG_PEEK | MSG_DONTWAIT);

    if (n < (ssize_t)sizeof(head) || head.kind != PUT_FAIL)
        return TRIB_OK;
    return receive_head(wire, &head, trib_deadline_ms(FAIL_MS));
}

trib_status_t put_wire_check(struct put_wire *wire)
{
    char byte;
    ssize_t n = recv(wire->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        return gone(wire);
    return n < 0 ? TRIB_OK : put_wire_said(wire);
}
