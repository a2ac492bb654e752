/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include "collectives/schedule/schedule.h"

#define NONE TRIB_STEP_NO_DEP

static const struct trib_shape shape = {.coll = TRIB_ALLREDUCE, .rank = 1, .size = 4};

TEST(test_add)
{
    struct trib_schedule s;
    const struct trib_step send = {TRIB_STEP_SEND, 0, TRIB_LANE_UP, 0, 0, NONE};

    trib_schedule_init(&s, 4);
    assert_int_equal(s.n_chunks, 4);
    assert_int_equal(s.n_steps, 0);
    for (uint32_t i = 0; i < 1000; i++) {
        struct trib_step step = send;

        step.chunk = i % 4;
        assert_int_equal(trib_schedule_add(&s, step), i);
    }
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(s.steps[i].chunk, i % 4);
    assert_int_equal(trib_schedule_check(&s, &shape, NULL, 0), TRIB_OK);
    trib_schedule_free(&s);
    assert_null(s.steps);
    trib_schedule_free(&s);
}

struct wrong {
    struct trib_step step;
    const char *text;
};

/* Step 0 of each list is a RECV_COPY of chunk 0; the step in question is the second. */
static const struct wrong wrongs[] = {
    {{9, 0, 0, 0, 0, NONE}, "step 1 has an unknown kind"},
    {{TRIB_STEP_SEND, 0, 0, 4, 0, NONE}, "step 1 names a rank that does not exist"},
    {{TRIB_STEP_SEND, 0, 0, 1, 0, NONE}, "step 1 names its own rank"},
    {{TRIB_STEP_COPY, 0, 0, 0, 0, NONE}, "step 1 is local but names a peer"},
    {{TRIB_STEP_SEND, 0, 0, 0, 4, NONE}, "step 1 names a chunk that does not exist"},
    {{TRIB_STEP_SCALE, 0, 0, 1, 0, NONE},
     "step 1 scales, but the operation is not a mean"},
    {{TRIB_STEP_SEND, 8, 0, 0, 0, NONE}, "step 1 has an unknown flag"},
    {{TRIB_STEP_SEND, 0, 2, 0, 0, NONE}, "step 1 has an unknown lane"},
    {{TRIB_STEP_COPY, TRIB_STEP_FINAL, 0, 1, 0, NONE},
     "step 1 is local but has a flag or a lane"},
    {{TRIB_STEP_COPY, 0, 1, 1, 0, NONE}, "step 1 is local but has a flag or a lane"},
    {{TRIB_STEP_SEND, TRIB_STEP_FINAL, 0, 0, 0, NONE},
     "step 1 has only one of FINAL and lane DOWN"},
    {{TRIB_STEP_SEND, 0, 1, 0, 0, NONE},
     "step 1 has only one of FINAL and lane DOWN"},
    {{TRIB_STEP_RECV_COPY, 0, 0, 0, 0, NONE},
     "step 1 copies an unfinished value"},
    {{TRIB_STEP_RECV_REDUCE, TRIB_STEP_FINAL, 1, 0, 0, NONE},
     "step 1 reduces a finished value"},
    {{TRIB_STEP_RECV_REDUCE, TRIB_STEP_STABLE, 0, 0, 0, NONE},
     "step 1 has a flag that only sends may have"},
    {{TRIB_STEP_SEND, 0, 0, 0, 0, 1},
     "step 1 depends on itself or a later step"},
    {{TRIB_STEP_SEND, 0, 0, 0, 0, 7},
     "step 1 depends on itself or a later step"},
    {{TRIB_STEP_SEND, TRIB_STEP_FORWARD, 0, 0, 0, NONE}, "step 1 forwards nothing"},
    {{TRIB_STEP_SEND, TRIB_STEP_FORWARD, 0, 0, 1, 0},
     "step 1 forwards data that its dep did not receive"},
};

TEST(test_check)
{
    const struct trib_step first = {
        TRIB_STEP_RECV_COPY, TRIB_STEP_FINAL, TRIB_LANE_DOWN, 2, 0, NONE};
    const struct trib_step relay = {
        TRIB_STEP_SEND, TRIB_STEP_FINAL | TRIB_STEP_FORWARD, TRIB_LANE_DOWN, 3, 0, 0};

    for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
        struct trib_schedule s;
        char text[100] = "";

        trib_schedule_init(&s, 4);
        trib_schedule_add(&s, first);
        trib_schedule_add(&s, wrongs[i].step);
        assert_int_equal(trib_schedule_check(&s, &shape, text, sizeof(text)),
                         TRIB_ERR_INVALID);
        assert_string_equal(text, wrongs[i].text);
        s.steps[1] = relay;
        assert_int_equal(trib_schedule_check(&s, &shape, text, sizeof(text)), TRIB_OK);
        assert_string_equal(text, "");
        trib_schedule_free(&s);
    }
}

TEST(test_check_whole)
{
    struct trib_shape other = shape;
    struct trib_schedule s;
    char text[100];

    trib_schedule_init(&s, 3);
    assert_int_equal(trib_schedule_check(&s, &shape, text, sizeof(text)), TRIB_OK);
    other.coll = TRIB_ALLGATHER;
    assert_int_equal(trib_schedule_check(&s, &other, text, sizeof(text)),
                     TRIB_ERR_INVALID);
    assert_string_equal(text, "3 chunks for 4 ranks");
    other.rank = 4;
    assert_int_equal(trib_schedule_check(&s, &other, text, sizeof(text)),
                     TRIB_ERR_INVALID);
    assert_string_equal(text, "rank 4 of 4 ranks");
    s.failed = true;
    assert_int_equal(trib_schedule_check(&s, &shape, text, sizeof(text)),
                     TRIB_ERR_NO_MEMORY);
    assert_int_equal(trib_schedule_add(&s, (struct trib_step){0}), NONE);
    assert_int_equal(s.n_steps, 0);
}
