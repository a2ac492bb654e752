/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib_opts_t.idle: the function is called while a call waits, on the waiting thread
 * and without a lock of the library, and aborts the wait in each phase of the start and
 * of each collective. All ranks then name the rank whose caller aborted.
 */
#include "build-config.h"
#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "tests/harness/ranks.h"

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

enum {
    COUNT = 5000,
    TURN = 1000000, /* more than the calls of one wait */
    ENOUGH = 100, /* calls */
    LATE_MS = 200, /* delay of the other rank */
    ANSWER = 7,
};

/* Return the seconds that a rank may take to abort on a busy machine; one that ignores
 * the function takes 5 s or more. */
static double soon(void)
{
    return 1.0 * tribtest_slowness();
}

struct hook {
    pthread_t thread;
    trib_comm_t *comm; /* no thread may hold its lock; NULL: unknown */
    int calls, elsewhere, locked;
    int after; /* number of calls until it aborts; 0: never */
    double last, gaps[8192]; /* in processor time of this thread */
    double answered;
    struct ranks_slot *slot; /* where other ranks see the calls; NULL: no rank checks */
    int turn; /* counts the waits */
};

static double own_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int called(void *arg)
{
    struct hook *h = arg;
    const double now = own_seconds();

    if (h->calls && h->calls < 8192)
        h->gaps[h->calls] = now - h->last;
    h->last = now;
    h->elsewhere += !pthread_equal(h->thread, pthread_self());
    h->locked += h->comm && atomic_load(&h->comm->lock);
    ++h->calls;
    if (h->slot)
        atomic_store(&h->slot->count, (uint64_t)h->turn * TURN + h->calls);
    if (h->calls != h->after)
        return 0;
    h->answered = ranks_seconds();
    if (h->slot)
        atomic_store(&h->slot->phase, 1);
    return ANSWER;
}

static trib_comm_t *open_comm(struct ranks_self *self, struct hook *h,
                              trib_status_t *status)
{
    trib_comm_t *comm = NULL;

    h->thread = pthread_self();
    self->opts.idle = called;
    self->opts.idle_arg = h;
    *status = trib_init(&self->opts, &comm);
    return comm;
}

static void nap(int ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL);
}

/* Wait until the function of each other rank was called often enough in this wait. */
static void be_late(const struct ranks_self *self, int turn)
{
    const double until = ranks_seconds() + tribtest_patience_ms() / 1e3;
    const struct ranks_slot *slots = self->slot - self->rank;

    nap(LATE_MS);
    for (int r = 0; r < self->size; r++)
        while (r != self->rank && ranks_seconds() < until &&
               atomic_load(&slots[r].count) < (uint64_t)turn * TURN + ENOUGH)
            nap(1);
}

/* Wait until rank 1 has aborted, however long the machine takes for its calls. */
static void await_answer(const struct ranks_self *self)
{
    const double until = ranks_seconds() + tribtest_patience_ms() / 1e3;

    while (atomic_load(&self->slot[1].phase) == 0 && ranks_seconds() < until)
        nap(1);
}

static int by_size(const void *a, const void *b)
{
    return *(const double *)a < *(const double *)b   ? -1
           : *(const double *)a > *(const double *)b ? 1
                                                     : 0;
}

/* Half of the gaps are short, in processor time: other processes do not count. */
static void check_calls(struct ranks_self *self, struct hook *h)
{
    const int n = h->calls < 8192 ? h->calls : 8192;

    ranks_assert(self, n > 20);
    ranks_assert(self, h->elsewhere == 0 && h->locked == 0);
    qsort(h->gaps + 1, (size_t)n - 1, sizeof(double), by_size);
    if (h->gaps[n / 2] > 200e-6 * tribtest_slowness())
        ranks_die(self, "the median gap is %.0f us", h->gaps[n / 2] * 1e6);
}

static void sum(struct ranks_self *self, trib_comm_t *comm)
{
    float x[COUNT];

    for (int i = 0; i < COUNT; i++)
        x[i] = (float)self->rank;
    ranks_ok(self, trib_allreduce(comm, NULL, x, COUNT, TRIB_F32, TRIB_SUM));
    for (int i = 0; i < COUNT; i++)
        ranks_assert(self, (int)x[i] == self->size * (self->size - 1) / 2);
}

/* The last rank is late at the start, at a blocking call, and at a plan. */
static int waits(struct ranks_self *self)
{
    const bool late = self->rank == self->size - 1;
    struct hook h = {.slot = self->slot};
    trib_desc_t desc = TRIB_DESC_INIT;
    trib_plan_t *plan;
    trib_status_t st;
    float x = 1;

    if (late)
        be_late(self, 0);
    trib_comm_t *comm = open_comm(self, &h, &st);
    ranks_expect(self, st, TRIB_OK, "trib_init");
    if (self->rank == 0)
        check_calls(self, &h);
    sum(self, comm);
    for (int with_plan = 0; with_plan < 2; with_plan++) {
        ranks_ok(self, trib_barrier(comm));
        if (late)
            be_late(self, 1 + with_plan);
        h = (struct hook){.thread = pthread_self(),
                          .comm = comm,
                          .slot = self->slot,
                          .turn = 1 + with_plan};
        desc.recv = &x;
        desc.count = 1;
        if (!with_plan) {
            sum(self, comm);
        } else {
            ranks_ok(self, trib_plan_allreduce(comm, &desc, &plan));
            ranks_ok(self, trib_plan_start(plan));
            h.comm = NULL; /* the progress thread may hold the lock */
            ranks_ok(self, trib_plan_wait(plan));
            ranks_ok(self, trib_plan_free(plan));
        }
        if (!late)
            check_calls(self, &h);
    }
    ranks_ok(self, trib_free_comm(comm));
    return 0;
}

TEST_ON(test_waits, "shm", "tcp", IF_UCX("ucx"))
{
    ranks_pass(.size = 3, .fn = waits, .config = *state, .bare = true);
}

/* Run a collective; the last kind is a plan that is waited for. */
static trib_status_t collective(trib_comm_t *comm, int kind, float *x)
{
    switch (kind) {
    case TRIB_ALLREDUCE:
        return trib_allreduce(comm, NULL, x, COUNT, TRIB_F32, TRIB_SUM);
    case TRIB_REDUCE:
        return trib_reduce(comm, NULL, x, COUNT, TRIB_F32, TRIB_SUM, 1);
    case TRIB_BROADCAST:
        return trib_broadcast(comm, x, COUNT, TRIB_F32, 0);
    case TRIB_ALLGATHER:
        return trib_allgather(comm, NULL, x, COUNT / 2, TRIB_F32);
    case TRIB_REDUCE_SCATTER:
        return trib_reduce_scatter(comm, NULL, x, COUNT / 2, TRIB_F32, TRIB_SUM);
    default:
        return trib_barrier(comm);
    }
}

static trib_status_t planned(struct ranks_self *self, trib_comm_t *comm, float *x)
{
    trib_plan_t *plan = ranks_plan_on(self, comm, TRIB_ALLREDUCE, .recv = x,
                                      .count = COUNT);
    trib_status_t st = trib_plan_start(plan);
    if (st == TRIB_OK)
        st = trib_plan_wait(plan);
    ranks_ok(self, trib_plan_free(plan));
    return st;
}

enum { PLAN = TRIB_BARRIER + 1, KINDS };

/* Rank 1 waits and aborts; rank 0 is late, and gets the error. */
static int gives_up(struct ranks_self *self)
{
    const int kind = *(const int *)self->arg;
    struct hook h = {.after = 0};
    float x[2 * COUNT] = {0};
    trib_status_t st;
    trib_comm_t *comm = open_comm(self, &h, &st), *part = NULL;

    ranks_expect(self, st, TRIB_OK, "trib_init");
    if (self->opts.config && strstr(self->opts.config, "log="))
        ranks_ok(self, trib_split(comm, 0, 0, &part)); /* it passes the function on */
    trib_comm_t *by = part ? part : comm;
    ranks_ok(self, collective(by, kind, x));
    st = trib_barrier(by);
    if (self->rank == 0)
        await_answer(self);
    h.slot = self->slot;
    h.calls = 0;
    h.after = self->rank == 1 ? 50 : 0;
    if (st == TRIB_OK) /* rank 1 may abort while this one is still in the barrier */
        st = kind == PLAN ? planned(self, by, x) : collective(by, kind, x);
    if (self->rank != 1 && st == TRIB_OK) /* it needed no waiting rank */
        st = trib_barrier(by);
    ranks_expect(self, st, TRIB_ERR_ABORTED, "the collective");
    if (self->rank == 1 && ranks_seconds() - h.answered > soon())
        ranks_die(self, "giving up takes %.0f ms",
                  (ranks_seconds() - h.answered) * 1e3);
    if (!ranks_has(trib_last_error(by),
                   WORDS("rank 1 ", "has given up in ", "operation", "trib_opts_t.idle",
                         "returned 7")))
        ranks_die(self, "%s", trib_last_error(by));
    ranks_expect(self, trib_barrier(by), TRIB_ERR_ABORTED, "the next one");
    if (part) {
        ranks_ok(self, trib_free_comm(part));
        ranks_ok(self, trib_barrier(comm));
    }
    (void)trib_free_comm(comm);
    return 0;
}

TEST_ON(test_gives_up, "shm", "tcp", IF_UCX("ucx"))
{
    char config[200];

    for (int kind = 0; kind < KINDS; kind++) {
        snprintf(config, sizeof(config), "%s%s", (const char *)*state,
                 kind % 2 ? ";log=error" : "");
        ranks_pass(.size = 3, .fn = gives_up, .config = config, .bare = true,
                   .arg = &kind, .noisy = true);
    }
}

/* How far rank 1 gets in trib_init: to its call number `after`. */
struct start {
    const char *root; /* NULL: on the host of the ranks */
    int after;
    int absent; /* this rank does not start; -1: all do */
};

static int starts(struct ranks_self *self)
{
    const struct start *s = self->arg;
    struct hook h = {.after = self->rank == 1 ? s->after : 0};
    trib_status_t st;

    if (self->rank == s->absent)
        return 0;
    if (s->root)
        self->opts.root = s->root;
    if (self->rank != 1 && s->absent < 0)
        nap(20 * self->rank + 20);
    trib_comm_t *comm = open_comm(self, &h, &st);
    if (self->rank == 1 && h.answered != 0 && ranks_seconds() - h.answered > soon())
        ranks_die(self, "giving up takes %.0f ms: %s",
                  (ranks_seconds() - h.answered) * 1e3, trib_last_error(NULL));
    if (h.elsewhere)
        ranks_die(self, "called by another thread");
    if (st == TRIB_OK) { /* it had joined before that many calls */
        ranks_assert(self, s->absent < 0 && self->rank != 1 ? true : !h.answered);
        st = trib_barrier(comm);
        (void)trib_free_comm(comm);
        if (st == TRIB_OK)
            return 0;
    }
    if (st == TRIB_ERR_BOOT && self->rank != 1)
        return 0; /* it started after rank 1 and the rendezvous had ended */
    if (st != TRIB_ERR_ABORTED && self->rank == 1)
        ranks_die(self, "%s", trib_last_error(NULL));
    return 0;
}

TEST_ON(test_start, "shm", "tcp")
{
    static const int after[] = {1, 5, 50, 200, 400, 800};
    trib_root_t *root;
    char config[100];

    snprintf(config, sizeof(config), "%s;boot_timeout_ms=2000", (const char *)*state);
    for (int over_tcp = 0; over_tcp < 2; over_tcp++) {
        for (size_t i = 0; i < sizeof(after) / sizeof(after[0]); i++) {
            assert_status(trib_root_create(&root), TRIB_OK);
            struct start s = {over_tcp ? trib_root_text(root) : NULL, after[i], -1};
            ranks_pass(.size = 3, .fn = starts, .config = config, .bare = true,
                       .arg = &s, .noisy = true);
            trib_root_destroy(root);
        }
    }
}

/* The absent rank lives until the others have ended: a process that exits would be
 * detected at once. */
static void stay_away(struct ranks_self *self)
{
    const struct ranks_slot *slots = self->slot - self->rank;
    const double until = ranks_seconds() + 10;

    for (int r = 0; r < self->size; r++)
        while (r != self->rank && !atomic_load(&slots[r].phase) &&
               ranks_seconds() < until)
            nap(1);
}

/* One rank never starts; rank 1 aborts, and rank 0, if present, names it. */
static int never(struct ranks_self *self)
{
    const struct start *s = self->arg;
    const int quitter = s->absent == 0 ? 1 : s->after;
    struct hook h = {.after = self->rank == quitter ? 100 : 0};
    trib_status_t st;

    if (self->rank == s->absent) {
        stay_away(self);
        return 0;
    }
    if (s->root)
        self->opts.root = s->root;
    (void)open_comm(self, &h, &st);
    atomic_store(&self->slot->phase, 1);
    if (st == TRIB_ERR_BOOT && self->rank != quitter)
        return 0; /* the aborting rank had not got far enough to report it */
    ranks_expect(self, st, TRIB_ERR_ABORTED, "trib_init");
    if (self->rank == quitter && ranks_seconds() - h.answered > soon())
        ranks_die(self, "giving up takes %.0f ms",
                  (ranks_seconds() - h.answered) * 1e3);
    char who[32];
    snprintf(who, sizeof(who), "rank %d ", quitter);
    if (!ranks_has(trib_last_error(NULL),
                   WORDS(who, "has given up in phase", "of the start", "returned 7")))
        ranks_die(self, "%s", trib_last_error(NULL));
    return 0;
}

TEST_ON(test_never, "auto")
{
    trib_root_t *root;
    char config[100];

    snprintf(config, sizeof(config), "%s;boot_timeout_ms=5000", (const char *)*state);
    for (int over_tcp = 0; over_tcp < 2; over_tcp++) {
        for (int quitter = 0; quitter < 2; quitter++) {
            assert_status(trib_root_create(&root), TRIB_OK);
            struct start s = {over_tcp ? trib_root_text(root) : NULL, quitter, 2};
            ranks_pass(.size = 3, .fn = never, .config = config, .bare = true,
                       .arg = &s, .noisy = true);
            if (over_tcp) { /* there is no listener */
                s.absent = 0;
                ranks_pass(.size = 2, .fn = never, .config = config, .bare = true,
                           .arg = &s, .noisy = true);
            }
            trib_root_destroy(root);
        }
    }
}
