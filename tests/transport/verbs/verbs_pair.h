/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two transports "verbs" over a device in memory, and what tests expect of them.
 */
#ifndef TESTS_TRANSPORT_VERBS_VERBS_PAIR_H
#define TESTS_TRANSPORT_VERBS_VERBS_PAIR_H

#include "tests/harness/fake_verbs.h"
#include "tests/transport/pair.h"

/* A single device is opened without rails above it. */
#define ALONE "verbs:reconnect=0"

static inline void open_pair(struct pair *pair)
{
    pair_open(pair, ALONE, ALONE);
}

/* The next event of a side, which must be this loss. */
static inline void expect_loss(struct pair *pair, int side, const char *why)
{
    struct trib_event e;

    assert_int_equal(pair_await(pair, side, &e), 1);
    assert_int_equal(e.kind, TRIB_EVENT_PEER_LOST);
    assert_int_equal(e.peer, !side);
    contains(e.why, why);
    assert_int_equal(pair_poll(pair, side, 20, &e), 0);
    assert_status(
        pair->t[side]->ops->write(pair->t[side], !side, &(struct trib_write){0}),
        TRIB_ERR_PEER_LOST);
}

static inline void expect_arrival(struct pair *pair, int side, uint32_t imm,
                                  uint64_t len)
{
    struct trib_event e;

    assert_int_equal(pair_await(pair, side, &e), 1);
    assert_int_equal(e.kind, TRIB_EVENT_ARRIVED);
    assert_int_equal(e.imm, imm);
    assert_int_equal(e.len, len);
}

/* Two transports that are not connected, and the address of the second. */
static inline void open_apart(struct pair *pair, const char *text,
                              struct trib_address *address)
{
    memset(pair, 0, sizeof(*pair));
    for (int i = 0; i < 2; i++) {
        struct trib_transport_opts opts = pair_opts(pair, i);
        assert_status(trib_transport_open(text, &opts, &pair->t[i]), TRIB_OK);
    }
    assert_status(pair->t[1]->ops->address(pair->t[1], address), TRIB_OK);
}

/* The same with secrets; number 0: none. */
static inline void open_with_secrets(struct pair *pair, const char *text,
                                     const uint8_t numbers[2],
                                     struct trib_address *address)
{
    memset(pair, 0, sizeof(*pair));
    for (int i = 0; i < 2; i++) {
        if (numbers[i])
            pair_secret(pair, i, numbers[i]);
        struct trib_transport_opts opts = pair_opts(pair, i);
        assert_status(trib_transport_open(text, &opts, &pair->t[i]), TRIB_OK);
    }
    assert_status(pair->t[1]->ops->address(pair->t[1], address), TRIB_OK);
}

static inline void connect_fails(struct pair *pair, const struct trib_address *address,
                                 trib_status_t expected, const char *words)
{
    trib_error_clear(&pair->err);
    assert_status(pair->t[0]->ops->connect(pair->t[0], 1, address), expected);
    contains(pair->err.text, words);
    if (expected != TRIB_ERR_INVALID) {
        contains(pair->err.text, "rank 0 (process");
        contains(pair->err.text, "cannot reach rank 1 (process");
    }
}

#endif
