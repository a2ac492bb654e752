/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sweep of jobs that go on, with a service and without: ranks sum in a loop, one to
 * three of them are killed or stopped at any time, also within trib_comm_shrink, rank 0
 * among them. The others shrink and go on. Each sum says who is in it, once each; all
 * end with the same ranks, and with all that are left; nothing hangs.
 *
 * Or each step is a start of a plan with error feedback: planned.h.
 *
 *     test_shrink_faults            a sample
 *     test_shrink_faults --long     hundreds of times as many
 */
#include "tests/harness/tribtest.h"

#include <signal.h>

#include "build-config.h"
#include "tests/fault/planned.h"
#include "tests/harness/daemon.h"
#include "tests/harness/ranks.h"

#define SIZE 5
#define MARK_BITS PLANNED_MARK_BITS /* of a sum for each rank: how often it is in it */
#define STOP_MS 400
#define SECONDS 40

struct hit {
    int signal; /* 0: none */
    int delay_ms; /* of the test, from when all sum */
    int look; /* the victim kills itself at that look in trib_comm_shrink; 0: not */
};

struct job {
    const char *transport;
    size_t count;
    struct planned_job plan; /* codec NULL: there is none */
    struct hit hits[SIZE];
};

static char service[60]; /* the settings of it; or empty */
static uint64_t seed = 88172645463325252u;

static unsigned below(unsigned n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (unsigned)(seed >> 33) % n;
}

/* The ranks ------------------------------------------------------------------ */

struct rank {
    struct ranks_self *self;
    bool shrinks;
    int looks;
};

/* This trib_idle_fn is called while a rank waits in trib_comm_shrink. */
static int look(void *arg)
{
    struct rank *r = arg;
    const struct job *j = r->self->arg;

    if (r->shrinks && ++r->looks == j->hits[r->self->rank].look)
        raise(SIGKILL);
    return 0;
}

static trib_comm_t *go_on(struct rank *r, trib_comm_t *comm)
{
    trib_comm_t *smaller;

    r->shrinks = true;
    const trib_status_t st = trib_comm_shrink(comm, &smaller);
    r->shrinks = false;
    if (st != TRIB_OK)
        ranks_die(r->self, "trib_comm_shrink gave %s: %s", trib_status_name(st),
                  trib_last_error(NULL));
    (void)trib_free_comm(comm);
    return smaller;
}

/* A job with a service goes on until that has summed for this communicator. */
static bool may_stop(struct ranks_self *self, trib_comm_t *comm)
{
    trib_stats_t s = {.size = sizeof(s)};

    if (atomic_load(&self->slot->phase) != 2)
        return false;
    ranks_ok(self, trib_stats(comm, &s));
    return !service[0] || s.served > 0;
}

/* One sum; true if it says that all want to stop. */
static bool sums(struct rank *r, trib_comm_t *comm, int64_t *x, size_t count,
                 trib_status_t *st)
{
    const int64_t mine = (int64_t)1 << MARK_BITS * r->self->rank;
    const bool stop = may_stop(r->self, comm);

    for (size_t i = 0; i < count; i++)
        x[i] = mine;
    x[count] = stop;
    *st = trib_allreduce(comm, NULL, x, count + 1, TRIB_I64, TRIB_SUM);
    if (*st != TRIB_OK)
        return false;
    int n = 0;
    for (int k = 0; k < SIZE; k++) {
        const int64_t times = x[0] >> MARK_BITS * k & ((1 << MARK_BITS) - 1);
        ranks_assert(r->self, times == 0 || times == 1);
        n += (int)times;
    }
    ranks_assert(r->self, n == trib_size(comm) && (x[0] & mine));
    for (size_t i = 1; i < count; i++)
        ranks_assert(r->self, x[i] == x[0]);
    return x[count] == trib_size(comm);
}

static int act(struct ranks_self *self)
{
    const struct job *j = self->arg;
    struct rank r = {.self = self};
    trib_comm_t *comm;
    trib_status_t st;
    int64_t *x = calloc(j->count + 1, sizeof(*x));

    ranks_assert(self, x);
    self->opts.idle = look;
    self->opts.idle_arg = &r;
    if (j->plan.codec) {
        struct planned_job plan = j->plan;
        plan.count = j->count;
        plan.may_stop = may_stop;
        plan.recovers = &r.shrinks;
        return planned_run(self, &plan);
    }
    ranks_ok(self, trib_init(&self->opts, &comm));
    ranks_ok(self, trib_barrier(comm));
    atomic_store(&self->slot->phase, 1);
    while (!sums(&r, comm, x, j->count, &st))
        if (st != TRIB_OK)
            comm = go_on(&r, comm);
    atomic_store(&self->slot->count, (uint64_t)x[0]);
    ranks_ok(self, trib_free_comm(comm));
    free(x);
    return 0;
}

/* The judgement ---------------------------------------------------------------- */

static bool is_victim(const struct job *j, int rank)
{
    return j->hits[rank].signal != 0;
}

static void describe(const struct job *j, char *text, size_t bytes)
{
    int n = snprintf(text, bytes, "%s, %zu elements, %s %s%s", j->transport, j->count,
                     j->plan.codec ? j->plan.codec : "no plan",
                     j->plan.feedback ? j->plan.feedback : "",
                     j->plan.drops ? ", drops" : "");

    for (int i = 0; i < SIZE; i++)
        if (is_victim(j, i))
            n += snprintf(text + n, bytes - (size_t)n,
                          ", rank %d signal %d after %d ms, look %d", i,
                          j->hits[i].signal, j->hits[i].delay_ms, j->hits[i].look);
}

static void fire(struct ranks *r, const struct job *j, double begun, bool *fired)
{
    for (int i = 0; i < SIZE; i++) {
        const struct hit *h = &j->hits[i];
        /* One that waits for its look is hit in the end, if it never shrinks. */
        const double due = begun + h->delay_ms / 1e3 + (h->look ? 1 : 0);
        if (!h->signal || fired[i] || ranks_seconds() < due)
            continue;
        ranks_signal(r, i, h->signal);
        fired[i] = true;
    }
}

static bool survivors_ended(const struct ranks *r, const struct job *j)
{
    for (int i = 0; i < SIZE; i++)
        if (!is_victim(j, i) && !r->ended[i])
            return false;
    return true;
}

static void drive(struct ranks *r, const struct job *j)
{
    bool fired[SIZE] = {false}, all_fired = false;
    double begun = 0;

    while (!ranks_poll(r)) {
        bool all = true;
        for (int i = 0; i < SIZE; i++)
            all &= atomic_load(&r->slots[i].phase) > 0;
        if (all && !begun)
            begun = ranks_seconds();
        if (begun)
            fire(r, j, begun, fired);
        all_fired = begun > 0;
        for (int i = 0; i < SIZE; i++)
            all_fired &= !is_victim(j, i) || fired[i] || r->ended[i];
        for (int i = 0; i < SIZE && all_fired; i++)
            atomic_store(&r->slots[i].phase, 2);
        for (int i = 0; i < SIZE && survivors_ended(r, j); i++)
            ranks_signal(r, i, SIGKILL);
        usleep(300);
    }
}

static void shoot(struct job j)
{
    struct ranks r;
    char config[120], text[500];
    uint64_t marks[SIZE] = {0}, first = 0;

    snprintf(config, sizeof(config), "transport=%s;stop_timeout_ms=%d%s", j.transport,
             STOP_MS * (int)tribtest_slowness(), service);
    struct ranks_job job = {.size = SIZE,
                            .fn = act,
                            .arg = &j,
                            .config = config,
                            .bare = true,
                            .noisy = true,
                            .seconds = SECONDS};
    describe(&j, text, sizeof(text));
    assert_true(ranks_start(&r, &job));
    drive(&r, &j);
    for (int i = 0; i < SIZE; i++) {
        marks[i] = atomic_load(&r.slots[i].count);
        if (!is_victim(&j, i) && r.slots[i].status != 0)
            fail_msg("%s: rank %d %s: %s", text, i,
                     r.slots[i].status == RANKS_NEVER ? "never came back" : "failed",
                     r.slots[i].text);
        if (!is_victim(&j, i) && !first)
            first = marks[i];
        if (!is_victim(&j, i) && marks[i] != first)
            fail_msg("%s: rank %d ended with %#llx, another one with %#llx", text, i,
                     (unsigned long long)marks[i], (unsigned long long)first);
    }
    ranks_close(&r);
}

static struct hit aim(int signal_number)
{
    struct hit h = {.signal = signal_number, .delay_ms = (int)below(40)};

    if (signal_number == SIGKILL && below(2))
        h.look = 1 + (int)below(below(2) ? 5 : 60);
    return h;
}

static int shots = 4;

static void sweep_kind(struct job kind, int signal_number, int victims_most)
{
    for (int i = 0; i < shots; i++) {
        struct job j = kind;
        const int n = 1 + (int)below((unsigned)victims_most);
        j.count = below(2) ? 10 : kind.plan.codec ? 20011 : 100000;
        for (int k = 0; k < n; k++)
            j.hits[below(SIZE)] = aim(signal_number);
        shoot(j);
    }
}

static void sweep(const char *transport, int signal_number, int victims_most)
{
    sweep_kind((struct job){.transport = transport}, signal_number, victims_most);
}

/* Kills of jobs that have a plan with feedback. */
static void sweep_plans(const char *transport)
{
    static const struct planned_job kinds[] = {
        {.codec = "topk:ratio=0.1"},
        {.codec = "topk:ratio=0.1", .drops = true},
        {.codec = "randomk:ratio=0.1", .feedback = "ef14:momentum=0.5"},
        {.codec = "topk:ratio=0.2", .feedback = "ef21"},
    };

    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
        sweep_kind((struct job){.transport = transport, .plan = kinds[k]}, SIGKILL, 3);
}

static void test_plans(void **state)
{
    sweep_plans(*state);
}

static void test_kills(void **state)
{
    sweep(*state, SIGKILL, 3);
}

static void with_service(void (*fn)(const char *transport), const char *transport)
{
    struct daemon_process d = {.port = 0};

    assert_true(daemon_folder(d.folder));
    if (!daemon_run(&d)) {
        daemon_end(&d);
        tribtest_skip("built without libmicrohttpd");
    }
    snprintf(service, sizeof(service), ";service_retry_ms=100;service=127.0.0.1:%d",
             d.port);
    fn(transport);
    service[0] = 0;
    daemon_end(&d);
}

static void sweep_pairs(const char *transport)
{
    sweep(transport, SIGKILL, 2);
}

static void test_with_service(void **state)
{
    with_service(sweep_pairs, *state);
}

static void test_plans_with_service(void **state)
{
    with_service(sweep_plans, *state);
}

static void test_stops(void **state)
{
    sweep(*state, SIGSTOP, 2);
}

#define ON(test, transport) \
    { \
#test " [" transport "]", test, NULL, NULL, (char *)(uintptr_t)transport \
    }

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ON(test_kills, "shm"),
        ON(test_kills, "tcp"),
#if HAVE_UCX
        ON(test_kills, "ucx"),
#endif
        ON(test_kills, "shm+nomap"),
        ON(test_kills, "auto:ranks_per_host=2"),
        ON(test_with_service, "shm"),
        ON(test_with_service, "tcp"),
        ON(test_plans, "shm"),
        ON(test_plans, "tcp"),
#if HAVE_UCX
        ON(test_plans, "ucx"),
#endif
        ON(test_plans_with_service, "shm"),
        ON(test_stops, "shm"),
        ON(test_stops, "tcp"),
#if HAVE_UCX
        ON(test_stops, "ucx"),
#endif
    };

    if (argc > 1 && strcmp(argv[1], "--long") == 0)
        shots = 1000;
    else
        tribtest_deadline(300);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
