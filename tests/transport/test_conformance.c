/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All checks on all backends, plain and decorated. A new backend adds its rows here.
 */
#include "tests/harness/tribtest.h"

#include <sys/uio.h>

#include "tests/transport/conformance.h"

#define CASE_MS 60000 /* much more than any case takes, sanitizers and all */
#define CASES_MAX 1024

static const struct row rows[] = {
    {"shm", ROW_MAPS | ROW_FOREIGN | ROW_CMA},
    {"shm", ROW_MAPS | ROW_FOREIGN | ROW_THREADS},
    {"shm:ring=8", ROW_MAPS | ROW_FOREIGN | ROW_CMA},
    {"shm+nomap+delay:us=100", ROW_FOREIGN | ROW_CMA | ROW_DECORATED},
    {"shm+trace+nomap", ROW_FOREIGN | ROW_THREADS | ROW_DECORATED},
    {"tcp", ROW_FOREIGN},
    {"tcp", ROW_FOREIGN | ROW_THREADS},
    {"tcp:watch=0", ROW_FOREIGN | ROW_REMOTE},
    {"tcp+trace+delay:us=100", ROW_FOREIGN | ROW_DECORATED},
    {"auto", ROW_MAPS | ROW_FOREIGN | ROW_CMA},
    {"auto:near=shm,far=tcp,ranks_per_host=1", ROW_FOREIGN | ROW_REMOTE},
    {"auto:near=shm,far=tcp,ranks_per_host=2",
     ROW_MAPS | ROW_FOREIGN | ROW_CMA | ROW_REMOTE},
    {"auto:near=shm,far=tcp,ranks_per_host=1", ROW_FOREIGN | ROW_THREADS},
    {"auto:near=tcp+trace+delay:us=100", ROW_FOREIGN | ROW_DECORATED},
    {"loop", ROW_FOREIGN | ROW_THREADS},
    {"loop:depth=2", ROW_FOREIGN | ROW_THREADS},
    {"loop+trace+delay:us=100", ROW_FOREIGN | ROW_THREADS | ROW_DECORATED},
};

struct pair {
    const struct row *row;
    const struct check *check;
};

static void run_rank(struct spawn *s)
{
    const struct pair *pair = s->arg;

    pair->check->fn(s, pair->row);
}

/* An emulated machine needs more, and says so. */
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

static void run_pair(void **state)
{
    const struct pair *pair = *state;
    const struct spawn_opts opts = {
        .size = pair->check->ranks,
        .threads = pair->row->flags & ROW_THREADS,
        .timeout_ms = case_ms(),
        .fn = run_rank,
        .arg = *state,
    };
    struct spawn_result results[SPAWN_RANKS_MAX];

    if ((pair->check->needs & ROW_FOREIGN) && (pair->row->flags & ROW_CMA) &&
        !siblings_reach())
        tribtest_skip("this system keeps processes from each other's memory, "
                      "see kernel.yama.ptrace_scope");
    spawn_run(&opts, results);
    for (int i = 0; i < opts.size; i++) {
        assert_int_equal(results[i].failures, 0);
        assert_false(results[i].timed_out);
        bool killed = pair->check->kills && i == opts.size - 1;
        assert_int_equal(results[i].signal, killed ? SIGKILL : 0);
    }
}

static size_t add_checks(const struct check *checks, struct CMUnitTest *tests,
                         struct pair *pairs, char (*names)[96], size_t n)
{
    for (const struct check *c = checks; c->name; c++) {
        for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
            if ((rows[r].flags & c->needs) != c->needs || (rows[r].flags & c->without))
                continue;
            assert_true(n < CASES_MAX);
            pairs[n] = (struct pair){.row = &rows[r], .check = c};
            snprintf(names[n], sizeof(names[n]), "%s [%s, %s]", c->name, rows[r].text,
                     rows[r].flags & ROW_THREADS ? "threads" : "processes");
            tests[n] = (struct CMUnitTest){
                .name = names[n], .test_func = run_pair, .initial_state = &pairs[n]};
            n++;
        }
    }
    return n;
}

int main(void)
{
    static struct CMUnitTest tests[CASES_MAX];
    static struct pair pairs[CASES_MAX];
    static char names[CASES_MAX][96];
    size_t n = add_checks(data_checks, tests, pairs, names, 0);

    n = add_checks(life_checks, tests, pairs, names, n);
    tribtest_deadline(900);
    return _cmocka_run_group_tests("conformance", tests, n, NULL, NULL);
}
