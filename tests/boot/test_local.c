/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/boot/boottest.h"

#include <fcntl.h>

#include "boot/shm_rendezvous.h"

/* Start on a new rendezvous. Free it with boottest_free and trib_local_destroy. */
static struct start new_start(int size)
{
    struct start s = {.size = size, .boot_ms = 30000, .stop_ms = 300};

    assert_status(trib_local_create(size, &s.local), TRIB_OK);
    s.root = trib_local_root(s.local);
    return s;
}

static void end_start(struct start *s)
{
    boottest_free(s);
    trib_local_destroy(s->local);
}

TEST(test_meets)
{
    for (int size = 1; size <= BOOTTEST_RANKS; size++) {
        struct start s = new_start(size);
        s.delay_ms[size / 2] = 30;
        boottest_run(&s);
        boottest_all_well(&s);
        end_start(&s);
    }
}

static int thread_rank(int rank, int size, void *arg)
{
    struct start *s = arg;
    struct trib_error err = {0};

    (void)size;
    for (int i = 0; i < 20; i++) {
        trib_status_t status = boottest_rank(s, rank, &err);
        if (status != TRIB_OK) {
            fprintf(stderr, "rank %d, start %d: %s\n", rank, i, err.text);
            return 1;
        }
    }
    return 0;
}

/* Threads connect, and the same ranks connect again on the same rendezvous. */
TEST(test_threads_again)
{
    struct start s = new_start(6);

    assert_int_equal(tribtest_threads(6, thread_rank, &s), 0);
    trib_local_destroy(s.local);
}

TEST(test_processes_again)
{
    struct start s = new_start(4);

    assert_int_equal(tribtest_forks(4, 40, thread_rank, &s), 0);
    trib_local_destroy(s.local);
}

/* A rendezvous can be used again after a failed start. */
TEST(test_again_after_failure)
{
    struct start s = new_start(3);

    s.fault = FAULT_KILL;
    s.victim = 1;
    s.point = POINT_READY;
    boottest_run(&s);
    boottest_victim_named(&s, 10000);
    boottest_free(&s);
    s.fault = FAULT_NONE;
    boottest_run(&s);
    boottest_all_well(&s);
    end_start(&s);
}

TEST(test_death)
{
    static const enum fault faults[] = {FAULT_KILL, FAULT_EXIT, FAULT_CLOSE};

    for (int i = 0; i < 9; i++) {
        for (enum point point = POINT_START; point <= POINT_READY; point++) {
            struct start s = new_start(3);
            s.fault = faults[i / 3];
            s.victim = i % 3;
            s.point = point;
            boottest_run(&s);
            boottest_victim_named(&s, 10000);
            if (point == POINT_START)
                boottest_all_failed(&s, TRIB_ERR_PEER_LOST, "ended before it called",
                                    10000);
            end_start(&s);
        }
    }
}

TEST(test_stop)
{
    for (int victim = 0; victim < 3; victim++) {
        for (enum point point = POINT_START; point <= POINT_READY; point++) {
            struct start s = new_start(3);
            s.fault = FAULT_STOP;
            s.victim = victim;
            s.point = point;
            boottest_run(&s);
            boottest_victim_named(&s, 10000);
            boottest_all_failed(&s, TRIB_ERR_PEER_LOST, "has been stopped for 300 ms",
                                10000);
            end_start(&s);
        }
    }
}

TEST(test_stop_with_defaults)
{
    struct start s = new_start(3);

    s.boot_ms = s.stop_ms = 0;
    s.fault = FAULT_STOP;
    s.victim = 2;
    s.point = POINT_OPEN;
    boottest_run(&s);
    boottest_victim_named(&s, 20000);
    end_start(&s);
}

/* A slow rank that still runs does not count as stopped. */
TEST(test_slow_rank)
{
    struct start s = new_start(3);

    s.pause_ms = 1200;
    boottest_run(&s);
    boottest_all_well(&s);
    end_start(&s);
}

TEST(test_failure_is_told)
{
    struct start s = new_start(3);

    s.fault = FAULT_SAY;
    s.victim = 1;
    s.point = POINT_OPEN;
    boottest_run(&s);
    boottest_victim_named(&s, 10000);
    boottest_all_failed(&s, TRIB_ERR_PEER_LOST, "no device is up", 10000);
    end_start(&s);
}

/* Ranks 1 and 2 open after the start has failed. */
static bool too_late(const struct start *s, int rank)
{
    return rank == 0 || rank == 3 || s->seen[0].done;
}

TEST(test_missing)
{
    struct start s = new_start(4);

    s.boot_ms = 2000 * (int)tribtest_slowness();
    s.may_open = too_late;
    boottest_run(&s);
    /* late ranks get the same error */
    boottest_all_failed(&s, TRIB_ERR_BOOT,
                        "ranks 1-2 of 4 did not come to phase address", 0);
    end_start(&s);
}

TEST(test_duplicate)
{
    struct start s = new_start(3);

    s.told_rank[2] = 1 + 1;
    s.may_open = boottest_odd_one_last;
    boottest_run(&s);
    assert_status(s.seen[2].status, TRIB_ERR_MISMATCH);
    assert_non_null(strstr(s.seen[2].text, "has joined already"));
    assert_status(s.seen[0].status, TRIB_ERR_PEER_LOST);
    assert_string_equal(s.seen[0].text, s.seen[1].text);
    end_start(&s);
}

TEST(test_wrong_size)
{
    struct start s = new_start(2);

    s.told_size[0] = s.told_size[1] = 3;
    boottest_run(&s);
    boottest_all_failed(&s, TRIB_ERR_MISMATCH, "made for 2: set TRIB_SIZE to 2", 0);
    end_start(&s);
}

static int differ_rank(int rank, int size, void *arg)
{
    struct start *s = arg;
    struct trib_config cfg = {.boot_timeout_ms = 15000, .stop_timeout_ms = 500};
    struct trib_error err = {0};
    struct trib_boot_opts opts = {
        .rank = rank, .size = size, .root = s->root, .cfg = &cfg, .err = &err};
    struct trib_boot *b;
    char in[8] = "";
    char out[64];

    if (trib_boot_open(&opts, &b) != TRIB_OK)
        return 1;
    trib_status_t status =
        b->ops->allgather(b, rank == 1 ? "ready" : "address", in, 8, out);
    b->ops->close(b);
    return status != TRIB_ERR_MISMATCH || !strstr(err.text, "rank 1 (process");
}

TEST(test_ranks_that_differ)
{
    struct start s = new_start(3);

    assert_int_equal(tribtest_forks(3, 30, differ_rank, &s), 0);
    trib_local_destroy(s.local);
}

/* Roots that are not a rendezvous. */
TEST(test_bad_roots)
{
    static const char *const roots[] = {"local:/proc/1/fd/9999", "local:/dev/null",
                                        "local:", "local:/proc/self/exe",
                                        "local:/proc/self/fd/0"};
    struct trib_config cfg = {.boot_timeout_ms = 100, .stop_timeout_ms = 100};

    for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
        struct trib_error err = {0};
        struct trib_boot *b;
        struct trib_boot_opts opts = {
            .rank = 0, .size = 2, .root = roots[i], .cfg = &cfg, .err = &err};
        assert_status(trib_boot_open(&opts, &b), TRIB_ERR_BOOT);
        assert_null(b);
        assert_non_null(strstr(err.text, "rendezvous"));
    }
}

TEST(test_public_functions)
{
    trib_local_t *local = NULL;

    assert_status(trib_local_create(0, &local), TRIB_ERR_INVALID);
    assert_status(trib_local_create(1 << 30, &local), TRIB_ERR_INVALID);
    assert_status(trib_local_create(2, NULL), TRIB_ERR_INVALID);
    assert_string_equal(trib_local_root(NULL), "");
    trib_local_set_pid(NULL, 0, 1);
    trib_local_destroy(NULL);
    assert_status(trib_local_create(2, &local), TRIB_OK);
    trib_local_set_pid(local, 2, 1);
    trib_local_set_pid(local, -1, 1);
    assert_int_equal(strncmp(trib_local_root(local), "local:/proc/", 12), 0);
    trib_local_destroy(local);
}

/* Each process that maps the rendezvous can write any number there: it is reported as
 * an existing error status. */
TEST(test_fail_of_no_kind)
{
    static const int32_t wrong[] = {-12345, INT32_MIN};
    char text[TRIB_RENDEZVOUS_TEXT];
    struct trib_rendezvous rendezvous;
    int fd;

    assert_status(trib_rendezvous_create(2, &fd, &rendezvous, NULL), TRIB_OK);
    for (uint32_t i = 0; i < 2; i++) {
        trib_rendezvous_fail(&rendezvous, i + 1, (trib_status_t)wrong[i], "why");
        assert_status(trib_rendezvous_failure(&rendezvous, i + 1, text),
                      TRIB_ERR_PROTOCOL);
        assert_string_equal(text, "why");
    }
    trib_rendezvous_fail(&rendezvous, 3, TRIB_ERR_MISMATCH, "why");
    assert_status(trib_rendezvous_failure(&rendezvous, 3, text), TRIB_ERR_MISMATCH);
    trib_rendezvous_close(&rendezvous);
    close(fd);
}

/* A rendezvous of another release is reported as such, whatever follows its first
 * fields. */
TEST(test_rendezvous_of_others)
{
    struct trib_rendezvous made, found;
    int fd;

    assert_status(trib_rendezvous_create(2, &fd, &made, NULL), TRIB_OK);
    char *head = (char *)made.head;
    memcpy(head + 12, "9.9.9-\x1b[31m", 12);
    assert_status(trib_rendezvous_map(fd, 0, &found), TRIB_OK);
    trib_rendezvous_close(&found);
    head[8]++;
    assert_status(trib_rendezvous_map(fd, 0, &found), TRIB_ERR_UNSUPPORTED);
    assert_string_equal(found.release, "9.9.9-\\x1b[31m");
    head[8] = 4; /* too old to have a name */
    assert_status(trib_rendezvous_map(fd, 0, &found), TRIB_ERR_UNSUPPORTED);
    assert_string_equal(found.release, "");
    head[0]++;
    assert_status(trib_rendezvous_map(fd, 0, &found), TRIB_ERR_PROTOCOL);
    trib_rendezvous_close(&made);
    close(fd);
}

/* No process can shrink the rendezvous while others use it. */
TEST(test_rendezvous_is_sealed)
{
    struct trib_rendezvous rendezvous;
    int fd;

    assert_status(trib_rendezvous_create(3, &fd, &rendezvous, NULL), TRIB_OK);
    assert_int_equal(ftruncate(fd, 0), -1);
    assert_int_equal(ftruncate(fd, 1 << 20), -1);
    trib_rendezvous_close(&rendezvous);
    close(fd);
}

TEST(test_process_states)
{
    struct trib_process process;
    pid_t pid = fork();

    if (pid == 0) {
        pause();
        _exit(0);
    }
    trib_process_find(pid, &process);
    assert_true(process.start > 0);
    assert_int_equal(trib_process_query(&process), TRIB_PROCESS_RUNS);
    kill(pid, SIGSTOP);
    waitpid(pid, NULL, WUNTRACED);
    assert_int_equal(trib_process_query(&process), TRIB_PROCESS_STOPPED);
    process.start += 1000; /* the kernel has reused the pid */
    assert_int_equal(trib_process_query(&process), TRIB_PROCESS_DEAD);
    process.start -= 1000;
    process.space++; /* in another pid namespace */
    assert_int_equal(trib_process_query(&process), TRIB_PROCESS_RUNS);
    process.space--;
    kill(pid, SIGKILL);
    siginfo_t info;
    waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
    assert_int_equal(trib_process_query(&process), TRIB_PROCESS_DEAD); /* a zombie */
    waitpid(pid, NULL, 0);
    assert_int_equal(trib_process_query(&process), TRIB_PROCESS_DEAD);
}
