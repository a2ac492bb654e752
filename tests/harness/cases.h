/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cases that register themselves. A program runs them in the order of definition; its
 * main is in main.c, unless it defines one that calls tribtest_run.
 */
#ifndef TESTS_HARNESS_CASES_H
#define TESTS_HARNESS_CASES_H

#include <stddef.h>

#define TRIBTEST_AT_START(name) \
    __attribute__((constructor)) static void tribtest_add_##name(void)

/* Define a case: TEST(test_name) { ... }. The fields of struct CMUnitTest from
 * setup_func may follow the name. The body may use `void **state`. */
#define TEST(id, ...) \
    static void id(void **state); \
    TRIBTEST_AT_START(id) \
    { \
        static const struct CMUnitTest entry = { \
            .name = #id, .test_func = id, __VA_ARGS__}; \
        tribtest_add(__BASE_FILE__, __COUNTER__, &entry, 1); \
    } \
    static void id(__attribute__((unused)) void **state)

/* Define a case that runs once for each of these transports (NULL: not built). Its
 * state is the configuration "transport=...". */
#define TEST_ON(id, ...) TRIBTEST_EACH(id, 0, __VA_ARGS__)

/* The same, but its state is the text itself. */
#define TEST_WITH(id, ...) TRIBTEST_EACH(id, sizeof("transport=") - 1, __VA_ARGS__)

#define TRIBTEST_EACH(id, skipped, ...) \
    static void id(void **state); \
    TRIBTEST_AT_START(id) \
    { \
        static const char *const texts[] = {__VA_ARGS__}; \
        for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) \
            tribtest_add_on(__BASE_FILE__, __COUNTER__, #id, id, texts[i], \
                            skipped); \
    } \
    static void id(__attribute__((unused)) void **state)

/* A transport of TEST_ON that only a build with UCX has. */
#define IF_UCX(transport) (HAVE_UCX ? (transport) : NULL)

/* Register an array of struct CMUnitTest, after the cases that are defined above. */
#define TEST_ROWS(rows) \
    TRIBTEST_AT_START(rows) \
    { \
        tribtest_add(__BASE_FILE__, __COUNTER__, rows, \
                     sizeof(rows) / sizeof(*(rows))); \
    }

/* Fixture of the whole program; either may be NULL. */
#define TEST_GROUP(setup, teardown) \
    TRIBTEST_AT_START(group) \
    { \
        tribtest_setup = setup; \
        tribtest_teardown = teardown; \
    }

/* Seconds, times tribtest_slowness, after which SIGALRM ends the program; default:
 * 600. */
#define TEST_DEADLINE(seconds) \
    TRIBTEST_AT_START(deadline) \
    { \
        tribtest_seconds = seconds; \
    }

extern int (*tribtest_setup)(void **state);
extern int (*tribtest_teardown)(void **state);
extern unsigned tribtest_seconds; /* 0: no deadline */

struct CMUnitTest;

/** tribtest_add - register `n` cases of the source file `unit`; `place` orders them. */
void tribtest_add(const char *unit, int place, const struct CMUnitTest *tests,
                  size_t n);

/** tribtest_add_on - register "name [transport]", unless transport is NULL; its state
 * is "transport=..." without the first `skipped` characters. */
void tribtest_add_on(const char *unit, int place, const char *name,
                     void (*test)(void **state), const char *transport,
                     size_t skipped);

/** tribtest_list - print the names of the cases. */
void tribtest_list(void);

/** tribtest_run - run the cases; return the exit status of the program. */
int tribtest_run(void);

#endif
