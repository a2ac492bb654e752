/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fork the workers. If a job fails, the others continue, and the round counts the
 * failed job's operations so far.
 */
#include "perf/agg/agg.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* The library fails an operation without progress after TRIB_TIMEOUT_MS, by default 120
 * s. */
#define PATIENCE_SECONDS 180
#define GRACE_SECONDS 10

static size_t shared_bytes(const struct agg_args *args)
{
    size_t n = (size_t)args->jobs * (size_t)args->workers;

    return sizeof(struct agg_shared) + n * sizeof(struct agg_worker);
}

static int workers_of(const struct agg_workers *workers)
{
    return workers->args->jobs * workers->args->workers;
}

bool agg_workers_open(struct agg_workers *workers)
{
    static const int waited[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP};

    workers->shared = mmap(NULL, shared_bytes(workers->args), PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (workers->shared == MAP_FAILED) {
        workers->shared = NULL;
        fprintf(stderr, "trib-perf: no memory for the counters of %d workers: %s.\n",
                workers_of(workers), strerror(errno));
        return false;
    }
    sigemptyset(&workers->waited);
    for (size_t i = 0; i < sizeof(waited) / sizeof(*waited); i++)
        sigaddset(&workers->waited, waited[i]);
    sigprocmask(SIG_BLOCK, &workers->waited, &workers->old_mask);
    return true;
}

/* --- start --- */

/* Run a worker; never returns. The worker gets SIGKILL when its parent ends. */
static void be_worker(const struct agg_workers *workers, int job, int rank,
                      const char *root, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    sigprocmask(SIG_SETMASK, &workers->old_mask, NULL);
    _exit(agg_worker_run(workers, job, rank, root));
}

static bool start_worker(struct agg_workers *workers, int job, int rank,
                         trib_local_t *local)
{
    struct agg_worker *w = agg_worker_at(workers, job, rank);
    pid_t parent = getpid(), pid = fork();

    if (pid == 0)
        be_worker(workers, job, rank, trib_local_root(local), parent);
    if (pid < 0) {
        fprintf(stderr, "trib-perf: cannot start worker %d of job %d: %s.\n", rank, job,
                strerror(errno));
        return false;
    }
    w->pid = pid;
    trib_local_set_pid(local, rank, pid);
    return true;
}

/* Start the workers of a job. The caller keeps *local until the workers have ended,
 * since they rendezvous through it. */
static bool start_job(struct agg_workers *workers, int job, trib_local_t **local)
{
    if (trib_local_create(workers->args->workers, local) != TRIB_OK) {
        fprintf(stderr, "trib-perf: %s\n", trib_last_error(NULL));
        return false;
    }
    for (int rank = 0; rank < workers->args->workers; rank++)
        if (!start_worker(workers, job, rank, *local))
            return false;
    return true;
}

/* --- wait --- */

static void note_end(struct agg_worker *w, int how)
{
    w->pid = 0;
    if (how == 0)
        return;
    w->failed = true;
    if (WIFSIGNALED(how))
        snprintf(w->why, sizeof(w->why), "was killed by signal %d (%s)", WTERMSIG(how),
                 strsignal(WTERMSIG(how)));
    else if (w->why[0] == '\0')
        snprintf(w->why, sizeof(w->why), "exited with status %d", WEXITSTATUS(how));
}

/* The exit status is unknown, which counts as a failure. */
static void note_lost(struct agg_worker *w, int error)
{
    w->pid = 0;
    w->failed = true;
    snprintf(w->why, sizeof(w->why), "cannot be waited for: %s", strerror(error));
}

static int reap(struct agg_workers *workers)
{
    int left = 0, how;

    for (int i = 0; i < workers_of(workers); i++) {
        struct agg_worker *w = &workers->shared->workers[i];
        pid_t ended = w->pid > 0 ? waitpid(w->pid, &how, WNOHANG) : 0;
        if (ended > 0)
            note_end(w, how);
        else if (ended < 0 && errno != EINTR)
            note_lost(w, errno);
        left += w->pid > 0;
    }
    if (workers->daemon != NULL)
        (void)tool_tribd_ended(workers->daemon);
    return left;
}

static void signal_all(const struct agg_workers *workers, int number)
{
    for (int i = 0; i < workers_of(workers); i++)
        if (workers->shared->workers[i].pid > 0)
            kill(workers->shared->workers[i].pid, number);
}

/* Wait until a worker ends, for at most 0.1 s. Return false if this process shall
 * end. */
static bool poll_workers(struct agg_workers *workers, int *left)
{
    const struct timespec tenth = {.tv_nsec = 100000000};
    int number = sigtimedwait(&workers->waited, NULL, &tenth);

    if (number > 0 && number != SIGCHLD)
        workers->signalled = number;
    *left = reap(workers);
    return workers->signalled == 0;
}

/* Kill workers without progress for PATIENCE_SECONDS, so that the round ends for the
 * others. */
static void end_stuck(struct agg_workers *workers, uint64_t *beats, double *since)
{
    double now = perf_now();

    for (int i = 0; i < workers_of(workers); i++) {
        struct agg_worker *w = &workers->shared->workers[i];
        uint64_t beat = atomic_load(&w->beats);
        if (beat != beats[i] || since[i] == 0.0) {
            beats[i] = beat;
            since[i] = now;
        }
        if (w->pid == 0 || now - since[i] < PATIENCE_SECONDS)
            continue;
        fprintf(stderr,
                "trib-perf: job %s.%d: worker %d made no progress for %d s: killed.\n",
                workers->args->prefix, i / workers->args->workers,
                i % workers->args->workers, PATIENCE_SECONDS);
        kill(w->pid, SIGKILL);
    }
}

static bool all_at(const struct agg_workers *workers, bool done, int round)
{
    for (int i = 0; i < workers_of(workers); i++) {
        struct agg_worker *w = &workers->shared->workers[i];
        if (w->pid > 0 && atomic_load(done ? &w->done : &w->ready) < round)
            return false;
    }
    return true;
}

static bool await(struct agg_workers *workers, bool done, int round)
{
    size_t n = (size_t)workers_of(workers);
    uint64_t *beats = calloc(n, sizeof(*beats));
    double *since = calloc(n, sizeof(*since));
    int left = 1;
    bool good = beats != NULL && since != NULL;

    while (good && left > 0 && !all_at(workers, done, round)) {
        good = poll_workers(workers, &left);
        if (good)
            end_stuck(workers, beats, since);
    }
    free(beats);
    free(since);
    return good && left > 0;
}

bool agg_workers_start(struct agg_workers *workers)
{
    trib_local_t **locals = calloc((size_t)workers->args->jobs, sizeof(*locals));
    bool good = locals != NULL;

    fflush(NULL);
    for (int job = 0; good && job < workers->args->jobs; job++)
        good = start_job(workers, job, &locals[job]);
    if (good)
        good = await(workers, false, 1);
    for (int job = 0; locals != NULL && job < workers->args->jobs; job++)
        trib_local_destroy(locals[job]);
    free(locals);
    return good;
}

/* --- rounds --- */

static double tribd_cpu(const struct agg_workers *workers)
{
    pid_t pid = workers->daemon != NULL ? workers->daemon->pid
                                        : (pid_t)workers->args->tribd_pid;

    return pid > 0 ? perf_cpu_seconds_of(pid) : (double)NAN;
}

bool agg_workers_round(struct agg_workers *workers, int round, double *tribd_cpu_out)
{
    struct agg_shared *shared = workers->shared;

    *tribd_cpu_out = (double)NAN;
    if (!await(workers, false, round))
        return false;
    for (int job = 0; job < workers->args->jobs; job++)
        atomic_store(&shared->last[job], UINT64_MAX);
    double before = tribd_cpu(workers);
    shared->begin = perf_now();
    atomic_store(&shared->round, round);
    bool left = await(workers, true, round);
    *tribd_cpu_out = tribd_cpu(workers) - before;
    return left || workers->signalled == 0;
}

void agg_workers_close(struct agg_workers *workers)
{
    double until = perf_now() + GRACE_SECONDS;
    int left;

    if (workers->shared == NULL)
        return;
    if (workers->signalled != 0)
        signal_all(workers, SIGTERM);
    while ((left = reap(workers)) > 0) {
        (void)poll_workers(workers, &left);
        if (left > 0 && perf_now() > until) {
            fprintf(stderr, "trib-perf: %d worker%s did not end within %d s: killed.\n",
                    left, left == 1 ? "" : "s", GRACE_SECONDS);
            signal_all(workers, SIGKILL);
            until += GRACE_SECONDS;
        }
    }
}
