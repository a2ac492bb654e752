/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A plan notifies once that a start is done, through a callback and a descriptor,
 * whichever thread drives the engine; different threads test and wait for different
 * plans.
 */
#include <poll.h>

#include "build-config.h"
#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "tests/harness/daemon.h"
#include "tests/harness/ranks.h"

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

enum { PLANS = 4, COUNT = 3001, ROUNDS = 50 };

struct told {
    struct ranks_self *self;
    trib_plan_t *plan, *next; /* started by the callback; or NULL */
    float x[COUNT];
    _Atomic int calls;
    double ended;
    trib_status_t status, own; /* own: of a start of its own plan, in the callback */
};

static float value(int rank, int round, int i)
{
    return (float)((rank + 1) * (i % 100) + round);
}

static void fill(struct told *t, int round)
{
    for (int i = 0; i < COUNT; i++)
        t->x[i] = value(t->self->rank, round, i);
}

static void check(struct told *t, int round)
{
    const int n = t->self->size;

    for (int i = 0; i < COUNT; i++)
        ranks_assert(t->self, (int)t->x[i] == n * (n + 1) / 2 * (i % 100) + n * round);
}

static void called(void *arg, trib_status_t status)
{
    struct told *t = arg;

    t->status = status;
    t->own = trib_plan_start(t->plan);
    if (t->next)
        ranks_ok(t->self, trib_plan_start(t->next));
    t->calls++;
}

static void make(struct ranks_self *self, struct told *t)
{
    trib_desc_t desc = TRIB_DESC_INIT;

    t->self = self;
    desc.recv = t->x;
    desc.count = COUNT;
    ranks_ok(self, trib_plan_allreduce(self->comm, &desc, &t->plan));
}

static void await(struct told *t, int calls)
{
    while (t->calls < calls) {
        ranks_ok(t->self, trib_progress(t->self->comm));
        sched_yield();
    }
}

/* No thread waits: the progress thread, or trib_progress, calls back; each start starts
 * another one. */
static int tells(struct ranks_self *self)
{
    struct told *t = calloc(2, sizeof(*t));

    ranks_assert(self, t);
    for (int p = 0; p < 2; p++) {
        make(self, &t[p]);
        ranks_ok(self, trib_plan_notify(t[p].plan, called, &t[p]));
    }
    t[0].next = t[1].plan;
    for (int round = 0; round < ROUNDS; round++) {
        fill(&t[0], round);
        fill(&t[1], round);
        ranks_ok(self, trib_plan_start(t[0].plan));
        await(&t[1], round + 1);
        ranks_ok(self, trib_plan_wait(t[1].plan));
        ranks_ok(self, trib_plan_wait(t[0].plan));
        ranks_assert(self, t[0].calls == round + 1 && t[1].calls == round + 1);
        ranks_assert(self, t[0].status == TRIB_OK && t[0].own == TRIB_ERR_BUSY);
        check(&t[0], round);
        check(&t[1], round);
    }
    for (int p = 0; p < 2; p++)
        ranks_ok(self, trib_plan_free(t[p].plan));
    free(t);
    return 0;
}

TEST_ON(test_tells, "shm", "tcp")
{
    char config[100];

    ranks_pass(.size = 2, .fn = tells, .config = *state);
    ranks_pass(.size = 3, .fn = tells, .config = *state, .threads = true);
    snprintf(config, sizeof(config), "%s;progress=caller", (const char *)*state);
    ranks_pass(.size = 2, .fn = tells, .config = config);
}

/* A plan that ends while the thread is in the callback of another, which comes later in
 * its poll of all plans: no work is left, but the plan is notified. */
static int ends_meanwhile(struct ranks_self *self)
{
    static struct told t[2];
    struct pollfd ready = {.events = POLLIN};

    make(self, &t[0]);
    make(self, &t[1]);
    t[0].next = t[1].plan;
    ranks_ok(self, trib_plan_notify(t[0].plan, called, &t[0]));
    ranks_ok(self, trib_plan_fd(t[1].plan, &ready.fd)); /* so that it is polled first */
    for (int round = 0; round < ROUNDS; round++) {
        fill(&t[0], round);
        fill(&t[1], round);
        ranks_ok(self, trib_plan_start(t[0].plan));
        ranks_assert(self, poll(&ready, 1, 10000) == 1);
        ranks_ok(self, trib_plan_wait(t[0].plan));
        ranks_ok(self, trib_plan_wait(t[1].plan));
        check(&t[1], round);
    }
    for (int p = 0; p < 2; p++)
        ranks_ok(self, trib_plan_free(t[p].plan));
    return 0;
}

TEST_ON(test_ends_meanwhile, "shm")
{
    ranks_pass(.size = 1, .fn = ends_meanwhile, .config = *state);
    ranks_pass(.size = 2, .fn = ends_meanwhile, .config = *state);
}

/* The descriptor is readable from the end of a start until the next one. */
static int polls(struct ranks_self *self)
{
    static struct told t[2];
    struct pollfd ready[2];

    for (int p = 0; p < 2; p++) {
        make(self, &t[p]);
        ranks_ok(self, trib_plan_fd(t[p].plan, &ready[p].fd));
        ready[p].events = POLLIN;
        int again;
        ranks_ok(self, trib_plan_fd(t[p].plan, &again));
        ranks_assert(self, again == ready[p].fd);
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int p = 0; p < 2; p++) {
            fill(&t[p], round);
            ranks_ok(self, trib_plan_start(t[p].plan));
        }
        for (int open = 2; open > 0;) {
            ranks_assert(self, poll(ready, 2, 60000) > 0);
            for (int p = 0; p < 2; p++) {
                if (ready[p].fd < 0 || !ready[p].revents)
                    continue;
                ranks_ok(self, trib_plan_test(t[p].plan));
                check(&t[p], round);
                ranks_assert(self, poll(&ready[p], 1, 0) == 1);
                ready[p].fd = -1 - ready[p].fd;
                open--;
            }
        }
        for (int p = 0; p < 2; p++)
            ready[p].fd = -1 - ready[p].fd;
    }
    for (int p = 0; p < 2; p++)
        ranks_ok(self, trib_plan_free(t[p].plan));
    return 0;
}

TEST_ON(test_polls, "shm", IF_UCX("ucx"))
{
    ranks_pass(.size = 2, .fn = polls, .config = *state);
}

/* A plan, and the thread that waits for it or tests it. */
struct waiter {
    struct told told;
    pthread_t thread;
    _Atomic int started; /* number of starts */
    _Atomic int seen;
    bool tests;
};

static void *wait_for_plan(void *arg)
{
    struct waiter *w = arg;

    for (int round = 0; round < ROUNDS; round++) {
        while (w->started <= round)
            sched_yield();
        trib_status_t st = TRIB_INPROGRESS;
        while (w->tests && (st = trib_plan_test(w->told.plan)) == TRIB_INPROGRESS)
            sched_yield();
        if (!w->tests)
            st = trib_plan_wait(w->told.plan);
        ranks_ok(w->told.self, st);
        check(&w->told, round);
        w->seen = round + 1;
    }
    return NULL;
}

static int any_thread(struct ranks_self *self)
{
    struct waiter *w = calloc(PLANS, sizeof(*w));

    ranks_assert(self, w);
    for (int p = 0; p < PLANS; p++) {
        make(self, &w[p].told);
        w[p].tests = p % 2;
        if (p == 2)
            ranks_ok(self, trib_plan_notify(w[p].told.plan, called, &w[p].told));
        ranks_assert(self,
                     pthread_create(&w[p].thread, NULL, wait_for_plan, &w[p]) == 0);
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int p = 0; p < PLANS; p++) {
            fill(&w[p].told, round);
            ranks_ok(self, trib_plan_start(w[p].told.plan));
            w[p].started = round + 1;
        }
        for (int p = 0; p < PLANS; p++)
            while (w[p].seen <= round)
                sched_yield();
    }
    for (int p = 0; p < PLANS; p++) {
        ranks_assert(self, pthread_join(w[p].thread, NULL) == 0);
        ranks_ok(self, trib_plan_free(w[p].told.plan));
    }
    free(w);
    return 0;
}

TEST_ON(test_any_thread, "shm", "tcp")
{
    ranks_pass(.size = 2, .fn = any_thread, .config = *state);
    ranks_pass(.size = 2, .fn = any_thread, .config = *state, .threads = true);
}

static void nap(int ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL);
}

static void *wait_timed(void *arg)
{
    struct told *t = arg;

    ranks_ok(t->self, trib_plan_wait(t->plan));
    t->ended = ranks_seconds();
    return NULL;
}

/* A thread that waits, and so drives the engine, does not prevent another one from
 * seeing that its plan is done. */
static int not_held_up(struct ranks_self *self)
{
    static struct told early, late;
    pthread_t thread;

    make(self, &early);
    make(self, &late);
    fill(&early, 0);
    fill(&late, 0);
    if (self->rank == 1)
        nap(200);
    ranks_ok(self, trib_plan_start(early.plan));
    if (self->rank == 1) {
        ranks_ok(self, trib_plan_wait(early.plan));
        nap(600);
    }
    ranks_ok(self, trib_plan_start(late.plan));
    ranks_assert(self, pthread_create(&thread, NULL, wait_timed, &early) == 0);
    (void)wait_timed(&late);
    ranks_assert(self, pthread_join(thread, NULL) == 0);
    ranks_assert(self, self->rank == 1 || late.ended - early.ended > 0.2);
    check(&early, 0);
    check(&late, 0);
    ranks_ok(self, trib_plan_free(early.plan));
    ranks_ok(self, trib_plan_free(late.plan));
    return 0;
}

TEST_ON(test_not_held_up, "shm", "tcp")
{
    ranks_pass(.size = 2, .fn = not_held_up, .config = *state);
}

/* A thread that waits for a peer does not prevent another one from starting a plan. */
static int lets_in(struct ranks_self *self)
{
    static struct told early, late;
    pthread_t thread;

    make(self, &early);
    make(self, &late);
    fill(&early, 0);
    fill(&late, 0);
    ranks_ok(self, trib_barrier(self->comm));
    if (self->rank == 1)
        nap(2000);
    ranks_ok(self, trib_plan_start(early.plan));
    ranks_assert(self, pthread_create(&thread, NULL, wait_timed, &early) == 0);
    nap(100); /* the thread sleeps in its wait by now */
    const double begin = ranks_seconds();
    ranks_ok(self, trib_plan_start(late.plan));
    ranks_assert(self, self->rank == 1 || ranks_seconds() - begin < 1);
    ranks_ok(self, trib_plan_wait(late.plan));
    ranks_assert(self, pthread_join(thread, NULL) == 0);
    check(&early, 0);
    check(&late, 0);
    ranks_ok(self, trib_plan_free(early.plan));
    ranks_ok(self, trib_plan_free(late.plan));
    return 0;
}

TEST_ON(test_lets_in, "shm", "tcp")
{
    ranks_pass(.size = 2, .fn = lets_in, .config = *state);
}

/* A plan of pairs notifies, too. */
RANKS_TEST_ON(test_tells_of_pairs, ("shm"), .size = 2)
{
    static struct told t;
    trib_sparse_desc_t desc = TRIB_SPARSE_DESC_INIT;
    const uint64_t index = 7 + (uint64_t)self->rank;
    const float one = 1;
    size_t pairs;

    t.self = self;
    desc.length = 1000;
    ranks_ok(self, trib_plan_sparse(self->comm, &desc, &t.plan));
    ranks_ok(self, trib_plan_notify(t.plan, called, &t));
    for (int round = 1; round <= ROUNDS; round++) {
        ranks_ok(self, trib_plan_start_sparse(t.plan, &index, &one, 1));
        await(&t, round);
        ranks_ok(self, trib_plan_wait(t.plan));
        ranks_ok(self, trib_plan_sparse_count(t.plan, &pairs));
        ranks_assert(self, pairs == (size_t)self->size && t.calls == round);
    }
    ranks_ok(self, trib_plan_free(t.plan));
    return 0;
}

/* The callback sees the scaled result of a scaled plan. */
static void look_at_result(void *arg, trib_status_t status)
{
    struct told *t = arg;

    t->status = status;
    t->own = t->x[0] == 10 && t->x[COUNT - 1] == 10 ? TRIB_OK : TRIB_ERR_INVALID;
    t->calls++;
}

static int tells_of_scaled(struct ranks_self *self)
{
    static struct told t;
    trib_desc_t desc = TRIB_DESC_INIT;

    t.self = self;
    desc.recv = t.x;
    desc.count = COUNT;
    desc.postscale = 5;
    ranks_ok(self, trib_plan_allreduce(self->comm, &desc, &t.plan));
    ranks_ok(self, trib_plan_notify(t.plan, look_at_result, &t));
    for (int round = 1; round <= ROUNDS; round++) {
        for (int i = 0; i < COUNT; i++)
            t.x[i] = 1;
        ranks_ok(self, trib_plan_start(t.plan));
        if (round % 2)
            await(&t, round);
        ranks_ok(self, trib_plan_wait(t.plan));
        ranks_assert(self, t.calls == round && t.own == TRIB_OK);
    }
    ranks_ok(self, trib_plan_free(t.plan));
    return 0;
}

TEST_ON(test_tells_of_scaled, "shm")
{
    ranks_pass(.size = 2, .fn = tells_of_scaled, .config = *state);
}

/* A failure is notified, too; and a plan that no thread waited for can be freed. */
RANKS_TEST_ON(test_told_of_failure, ("shm", "tcp"), .size = 2, .noisy = true)
{
    static struct told t, never;

    make(self, &t);
    make(self, &never);
    ranks_ok(self, trib_plan_notify(t.plan, called, &t));
    ranks_ok(self, trib_plan_notify(never.plan, called, &never));
    ranks_ok(self, trib_barrier(self->comm));
    if (self->rank == 1) {
        nap(50);
        trib_comm_fail_all(self->comm, TRIB_ERR_ABORTED, "rank 1 ends it");
    } else if (trib_plan_start(t.plan) == TRIB_OK) {
        while (t.calls == 0) {
            (void)trib_progress(self->comm);
            sched_yield();
        }
        ranks_assert(self, t.status == TRIB_ERR_ABORTED && t.calls == 1);
    }
    ranks_ok(self, trib_plan_free(t.plan));
    ranks_ok(self, trib_plan_free(never.plan));
    ranks_assert(self, never.calls == 0);
    return 0;
}

/* The same for plans that tribd sums, and while tribd is killed. */
static int served(struct ranks_self *self)
{
    trib_stats_t stats = {.size = sizeof(stats)};

    tells(self);
    polls(self);
    any_thread(self);
    not_held_up(self);
    lets_in(self);
    tells_of_scaled(self);
    ranks_ok(self, trib_stats(self->comm, &stats));
    ranks_assert(self, stats.served > 5 * ROUNDS);
    return 0;
}

static int outlives_tribd(struct ranks_self *self)
{
    for (int k = 0; k < 4; k++) {
        self->slot->phase = k;
        tells(self);
        any_thread(self);
    }
    return 0;
}

static void kill_tribd(struct daemon_process *d, const char *config)
{
    const struct ranks_job job = {
        .size = 2, .fn = outlives_tribd, .config = config, .noisy = true};
    struct ranks r;

    assert_true(ranks_start(&r, &job));
    while (r.slots[0].phase < 1 && !ranks_poll(&r))
        usleep(1000);
    usleep(3000);
    daemon_signal(d, SIGKILL);
    ranks_wait(&r);
    assert_int_equal(ranks_failed(&r), 0);
    ranks_close(&r);
}

TEST_ON(test_with_tribd, "shm", "tcp")
{
    struct daemon_process d = {.threads = 1};
    char config[160];

    daemon_need(&d);
    snprintf(config, sizeof(config), "%s;service=127.0.0.1:%d;progress=caller",
             (const char *)*state, d.port);
    ranks_pass(.size = 2, .fn = tells, .config = config);
    config[strlen(config) - strlen(";progress=caller")] = 0;
    ranks_pass(.size = 2, .fn = served, .config = config);
    ranks_pass(.size = 3, .fn = any_thread, .config = config, .threads = true);
    kill_tribd(&d, config);
    daemon_end(&d);
}
