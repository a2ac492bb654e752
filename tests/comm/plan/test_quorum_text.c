/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The text of a quorum, and the number of ranks that it needs.
 */
#include "tests/harness/tribtest.h"

#include "comm/plan/quorum_rule.h"

TEST(test_text)
{
    static const char *const wrong[] = {"0,deadline=1ms",
                                        "1.1,deadline=1ms",
                                        "0.9",
                                        "0.9,",
                                        "-1,deadline=1ms",
                                        "0.9,deadline=0ms",
                                        "0.9,deadline=5",
                                        "0.9,deadline=1h",
                                        "0.9,deadline=1ms,",
                                        "x,deadline=1s",
                                        "0.9,dead=1ms",
                                        "0.9,deadline=-1ms",
                                        "nan,deadline=1s",
                                        "0.9, deadline=1ms",
                                        "0.9,deadline=1e9s",
                                        "ALL"};
    struct trib_quorum_rule w;
    struct trib_error err = {0};

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        trib_error_clear(&err);
        assert_int_equal(trib_quorum_rule_parse(wrong[i], &err, &w), TRIB_ERR_INVALID);
        assert_non_null(strstr(trib_error_text(&err), wrong[i]));
    }
    assert_int_equal(trib_quorum_rule_parse("0.07,deadline=1.5ms", &err, &w), TRIB_OK);
    assert_int_equal(w.deadline_ns, 1500000);
    assert_int_equal(trib_quorum_rule_need(&w, 100), 7);
    assert_int_equal(trib_quorum_rule_need(&w, 101), 8);
    assert_int_equal(trib_quorum_rule_parse("all", &err, &w), TRIB_OK);
    assert_true(w.part <= 0);
}

/* The number of ranks never exceeds the fraction, nor falls short of it by a rank. */
TEST(test_need)
{
    for (int percent = 1; percent <= 100; percent++) {
        const struct trib_quorum_rule rule = {.part = percent / 100.0};
        for (int ranks = 1; ranks <= 300; ranks++) {
            const uint32_t need = trib_quorum_rule_need(&rule, ranks);
            assert_in_range(need, 1, ranks);
            assert_true((int)need * 100 >= percent * ranks);
            assert_true(((int)need - 1) * 100 < percent * ranks);
        }
    }
}
