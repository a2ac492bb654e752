/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Links: slots, credits, positions that wrap, notices. Two ends in one process, once
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
                /* Credits come back by halves of a window at the latest. */
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

static void test_window(void **state)
{
    (void)state;
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

/* Beside aggregators fewer contributions than results are under way, and credits come
 * earlier. */
static void test_contributions(void **state)
{
    (void)state;
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

/* Elements without a codec stop at raw_window frames, code words at the window. Credits
 * come back by halves of the smaller one: elements never wait for code words. */
static void test_raw_window(void **state)
{
    enum { WINDOW = 16 };

    (void)state;
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
static void test_places(void **state)
{
    (void)state;
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

/* Sets the counters as if 2^32 - 20 frames had gone over both lanes in both
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
static void test_positions_wrap(void **state)
{
    (void)state;
    for (int t = 0; t < 2; t++) {
        for (uint32_t window = 1; window <= 9; window++) {
            struct pair *p = open_pair(transports[t], window);
            age(p);
            run_window(p, window, 60);
            close_pair(p);
        }
    }
}

/* No frame goes before the peer has advertised its slots, but both may leave. */
static void test_not_advertised(void **state)
{
    (void)state;
    for (int t = 0; t < 2; t++) {
        struct pair *p = calloc(1, sizeof(*p));
        struct end *a = &p->end[0], *b = &p->end[1];
        assert_status(trib_config_load(&p->cfg, NULL, NULL, NULL), TRIB_OK);
        for (int i = 0; i < 2; i++)
            open_end(p, i, transports[t], 2, true);
        assert_status(trib_link_connect(&a->link, &a->arena, 1, &b->address, &b->blob),
                      TRIB_OK);
        assert_int_equal(trib_arena_bytes(&a->arena), trib_arena_heads(2));
        assert_status(trib_link_open(&a->link, &a->arena), TRIB_OK);
        assert_int_equal(trib_arena_bytes(&a->arena),
                         trib_arena_heads(2) + trib_link_bytes(2, SLOT, t == 0));
        assert_int_equal(trib_arena_bytes(&b->arena), trib_arena_heads(2));
        poll_pair(p); /* b knows of the advert before it connects */
        assert_status(trib_link_take_advert(&a->link, &a->arena), TRIB_INPROGRESS);
        assert_false(can_send(p, 0, 0, 0));
        assert_status(trib_link_connect(&b->link, &b->arena, 0, &a->address, &a->blob),
                      TRIB_OK);
        assert_status(trib_link_take_advert(&b->link, &b->arena), TRIB_OK);
        assert_int_equal(b->link.window[TRIB_LANE_UP], 2);
        close_pair(p);
    }
}

/* A peer may write anything where its advert is expected. */
static void test_adverts_are_checked(void **state)
{
    (void)state;
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
            a->link.slots = NULL; /* as before the advert had come */
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
                    strstr(a->err.text, "rank 1 has exported memory of 64 bytes"));
            }
            if (small)
                p->end[1].transport->ops->dereg(p->end[1].transport, small);
            close_pair(p);
        }
    }
}

/* Frames whose sender goes on writing to them: what was seen of one is what it is,
 * until it is released; and one that was seen does not go away. */
static void test_frames_that_change(void **state)
{
    static const size_t sizes[] = {8, TRIB_ENTRY_PAYLOAD, 40, SLOT};

    (void)state;
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

/* Notices -------------------------------------------------------------------------- */

static void test_notices(void **state)
{
    struct trib_oob_notice n = {.kind = TRIB_OOB_NOTICE_FAILED,
                                .status = -22,
                                .text = "because"},
                           got;

    (void)state;
    for (int t = 0; t < 2; t++) {
        struct pair *p = open_pair(transports[t], 2);
        struct end *a = &p->end[0], *b = &p->end[1];
        assert_false(trib_link_notice(&b->link, &b->arena, 0, &got));
        n.frame = (struct trib_frame){.magic = TRIB_FRAME_MAGIC, .seq = 77};
        trib_link_notify(&a->link, &a->arena, &n);
        poll_pair(p);
        assert_true(trib_link_notice(&b->link, &b->arena, 0, &got));
        assert_int_equal(got.kind, TRIB_OOB_NOTICE_FAILED);
        assert_int_equal(got.status, -22);
        assert_int_equal(got.frame.seq, 77);
        assert_string_equal(got.text, "because");
        assert_false(trib_link_notice(&b->link, &b->arena, 0, &got)); /* once */
        assert_false(trib_link_notice(&a->link, &a->arena, 1, &got));
        for (uint32_t i = 0; i < 5; i++) { /* the newest counts */
            n.frame.seq = i;
            trib_link_notify(&a->link, &a->arena, &n);
        }
        poll_pair(p);
        assert_true(trib_link_notice(&b->link, &b->arena, 0, &got));
        assert_int_equal(got.frame.seq, 4);
        close_pair(p);
    }
}

/* A notice must lie still until the transport has read it. */
static void test_notices_wait_for_the_last(void **state)
{
    struct trib_oob_notice n = {.kind = TRIB_OOB_NOTICE_WAITING}, got;
    struct pair *p = open_pair("shm+nomap", 2);
    struct end *a = &p->end[0], *b = &p->end[1];
    struct trib_event done = {.kind = TRIB_EVENT_WRITE_DONE};

    (void)state;
    for (uint32_t i = 1; i <= 2; i++) {
        n.frame.seq = i;
        trib_link_notify(&a->link, &a->arena, &n);
    }
    poll_pair(p);
    assert_true(trib_link_notice(&b->link, &b->arena, 0, &got));
    assert_int_equal(got.frame.seq, 1);
    assert_false(trib_link_event(&a->link, &done));
    trib_link_notify(&a->link, &a->arena, &n);
    trib_link_notify(&a->link, &a->arena,
                     &(struct trib_oob_notice){.kind = TRIB_OOB_NOTICE_FAILED});
    poll_pair(p);
    assert_true(trib_link_notice(&b->link, &b->arena, 0, &got));
    assert_int_equal(got.kind, TRIB_OOB_NOTICE_FAILED);
    close_pair(p);
}

/* The notice of rank 0 in the arena of rank 1. */
static struct trib_oob_notice *raw_notice(struct pair *p)
{
    return (struct trib_oob_notice *)(p->end[1].arena.base +
                                      sizeof(struct trib_credits));
}

static void test_half_a_notice_is_none(void **state)
{
    struct pair *p = open_pair("shm", 2);
    struct end *b = &p->end[1];
    struct trib_oob_notice got, *raw = raw_notice(p);

    (void)state;
    atomic_store(&raw->version, 1); /* being written */
    assert_false(trib_link_notice(&b->link, &b->arena, 0, &got));
    atomic_store(&raw->version, 2); /* its end has not come */
    assert_false(trib_link_notice(&b->link, &b->arena, 0, &got));
    atomic_store(&raw->version_end, 2);
    memset(raw->text, 'x', sizeof(raw->text)); /* hostile: no final zero */
    assert_true(trib_link_notice(&b->link, &b->arena, 0, &got));
    assert_int_equal(strlen(got.text), sizeof(got.text) - 1);
    close_pair(p);
}

struct writer {
    struct end *end;
    _Atomic int stop;
};

static void *write_notices(void *arg)
{
    struct writer *w = arg;
    struct trib_oob_notice n = {.kind = TRIB_OOB_NOTICE_WAITING};

    for (uint32_t i = 1; !atomic_load(&w->stop); i++) {
        n.frame.seq = n.frame.digest = i;
        memset(n.text, 'a' + (int)(i % 26), sizeof(n.text) - 1);
        trib_link_notify(&w->end->link, &w->end->arena, &n);
        for (uint32_t k = 0; k < i % 300; k++)
            trib_pause(); /* now and then one stays long enough to be read */
    }
    return NULL;
}

/* Read while it is written, again and again: what is taken is whole. */
static void test_notices_are_whole(void **state)
{
    struct pair *p = open_pair("shm", 2);
    struct writer w = {.end = &p->end[0]};
    struct end *b = &p->end[1];
    struct trib_oob_notice got;
    pthread_t thread;
    uint32_t last = 0;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, write_notices, &w), 0);
    for (int taken = 0; taken < 5000;) {
        if (!trib_link_notice(&b->link, &b->arena, 0, &got))
            continue;
        taken++;
        assert_int_equal(got.frame.seq, got.frame.digest);
        assert_true(got.frame.seq > last);
        last = got.frame.seq;
        for (size_t i = 0; i < sizeof(got.text) - 1; i++)
            assert_int_equal(got.text[i], 'a' + (int)(last % 26));
    }
    atomic_store(&w.stop, 1);
    pthread_join(thread, NULL);
    close_pair(p);
}

/*
 * A sender sees credits in its memory before it looks at the events that tell of them.
 * If it does not look for long, the receiver cannot return the next ones, and owes
 * them.
 */
static void test_owed_credits(void **state)
{
    struct pair *p = open_pair("shm+nomap", 2);
    struct end *a = &p->end[0], *b = &p->end[1];
    struct trib_event events[8];
    int frames = 0;

    (void)state;
    for (; !b->link.recv[0].owed && frames < 100000; frames++) {
        assert_true(trib_link_can_send(&a->link, 0, 8));
        send_number(a, 0, 1, 8);
        int n = b->transport->ops->poll(b->transport, events, 8);
        for (int k = 0; k < n; k++)
            assert_true(trib_link_event(&b->link, &events[k]));
        assert_non_null(trib_link_peek(&b->link, &b->arena, 0));
        trib_link_release(&b->link, &b->arena, 0);
    }
    assert_true(b->link.recv[0].owed);
    trib_link_give_back(&b->link, &b->arena, 0);
    assert_true(b->link.recv[0].owed);
    poll_pair(p);
    trib_link_give_back(&b->link, &b->arena, 0);
    assert_false(b->link.recv[0].owed);
    assert_int_equal(b->link.recv[0].returned, frames);
    close_pair(p);
}

/* Events of peers may be anything. */
static void test_unknown_events(void **state)
{
    struct pair *p = open_pair("shm+nomap", 2);
    struct end *b = &p->end[1];

    (void)state;
    for (uint32_t kind = 0; kind < 256; kind += 5) {
        struct trib_event e = {.kind = TRIB_EVENT_ARRIVED,
                               .imm = kind << 24 | 0xfffff0};
        trib_link_event(&b->link, &e);
    }
    assert_null(trib_link_peek(&b->link, &b->arena, 0));
    assert_null(trib_link_peek(&b->link, &b->arena, 1));
    close_pair(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_window),
        cmocka_unit_test(test_contributions),
        cmocka_unit_test(test_raw_window),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_positions_wrap),
        cmocka_unit_test(test_frames_that_change),
        cmocka_unit_test(test_not_advertised),
        cmocka_unit_test(test_adverts_are_checked),
        cmocka_unit_test(test_notices),
        cmocka_unit_test(test_notices_wait_for_the_last),
        cmocka_unit_test(test_half_a_notice_is_none),
        cmocka_unit_test(test_notices_are_whole),
        cmocka_unit_test(test_owed_credits),
        cmocka_unit_test(test_unknown_events),
    };

    tribtest_deadline(180);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
