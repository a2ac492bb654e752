/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Notices of a link: the newest counts, and it is read as a whole. Two ends in one
 * process, once with load/store reach and once by writes.
 */
#include "tests/pipeline/link/link_pair.h"

TEST(test_notices)
{
    struct trib_oob_notice n = {.kind = TRIB_OOB_NOTICE_FAILED,
                                .status = -22,
                                .text = "because"},
                           got;

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

/* A notice must not change until the transport has read it. */
TEST(test_notices_wait_for_the_last)
{
    struct trib_oob_notice n = {.kind = TRIB_OOB_NOTICE_WAITING}, got;
    struct pair *p = open_pair("shm+nomap", 2);
    struct end *a = &p->end[0], *b = &p->end[1];
    struct trib_event done = {.kind = TRIB_EVENT_WRITE_DONE};

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
    /* Both writes are in flight, and a report uses the space of the second one. */
    n.kind = TRIB_OOB_NOTICE_SURVIVOR;
    assert_status(trib_arena_make_reports(&a->arena), TRIB_OK);
    assert_false(trib_link_event(&a->link, &done));
    assert_status(trib_link_report(&a->link, &a->arena, &n), TRIB_ERR_NO_RESOURCE);
    assert_false(trib_link_event(&a->link, &done));
    assert_status(trib_link_report(&a->link, &a->arena, &n), TRIB_OK);
    close_pair(p);
}

/* The notice of rank 0 in the arena of rank 1. */
static struct trib_oob_notice *raw_notice(struct pair *p)
{
    return (struct trib_oob_notice *)(p->end[1].arena.base +
                                      sizeof(struct trib_credits));
}

TEST(test_half_a_notice_is_none)
{
    struct pair *p = open_pair("shm", 2);
    struct end *b = &p->end[1];
    struct trib_oob_notice got, *raw = raw_notice(p);

    atomic_store(&raw->version, 1); /* being written */
    assert_false(trib_link_notice(&b->link, &b->arena, 0, &got));
    atomic_store(&raw->version, 2); /* its end has not arrived */
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

/* Read a notice repeatedly while a peer writes it: every returned notice is
 * consistent. */
TEST(test_notices_are_whole)
{
    struct pair *p = open_pair("shm", 2);
    struct writer w = {.end = &p->end[0]};
    struct end *b = &p->end[1];
    struct trib_oob_notice got;
    pthread_t thread;
    uint32_t last = 0;

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

/* A notice is read on its event, from memory with its version. A late wait notice does
 * not replace the message of a failure. */
TEST(test_notices_travel_in_events)
{
    struct trib_oob_notice n = {.kind = TRIB_OOB_NOTICE_WAITING}, got;
    struct pair *p = open_pair("shm+nomap", 2);
    struct end *a = &p->end[0], *b = &p->end[1];

    n.frame.seq = 7;
    assert_status(trib_link_notify(&a->link, &a->arena, &n), TRIB_OK);
    n.kind = TRIB_OOB_NOTICE_FAILED;
    n.status = TRIB_ERR_ABORTED;
    assert_status(trib_link_notify(&a->link, &a->arena, &n), TRIB_OK);
    /* Both are in memory, but no event has arrived. */
    assert_false(trib_link_notice(&b->link, &b->arena, 0, &got));
    poll_pair(p);
    assert_true(trib_link_notice(&b->link, &b->arena, 0, &got));
    assert_int_equal(got.kind, TRIB_OOB_NOTICE_FAILED);
    assert_true(trib_link_notice(&b->link, &b->arena, 0, &got));
    assert_int_equal(got.kind, TRIB_OOB_NOTICE_WAITING);
    assert_false(trib_link_notice(&b->link, &b->arena, 0, &got));
    /* An older one that ends in the place last is not taken for a new one. */
    atomic_store(&raw_notice(p)->version_end, 2);
    atomic_store(&raw_notice(p)->version, 2);
    assert_false(trib_link_notice(&b->link, &b->arena, 0, &got));
    close_pair(p);
}
