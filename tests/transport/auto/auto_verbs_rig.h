/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two transports "auto" that may go by verbs, over a device in memory.
 */
#ifndef TESTS_TRANSPORT_AUTO_AUTO_VERBS_RIG_H
#define TESTS_TRANSPORT_AUTO_AUTO_VERBS_RIG_H

#include "tests/harness/fake_verbs.h"
#include "tests/transport/pair.h"

#include "transport/auto/auto.h"
#include "transport/backends.h"
#include "transport/common/region_table.h"
#include "transport/verbs/verbs.h"

#define FAR "auto:ranks_per_host=1"

static inline void assert_route(struct pair *pair, int side, const char *name,
                                const char *why)
{
    struct trib_route r = {0};

    pair->t[side]->ops->route(pair->t[side], !side, &r);
    if (strcmp(r.name, name) != 0)
        fail_msg("side %d goes by %s (%s), not by %s", side, r.name, r.why, name);
    contains(r.why, why);
}

static inline trib_status_t write_from(struct pair *pair, int side, size_t len,
                                       uint32_t imm)
{
    struct trib_write w = {.local = pair->region[side],
                           .remote = pair->remote[side],
                           .len = len,
                           .imm = imm};

    return pair->t[side]->ops->write(pair->t[side], !side, &w);
}

static inline void expect(struct pair *pair, int side, enum trib_event_kind kind,
                   struct trib_event *e)
{
    assert_int_equal(pair_await(pair, side, e), 1);
    assert_int_equal(e->kind, kind);
    assert_int_equal(e->peer, !side);
}

/* Both ways. */
static inline void assert_works(struct pair *pair)
{
    struct trib_event e;

    for (int side = 0; side < 2; side++) {
        pair->mem[side][7]++;
        uint8_t sent = pair->mem[side][7];
        assert_ok(write_from(pair, side, 64, 5));
        expect(pair, !side, TRIB_EVENT_ARRIVED, &e);
        assert_int_equal(e.imm, 5);
        assert_int_equal(e.len, 64);
        assert_int_equal(pair->mem[!side][7], sent);
    }
}

/* Side 0 disconnects: its earlier writes arrive first, and its loss is reported once.
 */
static inline void assert_ends_well(struct pair *pair)
{
    struct trib_event e;

    for (uint32_t i = 0; i < 8; i++)
        assert_ok(write_from(pair, 0, 64, 100 + i));
    pair->t[0]->ops->close(pair->t[0]);
    for (uint32_t i = 0; i < 8; i++) {
        expect(pair, 1, TRIB_EVENT_ARRIVED, &e);
        assert_int_equal(e.imm, 100 + i);
    }
    expect(pair, 1, TRIB_EVENT_PEER_LOST, &e);
    assert_true(e.left);
    assert_int_equal(pair_poll(pair, 1, 150, &e), 0);
    pair->t[1]->ops->close(pair->t[1]);
}

static inline void open_apart(struct pair *pair, const char *text,
                       struct trib_address address[2], struct trib_blob region[2])
{
    memset(pair, 0, sizeof(*pair));
    for (int i = 0; i < 2; i++) {
        struct trib_transport_opts opts = pair_opts(pair, i);
        assert_ok(trib_transport_open(text, &opts, &pair->t[i]));
        pair_offer(pair, i, &address[i], &region[i]);
    }
}

static inline void join(struct pair *pair, int side,
                        const struct trib_address address[2],
                        const struct trib_blob region[2])
{
    const struct trib_transport_ops *ops = pair->t[side]->ops;

    assert_ok(ops->connect(pair->t[side], !side, &address[!side]));
    assert_ok(
        ops->import_region(pair->t[side], !side, &region[!side], &pair->remote[side]));
}

#endif
