/* SPDX-License-Identifier: BSD-3-Clause */
/* A store of two ranks with one vector, and the conversation with rank 1. */
#ifndef TESTS_AGG_STORE_PEER_RIG_H
#define TESTS_AGG_STORE_PEER_RIG_H

#include "agg/store/store_peer.h"
#include "base/error.h"
#include "base/quota.h"
#include "tests/harness/tribtest.h"

enum { COUNT = 20000, BYTES = COUNT * 4, PIECE = TRIB_CONTROL_STORE_BYTES };

struct rig {
    struct trib_quota quota;
    struct trib_store_table *table;
    struct trib_store_peer *peer;
    struct trib_error err;
    float x[COUNT];
};

static struct rig *rig_open(uint64_t most)
{
    struct rig *rig = calloc(1, sizeof(*rig));

    assert_non_null(rig);
    rig->quota.most = most;
    assert_status(trib_store_table_create(2, &rig->quota, &rig->table), TRIB_OK);
    const struct trib_store_peer_opts opts = {rig->table, 1,    &rig->quota, NULL,
                                              true,       NULL, NULL};
    assert_status(trib_store_peer_create(&opts, &rig->peer), TRIB_OK);
    for (int i = 0; i < COUNT; i++)
        rig->x[i] = (float)i;
    return rig;
}

static void rig_close(struct rig *rig)
{
    trib_store_peer_free(rig->peer);
    trib_store_table_destroy(rig->table);
    assert_int_equal(trib_quota_held_mt(&rig->quota), 0);
    free(rig);
}

static trib_status_t say(struct rig *rig, const struct trib_control *m)
{
    trib_error_clear(&rig->err);
    return trib_store_peer_take(rig->peer, m, &rig->err);
}

static struct trib_control hear(struct rig *rig, enum trib_control_kind kind)
{
    struct trib_control m;

    assert_true(trib_store_peer_next(rig->peer, &m));
    assert_int_equal(m.kind, kind);
    trib_store_peer_sent(rig->peer);
    return m;
}

static struct trib_control opening(const char *name)
{
    struct trib_control m = {.kind = TRIB_CONTROL_STORE_OPEN,
                             .store_open = {.dtype = TRIB_F32, .count = COUNT}};

    snprintf(m.store_open.name, sizeof(m.store_open.name), "%s", name);
    snprintf(m.store_open.rule, sizeof(m.store_open.rule), "sum");
    return m;
}

static void open_vector(struct rig *rig)
{
    const struct trib_control m = opening("x");

    assert_status(say(rig, &m), TRIB_OK);
    assert_int_equal(hear(rig, TRIB_CONTROL_STORE_VECTOR).store_state.vector, 0);
}

static struct trib_control piece(const struct rig *rig, uint64_t number, uint64_t at)
{
    const uint64_t left = BYTES - at;

    return (struct trib_control){
        .kind = TRIB_CONTROL_STORE_PUSH,
        .store_push = {.purpose = TRIB_CONTROL_PUSH,
                       .number = number,
                       .offset = at,
                       .data = {(const uint8_t *)rig->x + at,
                                (uint32_t)(left < PIECE ? left : PIECE)}}};
}

static inline void push(struct rig *rig, uint64_t number,
                        enum trib_control_push purpose)
{
    struct trib_control none;

    for (uint64_t at = 0; at < BYTES; at += PIECE) {
        struct trib_control m = piece(rig, number, at);
        assert_false(trib_store_peer_next(rig->peer, &none));
        m.store_push.purpose = purpose;
        assert_status(say(rig, &m), TRIB_OK);
    }
}

#endif
