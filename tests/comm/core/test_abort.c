/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations that are aborted: with trib_comm_abort, from the thread that uses the
 * communicator or from another one, and by the time limit of a plan. All ranks get the
 * same error message, and continue together in a new communicator of all ranks.
 */
#include <tributary/elastic.h>
#include <tributary/request.h>

#include "build-config.h"
#include "tests/harness/daemon.h"
#include "tests/harness/ranks.h"

enum { RANKS = 3, N = 100000, LATE = 1, LIMIT_MS = 1000 };

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static const char *service = "";

static trib_plan_t *make(struct ranks_self *self, trib_comm_t *comm, float *x,
                         int timeout_ms)
{
    return ranks_plan_on(self, comm, TRIB_ALLREDUCE, .count = N, .recv = x,
                         .name = "ended", .timeout_ms = timeout_ms);
}

/* The operation has ended, and all ranks continue in a new communicator of all
 * ranks. */
static void go_on(struct ranks_self *self, trib_comm_t *comm, trib_plan_t *plan)
{
    trib_comm_t *next;
    int64_t one = 1;
    int lost = -1;

    ranks_ok(self, trib_comm_lost(comm, NULL, 0, &lost));
    ranks_assert(self, lost == 0);
    ranks_assert(self, plan == NULL || trib_plan_start(plan) != TRIB_OK);
    if (trib_comm_shrink(comm, &next) != TRIB_OK)
        ranks_die(self, "%s", trib_last_error(NULL));
    ranks_ok(self, trib_allreduce(next, NULL, &one, 1, TRIB_I64, TRIB_SUM));
    ranks_assert(self, one == RANKS);
    ranks_ok(self, trib_plan_free(plan));
    (void)trib_free_comm(comm);
    ranks_ok(self, trib_free_comm(next));
}

static void has(struct ranks_self *self, trib_comm_t *comm, const char *const *words)
{
    if (!ranks_has(trib_last_error(comm), words))
        ranks_die(self, "%s", trib_last_error(comm));
}

/* One rank starts an operation and aborts it; the others wait, or call later. */
static int by_itself(struct ranks_self *self)
{
    static float x[N];
    trib_comm_t *comm;

    ranks_ok(self, trib_init(&self->opts, &comm));
    trib_plan_t *plan = make(self, comm, x, 0);
    for (int i = 0; i < 3; i++) {
        ranks_step(self, plan);
    }
    if (self->rank == LATE) {
        ranks_ok(self, trib_comm_abort(comm, "the loss is NaN"));
        ranks_ok(self, trib_comm_abort(comm, "again"));
        ranks_assert(self, trib_plan_start(plan) == TRIB_ERR_ABORTED);
    } else {
        trib_status_t st = trib_plan_start(plan);
        if (st == TRIB_OK)
            st = trib_plan_wait(plan);
        ranks_assert(self, st == TRIB_ERR_ABORTED);
    }
    has(self, comm,
        WORDS("rank 1 (", "has called trib_comm_abort: the loss is NaN; in"));
    go_on(self, comm, plan);
    return 0;
}

/* A watching thread aborts the operation that its rank waits for. */
struct watched {
    struct ranks_self *self;
    trib_comm_t *comm;
    _Atomic int waits;
};

static void *watch(void *arg)
{
    struct watched *w = arg;

    while (!atomic_load(&w->waits))
        usleep(100);
    usleep(20000);
    ranks_ok(w->self, trib_comm_abort(w->comm, NULL));
    return NULL;
}

enum { PLAN, CALL, REQUEST, BARRIER, KINDS };

static trib_status_t wait_for(struct ranks_self *self, trib_comm_t *comm, int kind,
                              trib_plan_t *plan, float *x)
{
    trib_request_t *request;
    trib_status_t st;

    switch (kind) {
    case PLAN:
        st = trib_plan_start(plan);
        return st == TRIB_OK ? trib_plan_wait(plan) : st;
    case CALL:
        return trib_allreduce(comm, NULL, x, N, TRIB_F32, TRIB_SUM);
    case REQUEST:
        st = trib_iallreduce(comm, NULL, x, N, TRIB_F32, TRIB_SUM, &request);
        if (st != TRIB_OK)
            return st;
        st = trib_request_wait(request);
        ranks_ok(self, trib_request_free(request));
        return st;
    default:
        return trib_barrier(comm);
    }
}

static int by_watcher(struct ranks_self *self)
{
    static float x[N];

    for (int kind = 0; kind < KINDS; kind++) {
        struct watched w = {.self = self};
        pthread_t thread;
        ranks_ok(self, trib_split(self->comm, 0, self->rank, &w.comm));
        trib_plan_t *plan = make(self, w.comm, x, 0);
        ranks_ok(self, trib_barrier(w.comm));
        if (self->rank == 0)
            ranks_assert(self, pthread_create(&thread, NULL, watch, &w) == 0);
        atomic_store(&w.waits, 1);
        if (self->rank != LATE) /* it never completes */
            ranks_assert(self,
                         wait_for(self, w.comm, kind, plan, x) == TRIB_ERR_ABORTED);
        while (self->rank == LATE && trib_progress(w.comm) == TRIB_OK)
            usleep(100);
        has(self, w.comm, WORDS("rank 0 (", "has called trib_comm_abort; in"));
        if (self->rank == 0)
            (void)pthread_join(thread, NULL);
        go_on(self, w.comm, plan);
    }
    return 0;
}

/* One rank is too late for a plan with a limit, or never starts it. */
static int by_limit(struct ranks_self *self)
{
    static float x[N];
    const int limit = LIMIT_MS * (int)tribtest_slowness();
    trib_comm_t *comm;

    ranks_ok(self, trib_init(&self->opts, &comm));
    trib_plan_t *free_of_limits = make(self, comm, x, 0);
    ranks_ok(self, trib_plan_start(free_of_limits)); /* it connects the ranks */
    ranks_ok(self, trib_plan_wait(free_of_limits));
    ranks_ok(self, trib_plan_free(free_of_limits));
    trib_plan_t *plan = make(self, comm, x, self->rank == LATE ? 0 : limit);
    for (int i = 0; i < 2; i++) {
        ranks_step(self, plan);
        usleep((useconds_t)limit * 600); /* a limit applies to one start */
    }
    if (self->rank == LATE) {
        while (trib_progress(comm) == TRIB_OK)
            usleep(100);
    } else {
        const double begun = ranks_seconds();
        trib_status_t st = trib_plan_start(plan);
        if (st == TRIB_OK)
            st = trib_plan_wait(plan);
        const double took = ranks_seconds() - begun;
        if (st != TRIB_ERR_TIMEOUT)
            ranks_die(self, "%s: %s", trib_status_name(st), trib_last_error(comm));
        char mine[24];
        snprintf(mine, sizeof(mine), "rank %d made no", self->rank);
        const bool first = strstr(trib_last_error(comm), mine);
        if ((first && took < limit / 1e3 * 0.9) || took > limit / 1e3 * 4 + 2)
            ranks_die(self, "a limit of %d ms took %.3f s", limit, took);
    }
    has(self, comm,
        WORDS("did not finish within", "allreduce \"ended\"", "it waits for",
              "trib_desc_t.timeout_ms"));
    go_on(self, comm, plan);
    return 0;
}

/* A limit may also be longer than the configured time. */
static int longer(struct ranks_self *self)
{
    static float x[N];
    trib_comm_t *comm;

    ranks_ok(self, trib_init(&self->opts, &comm));
    trib_plan_t *plan = make(self, comm, x, 30000);
    trib_plan_t *odd;
    trib_desc_t desc = TRIB_DESC_INIT;
    ranks_ok(self, trib_barrier(comm));
    if (self->rank == LATE)
        usleep(400000 * (useconds_t)tribtest_slowness());
    ranks_step(self, plan);
    desc.timeout_ms = -1;
    ranks_assert(self, trib_plan_allreduce(comm, &desc, &odd) == TRIB_ERR_INVALID);
    has(self, comm, WORDS("timeout_ms is -1"));
    ranks_assert(self, trib_comm_abort(NULL, "x") == TRIB_ERR_INVALID);
    ranks_ok(self, trib_plan_free(plan));
    ranks_ok(self, trib_free_comm(comm));
    return 0;
}

static void pass(const char *transport, ranks_fn fn, bool bare)
{
    char config[200];

    snprintf(config, sizeof(config), "%s%s", transport, service);
    ranks_pass(.size = RANKS, .fn = fn, .config = config, .bare = bare, .seconds = 60,
               .noisy = true);
}

TEST_ON(test_by_itself, "shm", "tcp", IF_UCX("ucx"))
{
    pass(*state, by_itself, true);
}

TEST_ON(test_by_watcher, "shm", "tcp", IF_UCX("ucx"))
{
    pass(*state, by_watcher, false);
}

TEST_ON(test_by_limit, "shm", "tcp", IF_UCX("ucx"))
{
    pass(*state, by_limit, true);
}

TEST_ON(test_longer, "shm")
{
    char config[200];

    snprintf(config, sizeof(config), "%s;timeout_ms=%d", (const char *)*state,
             200 * (int)tribtest_slowness());
    pass(config, longer, true);
}

TEST_ON(test_with_service, "shm")
{
    static char text[100];
    struct daemon_process d = {.port = 0};

    daemon_need(&d);
    snprintf(text, sizeof(text), ";service=127.0.0.1:%d", d.port);
    service = text;
    pass(*state, by_itself, true);
    pass(*state, by_limit, true);
    service = "";
    daemon_end(&d);
}
