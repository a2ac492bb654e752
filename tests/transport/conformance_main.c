/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The suite as a cmocka program: each check on each row that it fits.
 */
#include "tests/harness/tribtest.h"

#include <sys/prctl.h>
#include <sys/uio.h>

#include "tests/transport/conformance.h"

#define CASE_MS 60000 /* much more than any case takes, sanitizers and all */
#define CASES_MAX 1024

struct pair {
    const struct row *row;
    const struct check *check;
    void (*after)(void);
    struct pair *first; /* of the same check, which are side by side */
    pid_t runner; /* what runs it ahead of its turn, see start_all; or 0 */
};

static void run_rank(struct spawn *s)
{
    const struct pair *pair = s->arg;

    pair->check->fn(s, pair->row);
}

/* An emulated machine needs more: it sets CONFORMANCE_CASE_MS. */
static int case_ms(void)
{
    const char *text = getenv("CONFORMANCE_CASE_MS");

    return text ? atoi(text) : CASE_MS;
}

static void probe_rank(struct spawn *s)
{
    static char word[] = "own"; /* at the same address in all ranks */
    char got[sizeof(word)] = "";
    struct iovec local = {got, sizeof(got)}, remote = {word, sizeof(word)};

    memcpy(word, "mem", sizeof(word));
    if (!spawn_barrier(s))
        return;
    ssize_t n = process_vm_readv(spawn_pid(s, !s->rank), &local, 1, &remote, 1, 0);
    if (n != sizeof(got) || memcmp(got, "mem", sizeof(got)) != 0)
        s->failures++;
    spawn_barrier(s);
}

/* May processes of one parent read and write each other's memory? */
static bool siblings_reach(void)
{
    const struct spawn_opts opts = {.size = 2, .timeout_ms = CASE_MS, .fn = probe_rank};

    return spawn_run(&opts, NULL) == 0;
}

/* Return whether all ranks did what the check expects. */
static bool pair_holds(struct pair *pair)
{
    const struct spawn_opts opts = {
        .size = pair->check->ranks,
        .threads = pair->row->flags & ROW_THREADS,
        .timeout_ms = case_ms(),
        .fn = run_rank,
        .arg = pair,
    };
    struct spawn_result results[SPAWN_RANKS_MAX];
    bool holds = true;

    spawn_run(&opts, results);
    for (int i = 0; i < opts.size; i++) {
        int end = pair->check->kills && i == opts.size - 1 ? SIGKILL : 0;
        if (!results[i].failures && !results[i].timed_out && results[i].signal == end)
            continue;
        fprintf(stderr, "  rank %d: %d failures, %s, signal %d, not %d\n", i,
                results[i].failures, results[i].timed_out ? "timed out" : "in time",
                results[i].signal, end);
        holds = false;
    }
    return holds;
}

/* Starts the check on all its rows, each in a process that exits with 0 if it holds. */
static void start_all(struct pair *pair)
{
    pid_t parent = getpid();

    for (struct pair *p = pair->first; p->check == pair->check; p++) {
        fflush(NULL);
        p->runner = fork();
        assert_true(p->runner >= 0);
        if (p->runner > 0)
            continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(getppid() == parent && pair_holds(p) ? 0 : 1);
    }
}

static bool started_holds(struct pair *pair)
{
    int status = -1;

    if (!pair->runner)
        start_all(pair);
    assert_int_equal(waitpid(pair->runner, &status, 0), pair->runner);
    return status == 0;
}

static void run_pair(void **state)
{
    struct pair *pair = *state;

    if ((pair->check->needs & ROW_FOREIGN) && (pair->row->flags & ROW_CMA) &&
        !siblings_reach())
        tribtest_skip("this system keeps processes from each other's memory, "
                      "see kernel.yama.ptrace_scope");
    assert_true(pair->check->sleeps ? started_holds(pair) : pair_holds(pair));
    if (pair->after)
        pair->after();
}

struct list {
    struct CMUnitTest tests[CASES_MAX];
    struct pair pairs[CASES_MAX + 1]; /* the last has no check */
    char names[CASES_MAX][96];
    size_t n;
};

static void add(struct list *list, const struct pair *pair)
{
    const struct row *row = pair->row;
    size_t n = list->n++;

    assert_true(n < CASES_MAX);
    list->pairs[n] = *pair;
    snprintf(list->names[n], sizeof(list->names[n]), "%s [%s, %s%s]", pair->check->name,
             row->text, row->flags & ROW_THREADS ? "threads" : "processes",
             row->flags & ROW_SEALED ? ", sealed" : "");
    list->tests[n] = (struct CMUnitTest){.name = list->names[n],
                                         .test_func = run_pair,
                                         .initial_state = &list->pairs[n]};
}

static void add_checks(struct list *list, const struct check *checks,
                       const struct suite *suite)
{
    for (const struct check *c = checks; c->name; c++) {
        struct pair *first = &list->pairs[list->n];
        for (const struct row *row = suite->rows; row < suite->rows + suite->n; row++) {
            const unsigned has = row->flags | ROW_FOREIGN;
            if ((has & c->needs) == c->needs && !(has & c->without))
                add(list, &(struct pair){.row = row, .check = c, .first = first,
                                         .after = suite->after});
        }
    }
}

int conformance_main(const struct suite *suite)
{
    static struct list list;

    add_checks(&list, data_checks, suite);
    if (!suite->only_data)
        add_checks(&list, life_checks, suite);
    cmocka_set_test_filter(getenv("CONFORMANCE_FILTER")); /* such as "stop*" */
    return _cmocka_run_group_tests("conformance", list.tests, list.n, NULL, NULL);
}
