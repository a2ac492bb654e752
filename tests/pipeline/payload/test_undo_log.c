/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A start that was undone has never been: input, feedback and step have the bits that
 * they had before it, and the same start again gives the same result.
 */
#include "tests/pipeline/payload/payload_rig.h"

#include "pipeline/payload/undo_log.h"

enum { RANKS = 3, COUNT = 3001, VECTORS = 1 + TRIB_FEEDBACK_STATES };

static const struct {
    const char *codec, *feedback;
} rules[] = {
    {"topk:ratio=0.1", "ef14:momentum=0.9,masking=1"},
    {"qsgd:bits=4,ef=1", NULL},
    {"topk:ratio=0.2", "ef21:momentum=0.5"},
    {"efsign", "ef14:momentum=0.5,nesterov=1,masking=0"},
    {NULL, NULL},
};

static struct payload_case case_of(size_t k)
{
    return (struct payload_case){.codec = rules[k].codec,
                                 .feedback = rules[k].feedback,
                                 .ranks = RANKS,
                                 .aggregators = 1,
                                 .count = COUNT,
                                 .desc = {.may_undo = true, .stream_undo = k & 1}};
}

/* All that a start changes on one rank. */
struct before {
    float vector[VECTORS][COUNT];
    float x[COUNT];
    uint32_t step;
};

static void vectors(const struct trib_run *run, float *out[VECTORS])
{
    out[0] = run->payload->feedback.residual;
    for (int i = 0; i < TRIB_FEEDBACK_STATES; i++)
        out[1 + i] = run->payload->feedback.state[i];
}

static void save(const struct rig *r, int rank, struct before *b)
{
    float *live[VECTORS];

    vectors(&rig_side(r, rank)->run, live);
    memset(b, 0, sizeof(*b));
    for (int i = 0; i < VECTORS; i++)
        if (live[i])
            memcpy(b->vector[i], live[i], sizeof(b->vector[i]));
    memcpy(b->x, rig_input(r, rank), sizeof(b->x));
    b->step = rig_side(r, rank)->run.now.step;
}

static void same(const struct before *a, const struct before *b)
{
    assert_int_equal(a->step, b->step);
    assert_memory_equal(a->x, b->x, sizeof(a->x));
    for (int i = 0; i < VECTORS; i++)
        assert_memory_equal(a->vector[i], b->vector[i], sizeof(a->vector[i]));
}

/* Undoes the last start on all ranks. */
static void undo(const struct rig *r, const struct before *was)
{
    static struct before now;

    for (int i = 0; i < r->c.ranks; i++) {
        trib_undo_rollback(&rig_side(r, i)->run);
        save(r, i, &now);
        same(&was[i], &now);
    }
    for (int i = 0; i < r->engines->n; i++) /* random numbers of results go by it */
        rig_side(r, i)->engine.seq--;
}

TEST(test_undone)
{
    static struct before was[RANKS], first, again;

    for (size_t k = 0; k < RIG_COUNT(rules); k++) {
        const struct payload_case c = case_of(k);
        struct rig r = rig_open(&c);
        rig_step(&r, 0);
        rig_ok(&r);
        rig_fill(&r, 1);
        for (int i = 0; i < RANKS; i++)
            save(&r, i, &was[i]);
        rig_step(&r, 1);
        rig_ok(&r);
        save(&r, 1, &first);
        assert_memory_not_equal(first.x, was[1].x, sizeof(first.x));
        undo(&r, was);
        rig_step(&r, 1);
        rig_ok(&r);
        save(&r, 1, &again);
        same(&first, &again);
        rig_close(&r);
    }
}

/* A start that fails in the middle of it, on one rank earlier than on others. */
TEST(test_cut_short)
{
    static struct before was[RANKS];

    for (size_t k = 0; k < RIG_COUNT(rules); k++) {
        for (int passes = 0; passes < 8; passes++) {
            const struct payload_case c = case_of(k);
            struct rig r = rig_open(&c);
            rig_step(&r, 0);
            rig_fill(&r, 1);
            for (int i = 0; i < RANKS; i++)
                save(&r, i, &was[i]);
            for (int i = 0; i <= RANKS; i++)
                rig_start_one(&r, i);
            for (int i = 0; i < passes; i++)
                (void)trib_engine_progress(&rig_side(&r, i % (RANKS + 1))->engine);
            for (int i = 0; i <= RANKS; i++)
                trib_engine_fail(&rig_side(&r, i)->engine, TRIB_ERR_TIMEOUT, "a test");
            undo(&r, was);
            rig_close(&r);
        }
    }
}

/* Another run of the same vector adopts this run's state and continues as this one
 * would have. */
TEST(test_adopt)
{
    const struct payload_case c = case_of(0);
    static struct before first;
    struct trib_run other[RANKS] = {{.payload = NULL}};

    for (int adopt = 0; adopt < 2; adopt++) {
        struct rig r = rig_open(&c);
        rig_step(&r, 0);
        rig_ok(&r);
        for (int i = 0; adopt && i < RANKS; i++) {
            struct engine_side *s = rig_side(&r, i);
            other[i] = (struct trib_run){.payload = NULL};
            rig_plan(&r, i, &other[i]);
            assert_status(trib_run_prepare(&s->engine, &other[i]), TRIB_OK);
            trib_run_adopt(&other[i], &s->run);
            assert_int_equal(other[i].now.step, 1);
            trib_run_dispose(&s->run);
            s->run = other[i]; /* nothing is in flight, and nothing points to it */
        }
        rig_step(&r, 1);
        rig_ok(&r);
        static struct before now;
        save(&r, 2, adopt ? &now : &first);
        if (adopt)
            same(&first, &now);
        rig_close(&r);
    }
}

/* The state after either of the newest two starts can be restored, even if one failed;
 * the state after an older start cannot. */
TEST(test_rewound)
{
    static struct before was[3][RANKS], now;

    for (size_t k = 0; k < RIG_COUNT(rules); k++) {
        struct payload_case c = case_of(k);
        c.desc.may_undo = false;
        c.desc.may_rewind = true;
        for (uint32_t back = 0; back <= 2; back++) {
            struct rig r = rig_open(&c);
            for (uint32_t step = 0; step < 3; step++) {
                rig_step(&r, step);
                rig_ok(&r);
                for (int i = 0; i < RANKS; i++)
                    save(&r, i, &was[step][i]);
            }
            for (int i = 0; i < RANKS; i++) {
                struct trib_run *run = &rig_side(&r, i)->run;
                assert_true(trib_undo_reaches(run, 3 - back));
                assert_int_equal(trib_undo_reaches(run, 0), !rules[k].codec);
                trib_undo_rewind(run, 3 - back);
                save(&r, i, &now);
                memcpy(now.x, was[2 - back][i].x, sizeof(now.x)); /* buffers stay */
                same(&was[2 - back][i], &now);
            }
            rig_close(&r);
        }
    }
}

/* The log restores nothing that was loaded from elsewhere. */
TEST(test_forgotten)
{
    struct payload_case c = case_of(0);

    c.desc.may_rewind = true;
    struct rig r = rig_open(&c);
    rig_step(&r, 0);
    rig_step(&r, 1);
    struct trib_run *run = &rig_side(&r, 0)->run;
    assert_true(trib_undo_reaches(run, 0));
    trib_undo_forget(run);
    assert_true(trib_undo_reaches(run, 2));
    assert_false(trib_undo_reaches(run, 1));
    rig_step(&r, 2);
    assert_true(trib_undo_reaches(run, 2));
    assert_false(trib_undo_reaches(run, 1));
    rig_close(&r);
}
