/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mailboxes: entries arrive in order, with their payload, at most a window of them in
 * flight; credits return; each end continues only after the other's notification.
 */
#include "tests/pipeline/link/link_pair.h"

#include "pipeline/p2p/mailbox.h"

static const char *const ways[] = {"shm", "shm+nomap"};

static void poll_boxes(struct pair *p, struct trib_mailbox *box)
{
    struct trib_event events[8];
    int n;

    for (int i = 0; i < 2; i++) {
        struct trib_transport *t = p->end[i].transport;
        while ((n = t->ops->poll(t, events, 8)) > 0) {
            for (int k = 0; k < n; k++) {
                const uint32_t kind = events[k].imm >> 24;
                if (events[k].kind == TRIB_EVENT_WRITE_DONE
                        ? events[k].token >= TRIB_LINK_MESSAGE_TOKEN
                        : kind == TRIB_LINK_MESSAGE ||
                              kind == TRIB_LINK_MESSAGE_CREDITS)
                    assert_true(trib_mailbox_event(&box[i], &events[k]));
                else
                    (void)trib_link_event(&p->end[i].link, &events[k]);
            }
        }
    }
}

static struct pair *open_boxes(const char *transport, uint32_t window,
                               struct trib_mailbox *box)
{
    struct pair *p = open_pair(transport, window);

    for (int i = 0; i < 2; i++) {
        box[i] = (struct trib_mailbox){.link = NULL};
        assert_ok(trib_mailbox_open(&box[i], &p->end[i].link, &p->end[i].arena));
        assert_int_equal(box[i].slots, p->end[i].arena.slots);
        assert_int_equal(box[i].slot_bytes, SLOT);
        assert_false(trib_mailbox_has_room(&box[i]));
    }
    assert_status(trib_mailbox_join(&box[0]), TRIB_INPROGRESS);
    poll_boxes(p, box);
    assert_ok(trib_mailbox_join(&box[1]));
    poll_boxes(p, box);
    for (int twice = 0; twice < 2; twice++)
        assert_ok(trib_mailbox_join(&box[0]));
    assert_true(trib_mailbox_has_room(&box[0]) && trib_mailbox_has_room(&box[1]));
    return p;
}

static void close_boxes(struct pair *p, struct trib_mailbox *box)
{
    for (int i = 0; i < 2; i++)
        trib_mailbox_close(&box[i]);
    trib_mailbox_close(&box[0]);
    close_pair(p);
}

static void send_entry(struct trib_mailbox *box, uint32_t number, uint32_t bytes)
{
    uint8_t *payload;
    struct trib_message *m = trib_mailbox_next(box, bytes, &payload);

    m->send_id = number;
    m->bytes = bytes;
    memset(payload, (int)(number & 0xff), bytes);
    assert_ok(trib_mailbox_post(box));
}

static void expect_entry(struct trib_mailbox *box, uint32_t number, uint32_t bytes)
{
    const uint8_t *payload;
    const struct trib_message *m = NULL;

    for (int twice = 0; twice < 2; twice++)
        m = trib_mailbox_peek(box, &payload);
    assert_non_null(m);
    assert_int_equal(m->send_id, number);
    assert_int_equal(m->bytes, bytes);
    for (uint32_t i = 0; i < bytes; i++)
        assert_int_equal(payload[i], number & 0xff);
    trib_mailbox_release(box);
    trib_mailbox_pay(box);
}

TEST(test_entries)
{
    static const uint32_t sizes[] = {0, 1, 28, 29, SLOT};

    for (int t = 0; t < 2; t++) {
        for (uint32_t window = 1; window <= 8; window *= 2) {
            struct trib_mailbox box[2];
            struct pair *p = open_boxes(ways[t], window, box);
            const uint8_t *payload;
            for (uint32_t k = 0; k < 200; k++) {
                assert_true(trib_mailbox_has_room(&box[k % 2]));
                send_entry(&box[k % 2], k, sizes[k % 5]);
                poll_boxes(p, box);
                expect_entry(&box[1 - k % 2], k, sizes[k % 5]);
                assert_null(trib_mailbox_peek(&box[1 - k % 2], &payload));
                poll_boxes(p, box);
            }
            assert_int_equal(box[0].sent, 100);
            assert_int_equal(box[0].written, 100);
            close_boxes(p, box);
        }
    }
}

/* At most a window of entries is in flight, however many of them are eager. */
TEST(test_window)
{
    for (int t = 0; t < 2; t++) {
        struct trib_mailbox box[2];
        struct pair *p = open_boxes(ways[t], 4, box);
        for (uint32_t round = 0; round < 10; round++) {
            uint32_t n = 0;
            while (trib_mailbox_has_room(&box[0])) {
                box[0].sent_eager++;
                send_entry(&box[0], n++, 100);
            }
            assert_int_equal(n, 4);
            assert_false(trib_mailbox_takes_eager(&box[0], 4));
            assert_true(trib_mailbox_takes_eager(&box[0], 5));
            poll_boxes(p, box);
            for (uint32_t k = 0; k < n; k++) {
                box[1].consumed++;
                expect_entry(&box[1], k, 100);
                poll_boxes(p, box);
            }
            assert_true(trib_mailbox_takes_eager(&box[0], 1));
        }
        assert_true(trib_mailbox_bytes(&box[0]) >= 64 + 4 * (64 + SLOT));
        close_boxes(p, box);
    }
}

/* The event of an entry arrives twice. */
TEST(test_twice)
{
    struct trib_mailbox box[2];
    struct pair *p = open_boxes("shm+nomap", 4, box);
    const struct trib_event again = {.kind = TRIB_EVENT_ARRIVED,
                                     .imm = (uint32_t)TRIB_LINK_MESSAGE << 24};

    send_entry(&box[0], 1, 10);
    poll_boxes(p, box);
    assert_false(trib_mailbox_event(&box[1], &again));
    expect_entry(&box[1], 1, 10);
    close_boxes(p, box);
}
