/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes as messages of a control connection: each results in a status, terminated
 * and printable texts, and numbers within their limits; each message read is written as
 * the same bytes. The first byte selects the sender, and whether lengths include a
 * seal.
 */
#include "agg/protocol/control.h"
#include "tests/fuzz/reach.h"

unsigned fuzz_reached; /* inputs that are valid messages up to their end */

static void check_message(const struct trib_control *m)
{
    if (m->kind == TRIB_CONTROL_JOIN)
        need(m->join.aggregator < m->join.aggregators && m->join.ranks > 0 &&
             m->join.ranks <= TRIB_CONTROL_RANKS_MAX &&
             trib_control_job_fits(m->join.job) &&
             strlen(m->join.settings) <= TRIB_CONTROL_SETTINGS_MAX &&
             m->join.tree.n <= TRIB_CONTROL_TREE_MAX);
    if (m->kind == TRIB_CONTROL_BLOBS)
        need((uint64_t)m->blobs.first + m->blobs.count <= m->blobs.total &&
             (uint64_t)m->blobs.count * m->blobs.each == m->blobs.data.n);
    if (m->kind == TRIB_CONTROL_HELLO)
        need(trib_control_job_fits(m->hello.job) && m->hello.methods);
    if (m->kind == TRIB_CONTROL_ERROR)
        need(!strchr(m->said.text, '\n') && !strchr(m->said.text, '\033'));
}

static bool check_frame(const struct trib_control_frame *frame, uint32_t seal)
{
    static uint8_t again[TRIB_CONTROL_FRAME_BYTES];
    struct trib_control message;
    size_t used;
    size_t n = frame->length - seal; /* as if the seal followed */

    need(frame->length >= seal && trib_control_name(frame->kind) != NULL);
    if (trib_control_get(frame->kind, frame->payload, n, &message) != TRIB_OK)
        return false;
    need(message.kind == frame->kind);
    check_message(&message);
    need(trib_control_put(&message, again, sizeof(again), &used) == TRIB_OK);
    need(used == TRIB_CONTROL_HEAD_BYTES + n);
    need(memcmp(again + TRIB_CONTROL_HEAD_BYTES, frame->payload, n) == 0);
    need(trib_control_put(&message, again, used - 1, &used) == TRIB_ERR_OVERFLOW);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct trib_control_frame frame;
    size_t done = 0;
    bool valid = true;

    if (size == 0)
        return 0;
    enum trib_control_role from =
        data[0] & 1 ? TRIB_CONTROL_JOB : TRIB_CONTROL_AGGREGATOR;
    uint32_t seal = data[0] & 2 ? TRIB_CONTROL_SEAL_BYTES : 0;
    size_t n = size - 1;
    uint8_t *bytes =
        malloc(n ? n : 1); /* a separate copy, so that ASan detects reads past the
                            * end */
    if (!bytes)
        return 0;
    memcpy(bytes, data + 1, n);
    while (trib_control_parse(bytes + done, n - done, seal, from, &frame) == TRIB_OK) {
        need(frame.head == bytes + done && frame.payload + frame.length <= bytes + n);
        valid &= check_frame(&frame, seal);
        done += trib_control_frame_bytes(&frame);
    }
    fuzz_reached += valid && n && done == n;
    free(bytes);
    return 0;
}
