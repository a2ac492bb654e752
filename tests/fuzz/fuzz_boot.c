/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes as frames of the TCP boot: each results in a status, terminated texts, and
 * lengths within bounds. The first byte is the maximum length of a RESULT that the
 * reader accepts, as the state of a client sets it.
 */
#include "base/sockets.h"
#include "boot/tcp/tcp_proto.h"
#include "tests/fuzz/reach.h"

unsigned fuzz_reached; /* complete and valid frames */

static void check_hello(const struct trib_tcp_frame *frame)
{
    uint8_t bytes[TRIB_TCP_SMALL_BYTES];
    struct trib_tcp_hello hello;
    struct trib_tcp_hello again;
    struct trib_tcp_frame copy;
    size_t used;
    char text[TRIB_RANK_NAME_BYTES];

    if (trib_tcp_parse_hello(frame, &hello) != TRIB_OK)
        return;
    need(hello.size >= 0 && hello.who.rank >= 0 && hello.who.pid >= 0);
    need(strlen(trib_rank_name_format(&hello.who, text)) < sizeof(text));
    fuzz_reached++;
    size_t n = trib_tcp_put_hello(bytes, frame->kind, &hello);
    need(trib_tcp_parse(bytes, n, 0, &copy, &used) == TRIB_OK && used == n);
    need(trib_tcp_parse_hello(&copy, &again) == TRIB_OK);
    need(strcmp(again.who.host, hello.who.host) == 0);
    need(strcmp(again.library, hello.library) == 0);
}

static void check_frame(const struct trib_tcp_frame *frame)
{
    struct trib_tcp_gather gather;
    struct trib_tcp_failure failure;
    uint8_t bytes[TRIB_TCP_SMALL_BYTES];

    check_hello(frame);
    if (trib_tcp_parse_gather(frame, &gather) == TRIB_OK) {
        fuzz_reached++;
        need(gather.bytes <= TRIB_BOOT_BLOB_MAX);
        need(memchr(gather.phase, 0, sizeof(gather.phase)) != NULL);
        need(trib_tcp_put_gather(bytes, frame->exchange, &gather) ==
             TRIB_TCP_HEAD_BYTES + frame->length);
    }
    struct trib_challenge challenge;
    if (trib_tcp_parse_challenge(frame, &challenge) == TRIB_OK) {
        fuzz_reached++;
        need(trib_tcp_put_challenge(bytes, &challenge) ==
             TRIB_TCP_HEAD_BYTES + frame->length);
    }
    if (frame->kind == TRIB_TCP_PROOF) {
        fuzz_reached++;
        need(trib_tcp_put_proof(bytes, frame->payload) ==
             TRIB_TCP_HEAD_BYTES + frame->length);
    }
    if (trib_tcp_parse_fail(frame, &failure) == TRIB_OK) {
        fuzz_reached++;
        need(failure.status < 0);
        need(memchr(failure.text, 0, sizeof(failure.text)) != NULL);
        need(trib_tcp_put_fail(bytes, &failure) <= sizeof(bytes));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct trib_tcp_frame frame;
    struct trib_tcp_root root;
    size_t used;

    if (size == 0)
        return 0;
    size_t result_max = (size_t)data[0] * 64;
    size_t n = size - 1;
    uint8_t *bytes = malloc(n + 1); /* a separate copy, so that ASan detects reads past
                                     * the end */
    if (!bytes)
        return 0;
    memcpy(bytes, data + 1, n);
    size_t done = 0;
    while (trib_tcp_parse(bytes + done, n - done, result_max, &frame, &used) ==
           TRIB_OK) {
        need(used >= TRIB_TCP_HEAD_BYTES && used <= n - done);
        need(frame.payload == bytes + done + TRIB_TCP_HEAD_BYTES);
        check_frame(&frame);
        done += used;
    }
    bytes[n] = '\0';
    if (trib_tcp_root_parse((const char *)bytes, &root))
        need(root.host[0] && root.port[0]);
    char place[64];
    struct trib_secret secret;
    bool split = trib_secret_split((const char *)bytes, place, sizeof(place), &secret);
    need(strlen(place) < sizeof(place) && !strchr(place, '#') &&
         (split || !secret.is_set));
    free(bytes);
    return 0;
}
