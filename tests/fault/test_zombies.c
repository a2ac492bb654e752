/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that are stopped until the others consider them lost, and then continue: their
 * operation and trib_comm_shrink fail with TRIB_ERR_PEER_LOST, and they write into no
 * memory of the survivors, which have continued without them. After a stop that lost no
 * rank, the job survives a later loss.
 */
#include "build-config.h"
#include "tests/harness/ranks.h"

enum {
    STOP_MS = 1000, /* stop_timeout_ms */
    ROUNDS_AFTER = 20, /* sums of the survivors after the stopped ranks continue */
    SMALL = 1000,
    LARGE = 200000, /* elements: writes are in flight when a rank stops */
};

enum phase { SUMS = 1, SHRUNK, CONTINUED, ENDED };

struct zombies {
    const char *transport;
    int size;
    unsigned victims; /* bit r: rank r is stopped */
    size_t count;
    bool registers; /* register the vector in each communicator */
    bool leaves_early; /* survivors have exited when the victims continue */
    bool sleeps; /* the victims are stopped between two calls */
    bool early; /* the victims continue before the survivors have shrunk */
};

static bool is_victim(const struct zombies *z, int rank)
{
    return z->victims >> rank & 1;
}

static int n_victims(const struct zombies *z)
{
    return __builtin_popcount(z->victims);
}

/* Sum until the communicator fails, or `flag` is set on all ranks. */
static trib_status_t sum(struct ranks_self *self, trib_comm_t *comm, int64_t *x)
{
    const struct zombies *z = self->arg;
    trib_status_t st = TRIB_OK;

    for (int left = ROUNDS_AFTER; st == TRIB_OK && left > 0;) {
        for (size_t i = 0; i < z->count; i++)
            x[i] = INT64_C(1) << self->rank * 6;
        x[z->count] = atomic_load(&self->slot->phase) >= CONTINUED;
        st = trib_allreduce(comm, NULL, x, z->count + 1, TRIB_I64, TRIB_SUM);
        if (st != TRIB_OK)
            break;
        int64_t all = 0;
        for (int r = 0; r < z->size; r++)
            if (trib_size(comm) == z->size || !is_victim(z, r))
                all |= INT64_C(1) << r * 6;
        for (size_t i = 0; i < z->count; i++)
            if (x[i] != all)
                ranks_die(self, "element %zu is %llx", i, (unsigned long long)x[i]);
        left -= x[z->count] == trib_size(comm);
        atomic_fetch_add(&self->slot->count, 1);
        if (z->sleeps && is_victim(z, self->rank) && trib_size(comm) == z->size)
            usleep(300000);
    }
    return st;
}

static int act(struct ranks_self *self)
{
    const struct zombies *z = self->arg;
    int64_t *x = calloc(z->count + 1, sizeof(*x));
    trib_comm_t *comm, *smaller = NULL;

    ranks_assert(self, x);
    ranks_ok(self, trib_init(&self->opts, &comm));
    if (z->registers)
        ranks_ok(self, trib_register(comm, x, (z->count + 1) * sizeof(*x)));
    atomic_store(&self->slot->phase, SUMS);
    trib_status_t st = sum(self, comm, x);
    ranks_expect(self, st, TRIB_ERR_PEER_LOST, "a sum with stopped ranks");
    st = trib_comm_shrink(comm, &smaller);
    if (is_victim(z, self->rank)) {
        ranks_expect(self, st, TRIB_ERR_PEER_LOST, "its trib_comm_shrink");
        ranks_assert(self, !smaller);
        ranks_ok(self, trib_free_comm(comm));
        free(x);
        return 0;
    }
    ranks_expect(self, st, TRIB_OK, trib_last_error(NULL));
    if (z->registers)
        ranks_ok(self, trib_deregister(comm, x));
    ranks_ok(self, trib_free_comm(comm));
    ranks_assert(self, trib_size(smaller) == z->size - n_victims(z));
    if (z->registers)
        ranks_ok(self, trib_register(smaller, x, (z->count + 1) * sizeof(*x)));
    atomic_store(&self->slot->phase, z->leaves_early ? CONTINUED : SHRUNK);
    ranks_ok(self, sum(self, smaller, x));
    if (z->registers)
        ranks_ok(self, trib_deregister(smaller, x));
    ranks_ok(self, trib_free_comm(smaller));
    free(x);
    atomic_store(&self->slot->phase, ENDED);
    return 0;
}

static void signal_victims(struct ranks *r, const struct zombies *z, int number)
{
    for (int i = 0; i < z->size; i++)
        if (is_victim(z, i))
            ranks_signal(r, i, number);
}

static void await(struct ranks *r, const struct zombies *z, enum phase phase)
{
    const double until = ranks_seconds() + tribtest_patience_ms() / 1e3;
    unsigned turns = 0;
    bool all = false;

    while (!all && ranks_seconds() < until && !ranks_poll(r)) {
        all = true;
        for (int i = 0; i < z->size; i++)
            all &= (phase > SUMS && is_victim(z, i)) ||
                   (int)atomic_load(&r->slots[i].phase) >= (int)phase;
        tribtest_rest(&turns);
    }
}

static void start_as(struct ranks *r, const struct zombies *z, ranks_fn fn)
{
    char config[160];

    snprintf(config, sizeof(config), "%s;stop_timeout_ms=%u;timeout_ms=%d",
             z->transport, STOP_MS * tribtest_slowness(), tribtest_patience_ms());
    assert_true(ranks_start(r, &(struct ranks_job){.size = z->size,
                                                   .fn = fn,
                                                   .arg = (void *)(uintptr_t)z,
                                                   .config = config,
                                                   .bare = true,
                                                   .noisy = true}));
    r->job.config = z->transport; /* which a failure reports */
    await(r, z, SUMS);
}

static void start(struct ranks *r, const struct zombies *z)
{
    start_as(r, z, act);
}

static void end(struct ranks *r, const struct zombies *z)
{
    if (z->early)
        usleep(STOP_MS * 1800 * tribtest_slowness());
    else
        await(r, z, z->leaves_early ? ENDED : SHRUNK);
    signal_victims(r, z, SIGCONT);
    if (z->early)
        await(r, z, SHRUNK);
    for (int i = 0; i < z->size; i++)
        if (!is_victim(z, i) && !z->leaves_early)
            atomic_store(&r->slots[i].phase, CONTINUED);
    ranks_wait(r);
    if (ranks_failed(r))
        fail_msg("%d stopped of %d, %zu elements, %s", n_victims(z), z->size, z->count,
                 z->transport);
    ranks_close(r);
}

/* A majority or a minority; whole hosts; outside of a call; after survivors have
 * exited; with much, little or no data in flight. The first row is timed. */
static const struct zombies rows[] = {
    {"transport=auto:ranks_per_host=2", 5, 29u, 3, .early = true},
    {"transport=tcp", 2, 1u << 1, SMALL, false, false, false, false},
    {"transport=tcp", 2, 1u << 0, SMALL, false, true, false, false},
    {"transport=tcp", 4, 7u, LARGE, false, false, false, false},
    {"transport=tcp", 3, 1u << 2, LARGE, false, false, true, false},
    {"transport=auto:ranks_per_host=2", 4, 3u << 2, SMALL, false, true, false, false},
    {"transport=shm", 4, 3u << 1, SMALL, true, false, false, false},
    {"transport=shm+nomap", 4, 5u, LARGE, true, false, false, false},
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

/* Run all jobs at once, because they mostly wait for a time-out. */
TEST(test_zombies)
{
    struct ranks jobs[ROWS];

    for (int i = 0; i < ROWS; i++)
        start(&jobs[i], &rows[i]);
    usleep(20000);
    for (int i = 0; i < ROWS; i++)
        signal_victims(&jobs[i], &rows[i], SIGSTOP);
    for (int i = 0; i < ROWS; i++)
        end(&jobs[i], &rows[i]);
}

/* Three ranks: rank 2 exits; rank 1 detects that it was stopped itself, and
 * disconnects; then rank 0, which made no call in that time, continues alone. */
static int act_alone(struct ranks_self *self)
{
    trib_comm_t *comm, *smaller = NULL;
    int64_t x = 1;
    unsigned turns = 0;

    ranks_ok(self, trib_init(&self->opts, &comm));
    ranks_ok(self, trib_allreduce(comm, NULL, &x, 1, TRIB_I64, TRIB_SUM));
    atomic_store(&self->slot->phase, SUMS);
    while (atomic_load(&self->slot->phase) < CONTINUED)
        tribtest_rest(&turns);
    if (self->rank == 2)
        return 0;
    ranks_expect(self, trib_allreduce(comm, NULL, &x, 1, TRIB_I64, TRIB_SUM),
                 TRIB_ERR_PEER_LOST, "a sum without rank 2");
    ranks_expect(self, trib_comm_shrink(comm, &smaller),
                 self->rank == 0 ? TRIB_OK : TRIB_ERR_PEER_LOST,
                 trib_last_error(NULL));
    ranks_ok(self, trib_free_comm(comm));
    if (self->rank == 0) {
        ranks_assert(self, trib_size(smaller) == 1);
        ranks_ok(self, trib_free_comm(smaller));
    }
    return 0;
}

static void await_end(struct ranks *r, int rank)
{
    const double until = ranks_seconds() + tribtest_patience_ms() / 1e3;
    unsigned turns = 0;

    while (r->slots[rank].status == RANKS_NEVER && ranks_seconds() < until &&
           !ranks_poll(r))
        tribtest_rest(&turns);
}

TEST(test_alone)
{
    static const struct zombies job = {.transport = "transport=tcp", .size = 3};
    struct ranks r;

    start_as(&r, &job, act_alone);
    ranks_signal(&r, 1, SIGSTOP);
    atomic_store(&r.slots[2].phase, CONTINUED);
    await_end(&r, 2);
    atomic_store(&r.slots[1].phase, CONTINUED);
    usleep(STOP_MS * 1200 * tribtest_slowness());
    ranks_signal(&r, 1, SIGCONT);
    await_end(&r, 1);
    atomic_store(&r.slots[0].phase, CONTINUED);
    ranks_wait(&r);
    assert_int_equal(ranks_failed(&r), 0);
    ranks_close(&r);
}

/* All ranks are stopped together, and none is lost. Seconds later rank 2 dies: the
 * others continue. */
static int act_later(struct ranks_self *self)
{
    trib_comm_t *comm, *smaller = NULL;
    trib_status_t st = TRIB_OK;

    ranks_ok(self, trib_init(&self->opts, &comm));
    while (st == TRIB_OK) {
        int64_t x = 1;
        st = trib_allreduce(comm, NULL, &x, 1, TRIB_I64, TRIB_SUM);
        atomic_store(&self->slot->phase, SUMS);
        usleep(1000);
    }
    ranks_expect(self, st, TRIB_ERR_PEER_LOST, "a sum without rank 2");
    st = trib_comm_shrink(comm, &smaller);
    ranks_expect(self, st, TRIB_OK, trib_last_error(NULL));
    ranks_assert(self, trib_size(smaller) == 2);
    ranks_ok(self, trib_free_comm(comm));
    ranks_ok(self, trib_free_comm(smaller));
    return 0;
}

TEST(test_later)
{
    static const struct zombies all[] = {
        {.transport = "transport=tcp", .size = 3, .victims = 7},
        {.transport = "transport=auto:ranks_per_host=1", .size = 3, .victims = 7},
#if HAVE_UCX
        {.transport = "transport=ucx", .size = 3, .victims = 7},
#endif
    };
    enum { JOBS = sizeof(all) / sizeof(all[0]) };
    struct ranks jobs[JOBS];

    for (int i = 0; i < JOBS; i++)
        start_as(&jobs[i], &all[i], act_later);
    for (int i = 0; i < JOBS; i++)
        signal_victims(&jobs[i], &all[i], SIGSTOP);
    usleep(STOP_MS * 1500 * tribtest_slowness());
    for (int i = 0; i < JOBS; i++)
        signal_victims(&jobs[i], &all[i], SIGCONT);
    /* longer than losses are blamed on the stop (transport/common/absence.h) */
    usleep(STOP_MS * 3000 * tribtest_slowness());
    for (int i = 0; i < JOBS; i++)
        ranks_signal(&jobs[i], 2, SIGKILL);
    for (int i = 0; i < JOBS; i++) {
        ranks_wait(&jobs[i]);
        for (int r = 0; r < 2; r++)
            if (jobs[i].slots[r].status != 0)
                fail_msg("%s: rank %d: %s", all[i].transport, r, jobs[i].slots[r].text);
        ranks_close(&jobs[i]);
    }
}
