/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs of one rank with a store of a key each: one that computes for long keeps its
 * store; one that is stopped loses it to a run that asks with its key, and hears that
 * when it goes on; one that nobody replaces finds its store again.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/harness/daemon.h"
#include "tests/harness/tribtest.h"

#include <tributary.h>

enum { COMPUTES, REPLACED, RETURNS, RUNS };

static const char *const keys[RUNS] = {
    "1111111111111111111111111111111111111111111111111111111111111111",
    "2222222222222222222222222222222222222222222222222222222222222222",
    "3333333333333333333333333333333333333333333333333333333333333333"};

/* A run: it pushes for each byte that it is sent, and answers with the status. */
struct run {
    pid_t pid;
    int orders, answers;
};

static trib_status_t open_store(trib_comm_t *comm, const char *key,
                                trib_vector_t **out)
{
    trib_store_opts_t opts = TRIB_STORE_OPTS_INIT;
    trib_vector_desc_t desc = TRIB_VECTOR_DESC_INIT;
    trib_store_t *store;

    opts.key = key;
    desc.name = "v";
    desc.count = 4;
    const trib_status_t st = trib_store_open_with(comm, &opts, &store);
    return st == TRIB_OK ? trib_store_create(store, &desc, out) : st;
}

static int run_main(int port, const char *key, int orders, int answers)
{
    static const float one[4] = {1, 1, 1, 1};
    trib_opts_t opts = TRIB_OPTS_INIT;
    trib_vector_t *v = NULL;
    trib_comm_t *comm;
    char config[80], order;

    snprintf(config, sizeof(config), "service=127.0.0.1:%d", port);
    opts.ranks = 1;
    opts.rank_plus_1 = 1;
    opts.config = config;
    trib_status_t st = trib_init(&opts, &comm);
    if (st == TRIB_OK)
        st = open_store(comm, key, &v);
    for (;;) {
        const int8_t status = (int8_t)st;
        if (write(answers, &status, 1) != 1 || read(orders, &order, 1) != 1)
            return 0;
        st = v ? trib_store_push(v, one, NULL, NULL) : open_store(comm, key, &v);
    }
}

static void start(const struct daemon_process *d, const char *key, struct run *run)
{
    int orders[2], answers[2];

    assert_return_code(pipe(orders), errno);
    assert_return_code(pipe(answers), errno);
    run->pid = fork();
    if (run->pid == 0) {
        close(orders[1]);
        close(answers[0]);
        _exit(run_main(d->port, key, orders[0], answers[1]));
    }
    close(orders[0]);
    close(answers[1]);
    run->orders = orders[1];
    run->answers = answers[0];
}

static trib_status_t heard(const struct run *run)
{
    int8_t status = -1;

    assert_int_equal(read(run->answers, &status, 1), 1);
    return (trib_status_t)status;
}

static trib_status_t ask(const struct run *run)
{
    assert_int_equal(write(run->orders, "p", 1), 1);
    return heard(run);
}

static void stop(const struct run *run)
{
    int status;

    kill(run->pid, SIGKILL);
    assert_int_equal(waitpid(run->pid, &status, 0), run->pid);
    close(run->orders);
    close(run->answers);
}

static void test_silent(void **state)
{
    struct daemon_process d = {.threads = 1};
    struct run runs[RUNS], next[RUNS];
    unsigned turns = 0;

    (void)state;
    assert_true(daemon_folder(d.folder));
    if (!daemon_run(&d))
        skip();
    for (int i = 0; i < RUNS; i++) {
        start(&d, keys[i], &runs[i]);
        assert_status(heard(&runs[i]), TRIB_OK);
        assert_status(ask(&runs[i]), TRIB_OK);
    }
    kill(runs[REPLACED].pid, SIGSTOP);
    kill(runs[RETURNS].pid, SIGSTOP);
    start(&d, keys[REPLACED], &next[REPLACED]);
    trib_status_t st = heard(&next[REPLACED]);
    for (; st == TRIB_ERR_BUSY; st = ask(&next[REPLACED]), turns++)
        usleep(100000); /* a user may join some times a second */
    assert_status(st, TRIB_OK);
    assert_true(turns > 0); /* the run had some time to go on */
    kill(runs[RETURNS].pid, SIGCONT);
    assert_status(ask(&runs[RETURNS]), TRIB_OK);
    start(&d, keys[COMPUTES], &next[COMPUTES]);
    assert_status(heard(&next[COMPUTES]), TRIB_ERR_BUSY);
    assert_status(ask(&runs[COMPUTES]), TRIB_OK);
    kill(runs[REPLACED].pid, SIGCONT);
    assert_status(ask(&runs[REPLACED]), TRIB_ERR_PEER_LOST);
    assert_status(ask(&next[REPLACED]), TRIB_OK);
    for (int i = 0; i < RUNS; i++)
        stop(&runs[i]);
    stop(&next[REPLACED]);
    stop(&next[COMPUTES]);
    daemon_end(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_silent)};

    signal(SIGPIPE, SIG_IGN);
    tribtest_deadline(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
