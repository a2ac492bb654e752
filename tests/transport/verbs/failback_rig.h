/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two sides that send messages to each other over rails of verbs, whose devices in
 * memory fail. Each message comes once, in order, with its bytes.
 */
#ifndef TESTS_TRANSPORT_VERBS_FAILBACK_RIG_H
#define TESTS_TRANSPORT_VERBS_FAILBACK_RIG_H

#include "tests/transport/verbs/verbs_pair.h"

#include <unistd.h>

#include "tests/harness/rng_draw.h"
#include "transport/multirail/multirail.h"
#include "transport/verbs/verbs.h"

enum { SLOTS = 32, SLOT = 64, ENTRY = 16, IN_FLIGHT = 24 };

/* Counts of messages of one side. */
struct side {
    uint32_t sent, done, got;
    bool begun; /* the payload of the next message is posted */
};

static struct side sides[2];

static inline const struct multirail_peer *peer_of(struct pair *pair, int side)
{
    return &((struct multirail *)pair->t[side])->peers[!side];
}

static inline uint8_t byte_of(int side, uint32_t message)
{
    return (uint8_t)(1 + (side * 101u + message) % 200);
}

/* Write a part of the message. The lower half of the memory is the target, the upper
 * the source. */
static inline trib_status_t write_part(struct pair *pair, int side, bool payload)
{
    const struct side *s = &sides[side];
    const size_t at = s->sent % SLOTS * SLOT + (payload ? ENTRY : 0);
    const struct trib_write w = {.local = pair->region[side],
                                 .local_off = PAIR_LEN / 2 + at,
                                 .remote = pair->remote[side],
                                 .remote_off = at,
                                 .len = payload ? SLOT - ENTRY : ENTRY,
                                 .imm = s->sent,
                                 .quiet = payload,
                                 .signal = payload == (s->sent % 2 == 0),
                                 .token = s->sent};

    return pair->t[side]->ops->write(pair->t[side], !side, &w);
}

/* A message is a payload, which is not inline and waits in the list, and an entry. */
static inline void send_one(struct pair *pair, int side)
{
    struct side *s = &sides[side];

    if (s->sent - sides[!side].got >= IN_FLIGHT || s->sent - s->done >= IN_FLIGHT)
        return;
    if (!s->begun)
        memset(pair->mem[side] + PAIR_LEN / 2 + s->sent % SLOTS * SLOT,
               byte_of(side, s->sent), SLOT);
    trib_status_t status = s->begun ? TRIB_OK : write_part(pair, side, true);
    s->begun = status == TRIB_OK;
    if (s->begun)
        status = write_part(pair, side, false);
    if (status != TRIB_ERR_NO_RESOURCE)
        assert_ok(status);
    s->sent += status == TRIB_OK;
    s->begun &= status != TRIB_OK;
}

/* Say what made the peer lost, of the reasons that multirail_failover.c knows. */
static inline void fail_lost(struct pair *pair, int side, const char *why)
{
    const struct multirail_peer *p = peer_of(pair, side);

    fail_msg("side %d lost the other: %s; rails ended %#x, broken %#x, final %#x, left "
             "%#x, given up %#x; process ended %d, continues %d; stranded %g s",
             side, why, p->ended, p->broken, p->final, p->left, p->given_up,
             p->process_ended, p->continues,
             (double)(trib_now_ns() - p->stranded_first) / 1e9);
}

/* Called while nothing but time helps: sleep now and then, as the thread that connects
 * needs the core. */
static inline void rest(void)
{
    enum { POLLS = 64, US = 100 };
    static int calls;

    if (++calls % POLLS == 0)
        usleep(US);
}

static inline void poll_one(struct pair *pair, int side)
{
    struct side *s = &sides[side];
    struct trib_event e;

    if (!pair->t[side]->ops->poll(pair->t[side], &e, 1)) {
        rest();
        return;
    }
    if (e.kind == TRIB_EVENT_PEER_LOST)
        fail_lost(pair, side, e.why);
    if (e.kind == TRIB_EVENT_WRITE_DONE) {
        assert_int_equal(e.token, s->done);
        s->done++;
        return;
    }
    uint8_t *slot = pair->mem[side] + s->got % SLOTS * SLOT;
    assert_int_equal(e.imm, s->got);
    assert_int_equal(e.len, ENTRY);
    for (int i = 0; i < SLOT; i++)
        assert_int_equal(slot[i], byte_of(!side, s->got));
    memset(slot, 0xee, SLOT); /* a late byte would change it */
    s->got++;
}

static inline void step(struct pair *pair)
{
    for (int side = 0; side < 2; side++) {
        send_one(pair, side);
        poll_one(pair, side);
        poll_one(pair, side);
    }
}

static inline void run(struct pair *pair, uint32_t messages)
{
    const uint32_t ends[2] = {sides[0].got + messages, sides[1].got + messages};
    const uint64_t until = trib_deadline_ms(tribtest_patience_ms());

    while (sides[0].got < ends[0] || sides[1].got < ends[1]) {
        step(pair);
        if (trib_deadline_passed(until))
            fail_msg("stuck: sent %u %u, got %u %u", sides[0].sent, sides[1].sent,
                     sides[0].got, sides[1].got);
    }
}

/* Both sides send on until they use all rails again. */
static inline void await_rails(struct pair *pair)
{
    const uint64_t until = trib_deadline_ms(tribtest_patience_ms());

    for (int whole = 0; whole < 2;) {
        whole = 0;
        for (int side = 0; side < 2; side++) {
            const struct multirail_peer *p = peer_of(pair, side);
            whole += !p->dead && !p->failing && !p->trouble;
        }
        step(pair);
        rest();
        if (trib_deadline_passed(until))
            fail_msg("a rail is still lost: %#x %#x, flow %d %d",
                     peer_of(pair, 0)->dead, peer_of(pair, 1)->dead,
                     peer_of(pair, 0)->flow, peer_of(pair, 1)->flow);
    }
}

static inline void open_unlike(struct pair *pair, const char *text0, const char *text1)
{
    memset(sides, 0, sizeof(sides));
    pair_open(pair, text0, text1);
}

static inline void open_rails(struct pair *pair, const char *text)
{
    open_unlike(pair, text, text);
}

static inline void be_patient(struct pair *pair)
{
    for (int side = 0; side < 2; side++)
        ((struct multirail *)pair->t[side])->timeout_ns = UINT64_C(60000000000);
}

/* Devices of one port each, whose connections end with the port. Some messages have
 * passed. */
static inline void open_devices(struct pair *pair, int devices, const char *text)
{
    struct fake_verbs_opts *fake = fake_verbs_reset();

    fake->inline_max = ENTRY;
    fake->devices = devices;
    fake->down_fails = true;
    open_rails(pair, text);
    run(pair, 50);
}

static inline struct verbs *inner_of_side(struct pair *pair, int side, int device)
{
    return (struct verbs *)((struct multirail *)pair->t[side])->inner[device];
}

static inline int most_rails(const struct pair *pair)
{
    const int n[2] = {((struct multirail *)pair->t[0])->n,
                      ((struct multirail *)pair->t[1])->n};

    return n[0] > n[1] ? n[0] : n[1];
}

/* All ports go down; return when both sides wait for one of them. */
static inline void strand(struct pair *pair)
{
    const uint64_t until = trib_deadline_ms(tribtest_patience_ms());
    bool both = false;

    for (int device = 0; device < most_rails(pair); device++)
        fake_verbs_port(device, 1, false);
    while (!both && !trib_deadline_passed(until)) {
        step(pair);
        both = true;
        for (int side = 0; side < 2; side++) {
            const struct multirail_peer *p = peer_of(pair, side);
            both &= p->stranded_at && p->dead == multirail_all(p);
        }
    }
    assert_true(both);
}

#endif
