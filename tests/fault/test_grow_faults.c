/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sweep of jobs that grow, with a service and without: three members sum in a loop
 * and take in newcomers at each step, of which there are two; one to three of the five
 * are killed or stopped at any time, most of them within trib_comm_grow or trib_join,
 * rank 0 and the rank that listens among them. The others shrink and go on, and a new
 * rank 0 listens. Each sum says who is in it, once each; all end with the same ranks,
 * all that are left are among them; nothing hangs.
 *
 *     test_grow_faults            a sample
 *     test_grow_faults --long     hundreds of times as many
 */
#include "tests/harness/tribtest.h"

#include <signal.h>

#include "build-config.h"
#include "tests/comm/growing.h"
#include "tests/harness/daemon.h"

#define MEMBERS 3
#define SIZE 5
#define MARK_BITS 8 /* of a sum for each process: how often it is in it */
#define STOP_MS 400
#define SECONDS 60

struct hit {
    int signal; /* 0: none */
    int delay_ms; /* of the test, from when all members sum */
    int look; /* the victim raises it itself at that look in a call that grows; 0:
               * not */
};

struct job {
    const char *transport;
    size_t count;
    struct hit hits[SIZE];
    char root[TRIB_ROOT_TEXT_MAX];
    struct growing_board *board;
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

static bool is_victim(const struct job *j, int rank)
{
    return j->hits[rank].signal != 0;
}

/* The ranks ------------------------------------------------------------------ */

struct rank {
    struct ranks_self *self;
    trib_listener_t *listener;
    bool grows;
    int looks;
    bool complete; /* all that are left were in the last sum */
};

/* This trib_idle_fn is called while a rank waits. */
static int look(void *arg)
{
    struct rank *r = arg;
    const struct job *j = r->self->arg;

    if (r->grows && ++r->looks == j->hits[r->self->rank].look)
        raise(j->hits[r->self->rank].signal);
    return 0;
}

static void replace(struct rank *r, trib_comm_t *comm)
{
    (void)trib_free_comm(r->self->comm);
    r->self->comm = comm;
}

static void go_on(struct rank *r)
{
    trib_comm_t *smaller;
    const trib_status_t st = trib_comm_shrink(r->self->comm, &smaller);

    if (st != TRIB_OK)
        ranks_die(r->self, "trib_comm_shrink gave %s: %s", trib_status_name(st),
                  trib_last_error(NULL));
    replace(r, smaller);
}

static void take_in(struct rank *r)
{
    const struct job *j = r->self->arg;
    trib_comm_t *bigger;

    if (trib_rank(r->self->comm) == 0 && !r->listener)
        r->listener = growing_listen(r->self, r->self->comm, j->board);
    r->grows = true;
    const trib_status_t st = trib_comm_grow(r->self->comm, r->listener, 9, &bigger);
    r->grows = false;
    if (st != TRIB_OK)
        go_on(r);
    else if (bigger)
        replace(r, bigger);
}

/* A job with a service goes on until that has summed for this communicator. */
static bool may_stop(const struct rank *r)
{
    trib_stats_t s = {.size = sizeof(s)};

    if (atomic_load(&r->self->slot->phase) != 2 || !r->complete)
        return false;
    ranks_ok(r->self, trib_stats(r->self->comm, &s));
    return !service[0] || s.served > 0;
}

static void check(struct rank *r, const int64_t *x, size_t count)
{
    const struct job *j = r->self->arg;
    int n = 0;

    r->complete = true;
    for (int k = 0; k < SIZE; k++) {
        const int64_t times = x[0] >> MARK_BITS * k & ((1 << MARK_BITS) - 1);
        ranks_assert(r->self, times == 0 || times == 1);
        n += (int)times;
        r->complete &= times == 1 || is_victim(j, k);
    }
    ranks_assert(r->self, n == trib_size(r->self->comm));
    ranks_assert(r->self, x[0] >> MARK_BITS * r->self->rank & 1);
    for (size_t i = 1; i < count; i++)
        ranks_assert(r->self, x[i] == x[0]);
}

/* One sum; true if it says that all want to stop. */
static bool sums(struct rank *r, int64_t *x, size_t count)
{
    const bool stop = may_stop(r);

    for (size_t i = 0; i < count; i++)
        x[i] = (int64_t)1 << MARK_BITS * r->self->rank;
    x[count] = stop;
    if (trib_allreduce(r->self->comm, NULL, x, count + 1, TRIB_I64, TRIB_SUM) !=
        TRIB_OK) {
        go_on(r);
        return false;
    }
    check(r, x, count);
    if (x[count] == trib_size(r->self->comm))
        return true;
    take_in(r);
    return false;
}

static void come(struct rank *r)
{
    struct job *j = r->self->arg;

    r->grows = true;
    while (growing_join(r->self, j->board) != TRIB_OK)
        usleep(2000);
    r->grows = false;
}

static int act(struct ranks_self *self)
{
    const struct job *j = self->arg;
    struct rank r = {.self = self};
    int64_t *x = calloc(j->count + 1, sizeof(*x));

    ranks_assert(self, x);
    self->opts.idle = look;
    self->opts.idle_arg = &r;
    if (self->rank < MEMBERS) {
        growing_init(self, j->root, MEMBERS);
        ranks_ok(self, trib_barrier(self->comm));
        if (atomic_load(&self->slot->phase) == 0)
            atomic_store(&self->slot->phase, 1);
    } else {
        usleep((useconds_t)(j->count % 7 * 1000));
        come(&r);
    }
    while (!sums(&r, x, j->count))
        ;
    atomic_store(&self->slot->count, (uint64_t)x[0]);
    ranks_ok(self, trib_free_comm(self->comm));
    trib_listener_close(r.listener);
    free(x);
    return 0;
}

/* The judgement ---------------------------------------------------------------- */

static void describe(const struct job *j, char *text, size_t bytes)
{
    int n = snprintf(text, bytes, "%s, %zu elements", j->transport, j->count);

    for (int i = 0; i < SIZE; i++)
        if (is_victim(j, i))
            n += snprintf(text + n, bytes - (size_t)n,
                          ", process %d signal %d after %d ms, look %d", i,
                          j->hits[i].signal, j->hits[i].delay_ms, j->hits[i].look);
}

static void fire(struct ranks *r, const struct job *j, double begun, bool *fired)
{
    for (int i = 0; i < SIZE; i++) {
        const struct hit *h = &j->hits[i];
        /* One that waits for its look is hit in the end, if it never comes to it. */
        const double due = begun + h->delay_ms / 1e3 + (h->look ? 1 : 0);
        if (!h->signal || fired[i] || ranks_seconds() < due)
            continue;
        ranks_signal(r, i, h->signal);
        fired[i] = true;
    }
}

static bool others_ended(const struct ranks *r, const struct job *j)
{
    for (int i = 0; i < SIZE; i++)
        if (!is_victim(j, i) && !r->ended[i])
            return false;
    return true;
}

static void drive(struct ranks *r, const struct job *j)
{
    bool fired[SIZE] = {false};
    double begun = 0;

    while (!ranks_poll(r)) {
        bool all = true;
        for (int i = 0; i < MEMBERS; i++)
            all &= atomic_load(&r->slots[i].phase) > 0;
        if (all && !begun)
            begun = ranks_seconds();
        if (begun)
            fire(r, j, begun, fired);
        bool all_fired = begun > 0;
        for (int i = 0; i < SIZE; i++)
            all_fired &= !is_victim(j, i) || fired[i] || r->ended[i];
        for (int i = 0; i < SIZE && all_fired; i++)
            atomic_store(&r->slots[i].phase, 2);
        for (int i = 0; i < SIZE && others_ended(r, j); i++)
            ranks_signal(r, i, SIGKILL);
        usleep(300);
    }
}

static void shoot(struct job j)
{
    struct ranks r;
    trib_local_t *local;
    char config[160], text[400];
    uint64_t first = 0;

    j.board = growing_board();
    assert_non_null(j.board);
    assert_int_equal(trib_local_create(MEMBERS, &local), TRIB_OK);
    snprintf(j.root, sizeof(j.root), "%s", trib_local_root(local));
    snprintf(config, sizeof(config),
             "transport=%s;boot_timeout_ms=2000;stop_timeout_ms=%d%s", j.transport,
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
        const uint64_t marks = atomic_load(&r.slots[i].count);
        if (is_victim(&j, i))
            continue;
        if (r.slots[i].status != 0)
            fail_msg("%s: process %d %s: %s", text, i,
                     r.slots[i].status == RANKS_NEVER ? "never came back" : "failed",
                     r.slots[i].text);
        if (!first)
            first = marks;
        if (marks != first)
            fail_msg("%s: process %d ended with %#llx, another one with %#llx", text, i,
                     (unsigned long long)marks, (unsigned long long)first);
    }
    ranks_close(&r);
    trib_local_destroy(local);
    munmap(j.board, sizeof(*j.board));
}

static struct hit aim(int signal_number)
{
    struct hit h = {.signal = signal_number, .delay_ms = (int)below(40)};

    if (below(3))
        h.look = 1 + (int)below(below(2) ? 8 : 200);
    return h;
}

static int shots = 2;

static void sweep(const char *transport, int signal_number, int victims_most)
{
    for (int i = 0; i < shots; i++) {
        struct job j = {.transport = transport, .count = below(2) ? 10 : 100000};
        const int n = 1 + (int)below((unsigned)victims_most);
        for (int k = 0; k < n; k++)
            j.hits[below(SIZE)] = aim(signal_number);
        /* If no member were left, newcomers would have nowhere to go. */
        if (is_victim(&j, 0) && is_victim(&j, 1) && is_victim(&j, 2))
            j.hits[below(MEMBERS)] = (struct hit){0};
        shoot(j);
    }
}

static void test_kills(void **state)
{
    sweep(*state, SIGKILL, 3);
}

static void test_with_service(void **state)
{
    struct daemon_process d = {.port = 0};

    assert_true(daemon_folder(d.folder));
    if (!daemon_run(&d)) {
        daemon_end(&d);
        tribtest_skip("built without libmicrohttpd");
    }
    snprintf(service, sizeof(service), ";service_retry_ms=100;service=127.0.0.1:%d",
             d.port);
    sweep(*state, SIGKILL, 2);
    service[0] = 0;
    daemon_end(&d);
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
        ON(test_kills, "auto:ranks_per_host=2"),
        ON(test_with_service, "shm"),
        ON(test_with_service, "tcp"),
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
