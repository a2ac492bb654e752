/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/ranks.h"

#include <sys/mman.h>
#include <sys/prctl.h>

double ranks_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void ranks_say(const struct ranks_self *self, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(self->slot->text, sizeof(self->slot->text), fmt, args);
    va_end(args);
}

void ranks_die(const struct ranks_self *self, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(self->slot->text, sizeof(self->slot->text), fmt, args);
    va_end(args);
    self->slot->status = 1;
    self->slot->end = ranks_seconds();
    _exit(1);
}

void ranks_expect(const struct ranks_self *self, trib_status_t status,
                  trib_status_t expected, const char *what)
{
    if (status == expected)
        return;
    ranks_die(self, "%s gave %s, not %s: %s", what, trib_status_name(status),
              trib_status_name(expected), trib_last_error(self->comm));
}

void ranks_refused(const struct ranks_self *self, trib_status_t status,
                   trib_status_t expected, const char *const *words)
{
    const char *text = trib_last_error(self->comm);

    ranks_expect(self, status, expected, words[0]);
    if (!ranks_has(text, words))
        ranks_die(self, "\"%s\" does not have \"%s\"", text, words[0]);
}

trib_plan_t *ranks_make_plan(const struct ranks_self *self, trib_comm_t *comm,
                             trib_coll_t coll, const trib_desc_t *desc)
{
    trib_plan_t *plan;
    trib_status_t st = coll == TRIB_ALLREDUCE
                           ? trib_plan_allreduce(comm, desc, &plan)
                           : trib_plan_create(comm, coll, desc, &plan);

    if (st != TRIB_OK)
        ranks_die(self, "a plan: %s: %s", trib_status_name(st), trib_last_error(comm));
    return plan;
}

void ranks_step(const struct ranks_self *self, trib_plan_t *plan)
{
    ranks_ok(self, trib_plan_start(plan));
    ranks_ok(self, trib_plan_wait(plan));
}

bool ranks_has(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (!strstr(text, *words))
            return false;
    return true;
}

static void note_line(void *arg, trib_log_level_t level, const char *line)
{
    struct ranks_slot *slot = arg;

    if (level <= TRIB_LOG_WARN && atomic_fetch_add(&slot->warnings, 1) == 0)
        snprintf(slot->warning, sizeof(slot->warning), "%s", line);
}

/* Run one rank from trib_init to trib_free_comm. */
static int rank_main(struct ranks *r, int rank)
{
    const struct ranks_job *job = &r->job;
    struct ranks_slot *slot = &r->slots[rank];
    struct ranks_self self = {.rank = rank, .size = job->size, .arg = job->arg};

    self.slot = slot;
    self.opts = (trib_opts_t)TRIB_OPTS_INIT;
    self.opts.rank_plus_1 = rank + 1;
    self.opts.ranks = job->size;
    self.opts.root = trib_local_root(r->local);
    self.opts.config = job->config;
    self.opts.log = note_line;
    self.opts.log_arg = slot;
    slot->begin = ranks_seconds();
    if (!job->bare)
        ranks_expect(&self, trib_init(&self.opts, &self.comm), TRIB_OK, "trib_init");
    if (job->threads)
        pthread_barrier_wait(&r->threads_begun);
    int result = job->fn(&self);
    if (!job->bare && result == 0)
        ranks_expect(&self, trib_free_comm(self.comm), TRIB_OK, "trib_free_comm");
    slot->end = ranks_seconds();
    slot->status = result;
    return result;
}

struct rank_thread {
    struct ranks *r;
    int rank;
    int result;
};

static void *thread_main(void *arg)
{
    struct rank_thread *t = arg;

    t->result = rank_main(t->r, t->rank);
    return NULL;
}

static int all_threads(struct ranks *r)
{
    struct rank_thread threads[RANKS_MAX];
    pthread_t ids[RANKS_MAX];
    int failed = 0;

    if (pthread_barrier_init(&r->threads_begun, NULL, (unsigned)r->job.size))
        return 1;
    for (int i = 0; i < r->job.size; i++) {
        threads[i] = (struct rank_thread){r, i, -1};
        if (pthread_create(&ids[i], NULL, thread_main, &threads[i]))
            return 1;
    }
    for (int i = 0; i < r->job.size; i++) {
        pthread_join(ids[i], NULL);
        failed += threads[i].result != 0;
    }
    return failed;
}

/* Defined with the address sanitizer, which checks by itself only in exit(). */
int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

static void process_main(struct ranks *r, int index)
{
    static const int caught[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS};

    /* cmocka's handlers are for its own process: crashes of ranks must stay visible. */
    for (size_t i = 0; i < sizeof(caught) / sizeof(*caught); i++)
        signal(caught[i], SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(0);
    int failed = r->job.threads ? all_threads(r) : rank_main(r, index);
    if (__lsan_do_recoverable_leak_check && __lsan_do_recoverable_leak_check())
        failed++;
    fflush(NULL);
    _exit(failed ? 1 : 0);
}

bool ranks_start(struct ranks *r, const struct ranks_job *job)
{
    size_t bytes = (size_t)job->size * sizeof(*r->slots);

    memset(r, 0, sizeof(*r));
    r->job = *job;
    r->slots =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (r->slots == MAP_FAILED || trib_local_create(job->size, &r->local) != TRIB_OK) {
        fprintf(stderr, "ranks_start: %m\n");
        return false;
    }
    r->deadline = ranks_seconds() +
                  (job->seconds ? job->seconds : 100) * (double)tribtest_slowness();
    r->n_processes = job->threads ? 1 : job->size;
    for (int i = 0; i < job->size; i++)
        r->slots[i].status = RANKS_NEVER;
    fflush(NULL);
    for (int i = 0; i < r->n_processes; i++) {
        r->pids[i] = fork();
        if (r->pids[i] == 0)
            process_main(r, i);
        if (!job->threads)
            trib_local_set_pid(r->local, i, r->pids[i]);
    }
    return true;
}

void ranks_signal(struct ranks *r, int rank, int number)
{
    if (!r->job.threads && !r->ended[rank] && r->pids[rank] > 0)
        kill(r->pids[rank], number);
}

static void end_all(struct ranks *r)
{
    r->hung = true;
    for (int i = 0; i < r->n_processes; i++)
        if (!r->ended[i] && r->pids[i] > 0)
            kill(r->pids[i], SIGKILL);
}

/* A process that cannot be reaped counts as failed: its exit status is unknown. */
static bool has_ended(pid_t pid, int *wait_status)
{
    const pid_t ended = waitpid(pid, wait_status, WNOHANG);

    if (ended < 0)
        *wait_status = -1;
    return ended != 0;
}

bool ranks_poll(struct ranks *r)
{
    bool all = true;

    if (!r->hung && ranks_seconds() > r->deadline)
        end_all(r);
    for (int i = 0; i < r->n_processes; i++) {
        if (!r->ended[i])
            r->ended[i] = r->pids[i] <= 0 || has_ended(r->pids[i], &r->wait_status[i]);
        all = all && r->ended[i];
    }
    return all;
}

void ranks_wait(struct ranks *r)
{
    while (!ranks_poll(r))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

int ranks_failed(const struct ranks *r)
{
    int failed = 0;

    for (int i = 0; i < r->job.size; i++) {
        const struct ranks_slot *s = &r->slots[i];
        int p = r->job.threads ? 0 : i;
        bool quiet = r->job.noisy || s->warnings == 0;
        if (s->status == 0 && r->wait_status[p] == 0 && quiet)
            continue;
        failed++;
        fprintf(stderr, "# rank %d of %d (%s)%s: process status 0x%x, result %d: %s\n",
                i, r->job.size, r->job.config ? r->job.config : "",
                r->hung ? " ended by the watchdog" : "", (unsigned)r->wait_status[p],
                s->status, s->text);
        if (!quiet)
            fprintf(stderr, "#   unexpected log line: %s\n", s->warning);
    }
    return failed;
}

void ranks_close(struct ranks *r)
{
    trib_local_destroy(r->local);
    munmap(r->slots, (size_t)r->job.size * sizeof(*r->slots));
}

void ranks_outlive(struct ranks *r, unsigned lost)
{
    while (!ranks_poll(r)) {
        bool others = true;
        for (int i = 0; i < r->job.size; i++)
            others &= lost >> i & 1 || r->ended[i];
        for (int i = 0; i < r->job.size && others; i++)
            if (!r->ended[i])
                ranks_signal(r, i, SIGKILL);
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    }
}

void ranks_survived(struct ranks *r, unsigned lost, const char *fmt, ...)
{
    char what[200];
    va_list args;

    va_start(args, fmt);
    vsnprintf(what, sizeof(what), fmt, args);
    va_end(args);
    for (int i = 0; i < r->job.size; i++) {
        const struct ranks_slot *s = &r->slots[i];
        if (!(lost >> i & 1) && s->status != 0)
            fail_msg("%s: rank %d %s: %s", what, i,
                     s->status == RANKS_NEVER ? "never returned" : "failed", s->text);
    }
    assert_false(r->hung);
    ranks_close(r);
}

int ranks_run(const struct ranks_job *job)
{
    struct ranks r;

    if (!ranks_start(&r, job))
        return job->size;
    ranks_wait(&r);
    int failed = ranks_failed(&r);
    ranks_close(&r);
    return failed;
}
