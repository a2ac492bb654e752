/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Workers by fork. A job that fails is none of the others' business: they go on, and
 * the round has what it did until then.
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

/* The library gives up an operation without progress after TRIB_TIMEOUT_MS, by default
 * 120 s. */
#define PATIENCE_SECONDS 180
#define GRACE_SECONDS 10

static size_t shared_bytes(const struct agg_args *args)
{
    size_t workers = (size_t)args->jobs * (size_t)args->workers;

    return sizeof(struct agg_shared) + workers * sizeof(struct agg_worker);
}

static int workers_of(const struct agg_workers *crew)
{
    return crew->args->jobs * crew->args->workers;
}

bool agg_workers_open(struct agg_workers *crew)
{
    static const int waited[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP};

    crew->shared = mmap(NULL, shared_bytes(crew->args), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (crew->shared == MAP_FAILED) {
        crew->shared = NULL;
        fprintf(stderr, "trib-perf: no memory for what %d workers note: %s.\n",
                workers_of(crew), strerror(errno));
        return false;
    }
    sigemptyset(&crew->waited);
    for (size_t i = 0; i < sizeof(waited) / sizeof(*waited); i++)
        sigaddset(&crew->waited, waited[i]);
    sigprocmask(SIG_BLOCK, &crew->waited, &crew->old_mask);
    return true;
}

/* Starting ------------------------------------------------------------------------- */

/* Never returns. A worker ends with its parent, so that none is left behind. */
static void be_worker(const struct agg_workers *crew, int job, int rank,
                      const char *root, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    sigprocmask(SIG_SETMASK, &crew->old_mask, NULL);
    _exit(agg_worker_run(crew, job, rank, root));
}

static bool start_worker(struct agg_workers *crew, int job, int rank,
                         trib_local_t *local)
{
    struct agg_worker *w = agg_worker_at(crew, job, rank);
    pid_t parent = getpid(), pid = fork();

    if (pid == 0)
        be_worker(crew, job, rank, trib_local_root(local), parent);
    if (pid < 0) {
        fprintf(stderr, "trib-perf: cannot start worker %d of job %d: %s.\n", rank, job,
                strerror(errno));
        return false;
    }
    w->pid = pid;
    trib_local_set_pid(local, rank, pid);
    return true;
}

/* Its meeting place is kept until the workers have met: by the caller, until they
 * end. */
static bool start_job(struct agg_workers *crew, int job, trib_local_t **local)
{
    if (trib_local_create(crew->args->workers, local) != TRIB_OK) {
        fprintf(stderr, "trib-perf: %s\n", trib_last_error(NULL));
        return false;
    }
    for (int rank = 0; rank < crew->args->workers; rank++)
        if (!start_worker(crew, job, rank, *local))
            return false;
    return true;
}

/* Looking -------------------------------------------------------------------------- */

static void note_end(struct agg_worker *w, int how)
{
    w->pid = 0;
    if (how == 0)
        return;
    w->failed = true;
    if (WIFSIGNALED(how))
        snprintf(w->why, sizeof(w->why), "was ended by signal %d (%s)", WTERMSIG(how),
                 strsignal(WTERMSIG(how)));
    else if (w->why[0] == '\0')
        snprintf(w->why, sizeof(w->why), "has ended with status %d", WEXITSTATUS(how));
}

/* How it has ended nobody can say: that is no success. */
static void note_lost(struct agg_worker *w, int error)
{
    w->pid = 0;
    w->failed = true;
    snprintf(w->why, sizeof(w->why), "cannot be waited for: %s", strerror(error));
}

static int reap(struct agg_workers *crew)
{
    int left = 0, how;

    for (int i = 0; i < workers_of(crew); i++) {
        struct agg_worker *w = &crew->shared->workers[i];
        pid_t ended = w->pid > 0 ? waitpid(w->pid, &how, WNOHANG) : 0;
        if (ended > 0)
            note_end(w, how);
        else if (ended < 0 && errno != EINTR)
            note_lost(w, errno);
        left += w->pid > 0;
    }
    if (crew->daemon != NULL)
        (void)agg_daemon_look(crew->daemon);
    return left;
}

static void signal_all(const struct agg_workers *crew, int number)
{
    for (int i = 0; i < workers_of(crew); i++)
        if (crew->shared->workers[i].pid > 0)
            kill(crew->shared->workers[i].pid, number);
}

/* Sleeps until one ends, for a tenth of a second at most; false: this process is to
 * end. */
static bool look(struct agg_workers *crew, int *left)
{
    const struct timespec tenth = {.tv_nsec = 100000000};
    int number = sigtimedwait(&crew->waited, NULL, &tenth);

    if (number > 0 && number != SIGCHLD)
        crew->signalled = number;
    *left = reap(crew);
    return crew->signalled == 0;
}

/* One that has not got on for long is ended, so that the others' round ends. */
static void end_stuck(struct agg_workers *crew, uint64_t *beats, double *since)
{
    double now = perf_now();

    for (int i = 0; i < workers_of(crew); i++) {
        struct agg_worker *w = &crew->shared->workers[i];
        uint64_t beat = atomic_load(&w->beats);
        if (beat != beats[i] || since[i] == 0.0) {
            beats[i] = beat;
            since[i] = now;
        }
        if (w->pid == 0 || now - since[i] < PATIENCE_SECONDS)
            continue;
        fprintf(stderr,
                "trib-perf: job %s.%d: worker %d has not got on for %d s: killed.\n",
                crew->args->prefix, i / crew->args->workers, i % crew->args->workers,
                PATIENCE_SECONDS);
        kill(w->pid, SIGKILL);
    }
}

static bool all_at(const struct agg_workers *crew, bool done, int round)
{
    for (int i = 0; i < workers_of(crew); i++) {
        struct agg_worker *w = &crew->shared->workers[i];
        if (w->pid > 0 && atomic_load(done ? &w->done : &w->ready) < round)
            return false;
    }
    return true;
}

static bool await(struct agg_workers *crew, bool done, int round)
{
    size_t n = (size_t)workers_of(crew);
    uint64_t *beats = calloc(n, sizeof(*beats));
    double *since = calloc(n, sizeof(*since));
    int left = 1;
    bool good = beats != NULL && since != NULL;

    while (good && left > 0 && !all_at(crew, done, round)) {
        good = look(crew, &left);
        if (good)
            end_stuck(crew, beats, since);
    }
    free(beats);
    free(since);
    return good && left > 0;
}

bool agg_workers_start(struct agg_workers *crew)
{
    trib_local_t **locals = calloc((size_t)crew->args->jobs, sizeof(*locals));
    bool good = locals != NULL;

    fflush(NULL);
    for (int job = 0; good && job < crew->args->jobs; job++)
        good = start_job(crew, job, &locals[job]);
    if (good)
        good = await(crew, false, 1);
    for (int job = 0; locals != NULL && job < crew->args->jobs; job++)
        trib_local_destroy(locals[job]);
    free(locals);
    return good;
}

/* Rounds --------------------------------------------------------------------------- */

static double tribd_cpu(const struct agg_workers *crew)
{
    pid_t pid = crew->daemon != NULL ? crew->daemon->pid : (pid_t)crew->args->tribd_pid;

    return pid > 0 ? agg_cpu_seconds(pid) : (double)NAN;
}

bool agg_workers_round(struct agg_workers *crew, int round, double *tribd_cpu_out)
{
    struct agg_shared *shared = crew->shared;

    *tribd_cpu_out = (double)NAN;
    if (!await(crew, false, round))
        return false;
    for (int job = 0; job < crew->args->jobs; job++)
        atomic_store(&shared->last[job], UINT64_MAX);
    double before = tribd_cpu(crew);
    shared->begin = perf_now();
    atomic_store(&shared->round, round);
    bool left = await(crew, true, round);
    *tribd_cpu_out = tribd_cpu(crew) - before;
    return left || crew->signalled == 0;
}

void agg_workers_close(struct agg_workers *crew)
{
    double until = perf_now() + GRACE_SECONDS;
    int left;

    if (crew->shared == NULL)
        return;
    if (crew->signalled != 0)
        signal_all(crew, SIGTERM);
    while ((left = reap(crew)) > 0) {
        (void)look(crew, &left);
        if (left > 0 && perf_now() > until) {
            fprintf(stderr, "trib-perf: %d worker%s did not end within %d s: killed.\n",
                    left, left == 1 ? "" : "s", GRACE_SECONDS);
            signal_all(crew, SIGKILL);
            until += GRACE_SECONDS;
        }
    }
}
