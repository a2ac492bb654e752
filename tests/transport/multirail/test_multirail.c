/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rails that are lost. Two ranks in one thread over loop, each inner transport in a
 * wrapper that can stall, and that goes dead at a certain write: nothing passes any
 * more, and the one end, the other, or both notice. Whatever the moment, each message
 * arrives once, in order, with its bytes, though its source changes as soon as its
 * WRITE_DONE is here and its target once it was read.
 */
#include "tests/transport/multirail/multirail_rig.h"

#include <math.h>

/* Rails of any speeds, known at both ends, at one, or not. */
static void draw_speeds(int n)
{
    static const uint32_t speeds[] = {0, 1, 10000, 25000, 100000, 800000};

    for (int side = 0; side < 2; side++)
        for (int k = 0; k < n; k++)
            rig.speed[side][k] = speeds[rig.seed % 3 ? 1 + draw(5) : draw(6)];
}

/* Each rail carries bytes in proportion to its speed, whatever lengths alternate. */
TEST(test_shares)
{
    static const uint32_t speeds[][MULTIRAIL_MAX] = {
        {100, 100}, {10, 1}, {200000, 25000, 100000}, {1, 2, 3, 4}, {0, 5000}};
    static const uint64_t lens[][4] = {
        {65536, 65536, 65536, 65536}, {262144, 4, 262144, 4}, {64, 4, 4096, 1}};

    for (size_t i = 0; i < sizeof(speeds) / sizeof(speeds[0]); i++) {
        for (size_t k = 0; k < sizeof(lens) / sizeof(lens[0]); k++) {
            struct multirail_peer p = {.n = i == 3 ? 4 : i == 2 ? 3 : 2};
            double bytes[MULTIRAIL_MAX] = {0}, all = 0, speed = 0;
            struct multirail_order order;
            trib_multirail_set_shares(&p, speeds[i]);
            trib_multirail_set_order(&order, &p);
            for (uint32_t event = 0; event < 4000; event++) {
                const uint64_t len = lens[k][event % 4];
                bytes[multirail_next(&order)] += (double)len + 64;
                all += (double)len + 64;
                trib_multirail_advance(&order, len);
            }
            for (int rail = 0; rail < p.n; rail++)
                speed += speeds[i][0] ? speeds[i][rail] : 1;
            for (int rail = 0; rail < p.n; rail++) {
                const double own = speeds[i][0] ? speeds[i][rail] : 1;
                assert_true(fabs(bytes[rail] / all - own / speed) < 0.01);
            }
        }
    }
}

/* A rail that is ten times slower gets no part of a short burst. */
TEST(test_burst)
{
    struct multirail_peer p = {.n = 2};
    struct multirail_order order;

    trib_multirail_set_shares(&p, (const uint32_t[MULTIRAIL_MAX]){1000, 10000});
    trib_multirail_set_order(&order, &p);
    for (int event = 0; event < 8; event++) {
        assert_int_equal(multirail_next(&order), 1);
        trib_multirail_advance(&order, 65536);
    }
}

/* A rail whose device serves other peers is slow, not silent. */
TEST(test_busy_device)
{
    for (int busy = 0; busy < 2; busy++) {
        struct side s[2];
        rig_reset(2, 2);
        rig.stop_ms = 2000;
        rig.busy = busy == 1;
        rig.frozen = 1;
        rig.freeze_ms = 1600; /* longer than half of stop_ms */
        rig.freeze_at = 12;
        rig_open();
        run(s);
        assert_all_once(s);
        assert_int_equal(rig.pair.lines, busy ? 0 : 2);
        pair_close(&rig.pair);
    }
}

/* Messages in order and once, however the rails delay them. */
TEST(test_order)
{
    for (uint32_t seed = 0; seed < 60; seed++) {
        struct side s[2];
        int n = 2 + (int)seed % (MULTIRAIL_MAX - 1);
        rig_reset(n, n);
        rig.seed = seed;
        for (int k = 0; k < n; k++)
            rig.line[k].stall = seed * 37 % 30 * (uint32_t)k % 90;
        draw_speeds(n);
        rig_open();
        run(s);
        assert_all_once(s);
        assert_int_equal(rig.pair.lines, 0);
        pair_close(&rig.pair);
    }
}

static void cut(int rail, uint32_t at, uint32_t how)
{
    struct line *line = &rig.line[rail];

    line->cut_at = at;
    line->notices[0] = how % 3 != 1;
    line->notices[1] = how % 3 != 2;
    line->last_look[0] = how & 4;
    line->last_look[1] = how & 8;
}

/* A rail ends at its k-th write: at each k, with each way to notice. */
TEST(test_each_position)
{
    for (uint32_t at = 1; at < 2 * MESSAGES; at++) {
        for (uint32_t how = 0; how < 16; how++) {
            struct side s[2];
            int n = 2 + (int)(at + how) % 2;
            rig_reset(n, n);
            rig.seed = 100 * at + how;
            for (int k = 0; k < n; k++)
                rig.line[k].stall = draw(60);
            if (how % 2)
                draw_speeds(n);
            rig_open();
            cut((int)draw((uint32_t)n), at + 1, how);
            run(s);
            assert_all_once(s);
            pair_close(&rig.pair);
        }
    }
}

/* One rail after the other, also while the first loss is being dealt with. */
TEST(test_two_of_three)
{
    for (uint32_t seed = 0; seed < 400; seed++) {
        struct side s[2];
        rig_reset(3, 3);
        rig.seed = seed;
        for (int k = 0; k < 3; k++)
            rig.line[k].stall = draw(70);
        rig_open();
        cut((int)seed % 3, 2 + draw(20), draw(16));
        cut((int)(seed + 1) % 3, 2 + draw(24), draw(16));
        run(s);
        assert_all_once(s);
        pair_close(&rig.pair);
    }
}

/* All but one of eight, one after the other or at once. */
TEST(test_seven_of_eight)
{
    for (uint32_t seed = 0; seed < 100; seed++) {
        struct side s[2];
        rig_reset(MULTIRAIL_MAX, MULTIRAIL_MAX);
        rig.seed = seed;
        for (int k = 0; k < MULTIRAIL_MAX; k++)
            rig.line[k].stall = draw(50);
        rig_open();
        for (int k = 0; k < MULTIRAIL_MAX; k++) {
            if (k != (int)seed % MULTIRAIL_MAX)
                cut(k, 2 + draw(6), draw(16));
        }
        run(s);
        assert_all_once(s);
        pair_close(&rig.pair);
    }
}

/* Bytes that are as in the record before take no room, whatever the lengths. */
TEST(test_records)
{
    enum { LONGEST = 600 };
    uint8_t what[2][LONGEST], bytes[2 * LONGEST + 64], room[LONGEST];
    const struct trib_rng rng = {.seed = 1};
    uint32_t drawn = 0;

    for (int round = 0; round < 2000; round++) {
        const uint32_t rare = 1 + draw_u32(rng, drawn++) % 40;
        size_t len[2], at = 0, ends[2] = {0};
        for (int i = 0; i < 2; i++) {
            len[i] = 1 + draw_u32(rng, drawn++) % LONGEST;
            for (size_t k = 0; k < len[i]; k++) {
                const uint8_t before = i && k < len[0] ? what[0][k] : 0;
                what[i][k] =
                    draw_u32(rng, drawn++) % rare ? before : (uint8_t)(round + (int)k);
            }
            const struct multirail_bytes none = {NULL, 0};
            assert_true(trib_multirail_put(
                bytes, sizeof(bytes), &at, (struct multirail_bytes){what[i], len[i]},
                i ? (struct multirail_bytes){what[0], len[0]} : none));
            ends[i] = at;
        }
        at = 0;
        memset(room, 0xcc, sizeof(room));
        for (int i = 0; i < 2; i++) {
            assert_int_equal(
                trib_multirail_get((struct multirail_bytes){bytes, ends[1]}, &at, room,
                                   sizeof(room), i ? len[0] : 0),
                len[i]);
            assert_int_equal(at, ends[i]);
            assert_memory_equal(room, what[i], len[i]);
        }
        /* A truncated record is refused, and so is a room that is a byte too small. */
        at = ends[0];
        assert_int_equal(
            trib_multirail_get((struct multirail_bytes){bytes, ends[1] - 1}, &at, room,
                               sizeof(room), 0),
            0);
        at = 0;
        assert_false(trib_multirail_put(bytes, ends[0] - 1, &at,
                                        (struct multirail_bytes){what[0], len[0]},
                                        (struct multirail_bytes){NULL, 0}));
    }
}

/* No rail remains: one loss for each side, and no rank left of its own accord. */
TEST(test_none_remains)
{
    for (uint32_t seed = 0; seed < 60; seed++) {
        struct side s[2];
        struct trib_event e;
        rig_reset(2, 2);
        rig.seed = seed;
        rig_open();
        cut(0, 2 + draw(14), 12);
        cut(1, 2 + draw(14), 12);
        run(s);
        for (int i = 0; i < 2; i++) {
            struct trib_transport *t = rig.pair.t[i];
            assert_int_equal(s[i].lost, 1);
            assert_false(s[i].left);
            assert_status(t->ops->write(t, !i, &(struct trib_write){0}),
                          TRIB_ERR_PEER_LOST);
            for (int k = 0; k < 50; k++)
                assert_int_equal(t->ops->poll(t, &e, 1), 0);
        }
        pair_close(&rig.pair);
    }
}

/* Each end logs a loss once, with the device, and the route shows it. */
TEST(test_said)
{
    struct side s[2];
    struct trib_route route;

    rig_reset(2, 2);
    rig_open();
    cut(1, 9, 12);
    run(s);
    assert_all_once(s);
    for (int i = 0; i < 200; i++)
        poll_side(i % 2, &s[i % 2]);
    assert_int_equal(rig.pair.lines, 2);
    assert_non_null(strstr(rig.pair.logged, "loop line1 no longer reaches"));
    assert_non_null(strstr(rig.pair.logged, "the line is cut"));
    rig.pair.t[0]->ops->route(rig.pair.t[0], 1, &route);
    assert_string_equal(route.name, "loop");
    assert_string_equal(route.why, "2 rails: line0 line1 (lost)");
    pair_close(&rig.pair);
}

/* Rails that are lost at once have each its own reason. */
TEST(test_own_reasons)
{
    struct side s[2];

    rig_reset(8, 8);
    rig_open();
    for (int k = 1; k < 8; k++)
        cut(k, 3, 12);
    run(s);
    assert_all_once(s);
    for (int i = 0; i < 2; i++) {
        const struct multirail *r = (const struct multirail *)rig.pair.t[i];
        int told = 0;
        for (int k = 1; k < 8; k++) {
            char own[32];
            snprintf(own, sizeof(own), "cut at line%d", k);
            const char *why = r->peers[!i].rails[k].why;
            assert_true(!*why || strstr(why, own));
            told += *why != 0;
        }
        assert_true(told > 0); /* of the others the peer has told first */
    }
    pair_close(&rig.pair);
}

/* A peer that leaves has lost no rail. */
TEST(test_leave)
{
    struct side s[2];

    rig_reset(3, 3);
    rig_open();
    run(s);
    rig.pair.t[0]->ops->close(rig.pair.t[0]);
    uint64_t until = trib_deadline_ms(tribtest_patience_ms());
    while (!s[1].lost && !trib_deadline_passed(until))
        poll_side(1, &s[1]);
    assert_int_equal(s[1].lost, 1);
    assert_true(s[1].left);
    assert_int_equal(rig.pair.lines, 0);
    rig.pair.t[1]->ops->close(rig.pair.t[1]);
}

/* A rail that cannot be connected is as one that was lost at once. */
TEST(test_refused)
{
    struct side s[2];

    rig_reset(2, 2);
    rig.refuses[0] = true;
    rig_open();
    run(s);
    assert_all_once(s);
    assert_non_null(strstr(rig.pair.logged, "no way over line 0"));
    pair_close(&rig.pair);
}

/* Those that do not answer take their time at once, not one after the other. */
TEST(test_refused_at_once)
{
    struct side s[2];

    rig_reset(8, 8);
    rig.together = 7;
    for (int k = 0; k < 7; k++)
        rig.refuses[k + (k >= 2)] = true;
    rig_open();
    assert_false(rig.alone);
    run(s);
    assert_all_once(s);
    pair_close(&rig.pair);
}

/* A rail that delivers nothing while another one does is abandoned, though no device
 * reports an error. */
TEST(test_one_silent)
{
    for (int line = 0; line < 2; line++) {
        struct side s[2];
        rig_reset(2, 2);
        rig.stop_ms = 3000;
        rig.frozen = 1u << line;
        rig.freeze_ms = 3600000;
        rig.freeze_at = 12;
        rig_open();
        uint64_t begin = trib_now_ns();
        run(s);
        assert_true(trib_now_ns() - begin >= UINT64_C(1400000000));
        assert_all_once(s);
        assert_int_equal(rig.pair.lines, 2); /* one at each end */
        assert_non_null(strstr(rig.pair.logged, line ? "line1 no longer reaches"
                                                     : "line0 no longer reaches"));
        pair_close(&rig.pair);
    }
}

/* All rails are silent, as after a restart of their common switch: none is abandoned.
 */
TEST(test_all_silent)
{
    for (int seed = 0; seed < 3; seed++) {
        struct side s[2];
        rig_reset(3, 3);
        rig.seed = (uint32_t)seed;
        rig.stop_ms = 1000;
        rig.frozen = 7;
        rig.freeze_ms = 900;
        rig.freeze_at = 10 + 5 * (uint32_t)seed;
        rig_open();
        run(s);
        assert_all_once(s);
        assert_int_equal(rig.pair.lines, 0);
        pair_close(&rig.pair);
    }
}

/* After disconnect no event of the peer arrives, whatever was pending. */
TEST(test_nothing_after)
{
    struct pair *pair = &rig.pair;
    struct trib_event e;

    rig_reset(2, 2);
    rig_open();
    for (uint32_t i = 0; i < 4; i++)
        assert_ok(pair_write(pair, 8, i));
    assert_int_equal(pair_await(pair, 1, &e), 1);
    assert_int_equal(pair_await(pair, 0, &e), 1);
    assert_int_equal(e.kind, TRIB_EVENT_WRITE_DONE);
    pair->t[0]->ops->disconnect(pair->t[0], 1);
    for (int i = 0; i < 50; i++)
        assert_int_equal(pair->t[0]->ops->poll(pair->t[0], &e, 1), 0);
    pair_close(pair);
}

static struct side one_way[2];

static void write_on(void)
{
    for (int i = 0; i < 8; i++) {
        if (one_way[1].posted < 2 * MESSAGES && !one_way[1].lost)
            (void)post_next(1, &one_way[1]);
        poll_side(1, &one_way[1]);
    }
}

/* One end may write over a rail on which the other cannot reach it, also while that
 * rail is being abandoned. Acknowledged writes have arrived. */
TEST(test_one_way)
{
    for (uint32_t seed = 0; seed < 60; seed++) {
        int n = 2 + (int)seed % 3;
        if (seed % 5 == 0)
            n = MULTIRAIL_MAX;
        rig_reset(n, n);
        rig.seed = seed;
        rig.one_way[seed % 2] = true;
        rig.leaves = write_on;
        for (int k = 0; k < n; k++)
            rig.line[k].stall = draw(60);
        rig_open();
        run(one_way);
        assert_all_once(one_way);
        rig.leaves = NULL;
        pair_close(&rig.pair);
    }
}

/* The end with fewer rails decides how many there are. */
TEST(test_fewer)
{
    struct side s[2];
    struct trib_route route;

    rig_reset(8, 2);
    rig_open();
    run(s);
    assert_all_once(s);
    rig.pair.t[0]->ops->route(rig.pair.t[0], 1, &route);
    assert_string_equal(route.why, "2 rails: line0 line1");
    pair_close(&rig.pair);
}

/* Devices of one network go together, whatever their order. */
TEST(test_networks)
{
    struct side s[2];
    struct trib_route route;

    rig_reset(3, 2);
    rig.net[0][0] = 5;
    rig.net[0][1] = 8;
    rig.net[0][2] = 9;
    rig.net[1][0] = 9;
    rig.net[1][1] = 8;
    rig.wired[1] = 1;
    rig.wired[2] = 0;
    rig_open();
    run(s);
    assert_all_once(s);
    rig.pair.t[0]->ops->route(rig.pair.t[0], 1, &route);
    assert_string_equal(route.why, "2 rails: line1 line2");
    rig.pair.t[1]->ops->route(rig.pair.t[1], 0, &route);
    assert_string_equal(route.why, "2 rails: line1 line0");
    pair_close(&rig.pair);
}

/* Freed memory cannot be written from again: the peer is lost, no data is wrong. */
TEST(test_spoilt)
{
    struct pair *pair = &rig.pair;
    struct trib_region *region;
    struct trib_event e;
    uint8_t bytes[64] = {1};

    rig_reset(2, 2);
    rig_open();
    assert_ok(pair->t[0]->ops->reg(pair->t[0], bytes, sizeof(bytes), &region));
    cut(0, 0, 12);
    struct trib_write w = {.local = region, .remote = pair->remote[0], .len = 64};
    rig.line[0].cut_at = rig.line[0].writes;
    assert_ok(pair->t[0]->ops->write(pair->t[0], 1, &w));
    pair->t[0]->ops->dereg(pair->t[0], region);
    uint64_t until = trib_deadline_ms(tribtest_patience_ms());
    int n = 0;
    while (!n && !trib_deadline_passed(until)) {
        (void)pair->t[1]->ops->poll(pair->t[1], &e, 1);
        n = pair->t[0]->ops->poll(pair->t[0], &e, 1);
    }
    assert_int_equal(n, 1);
    assert_int_equal(e.kind, TRIB_EVENT_PEER_LOST);
    assert_non_null(strstr(e.why, "is no longer registered"));
    /* It lives, and has not left. */
    assert_int_equal(pair_await(pair, 1, &e), 1);
    assert_int_equal(e.kind, TRIB_EVENT_PEER_LOST);
    assert_false(e.left);
    assert_true(e.given_up);
    assert_string_equal(e.why, "it has declared this rank lost");
    pair_close(pair);
}

/* A peer gives this rank up by its word over each rail that it still has, and not by
 * one over a rail that alone is lost. */
TEST(test_given_up)
{
    for (int first = 0; first < 2; first++) {
        struct side s[2];
        struct trib_event e;
        rig_reset(2, 2);
        rig.line[0].gives_up = first == 0;
        rig.line[1].gives_up = first == 1;
        rig_open();
        cut(0, 9, 12);
        run(s);
        assert_all_once(s);
        rig.line[1].down = true;
        for (int i = 0; i < 2; i++) {
            assert_int_equal(pair_await(&rig.pair, i, &e), 1);
            assert_int_equal(e.kind, TRIB_EVENT_PEER_LOST);
            assert_false(e.left);
            assert_int_equal(e.given_up, first == 1);
        }
        pair_close(&rig.pair);
    }
}

/* A peer that writes over one rail alone leaves gaps that nothing fills: what waits for
 * them does not grow without end. */
TEST(test_leaves_out_a_rail)
{
    enum { FAR_TOO_MANY = 100000 };
    const struct trib_write w = {.imm = 7};
    struct trib_event e = {.kind = TRIB_EVENT_ARRIVED};
    int n = 0;

    rig_reset(2, 2);
    rig_open();
    struct trib_transport *line = inner_of(&rig.wrap[0][1]->base), *t = rig.pair.t[1];
    while (n < FAR_TOO_MANY && e.kind != TRIB_EVENT_PEER_LOST) {
        trib_status_t st = line->ops->write(line, 1, &w);
        n += st == TRIB_OK;
        if (st != TRIB_OK)
            assert_status(st, TRIB_ERR_NO_RESOURCE);
        assert_int_equal(line->ops->poll(line, &e, 1), 0); /* moves them on */
        if (t->ops->poll(t, &e, 1))
            assert_int_equal(e.kind, TRIB_EVENT_PEER_LOST);
    }
    if (n == FAR_TOO_MANY)
        fail_msg("%d writes wait for one that never comes", n);
    assert_non_null(strstr(e.why, "skips another whose turn it is"));
    pair_close(&rig.pair);
}

TEST(test_wrong_text)
{
    struct pair pair;

    pair_refuses("rails:n=1", TRIB_ERR_CONFIG, "n=1 is not a whole number from 2 to 8");
    pair_refuses("rails:n=9", TRIB_ERR_CONFIG, "n=9 is not a whole number from 2 to 8");
    pair_refuses("rails:over=shm", TRIB_ERR_CONFIG, "must be tcp or loop");
    pair_refuses("rails:many=2", TRIB_ERR_CONFIG, "has no parameter");
    pair_open(&pair, "rails:over=loop", "rails:over=loop");
    struct trib_write w = {.imm = TRIB_IMM_OWN};
    assert_status(pair.t[0]->ops->write(pair.t[0], 1, &w), TRIB_ERR_INVALID);
    assert_non_null(strstr(pair.err.text, "reserved for the transport"));
    pair_close(&pair);
}
