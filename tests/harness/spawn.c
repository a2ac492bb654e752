/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/spawn.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "base/time.h"
#include "tests/harness/tribtest.h"

struct spawn_area {
    _Atomic uint32_t arrived;
    _Atomic uint32_t met;
    _Atomic uint32_t failed;
    _Atomic int pids[SPAWN_RANKS_MAX];
    _Atomic uint32_t told[SPAWN_RANKS_MAX];
    uint8_t blobs[SPAWN_RANKS_MAX][SPAWN_BLOB_MAX];
};

struct rank_thread {
    struct spawn s;
    const struct spawn_opts *opts;
    pthread_t id;
};

bool spawn_expired(const struct spawn *s)
{
    return trib_deadline_passed(s->deadline);
}

bool spawn_check(struct spawn *s, bool ok, const char *file, int line, const char *text)
{
    if (ok)
        return true;
    s->failures++;
    atomic_store(&s->area->failed, 1);
    if (s->failures <= 5)
        fprintf(stderr, "%s:%d: rank %d: not so: %s\n", file, line, s->rank, text);
    return false;
}

static bool wait_until(struct spawn *s, const _Atomic uint32_t *count, uint32_t all)
{
    unsigned turns = 0;

    while (atomic_load(count) < all) {
        if (atomic_load(&s->area->failed))
            return false;
        if (spawn_expired(s))
            return SPAWN_CHECK(s, !"the others come in time");
        tribtest_rest(&turns);
    }
    return true;
}

bool spawn_barrier(struct spawn *s)
{
    uint32_t all = ++s->phase * (uint32_t)s->size;

    atomic_fetch_add(&s->area->arrived, 1);
    return wait_until(s, &s->area->arrived, all);
}

bool spawn_meet(struct spawn *s, int n)
{
    atomic_fetch_add(&s->area->met, 1);
    return wait_until(s, &s->area->met, (uint32_t)n);
}

bool spawn_allgather(struct spawn *s, const void *in, size_t bytes, void *out)
{
    assert(bytes <= SPAWN_BLOB_MAX);
    memcpy(s->area->blobs[s->rank], in, bytes);
    if (!spawn_barrier(s))
        return false;
    for (int i = 0; i < s->size; i++)
        memcpy((char *)out + (size_t)i * bytes, s->area->blobs[i], bytes);
    return spawn_barrier(s);
}

void spawn_tell(struct spawn *s, uint32_t number)
{
    atomic_store(&s->area->told[s->rank], number);
}

bool spawn_await(struct spawn *s, int rank, uint32_t number)
{
    return wait_until(s, &s->area->told[rank], number);
}

pid_t spawn_pid(const struct spawn *s, int rank)
{
    return atomic_load(&s->area->pids[rank]);
}

void spawn_signal(const struct spawn *s, int rank, int number)
{
    assert(!s->threads && spawn_pid(s, rank) > 0);
    kill(spawn_pid(s, rank), number);
}

static int patience_ms(const struct spawn_opts *opts)
{
    return opts->timeout_ms * (int)tribtest_slowness();
}

static struct spawn rank_make(const struct spawn_opts *opts, struct spawn_area *area,
                              int rank)
{
    return (struct spawn){
        .rank = rank,
        .size = opts->size,
        .threads = opts->threads,
        .arg = opts->arg,
        .deadline = trib_deadline_ms(patience_ms(opts)),
        .area = area,
    };
}

static void *thread_main(void *arg)
{
    struct rank_thread *t = arg;

    t->opts->fn(&t->s);
    return NULL;
}

static void run_threads(const struct spawn_opts *opts, struct spawn_area *area,
                        struct spawn_result *results)
{
    struct rank_thread threads[SPAWN_RANKS_MAX];
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    /* Ranks time out earlier by themselves. */
    until.tv_sec += patience_ms(opts) / 1000 + 5;
    for (int i = 0; i < opts->size; i++) {
        atomic_store(&area->pids[i], (int)getpid());
        threads[i].s = rank_make(opts, area, i);
        threads[i].opts = opts;
        if (pthread_create(&threads[i].id, NULL, thread_main, &threads[i]) != 0)
            abort();
    }
    for (int i = 0; i < opts->size; i++) {
        if (pthread_timedjoin_np(threads[i].id, NULL, &until) != 0) {
            fprintf(stderr, "rank %d hangs\n", i);
            abort();
        }
        results[i].failures = threads[i].s.failures;
    }
}

static void child_main(const struct spawn_opts *opts, struct spawn_area *area, int rank,
                       pid_t parent)
{
    struct spawn s = rank_make(opts, area, rank);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    while (!atomic_load(&area->pids[rank]))
        sched_yield();
    opts->fn(&s);
    fflush(NULL);
    _exit(s.failures < 100 ? s.failures : 100);
}

static void reap(const struct spawn_opts *opts, struct spawn_area *area,
                 struct spawn_result *results)
{
    uint64_t deadline = trib_deadline_ms(patience_ms(opts) + 5000);
    bool reaped[SPAWN_RANKS_MAX] = {false};
    struct timespec pause = {0, 1000000};
    int left = opts->size;

    while (left > 0) {
        bool late = trib_deadline_passed(deadline);
        for (int i = 0; i < opts->size; i++) {
            int status;
            if (reaped[i])
                continue;
            if (late && !results[i].timed_out) {
                fprintf(stderr, "rank %d hangs\n", i);
                results[i].timed_out = true;
                kill(area->pids[i], SIGKILL);
            }
            const pid_t ended = waitpid(area->pids[i], &status, WNOHANG);
            if (ended == 0)
                continue;
            if (ended < 0) /* exit status unknown: counts as failed */
                status = W_EXITCODE(1, 0);
            reaped[i] = true;
            left--;
            results[i].failures = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
            results[i].signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        }
        nanosleep(&pause, NULL);
    }
}

static void run_forks(const struct spawn_opts *opts, struct spawn_area *area,
                      struct spawn_result *results)
{
    pid_t parent = getpid();

    fflush(NULL);
    for (int i = 0; i < opts->size; i++) {
        pid_t pid = fork();
        if (pid < 0)
            abort();
        if (pid == 0)
            child_main(opts, area, i, parent);
        atomic_store(&area->pids[i], (int)pid);
    }
    reap(opts, area, results);
}

int spawn_run(const struct spawn_opts *opts, struct spawn_result *results)
{
    struct spawn_result own[SPAWN_RANKS_MAX];
    int failed = 0;
    struct spawn_area *area = mmap(NULL, sizeof(*area), PROT_READ | PROT_WRITE,
                                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert(opts->size >= 1 && opts->size <= SPAWN_RANKS_MAX);
    if (area == MAP_FAILED)
        abort();
    results = results ? results : own;
    memset(results, 0, sizeof(*results) * (size_t)opts->size);
    if (opts->threads)
        run_threads(opts, area, results);
    else
        run_forks(opts, area, results);
    munmap(area, sizeof(*area));
    for (int i = 0; i < opts->size; i++)
        failed += results[i].failures || results[i].signal || results[i].timed_out;
    return failed;
}
