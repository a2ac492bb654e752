/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events of the transport: the effect of each on the link, and the abort notice to
 * peers whose link is missing or full.
 */
#include "tests/pipeline/engine/engines.h"

#include <stdatomic.h>

static struct trib_event given;
static bool is_given;

static int poll_given(struct trib_transport *t, struct trib_event *events, int max)
{
    (void)t;
    (void)max;
    if (!is_given)
        return 0;
    events[0] = given;
    is_given = false;
    return 1;
}

/* Deliver one event to the engine of rank 1. Return true if it announces a frame. */
static bool take(struct engines *t, struct trib_event event)
{
    struct trib_engine *e = &t->side[1].engine;
    const struct trib_transport_ops *plain = e->transport->ops;
    struct trib_transport_ops ops = *plain;

    ops.poll = poll_given;
    given = event;
    is_given = true;
    e->transport->ops = &ops;
    const bool moved = trib_engine_events(e);
    e->transport->ops = plain;
    return moved;
}

TEST(test_lost)
{
    for (int left = 0; left < 2; left++) {
        struct engines *t = engines_two("shm+nomap", true);
        struct trib_engine *e = &t->side[1].engine;
        engines_start_in_place(t, 1);
        assert_false(take(t, (struct trib_event){.kind = TRIB_EVENT_PEER_LOST,
                                                 .peer = 0,
                                                 .left = left,
                                                 .why = "process 7 is gone"}));
        assert_true(e->links[0].lost);
        assert_status((trib_status_t)e->failed, TRIB_ERR_PEER_LOST);
        engines_words(e->failure.text,
                      (const char *const[]){"rank 0 (host here", "is lost",
                                            "process 7 is gone", "rank 1", NULL});
        engines_close(t);
    }
}

/* An event for a frame that is missing, because the previous event came twice. */
TEST(test_twice)
{
    struct engines *t = engines_two("shm+nomap", true);
    struct trib_engine *e = &t->side[1].engine;
    const uint32_t imm = (uint32_t)TRIB_LINK_FRAME << 24 | TRIB_LANE_UP;

    engines_start_in_place(t, 0);
    for (int i = 0; i < 3; i++)
        (void)trib_engine_progress(&t->side[0].engine);
    const uint32_t arrived = e->links[0].recv[TRIB_LANE_UP].arrived;
    assert_true(trib_engine_events(e));
    assert_true(e->links[0].recv[TRIB_LANE_UP].arrived > arrived);
    assert_int_equal(e->failed, 0);
    assert_false(take(t, (struct trib_event){.kind = TRIB_EVENT_ARRIVED, .imm = imm}));
    assert_status((trib_status_t)e->failed, TRIB_ERR_PROTOCOL);
    assert_non_null(strstr(e->failure.text, "sent a duplicate frame"));
    engines_close(t);
}

/* An immediate that no version of this library has is no frame, and no failure. */
TEST(test_unknown)
{
    static const uint32_t imms[] = {0x77000000, 0xfe000001,
                                    (uint32_t)TRIB_LINK_FRAME << 24 | 77};
    struct engines *t = engines_two("shm+nomap", true);
    struct trib_engine *e = &t->side[1].engine;

    for (int k = 0; k < 3; k++) {
        (void)take(t, (struct trib_event){.kind = TRIB_EVENT_ARRIVED, .imm = imms[k]});
        assert_int_equal(e->failed, 0);
        for (int lane = 0; lane < TRIB_LANES; lane++)
            assert_int_equal(e->links[0].recv[lane].arrived, 0);
    }
    engines_start(t);
    engines_drive(t);
    engines_done(t);
    engines_close(t);
}

static void hears(struct engines *t)
{
    struct trib_engine *e = &t->side[1].engine;

    const uint64_t until = trib_deadline_ms(10000);
    while (!e->failed && !trib_deadline_passed(until)) {
        (void)trib_engine_events(e);
        trib_engine_notices(e);
    }
    assert_status((trib_status_t)e->failed, TRIB_ERR_TIMEOUT);
    assert_string_equal(e->failure.text, "because of this");
}

static struct engines *strangers(const char *transport)
{
    return engines_meet(
        &(struct engines_opts){.ranks = 2, .transport = transport, .per_link = true});
}

/* A peer is notified of a failure over a link without slots, too. */
TEST(test_failure_without_slots)
{
    static const char *const transports[] = {"shm", "shm+nomap"};

    for (int k = 0; k < 2; k++) {
        struct engines *t = strangers(transports[k]);
        const struct trib_link *l = &t->side[0].engine.links[1];
        trib_engine_fail(&t->side[0].engine, TRIB_ERR_TIMEOUT, "because of this");
        assert_true(l->connected);
        assert_false(l->opened);
        hears(t);
        engines_close(t);
    }
}

/* An owner that progresses several engines in turn fails one without polling its peers,
 * and notifies them later. */
TEST(test_failure_that_is_told_later)
{
    struct engines *t = strangers("shm+nomap");
    struct trib_engine *e = &t->side[0].engine;

    e->notifies_later = true;
    trib_engine_fail(e, TRIB_ERR_TIMEOUT, "because of this");
    assert_false(e->links[1].connected);
    trib_engine_notify_failure(e);
    assert_true(e->links[1].connected);
    hears(t);
    engines_close(t);
}

/* An engine that fails because of another one notifies its own peers, except those that
 * the other has lost. */
TEST(test_failure_of_another_engine)
{
    struct engines *t = engines_meet(
        &(struct engines_opts){.ranks = 3, .transport = "shm+nomap", .per_link = true});
    struct engines *other = engines_meet(
        &(struct engines_opts){.ranks = 3, .transport = "shm+nomap", .per_link = true});
    struct trib_engine *e = &t->side[0].engine;

    other->side[0].engine.links[2].lost = true;
    other->side[0].engine.links[2].lives = true;
    trib_engine_fail(&other->side[0].engine, TRIB_ERR_TIMEOUT, "because of this");
    trib_engine_mark_like(e, &other->side[0].engine);
    (void)trib_engine_end(e);
    assert_false(e->links[2].connected);
    assert_false(e->links[2].lives);
    trib_engine_know_like(e, &other->side[0].engine);
    assert_true(e->links[2].lives && !e->links[1].lives);
    hears(t);
    engines_close(other);
    engines_close(t);
}

/* An engine does not search for ranks of a lost host. */
TEST(test_lost_hosts)
{
    struct engines *t = engines_meet(
        &(struct engines_opts){.ranks = 3, .transport = "shm+nomap", .per_link = true});
    struct trib_engine *e = &t->side[0].engine;

    for (int i = 1; i < 3; i++)
        snprintf(e->peers[i].host, sizeof(e->peers[i].host), "there");
    e->links[1].lost = true;
    trib_engine_fail(e, TRIB_ERR_TIMEOUT, "because of this");
    assert_false(e->links[2].connected);
    engines_close(t);
}

/* Fill the ring of rank 1, which does not poll for a while. */
static void fill_ring(struct engines *t)
{
    struct trib_engine *e = &t->side[0].engine;
    /* No rank waits in this operation. */
    struct trib_oob_notice n = {.kind = TRIB_OOB_NOTICE_WAITING};
    struct trib_link *l = &e->links[1];
    int sent = 0;

    for (; sent < 1000000; sent++) {
        l->notices_busy = 0;
        if (trib_link_notify(l, &e->arena, &n) != TRIB_OK)
            break;
    }
    assert_in_range(sent, 1, 999999);
    assert_status(trib_link_notify(l, &e->arena, &n), TRIB_ERR_NO_RESOURCE);
}

struct reader {
    struct trib_engine *engine;
    atomic_bool begun, notified;
};

/* Poll only events: notices are read after all writers have finished. */
static void *read_events(void *arg)
{
    struct reader *r = arg;

    while (!atomic_load(&r->notified)) {
        (void)trib_engine_events(r->engine);
        atomic_store(&r->begun, true);
    }
    return NULL;
}

/* A notice that the transport refused is sent when the peer has made room. */
TEST(test_full_transport)
{
    struct engines *t = engines_two("shm+nomap", true);
    struct trib_engine *e = &t->side[0].engine;
    struct reader reader = {.engine = &t->side[1].engine};
    pthread_t thread;

    fill_ring(t);
    e->notifies_later = true;
    trib_engine_fail(e, TRIB_ERR_TIMEOUT, "because of this");
    assert_true(e->links[1].unnotified);
    assert_int_equal(pthread_create(&thread, NULL, read_events, &reader), 0);
    while (!atomic_load(&reader.begun))
        sched_yield();
    trib_engine_notify_failure(e);
    assert_false(e->links[1].unnotified);
    atomic_store(&reader.notified, true);
    pthread_join(thread, NULL);
    hears(t);
    engines_close(t);
}
