/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sums that an aggregator closes without the late ranks: when it closes them, and how
 * it handles late frames and the contribution that was left out.
 */
#include "tests/pipeline/payload/payload_rig.h"

#include "base/time.h"
#include "pipeline/payload/partial.h"

enum { RANKS = 3, LATE = 2, AGGREGATOR = 3, COUNT = 2500, CHUNKS = 3 };

static struct payload_case case_of(uint32_t need, uint64_t deadline_ns)
{
    return (struct payload_case){
        .codec = "topk:ratio=1",
        .ranks = RANKS,
        .aggregators = 1,
        .count = COUNT,
        .config = "chunk=16K;window=2", /* not all results have room at once */
        .desc = {.may_undo = true,
                 .quorum = {.need = need, .deadline_ns = deadline_ns}}};
}

/* Progress all ranks but the late one. */
static void go_on(const struct rig *r, int passes)
{
    for (int i = 0; i < passes; i++)
        if (i % (RANKS + 1) != LATE)
            (void)trib_engine_progress(&rig_side(r, i % (RANKS + 1))->engine);
}

static void start_all(const struct rig *r)
{
    for (int i = 0; i <= RANKS; i++)
        if (i != LATE)
            rig_start_one(r, i);
}

static bool done(const struct rig *r, int rank)
{
    return rig_side(r, rank)->run.now.state == TRIB_RUN_DONE;
}

/* Sum of the ranks of a mask. */
static float sum_of(unsigned mask, int step, size_t i)
{
    float sum = 0;

    for (int rank = 0; rank < RANKS; rank++)
        sum += mask >> rank & 1 ? rig_given(rank, step, i) : 0;
    return sum;
}

static void has(const struct rig *r, int rank, unsigned mask, int step)
{
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal((int)rig_get(r, rig_result(r, rank), i),
                         (int)sum_of(mask, step, i));
}

/* Two of three ranks are enough after the deadline. The third one receives a result
 * without its contribution, keeps it, and adds it to the next sum. */
TEST(test_late)
{
    const struct payload_case c = case_of(2, 1);
    struct rig r = rig_open(&c);
    struct trib_engine *agg = &rig_side(&r, AGGREGATOR)->engine;
    const struct trib_run *late = &rig_side(&r, LATE)->run;

    rig_fill(&r, 0);
    start_all(&r);
    go_on(&r, 400);
    assert_true(done(&r, 0) && done(&r, 1) && done(&r, AGGREGATOR));
    has(&r, 0, 3, 0);
    has(&r, 1, 3, 0);
    assert_int_equal(agg->stats.short_sums, CHUNKS);
    assert_int_equal(agg->stats.late_frames, 0);
    assert_false(trib_quorum_idle(&rig_side(&r, AGGREGATOR)->run));

    rig_start_one(&r, LATE);
    rig_drive(&r);
    for (int i = 0; i < 20; i++)
        (void)trib_engine_progress(agg);
    rig_ok(&r);
    has(&r, LATE, 3, 0);
    assert_int_equal(agg->stats.late_frames, CHUNKS);
    assert_true(trib_quorum_idle(&rig_side(&r, AGGREGATOR)->run));
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal((int)late->payload->feedback.residual[i],
                         (int)rig_given(LATE, 0, i));
    for (int i = 0; i < RANKS; i++)
        for (uint32_t k = 0; k < CHUNKS; k++)
            assert_int_equal(rig_side(&r, i)->run.payload->quorum->masks[k], 3);

    rig_fill(&r, 1); /* all are in time: nothing is lost */
    rig_start_one(&r, LATE);
    rig_start_one(&r, 0);
    rig_start_one(&r, 1);
    for (int i = 0; i < 40; i++)
        (void)trib_engine_progress(&rig_side(&r, i % RANKS)->engine);
    rig_start_one(&r, AGGREGATOR);
    rig_drive(&r);
    rig_ok(&r);
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal((int)rig_get(&r, rig_result(&r, 0), i),
                         (int)(sum_of(7, 1, i) + rig_given(LATE, 0, i)));
    assert_int_equal(agg->stats.short_sums, CHUNKS);
    rig_close(&r);
}

/* Not before the deadline, and not with fewer than are needed. */
TEST(test_waits)
{
    static const struct {
        uint32_t need;
        uint64_t deadline_ns;
    } rows[] = {{3, 1}, {2, UINT64_C(1000000000000)}};

    for (int k = 0; k < 2; k++) {
        const struct payload_case c = case_of(rows[k].need, rows[k].deadline_ns);
        struct rig r = rig_open(&c);
        rig_fill(&r, 0);
        start_all(&r);
        go_on(&r, 400);
        assert_false(done(&r, AGGREGATOR));
        assert_int_equal(rig_side(&r, AGGREGATOR)->engine.stats.sums, 0);
        rig_start_one(&r, LATE);
        rig_drive(&r);
        rig_right(&r, 0, 0);
        assert_int_equal(rig_side(&r, AGGREGATOR)->engine.stats.short_sums, 0);
        rig_close(&r);
    }
}

/* Bitmaps with too few ranks, with ranks that do not exist, or with none. */
TEST(test_bad_masks)
{
    static const uint8_t bad[] = {0x00, 0x01, 0x08, 0x0b, 0xff};
    const struct payload_case c = case_of(2, 1);
    struct rig r = rig_open(&c);
    struct engine_side *s = rig_side(&r, 0);
    const struct trib_chunk chunk = trib_vector_chunk(&s->run, 0, 0);
    uint8_t payload[5] = {0};
    uint32_t len = 0;

    assert_status(trib_quorum_result(&s->engine, &s->run, &chunk, payload, &len),
                  TRIB_ERR_PROTOCOL);
    for (size_t k = 0; k < sizeof(bad); k++) {
        len = sizeof(payload);
        payload[4] = bad[k];
        assert_status(trib_quorum_result(&s->engine, &s->run, &chunk, payload, &len),
                      TRIB_ERR_PROTOCOL);
    }
    len = sizeof(payload);
    payload[4] = 3;
    assert_ok(trib_quorum_result(&s->engine, &s->run, &chunk, payload, &len));
    assert_int_equal(len, 4);
    assert_int_equal(trib_quorum_in_result(&s->engine, &s->run, &chunk), 2);
    rig_close(&r);
}

/* One rank passes its completed start to another that has lost its aggregator. */
TEST(test_deliver)
{
    const struct payload_case c = case_of(2, 1);
    struct rig r = rig_open(&c);
    struct engine_side *s = rig_side(&r, LATE);
    size_t absent[RANKS];

    rig_fill(&r, 0);
    start_all(&r);
    go_on(&r, 400);
    struct trib_quorum_start *start = trib_quorum_room(&rig_side(&r, 0)->run);
    assert_non_null(start);
    trib_quorum_copy(&rig_side(&r, 0)->run, 7, start);
    const size_t bytes = trib_quorum_start_bytes(start);
    assert_int_equal(start->number, 7);
    assert_true(trib_quorum_valid(start, bytes, RANKS));
    assert_false(trib_quorum_valid(start, bytes - 1, RANKS));
    assert_false(trib_quorum_valid(start, bytes, 9));
    assert_true(trib_quorum_of_run(start, &s->run));
    trib_quorum_absent(start, RANKS, absent);
    assert_int_equal(absent[0] + absent[1], 0);
    assert_int_equal(absent[LATE], COUNT);

    trib_quorum_deliver(&s->engine, &s->run, start, NULL, s->x, false);
    has(&r, LATE, 3, 0);
    assert_int_equal(s->run.now.step, 1);
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal((int)s->run.payload->feedback.residual[i],
                         (int)rig_given(LATE, 0, i));
    start->piece++;
    assert_false(trib_quorum_of_run(start, &s->run));
    free(start);
    rig_close(&r);
}
