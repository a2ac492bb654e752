/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank sends messages to a store, in order and out of order. */
#include "tests/agg/store/peer_rig.h"

/* Receive the elements of an answer, times `factor`, then STORE_DONE. */
static void hear_elements(struct rig *rig, uint64_t first, uint64_t count, float factor,
                          uint64_t version)
{
    for (uint64_t at = 0; at < count * 4;) {
        const struct trib_control m = hear(rig, TRIB_CONTROL_STORE_DATA);
        assert_int_equal(m.store_data.offset, at);
        for (uint64_t i = 0; i < m.store_data.data.n / 4; i++) {
            float x;
            memcpy(&x, m.store_data.data.at + 4 * i, 4);
            assert_true(x == factor * rig->x[first + at / 4 + i]);
        }
        at += m.store_data.data.n;
    }
    assert_int_equal(hear(rig, TRIB_CONTROL_STORE_DONE).store_state.version, version);
}

static void pull(struct rig *rig, uint64_t first, uint64_t count)
{
    const struct trib_control m = {.kind = TRIB_CONTROL_STORE_PULL,
                                   .store_pull = {.first = first,
                                                  .count = count,
                                                  .bound = TRIB_CONTROL_UNBOUNDED}};

    assert_status(say(rig, &m), TRIB_OK);
}

TEST(test_order)
{
    struct rig *rig = rig_open(0);

    open_vector(rig);
    push(rig, 1, TRIB_CONTROL_PUSH_SET);
    assert_int_equal(hear(rig, TRIB_CONTROL_STORE_DONE).store_state.version, 0);
    push(rig, 1, TRIB_CONTROL_PUSH);
    assert_int_equal(hear(rig, TRIB_CONTROL_STORE_DONE).store_state.version, 1);
    push(rig, 1, TRIB_CONTROL_PUSH); /* again: it is not applied */
    assert_int_equal(hear(rig, TRIB_CONTROL_STORE_DONE).store_state.version, 1);
    pull(rig, 0, COUNT);
    hear_elements(rig, 0, COUNT, 2, 1);
    push(rig, 2, TRIB_CONTROL_PUSH_GIVE);
    hear_elements(rig, 0, COUNT, 3, 2);
    pull(rig, 777, 9000);
    hear_elements(rig, 777, 9000, 3, 2);
    const struct trib_store_counts n = trib_store_peer_counts(rig->peer);
    assert_int_equal(n.vectors, 1);
    assert_int_equal(n.pushes, 3);
    assert_int_equal(n.pulls, 2);
    assert_int_equal(n.received, 4 * BYTES);
    assert_int_equal(n.sent, 2 * BYTES + 36000);
    rig_close(rig);
}

TEST(test_not_due)
{
    struct rig *rig = rig_open(0);
    struct trib_control m = piece(rig, 1, 0);

    assert_status(say(rig, &m), TRIB_ERR_PROTOCOL); /* no such vector */
    open_vector(rig);
    m = piece(rig, 1, PIECE);
    assert_status(say(rig, &m), TRIB_ERR_PROTOCOL); /* not from its beginning */
    m = piece(rig, 1, 0);
    assert_status(say(rig, &m), TRIB_OK);
    assert_status(say(rig, &m), TRIB_ERR_PROTOCOL); /* a piece twice */
    m = piece(rig, 2, PIECE);
    assert_status(say(rig, &m), TRIB_ERR_PROTOCOL); /* a piece of another push */
    m = opening("y");
    assert_status(say(rig, &m), TRIB_ERR_PROTOCOL); /* during a push */
    for (uint64_t at = PIECE; at < BYTES; at += PIECE) {
        m = piece(rig, 1, at);
        assert_status(say(rig, &m), TRIB_OK);
    }
    m = piece(rig, 2, 0);
    assert_status(say(rig, &m), TRIB_ERR_PROTOCOL); /* before its answer */
    (void)hear(rig, TRIB_CONTROL_STORE_DONE);
    static const struct trib_control_store_pull wrong[] = {
        {.vector = 1, .count = 1},
        {.first = COUNT, .count = 1},
        {.first = 1, .count = COUNT},
        {.first = UINT64_MAX, .count = UINT64_MAX}};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        m = (struct trib_control){.kind = TRIB_CONTROL_STORE_PULL,
                                  .store_pull = wrong[i]};
        assert_status(say(rig, &m), TRIB_ERR_PROTOCOL);
        assert_true(rig->err.text[0]);
    }
    m = (struct trib_control){.kind = TRIB_CONTROL_PLAN};
    assert_status(say(rig, &m), TRIB_ERR_PROTOCOL);
    rig_close(rig);
}

/* A push that is refused is read to its end, and the next one goes well. */
TEST(test_refused)
{
    struct rig *rig = rig_open(BYTES + 4096);
    struct trib_control m;

    open_vector(rig);
    push(rig, 1, TRIB_CONTROL_PUSH);
    m = hear(rig, TRIB_CONTROL_STORE_REFUSED);
    assert_int_equal(m.store_refused.status, -TRIB_ERR_NO_RESOURCE);
    assert_non_null(
        strstr(m.store_refused.text, "80000 bytes for a push or pull of rank 1"));
    pull(rig, 0, COUNT);
    (void)hear(rig, TRIB_CONTROL_STORE_REFUSED);
    rig->quota.most = 0;
    push(rig, 7, TRIB_CONTROL_PUSH);
    m = hear(rig, TRIB_CONTROL_STORE_REFUSED);
    assert_int_equal(m.store_refused.status, -TRIB_ERR_PROTOCOL);
    push(rig, 1, TRIB_CONTROL_PUSH);
    (void)hear(rig, TRIB_CONTROL_STORE_DONE);
    pull(rig, 5, 5);
    hear_elements(rig, 5, 5, 1, 1);
    push(rig, 1, TRIB_CONTROL_PUSH_SET);
    m = hear(rig, TRIB_CONTROL_STORE_REFUSED);
    assert_int_equal(m.store_refused.status, -TRIB_ERR_BUSY);
    m = opening("x");
    m.store_open.count = 7;
    assert_status(say(rig, &m), TRIB_OK);
    m = hear(rig, TRIB_CONTROL_STORE_REFUSED);
    assert_int_equal(m.store_refused.status, -TRIB_ERR_MISMATCH);
    rig_close(rig);
}

static void wait_for(struct rig *rig, uint64_t version, uint32_t bound)
{
    const struct trib_control m = {
        .kind = TRIB_CONTROL_STORE_PULL,
        .store_pull = {.count = 3, .at_least = version, .bound = bound, .wait_ms = 10}};
    struct trib_control none;

    assert_status(say(rig, &m), TRIB_OK);
    assert_false(trib_store_peer_next(rig->peer, &none));
    assert_int_equal(trib_store_peer_due(rig->peer), 0);
    trib_store_peer_wake(rig->peer, 1000);
    assert_false(trib_store_peer_next(rig->peer, &none));
    assert_int_equal(trib_store_peer_due(rig->peer), 10001000);
}

static void refused_for(struct rig *rig, const char *words)
{
    trib_store_peer_wake(rig->peer, 10001000);
    const struct trib_control m = hear(rig, TRIB_CONTROL_STORE_REFUSED);

    assert_int_equal(m.store_refused.status, -TRIB_ERR_TIMEOUT);
    assert_non_null(strstr(m.store_refused.text, words));
    assert_int_equal(trib_store_peer_due(rig->peer), UINT64_MAX);
}

/* Pulls of rank 1 that wait for a version, and for rank 0. */
TEST(test_waits)
{
    struct rig *rig = rig_open(0);
    struct trib_store_table_push other = {.rank = 0, .number = 1, .data = rig->x};
    const struct trib_control early = {.kind = TRIB_CONTROL_STORE_PULL,
                                       .store_pull = {.count = 3}};

    open_vector(rig);
    wait_for(rig, 1, TRIB_CONTROL_UNBOUNDED);
    assert_status(say(rig, &early), TRIB_ERR_PROTOCOL); /* during the wait */
    refused_for(rig, "has version 0; version 1 was not reached within 10 ms");
    wait_for(rig, 1, TRIB_CONTROL_UNBOUNDED);
    assert_status(trib_store_table_push(rig->table, 0, &other, NULL, NULL), TRIB_OK);
    trib_store_peer_wake(rig->peer, 2000);
    hear_elements(rig, 0, 3, 1, 1);
    push(rig, 1, TRIB_CONTROL_PUSH);
    (void)hear(rig, TRIB_CONTROL_STORE_DONE);
    push(rig, 2, TRIB_CONTROL_PUSH);
    (void)hear(rig, TRIB_CONTROL_STORE_DONE);
    wait_for(rig, 0, 0);
    refused_for(rig, "rank 1 has made 2 pushes, rank 0 1: more than 0 apart");
    wait_for(rig, 0, 0);
    other.number = 2;
    assert_status(trib_store_table_push(rig->table, 0, &other, NULL, NULL), TRIB_OK);
    trib_store_peer_wake(rig->peer, 2000);
    hear_elements(rig, 0, 3, 4, 4);
    push(rig, 3, TRIB_CONTROL_PUSH);
    (void)hear(rig, TRIB_CONTROL_STORE_DONE);
    wait_for(rig, 0, 0);
    trib_store_set_presence(rig->table, 0, TRIB_STORE_LOST); /* it may return */
    refused_for(rig, "rank 1 has made 3 pushes, rank 0 2: more than 0 apart for 10 ms; "
                     "rank 0 is lost");
    wait_for(rig, 9, TRIB_CONTROL_UNBOUNDED);
    trib_store_set_presence(rig->table, 1, TRIB_STORE_LOST);
    refused_for(rig, "version 9 was not reached within 10 ms; 2 ranks are lost, the "
                     "first is rank 0");
    trib_store_set_presence(rig->table, 1, TRIB_STORE_PRESENT);
    wait_for(rig, 0, 0);
    trib_store_set_presence(rig->table, 0, TRIB_STORE_LEFT); /* for good: no wait */
    trib_store_peer_wake(rig->peer, 2000);
    hear_elements(rig, 0, 3, 5, 5);
    rig_close(rig);
}

/* A copy of the highest version takes no push until another copy replaces it. */
TEST(test_highest_version)
{
    struct rig *rig = rig_open(0);
    struct trib_control m;

    open_vector(rig);
    push(rig, TRIB_CONTROL_PUSHES_MAX, TRIB_CONTROL_PUSH_RESTORE);
    (void)hear(rig, TRIB_CONTROL_STORE_DONE);
    push(rig, 1, TRIB_CONTROL_PUSH);
    m = hear(rig, TRIB_CONTROL_STORE_DONE);
    assert_true(m.store_state.version == TRIB_CONTROL_PUSHES_MAX);
    push(rig, 1, TRIB_CONTROL_PUSH); /* again: it is not applied, but answered */
    (void)hear(rig, TRIB_CONTROL_STORE_DONE);
    push(rig, 2, TRIB_CONTROL_PUSH);
    m = hear(rig, TRIB_CONTROL_STORE_REFUSED);
    assert_int_equal(m.store_refused.status, -TRIB_ERR_OVERFLOW);
    assert_non_null(strstr(m.store_refused.text, "version 9223372036854775807"));
    push(rig, 5, TRIB_CONTROL_PUSH_RESTORE);
    (void)hear(rig, TRIB_CONTROL_STORE_DONE);
    push(rig, 1, TRIB_CONTROL_PUSH);
    assert_int_equal(hear(rig, TRIB_CONTROL_STORE_DONE).store_state.version, 5);
    rig_close(rig);
}
