/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes as messages of two ranks to a store, alternating: each message comes from
 * the next rank. A store continues or reports an unexpected message; its answers can be
 * written; its memory stays within the quota, and all is returned.
 */
#include "agg/store/store_peer.h"
#include "base/error.h"
#include "base/quota.h"
#include "tests/fuzz/reach.h"

unsigned fuzz_reached; /* inputs whose messages were all expected */

enum { RANKS = 2, MEMORY = 1 << 20 };

static void hear_all(struct trib_store_peer *peer)
{
    static uint8_t out[TRIB_CONTROL_FRAME_BYTES];
    static const struct trib_error well = {0};
    struct trib_control_store_snapshot what;
    struct trib_control m;
    size_t used;

    if (trib_store_peer_wants(peer, &what))
        trib_store_peer_kept(peer, &what, UINT64_MAX, &well);
    while (trib_store_peer_next(peer, &m)) {
        need(trib_control_put(&m, out, sizeof(out), &used) == TRIB_OK);
        trib_store_peer_sent(peer);
    }
}

/* Return false if the message was unexpected. */
static bool say(struct trib_store_peer *peer, const struct trib_control_frame *frame)
{
    struct trib_control m;
    struct trib_error err = {0};

    if (trib_control_get(frame->kind, frame->payload, frame->length, &m) != TRIB_OK)
        return false;
    const trib_status_t st = trib_store_peer_take(peer, &m, &err);
    need(st == TRIB_OK || (st == TRIB_ERR_PROTOCOL && err.text[0]));
    hear_all(peer);
    return st == TRIB_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct trib_quota quota = {.most = MEMORY};
    struct trib_store_peer *peers[RANKS];
    struct trib_store_table *table;
    struct trib_control_frame frame;
    size_t done = 0;
    unsigned turn = 0;
    bool due = size > 0;

    need(trib_store_table_create(RANKS, &quota, &table) == TRIB_OK);
    for (uint32_t r = 0; r < RANKS; r++) {
        const struct trib_store_peer_opts opts = {table, r,    &quota, NULL,
                                                  true,  NULL, NULL};
        need(trib_store_peer_create(&opts, &peers[r]) == TRIB_OK);
    }
    while (due && trib_control_parse(data + done, size - done, 0, TRIB_CONTROL_JOB,
                                     &frame) == TRIB_OK) {
        due = say(peers[turn++ % RANKS], &frame);
        for (int r = 0; r < RANKS; r++) {
            trib_store_peer_wake(peers[r], done + 1);
            hear_all(peers[r]);
        }
        done += trib_control_frame_bytes(&frame);
        need(trib_quota_held_mt(&quota) <= MEMORY);
    }
    fuzz_reached += due && done == size;
    for (uint32_t r = 0; r < RANKS; r++) {
        trib_store_peer_wake(peers[r], UINT64_MAX / 2);
        hear_all(peers[r]);
        need(trib_store_peer_due(peers[r]) == UINT64_MAX);
        trib_store_peer_free(peers[r]);
    }
    trib_store_table_destroy(table);
    need(trib_quota_held_mt(&quota) == 0);
    return 0;
}
