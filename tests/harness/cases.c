// SPDX-License-Identifier: BSD-3-Clause
#include "tests/harness/tribtest.h"

#define CASES_MAX 500
#define TEXT_MAX 120

int (*tribtest_setup)(void **state);
int (*tribtest_teardown)(void **state);
unsigned tribtest_seconds = 600;

static struct CMUnitTest cases[CASES_MAX];
static int places[CASES_MAX];
static const char *unit_now;
static size_t n_cases, unit_begins;

/* Compilers may call the constructors of a file in any order, so each case is inserted
 * at its place among the cases of its file. */
void tribtest_add(const char *unit, int place, const struct CMUnitTest *tests, size_t n)
{
    size_t at = n_cases;

    if (n > CASES_MAX - n_cases) {
        fprintf(stderr, "%s: more than %d cases\n", unit, CASES_MAX);
        abort();
    }
    if (!unit_now || strcmp(unit, unit_now) != 0)
        unit_begins = n_cases;
    unit_now = unit;
    for (; at > unit_begins && places[at - 1] > place; at--) {
        cases[at - 1 + n] = cases[at - 1];
        places[at - 1 + n] = places[at - 1];
    }
    for (size_t i = 0; i < n; i++) {
        cases[at + i] = tests[i];
        places[at + i] = place;
    }
    n_cases += n;
}

void tribtest_add_on(const char *unit, int place, const char *name,
                     void (*test)(void **state), const char *transport,
                     size_t skipped)
{
    static char texts[CASES_MAX][2][TEXT_MAX];
    static size_t n_texts;

    if (!transport)
        return;
    if (n_texts == CASES_MAX)
        abort();
    char *title = texts[n_texts][0], *config = texts[n_texts++][1];
    if (snprintf(title, TEXT_MAX, "%s [%s]", name, transport) >= TEXT_MAX ||
        snprintf(config, TEXT_MAX, "transport=%s", transport) >= TEXT_MAX)
        abort();
    tribtest_add(unit, place,
                 &(struct CMUnitTest){
                     .name = title,
                     .test_func = test,
                     .initial_state = config + skipped},
                 1);
}

void tribtest_list(void)
{
    for (size_t i = 0; i < n_cases; i++)
        printf("%s\n", cases[i].name);
}

int tribtest_run(void)
{
    if (n_cases == 0) {
        fprintf(stderr, "this program has no cases\n");
        return 1;
    }
    tribtest_deadline(tribtest_seconds);
    return _cmocka_run_group_tests("tests", cases, n_cases, tribtest_setup,
                                   tribtest_teardown);
}
