/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Links: slots, credits, positions that wrap. Two ends in one process, once
 * with load/store reach and once by writes.
 */
#include "tests/pipeline/link/link_pair.h"

/* A full window, then one frame out and one in, payloads of all sizes; both ways. */
static void run_window(struct pair *p, uint32_t window, uint32_t frames)
{
    static const size_t sizes[] = {0, 1, TRIB_ENTRY_PAYLOAD, TRIB_ENTRY_PAYLOAD + 1,
                                   SLOT};

    for (int from = 0; from < 2; from++) {
        for (int lane = 0; lane < TRIB_LANES; lane++) {
            uint32_t sent = 0, taken = 0;
            while (taken < frames) {
                while (sent < frames && can_send(p, from, lane, sizes[sent % 5])) {
                    assert_true(sent - taken < window);
                    send_number(&p->end[from], lane, sent, sizes[sent % 5]);
                    sent++;
                }
                /* Credits return at the latest after half a window. */
                assert_true(sent - taken > window / 2 || sent == frames);
                expect_number(p, 1 - from, lane, taken, sizes[taken % 5]);
                taken++;
            }
            poll_pair(p);
            assert_null(
                trib_link_peek(&p->end[1 - from].link, &p->end[1 - from].arena, lane));
        }
    }
}

TEST(test_window)
{
    for (int t = 0; t < 2; t++) {
        for (uint32_t window = 1; window <= 9; window++) {
            struct pair *p = open_unlike(transports[t], window,
                                         (bool[2]){window % 3 > 0, window % 3 > 1});
            run_window(p, window, 100);
            close_pair(p);
        }
    }
}

/* Fills the lane, then has the other end take frames until one more may be sent. */
static void expect_under_way(struct pair *p, int lane, uint32_t most,
                             uint32_t until_credit)
{
    uint32_t sent = 0, taken = 0;

    while (can_send(p, 0, lane, 1))
        send_number(&p->end[0], lane, sent++, 1);
    assert_int_equal(sent, most);
    while (!can_send(p, 0, lane, 1))
        expect_number(p, 1, lane, taken++, 1);
    assert_int_equal(taken, until_credit);
    while (taken < sent)
        expect_number(p, 1, lane, taken++, 1);
}

/* With aggregators, fewer contributions than results are in flight, and credits return
 * earlier. */
TEST(test_contributions)
{
    for (uint32_t window = 1; window <= 40; window++) {
        struct pair *p = open_as("shm+nomap", window, (bool[2]){false, false}, true);
        expect_under_way(p, TRIB_LANE_UP, (5 * window + 7) / 8, (window + 3) / 4);
        expect_under_way(p, TRIB_LANE_DOWN, window, (window + 3) / 4);
        close_pair(p);
        p = open_as("shm", window, (bool[2]){false, false}, true);
        expect_under_way(p, TRIB_LANE_UP, window, (window + 1) / 2);
        close_pair(p);
    }
}

/* Raw elements are limited to raw_window frames, encoded chunks to the window. Credits
 * return by halves of the smaller one: elements never wait for encoded chunks. */
TEST(test_raw_window)
{
    enum { WINDOW = 16 };

    for (uint32_t raw = 0; raw <= WINDOW; raw += 4)
        for (int t = 0; t < 2; t++) {
            struct pair *p = open_with((struct pair){.raw_window = raw}, transports[t],
                                       WINDOW, (bool[2]){false, false});
            struct end *from = &p->end[0];
            uint32_t sent = 0, taken = 0;
            for (; can_send(p, 0, TRIB_LANE_UP, 1); sent++) {
                assert_int_equal(
                    trib_link_raw_full(&from->link, &from->arena, TRIB_LANE_UP),
                    raw > 0 && sent >= raw);
                send_number(from, TRIB_LANE_UP, sent, 1);
            }
            assert_int_equal(sent, WINDOW);
            const uint32_t half = (raw > 0 ? raw : WINDOW) / 2;
            for (; taken < sent; taken++) {
                const uint32_t under_way = sent - taken / half * half;
                assert_int_equal(
                    trib_link_raw_full(&from->link, &from->arena, TRIB_LANE_UP),
                    raw > 0 && under_way >= raw);
                expect_number(p, 1, TRIB_LANE_UP, taken, 1);
                poll_pair(p);
            }
            assert_true(can_send(p, 0, TRIB_LANE_UP, 1));
            close_pair(p);
        }
}

/* Under way at once: as many large payloads as there are places, small ones between. */
TEST(test_places)
{
    struct pair *p = open_pair("shm", 8);
    struct end *from = &p->end[0];
    size_t small = from->link.small;
    uint32_t sent = 0, taken = 0;

    assert_true(small < SLOT);

    while (can_send(p, 0, 0, SLOT))
        send_number(from, 0, sent++, SLOT);
    assert_int_equal(sent, TRIB_BIG_SLOTS);
    for (; sent < 7; sent++)
        send_number(from, 0, sent, small);
    assert_true(can_send(p, 0, 0, small));
    expect_number(p, 1, 0, taken++, SLOT);
    assert_true(can_send(p, 0, 0, SLOT));
    send_number(from, 0, sent++, SLOT);
    assert_false(can_send(p, 0, 0, SLOT));
    for (; taken < sent; taken++)
        expect_number(p, 1, 0, taken, taken < 2 || taken == 7 ? SLOT : small);
    close_pair(p);
}

/* Set the counters as if 2^32 - 20 frames had passed over both lanes in both
 * directions. */
static void age(struct pair *p)
{
    const uint32_t old = UINT32_MAX - 19;

    for (int i = 0; i < 2; i++) {
        struct trib_link *l = &p->end[i].link;
        for (int lane = 0; lane < TRIB_LANES; lane++) {
            l->send[lane].next = l->send[lane].released = old;
            l->recv[lane].next = l->recv[lane].arrived = l->recv[lane].returned = old;
            atomic_store(&l->my_credits[lane], old);
        }
    }
}

/* For every window that settings allow to be had: also those that do not divide
 * 2^32. */
TEST(test_positions_wrap)
{
    for (int t = 0; t < 2; t++) {
        for (uint32_t window = 1; window <= 9; window++) {
            struct pair *p = open_pair(transports[t], window);
            age(p);
            run_window(p, window, 60);
            close_pair(p);
        }
    }
}

/* No frame is sent before the peer has advertised its slots, but both can
 * disconnect. */
TEST(test_not_advertised)
{
    for (int t = 0; t < 2; t++) {
        struct pair *p = calloc(1, sizeof(*p));
        struct end *a = &p->end[0], *b = &p->end[1];
        assert_ok(trib_config_load(&p->cfg, NULL, NULL, NULL));
        for (int i = 0; i < 2; i++)
            open_end(p, i, transports[t], 2, true);
        assert_ok(trib_link_connect(&a->link, &a->arena, 1, &b->address, &b->blob));
        assert_int_equal(trib_arena_bytes(&a->arena), trib_arena_heads(2));
        assert_ok(trib_link_open(&a->link, &a->arena));
        assert_int_equal(trib_arena_bytes(&a->arena),
                         trib_arena_heads(2) + trib_link_bytes(2, SLOT, t == 0));
        assert_int_equal(trib_arena_bytes(&b->arena), trib_arena_heads(2));
        poll_pair(p); /* b receives the advert before it connects */
        assert_status(trib_link_take_advert(&a->link, &a->arena), TRIB_INPROGRESS);
        assert_false(can_send(p, 0, 0, 0));
        assert_ok(trib_link_connect(&b->link, &b->arena, 0, &a->address, &a->blob));
        assert_ok(trib_link_take_advert(&b->link, &b->arena));
        assert_int_equal(b->link.window[TRIB_LANE_UP], 2);
        close_pair(p);
    }
}

/* A peer may write anything where its advert is expected. */
TEST(test_adverts_are_checked)
{
    for (int t = 0; t < 2; t++) {
        for (int wrong = 0; wrong < 3; wrong++) {
            struct pair *p = open_unlike(transports[t], 2, (bool[2]){true, true});
            struct end *a = &p->end[0];
            struct trib_slot_advert *advert =
                (struct trib_slot_advert *)(a->arena.base +
                                            sizeof(struct trib_credits) +
                                            sizeof(struct trib_oob_notice));
            struct trib_region *small = NULL;
            a->transport->ops->release(a->transport, a->link.slots);
            a->link.slots = NULL; /* as before the advert arrived */
            a->arena.awaited = 1;
            if (wrong == 0)
                advert->blob.len = UINT16_MAX;
            if (wrong == 1)
                memset(advert->blob.bytes, 7, sizeof(advert->blob.bytes));
            if (wrong == 2)
                small = region_of(&p->end[1], 64, &advert->blob);
            trib_status_t st = trib_link_take_advert(&a->link, &a->arena);
            assert_true(st < 0);
            if (wrong == 2) {
                assert_status(st, TRIB_ERR_RANGE);
                assert_non_null(
                    strstr(a->err.text, "rank 1 exported 64 bytes of memory"));
            }
            if (small)
                p->end[1].transport->ops->dereg(p->end[1].transport, small);
            close_pair(p);
        }
    }
}

/* Frames that the sender keeps overwriting: the receiver's view of a frame stays the
 * same until release, and a received frame does not disappear. */
TEST(test_frames_that_change)
{
    static const size_t sizes[] = {8, TRIB_ENTRY_PAYLOAD, 40, SLOT};

    for (int k = 0; k < 8; k++) {
        struct pair *p = open_pair(transports[k / 4], 8);
        struct end *b = &p->end[1];
        send_number(&p->end[0], 0, 1, sizes[k % 4]);
        poll_pair(p);
        struct trib_entry *seen = trib_link_peek(&b->link, &b->arena, 0);
        assert_non_null(seen);
        const uint8_t *payload = trib_link_received(&b->link, &b->arena, 0, seen);
        struct trib_entry *slot = trib_link_slot(&b->link, &b->arena, 0);
        memset(slot, 0xff, sizeof(*slot)); /* position, too */
        assert_ptr_equal(trib_link_peek(&b->link, &b->arena, 0), seen);
        assert_int_equal(seen->frame.magic, TRIB_FRAME_MAGIC);
        assert_int_equal(seen->frame.kind, TRIB_FRAME_DATA);
        assert_int_equal(seen->frame.bytes, sizes[k % 4]);
        assert_ptr_equal(trib_link_received(&b->link, &b->arena, 0, seen), payload);
        assert_int_equal(payload[0], 1);
        trib_link_release(&b->link, &b->arena, 0);
        assert_int_equal(b->link.recv[0].next, 1);
        assert_null(trib_link_peek(&b->link, &b->arena, 0));
        close_pair(p);
    }
}

/* While a sender does not poll, its transport fills up. The receiver then owes the
 * credits, and none is lost. */
TEST(test_owed_credits)
{
    struct pair *p = open_pair("shm+nomap", 2);
    struct end *a = &p->end[0], *b = &p->end[1];
    struct trib_event events[8];

    for (uint32_t i = 0; i < 2; i++)
        send_number(a, 0, i, 8);
    int n = b->transport->ops->poll(b->transport, events, 8);
    for (int k = 0; k < n; k++)
        assert_true(trib_link_event(&b->link, &events[k]));
    for (int i = 0; !b->link.recv[0].owed && i < 100000; i++)
        trib_link_give_back(&b->link, 0);
    assert_true(b->link.recv[0].owed);
    for (uint32_t i = 0; i < 2; i++) {
        assert_non_null(trib_link_peek(&b->link, &b->arena, 0));
        trib_link_release(&b->link, &b->arena, 0);
    }
    assert_true(b->link.recv[0].owed);
    assert_int_equal(b->link.recv[0].returned, 0);
    assert_false(trib_link_can_send(&a->link, 0, 8));
    poll_pair(p);
    trib_link_give_back(&b->link, 0);
    assert_false(b->link.recv[0].owed);
    assert_int_equal(b->link.recv[0].returned, 2);
    do
        poll_pair(p);
    while (!trib_link_can_send(&a->link, 0, 8));
    assert_int_equal(a->link.send[0].released, 2);
    close_pair(p);
}

/* Fill the lane of a link that uses events. */
static struct pair *full_pair(void)
{
    struct pair *p = open_pair("shm+nomap", 4);

    for (uint32_t i = 0; i < 4; i++)
        send_number(&p->end[0], 1, i, 8);
    assert_false(trib_link_can_send(&p->end[0].link, 1, 8));
    return p;
}

static struct trib_event credits_of(int lane, uint32_t count)
{
    return (struct trib_event){.kind = TRIB_EVENT_ARRIVED,
                               .imm = (uint32_t)TRIB_LINK_CREDITS << 24 |
                                      (count << 1 & 0xfffffe) | (uint32_t)lane};
}

/* A credit's value comes from its event, not from memory that its writes once shared:
 * with several rails an older write may complete there last. */
TEST(test_credits_travel_in_events)
{
    struct pair *p = full_pair();
    struct end *a = &p->end[0], *b = &p->end[1];
    struct trib_event events[8];

    const int n = b->transport->ops->poll(b->transport, events, 8);
    for (int k = 0; k < n; k++)
        (void)trib_link_event(&b->link, &events[k]);
    for (int i = 0; i < 4; i++) {
        assert_non_null(trib_link_peek(&b->link, &b->arena, 1));
        trib_link_release(&b->link, &b->arena, 1);
    }
    assert_false(trib_link_can_send(&a->link, 1, 8)); /* no event was taken yet */
    poll_pair(p);
    assert_true(trib_link_can_send(&a->link, 1, 8));
    assert_int_equal(a->link.send[1].released, 4);
    close_pair(p);
}

/* Credits from a peer: credits for frames that were not sent are rejected, and repeated
 * ones change nothing. */
TEST(test_credits_fit)
{
    struct pair *p = full_pair();
    struct trib_link *l = &p->end[0].link;

    for (uint32_t count = 1; count <= 4; count++) {
        const struct trib_event e = credits_of(1, count);
        for (int twice = 0; twice < 2; twice++) {
            assert_true(trib_link_credits_fit(l, &e));
            assert_true(trib_link_event(l, &e));
            assert_int_equal(atomic_load(&l->my_credits[1]), count);
        }
    }
    for (uint32_t count = 5; count < 1u << 23; count = count * 2 + 1) {
        const struct trib_event e = credits_of(1, count);
        assert_false(trib_link_credits_fit(l, &e));
    }
    const struct trib_event other = credits_of(0, 1), older = credits_of(1, 3);
    assert_false(trib_link_credits_fit(l, &other)); /* nothing was sent there */
    assert_false(trib_link_credits_fit(l, &older));
    close_pair(p);
}

/* Events of peers may be anything. */
TEST(test_unknown_events)
{
    struct pair *p = open_pair("shm+nomap", 2);
    struct end *b = &p->end[1];

    for (uint32_t kind = 0; kind < 256; kind += 5) {
        struct trib_event e = {.kind = TRIB_EVENT_ARRIVED,
                               .imm = kind << 24 | 0xfffff0};
        trib_link_event(&b->link, &e);
    }
    assert_null(trib_link_peek(&b->link, &b->arena, 0));
    assert_null(trib_link_peek(&b->link, &b->arena, 1));
    close_pair(p);
}
