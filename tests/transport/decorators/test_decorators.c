/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each decorator makes just the trouble that it is there for.
 */
#include "tests/transport/pair.h"

static const char *const backends[] = {"shm", "loop"};

static void open_with(struct pair *pair, int backend, const char *decorator)
{
    char text[64];

    snprintf(text, sizeof(text), "%s+%s", backends[backend], decorator);
    pair_open(pair, text, backends[backend]);
}

static void expect(struct pair *pair, int side, enum trib_event_kind kind,
                   uint32_t number)
{
    struct trib_event e;

    assert_int_equal(pair_await(pair, side, &e), 1);
    assert_int_equal(e.kind, kind);
    assert_int_equal(kind == TRIB_EVENT_ARRIVED ? e.imm : e.token, number);
}

TEST(test_drop)
{
    struct pair pair;

    for (int b = 0; b < 2; b++) {
        open_with(&pair, b, "drop:nth=2");
        for (uint32_t i = 1; i <= 3; i++) {
            memset(pair.mem[0], (int)i, 8);
            assert_status(pair_write(&pair, 8, i), TRIB_OK);
            if (i == 2)
                continue;
            expect(&pair, 1, TRIB_EVENT_ARRIVED, i);
            assert_int_equal(pair.mem[1][0], i);
        }
        /* The sender is none the wiser. */
        for (uint32_t i = 1; i <= 3; i++)
            expect(&pair, 0, TRIB_EVENT_WRITE_DONE, i);
        pair_close(&pair);
    }
}

TEST(test_repeat)
{
    static const uint32_t arrive[] = {1, 2, 2, 3};
    struct pair pair;

    for (int b = 0; b < 2; b++) {
        open_with(&pair, b, "repeat:nth=2");
        for (uint32_t i = 1; i <= 3; i++)
            assert_status(pair_write(&pair, 8, i), TRIB_OK);
        for (int i = 0; i < 4; i++)
            expect(&pair, 1, TRIB_EVENT_ARRIVED, arrive[i]);
        for (uint32_t i = 1; i <= 3; i++)
            expect(&pair, 0, TRIB_EVENT_WRITE_DONE, i);
        pair_close(&pair);
    }
}

TEST(test_corrupt)
{
    struct pair pair;

    for (int b = 0; b < 2; b++) {
        open_with(&pair, b, "corrupt:nth=2");
        for (uint32_t i = 1; i <= 3; i++) {
            memset(pair.mem[0], (int)i, 9);
            assert_status(pair_write(&pair, 9, i), TRIB_OK);
            expect(&pair, 1, TRIB_EVENT_ARRIVED, i);
            expect(&pair, 0, TRIB_EVENT_WRITE_DONE, i);
            for (int k = 0; k < 9; k++)
                assert_int_equal(pair.mem[1][k], i == 2 && k == 4 ? (i ^ 0xff) : i);
            assert_int_equal(pair.mem[0][4], i);
        }
        pair_close(&pair);
    }
}

TEST(test_corrupt_note)
{
    struct pair pair;

    open_with(&pair, 0, "corrupt:nth=1");
    assert_status(pair_write(&pair, 0, 8), TRIB_OK);
    expect(&pair, 1, TRIB_EVENT_ARRIVED, 9);
    pair_close(&pair);
}

TEST(test_delay)
{
    struct pair pair;
    struct trib_event e;

    for (int b = 0; b < 2; b++) {
        pair_open(&pair, backends[b], b ? "loop+delay:us=20000" : "shm+delay:us=20000");
        uint64_t start = trib_now_ns();
        for (uint32_t i = 0; i < 5; i++)
            assert_status(pair_write(&pair, 8, i), TRIB_OK);
        /* The delay begins when an event is first seen, however late that is. */
        assert_int_equal(pair.t[1]->ops->poll(pair.t[1], &e, 1), 0);
        /* The sleep ends when the first event is due, not after its own time. */
        pair.t[1]->ops->wait(pair.t[1], 40000000);
        for (uint32_t i = 0; i < 5; i++)
            expect(&pair, 1, TRIB_EVENT_ARRIVED, i);
        uint64_t taken = trib_now_ns() - start;
        assert_in_range(taken, 20000000u, 20000000000u);
        pair_close(&pair);
    }
}

TEST(test_nomap)
{
    struct pair pair;

    open_with(&pair, 0, "nomap");
    assert_null(pair.t[0]->ops->map(pair.t[0], pair.remote[0], NULL));
    memset(pair.mem[0], 3, 8);
    assert_status(pair_write(&pair, 8, 1), TRIB_OK);
    expect(&pair, 1, TRIB_EVENT_ARRIVED, 1);
    assert_int_equal(pair.mem[1][7], 3);
    pair_close(&pair);
}

static int write_three(int rank, int size, void *arg)
{
    struct pair pair;

    (void)rank;
    (void)size;
    open_with(&pair, 0, arg);
    pair_write(&pair, 8, 1);
    pair_write(&pair, 8, 2);
    _exit(42);
}

/* How a child that writes twice ends. */
static int end_of_child(const char *decorator)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0)
        write_three(0, 1, (void *)(uintptr_t)decorator);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

TEST(test_kill)
{
    assert_int_equal(end_of_child("kill:after=2,signal=9"), -SIGKILL);
    assert_int_equal(end_of_child("kill:after=1,signal=10"), -SIGUSR1);
    assert_int_equal(end_of_child("kill:after=3"), 42);
    assert_int_equal(end_of_child("kill:after=1,rank=1"), 42);
    assert_int_equal(end_of_child("kill:after=1,rank=0"), -SIGKILL);
}

TEST(test_trace)
{
    struct pair pair;

    open_with(&pair, 0, "trace");
    assert_status(pair_write(&pair, 100, 1), TRIB_OK);
    assert_status(pair_write(&pair, 28, 2), TRIB_OK);
    expect(&pair, 0, TRIB_EVENT_WRITE_DONE, 1);
    pair.t[0]->ops->close(pair.t[0]);
    pair.t[1]->ops->close(pair.t[1]);
    assert_int_equal(pair.lines, 1);
    assert_non_null(strstr(pair.logged, "shm: 2 writes posted with 128 bytes, 1 done"));
}
