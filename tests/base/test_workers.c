/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include <dirent.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/time.h"
#include "base/workers.h"

#define MOST 32

/* The work of a test, and its results. */
struct desk {
    struct trib_workers *workers;
    _Atomic int runs;
    _Atomic int begun;
    _Atomic bool gate; /* the work waits for it */
    _Atomic int wakes;
    _Atomic bool busy[MOST + 1]; /* [worker] */
    _Atomic int clashes;
    uint64_t of_cell[MOST];      /* written by the work, read by the test once it is
                                  * done */
};

static void count_wake(void *arg)
{
    struct desk *d = arg;

    atomic_fetch_add(&d->wakes, 1);
}

static void open_spinning_desk(struct desk *d, uint32_t threads, uint32_t cells,
                               uint32_t spin_us)
{
    struct trib_workers_opts opts = {.threads = threads,
                                     .cells = cells,
                                     .spin_us = spin_us,
                                     .name = "test-worker",
                                     .wake = count_wake,
                                     .arg = d};

    memset(d, 0, sizeof(*d));
    assert_int_equal(trib_workers_create(&opts, &d->workers), 0);
    assert_int_equal(trib_workers_free(d->workers), cells);
}

static void open_desk(struct desk *d, uint32_t threads, uint32_t cells)
{
    open_spinning_desk(d, threads, cells, 0);
}

static void run_square(void *arg, uint32_t cell, uint32_t worker)
{
    struct desk *d = arg;

    atomic_fetch_add(&d->clashes, atomic_exchange(&d->busy[worker], true));
    d->of_cell[cell] = d->of_cell[cell] * d->of_cell[cell];
    atomic_fetch_add(&d->runs, 1);
    atomic_store(&d->busy[worker], false);
}

static void run_gated(void *arg, uint32_t cell, uint32_t worker)
{
    struct desk *d = arg;

    (void)cell, (void)worker;
    atomic_fetch_add(&d->begun, 1);
    while (!atomic_load(&d->gate))
        sched_yield();
    atomic_fetch_add(&d->runs, 1);
}

/* Wait until the count reaches `least`; otherwise the program's deadline ends the
 * test. */
static void wait_for(_Atomic int *count, int least)
{
    while (atomic_load(count) < least)
        sched_yield();
}

static uint32_t post(struct desk *d, void (*run)(void *, uint32_t, uint32_t))
{
    uint32_t cell = trib_workers_cell(d->workers);

    trib_workers_post(d->workers, cell, (struct trib_work){run, d});
    return cell;
}

static void finish(struct desk *d, uint32_t cell)
{
    while (!trib_workers_done(d->workers, cell))
        sched_yield();
    trib_workers_release(d->workers, cell);
}

/* Each work item runs once, and its writes are visible. */
TEST(test_does_all)
{
    static const uint32_t threads[] = {1, 2, 4};
    enum { ROUNDS = 2000 };

    for (size_t k = 0; k < 3; k++) {
        struct desk d;
        uint32_t cells[8];
        open_desk(&d, threads[k], 8);
        for (uint64_t round = 0; round < ROUNDS; round++) {
            uint32_t n = 1 + (uint32_t)(round % 8);
            for (uint32_t i = 0; i < n; i++) {
                cells[i] = trib_workers_cell(d.workers);
                d.of_cell[cells[i]] = round + i;
                (void)post(&d, run_square);
            }
            assert_int_equal(trib_workers_free(d.workers), 8 - n);
            trib_workers_rouse(d.workers);
            if (round % 3 == 0)
                while (trib_workers_help(d.workers))
                    continue;
            for (uint32_t i = 0; i < n; i++) {
                finish(&d, cells[n - 1 - i]);
                assert_int_equal(d.of_cell[cells[n - 1 - i]],
                                 (round + n - 1 - i) * (round + n - 1 - i));
            }
        }
        assert_int_equal(atomic_load(&d.runs), ROUNDS / 8 * 36);
        assert_int_equal(atomic_load(&d.clashes), 0);
        trib_workers_destroy(d.workers);
    }
}

/* Retracting unstarted work succeeds, and workers no longer run it; retracting started
 * work fails. */
TEST(test_retract)
{
    struct desk d;

    open_desk(&d, 1, 4);
    uint32_t first = post(&d, run_gated);
    trib_workers_rouse(d.workers);
    wait_for(&d.begun, 1);
    struct desk *other = calloc(1, sizeof(*other));
    assert_non_null(other);
    uint32_t second = trib_workers_cell(d.workers);
    trib_workers_post(d.workers, second, (struct trib_work){run_gated, other});
    trib_workers_rouse(d.workers);
    assert_false(trib_workers_retract(d.workers, first));
    assert_true(trib_workers_retract(d.workers, second));
    free(other);
    assert_int_equal(trib_workers_free(d.workers), 3);
    assert_false(trib_workers_help(d.workers));
    atomic_store(&d.gate, true);
    finish(&d, first);
    assert_int_equal(trib_workers_free(d.workers), 4);
    trib_workers_destroy(d.workers);
    assert_int_equal(atomic_load(&d.runs), 1);
}

/* A thread that requested work in vain is woken; one that did not request any is
 * not. */
TEST(test_wakes)
{
    struct desk d;

    open_desk(&d, 1, 4);
    for (int round = 1; round <= 100; round++) {
        atomic_store(&d.gate, false);
        uint32_t cell = post(&d, run_gated);
        trib_workers_rouse(d.workers);
        wait_for(&d.begun, 2 * round - 1);
        assert_false(trib_workers_done(d.workers, cell));
        atomic_store(&d.gate, true);
        wait_for(&d.wakes, round);
        assert_true(trib_workers_done(d.workers, cell));
        trib_workers_release(d.workers, cell);
        cell = post(&d, run_gated);
        trib_workers_rouse(d.workers);
        wait_for(&d.runs, 2 * round);
        trib_workers_clear(d.workers);
        assert_int_equal(atomic_load(&d.wakes), round);
    }
    trib_workers_destroy(d.workers);
}

static void *open_gate(void *arg)
{
    struct desk *d = arg;

    wait_for(&d->begun, 1);
    atomic_store(&d->gate, true);
    return NULL;
}

/* After trib_workers_clear no thread is at work, and no work is left. */
TEST(test_clear)
{
    for (int destroy = 0; destroy < 2; destroy++) {
        struct desk d;
        pthread_t helper;
        open_desk(&d, 2, 8);
        for (int i = 0; i < 8; i++)
            (void)post(&d, run_gated);
        trib_workers_rouse(d.workers);
        assert_int_equal(pthread_create(&helper, NULL, open_gate, &d), 0);
        wait_for(&d.begun, 1);
        if (!destroy) {
            trib_workers_clear(d.workers);
            assert_int_equal(trib_workers_free(d.workers), 8);
            assert_int_equal(atomic_load(&d.runs), atomic_load(&d.begun));
        }
        trib_workers_destroy(d.workers);
        assert_int_equal(atomic_load(&d.runs), atomic_load(&d.begun));
        assert_int_equal(pthread_join(helper, NULL), 0);
    }
}

struct parts {
    _Atomic int ran[MOST];
    _Atomic int begun;
    int meet; /* number of parts that each part waits for */
};

static void run_part(void *arg, uint32_t part)
{
    struct parts *p = arg;

    atomic_fetch_add(&p->ran[part], 1);
    atomic_fetch_add(&p->begun, 1);
    while (atomic_load(&p->begun) < p->meet)
        sched_yield();
}

static uint32_t split(struct desk *d, uint32_t n, int meet)
{
    struct parts p = {.meet = meet};
    const uint32_t shared = trib_workers_split(d->workers, n, run_part, &p);

    for (uint32_t i = 0; i < MOST; i++)
        assert_int_equal(atomic_load(&p.ran[i]), i < n);
    return shared;
}

/* Each part runs once, with fewer and more parts than threads. */
TEST(test_split)
{
    for (uint32_t threads = 1; threads <= 4; threads++)
        for (uint32_t spin_us = 0; spin_us <= 20; spin_us += 20) {
            struct desk d;
            open_spinning_desk(&d, threads, 5, spin_us);
            for (uint32_t n = 1; n <= MOST; n++) {
                assert_true(split(&d, n, 0) < n + (n > 1));
                assert_int_equal(trib_workers_free(d.workers), 5);
            }
            assert_int_equal(split(&d, threads + 1, (int)threads + 1), threads);
            trib_workers_destroy(d.workers);
        }
}

/* While the workers have other work, or all cells have, the owner runs all parts. */
TEST(test_split_alone)
{
    struct desk d;

    open_desk(&d, 2, 4);
    for (int i = 0; i < 2; i++)
        (void)post(&d, run_gated);
    trib_workers_rouse(d.workers);
    wait_for(&d.begun, 2);
    for (int busy = 2; busy <= 4; busy++) {
        assert_int_equal(split(&d, 7, 0), 0);
        assert_int_equal(trib_workers_free(d.workers), 4 - busy);
        if (busy < 4)
            (void)post(&d, run_gated);
    }
    atomic_store(&d.gate, true);
    trib_workers_clear(d.workers);
    trib_workers_destroy(d.workers);
}

/* ---- a worker below the owner in priority -------------------------------------- */

struct inversion {
    _Atomic int worker; /* its thread; 0: it has not begun */
    _Atomic bool pinned; /* it may finish */
};

static void run_below(void *arg, uint32_t cell, uint32_t worker)
{
    struct inversion *v = arg;

    (void)cell, (void)worker;
    atomic_store(&v->worker, (int)gettid());
    while (!atomic_load(&v->pinned))
        sched_yield();
}

/* Wait for the worker, then take the only core from it. */
static void run_above(struct inversion *v)
{
    const struct sched_param first = {.sched_priority = 1};
    cpu_set_t one;

    while (!atomic_load(&v->worker))
        sched_yield();
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    assert_int_equal(sched_setscheduler(0, SCHED_FIFO, &first), 0);
    assert_int_equal(sched_setaffinity(v->worker, sizeof(one), &one), 0);
    atomic_store(&v->pinned, true);
}

static void run_either(void *arg, uint32_t part)
{
    if (part == 0)
        run_above(arg);
    else
        run_below(arg, 0, 0);
}

/* An owner in a real-time class lets a worker on its core finish, which yielding would
 * not: the kernel lets others run only after 950 ms, if at all. */
TEST(test_real_time)
{
    enum { MOST_MS = 300 };
    const struct sched_param first = {.sched_priority = 1},
                             none = {.sched_priority = 0};
    cpu_set_t before;

    if (sched_setscheduler(0, SCHED_FIFO, &first))
        tribtest_skip("no right to a real-time class");
    assert_int_equal(sched_setscheduler(0, SCHED_OTHER, &none), 0);
    assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
    for (int splits = 0; splits < 2; splits++) {
        struct desk d;
        struct inversion v = {.worker = 0};
        open_desk(&d, 1, 2);
        const uint64_t began = trib_now_ns();
        if (splits) {
            assert_int_equal(trib_workers_split(d.workers, 2, run_either, &v), 1);
        } else {
            trib_workers_post(d.workers, trib_workers_cell(d.workers),
                              (struct trib_work){run_below, &v});
            trib_workers_rouse(d.workers);
            run_above(&v);
            trib_workers_clear(d.workers);
        }
        const uint64_t ms = (trib_now_ns() - began) / 1000000;
        assert_int_equal(sched_setscheduler(0, SCHED_OTHER, &none), 0);
        assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
        trib_workers_destroy(d.workers);
        assert_in_range(ms, 0, MOST_MS);
    }
}

/* How many threads of this name the kernel sees asleep. */
static int asleep(const char *name)
{
    DIR *tasks = opendir("/proc/self/task");
    int n = 0;

    for (struct dirent *d; tasks && (d = readdir(tasks));) {
        char path[300], comm[32], state;
        snprintf(path, sizeof(path), "/proc/self/task/%s/stat", d->d_name);
        FILE *f = fopen(path, "r");
        if (f && fscanf(f, "%*d (%31[^)]) %c", comm, &state) == 2)
            n += state == 'S' && strcmp(comm, name) == 0;
        if (f)
            fclose(f);
    }
    if (tasks)
        closedir(tasks);
    return n;
}

TEST(test_sleep)
{
    struct desk d;

    if (access("/proc/self/task", R_OK))
        tribtest_skip("no /proc");
    open_spinning_desk(&d, 3, 4, 100);
    while (asleep("test-worker") < 3)
        sched_yield();
    for (int round = 1; round <= 50; round++) {
        uint32_t cell = post(&d, run_square);
        trib_workers_rouse(d.workers);
        finish(&d, cell);
        assert_int_equal(atomic_load(&d.runs), round);
    }
    while (asleep("test-worker") < 3)
        sched_yield();
    trib_workers_destroy(d.workers);
    trib_workers_destroy(NULL);
}

/* A forked child has none of the threads: it only frees memory. */
TEST(test_fork)
{
    struct desk d;
    int status = -1;

    open_desk(&d, 2, 4);
    (void)post(&d, run_gated);
    trib_workers_rouse(d.workers);
    wait_for(&d.begun, 1);
    pid_t pid = fork();
    if (pid == 0) {
        trib_workers_forget(d.workers);
        _exit(0);
    }
    assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
    assert_int_equal(status, 0);
    atomic_store(&d.gate, true);
    trib_workers_clear(d.workers);
    assert_int_equal(atomic_load(&d.runs), 1);
    trib_workers_destroy(d.workers);
}
