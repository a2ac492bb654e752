/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The part of cmocka that the kernel tests use. test_neon.sh builds for another CPU,
 * for which no cmocka is installed. The first failure ends the program.
 */
#ifndef TESTS_COMPRESS_CROSS_CMOCKA_H
#define TESTS_COMPRESS_CROSS_CMOCKA_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CMUnitTest {
    const char *name;
    void (*test_func)(void **state);
    int (*setup_func)(void **state);
    int (*teardown_func)(void **state);
    void *initial_state; /* NULL: the state of the group */
};

#define cmocka_unit_test(f) {.name = #f, .test_func = f}
#define fail_msg(...) \
    (printf("%s:%d: ", __FILE__, __LINE__), printf(__VA_ARGS__), printf("\n"), exit(1))
#define assert_true(x) ((x) ? (void)0 : fail_msg("not so: %s", #x))
#define assert_false(x) assert_true(!(x))
#define assert_null(p) assert_true((p) == NULL)
#define assert_non_null(p) assert_true((p) != NULL)
#define assert_ptr_equal(a, b) assert_true((a) == (b))
#define assert_int_equal(a, b) assert_true((long long)(a) == (long long)(b))
#define assert_in_range(a, low, high) assert_true((a) >= (low) && (a) <= (high))
#define skip() exit(77)
#define assert_string_equal(a, b) assert_true(strcmp(a, b) == 0)
#define assert_memory_equal(a, b, n) assert_true(memcmp(a, b, n) == 0)
#define cmocka_set_test_filter(pattern) fail_msg("no filter: %s", pattern)
#define cmocka_run_group_tests(tests, setup, teardown) \
    _cmocka_run_group_tests("tests", tests, sizeof(tests) / sizeof(tests)[0], setup, \
                            teardown)

static inline int _cmocka_run_group_tests(const char *name,
                                          const struct CMUnitTest *tests, size_t n,
                                          int (*setup)(void **),
                                          int (*teardown)(void **))
{
    void *state = NULL;
    (void)name;
    if (setup && setup(&state))
        return 1;
    for (size_t i = 0; i < n; i++) {
        void *own = tests[i].initial_state ? tests[i].initial_state : state;
        tests[i].test_func(&own);
        printf("%s\n", tests[i].name);
    }
    printf("all of them pass\n");
    return teardown ? teardown(&state) : 0;
}

#endif
