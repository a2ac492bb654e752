/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections between hosts that are reset, as by a restarted firewall, while all
 * processes run: one part of the job continues, the other part gets an error.
 */
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/process.h"
#include "tests/harness/ranks.h"

enum { FILES = 1024, SOME = 50 };

/* The behaviour of the ranks that do not continue. */
enum others {
    CALL, /* they call the library all the time */
    COMPUTE, /* they make no call until the others have freed the communicator */
    STOP, /* they are stopped until then */
};

struct resets {
    const char *transport;
    int size;
    int by; /* the connections of this rank are reset */
    unsigned stays; /* bit r: rank r continues */
    enum others others;
    struct counts *counts; /* shared */
};

struct counts {
    _Atomic int summed; /* ranks that have done their first sums */
    _Atomic int ended; /* ranks that do not continue, after their shrink */
    _Atomic pid_t other; /* a rank that does not continue */
    _Atomic int freed; /* ranks that continue and have freed the failed communicator */
};

static void await(const _Atomic int *count, int n)
{
    const double until = ranks_seconds() + tribtest_patience_ms() / 1e3;
    unsigned turns = 0;

    while (atomic_load(count) < n && ranks_seconds() < until)
        tribtest_rest(&turns);
}

/* Reset all TCP connections of this process. */
static int reset_all(void)
{
    int n = 0;

    for (int fd = 0; fd < FILES; fd++) {
        const struct sockaddr none = {.sa_family = AF_UNSPEC};
        struct sockaddr_storage peer;
        socklen_t len = sizeof(peer);
        if (getpeername(fd, (struct sockaddr *)&peer, &len) == 0 &&
            (peer.ss_family == AF_INET || peer.ss_family == AF_INET6))
            n += connect(fd, &none, sizeof(none)) == 0;
    }
    return n;
}

/* Stop a process. Return when none of its threads runs any longer. */
static void stop(pid_t pid)
{
    struct trib_process process;

    trib_process_find(pid, &process);
    if (kill(pid, SIGSTOP) != 0)
        return;
    while (trib_process_query(&process) == TRIB_PROCESS_RUNS)
        usleep(1000);
}

static trib_status_t sum(struct ranks_self *self, trib_comm_t *comm, int64_t *all_out)
{
    int64_t x = INT64_C(1) << self->rank;
    const trib_status_t st = trib_allreduce(comm, NULL, &x, 1, TRIB_I64, TRIB_SUM);

    *all_out = x;
    return st;
}

static int act(struct ranks_self *self)
{
    const struct resets *t = self->arg;
    const bool stays = t->stays >> self->rank & 1;
    trib_comm_t *comm, *smaller = NULL;
    trib_status_t st = TRIB_OK;
    int64_t all = 0;

    ranks_ok(self, trib_init(&self->opts, &comm));
    for (int i = 0; i < SOME; i++)
        ranks_ok(self, sum(self, comm, &all));
    ranks_assert(self, all == (1 << t->size) - 1);
    if (!stays)
        atomic_store(&t->counts->other, getpid());
    atomic_fetch_add(&t->counts->summed, 1);
    await(&t->counts->summed, t->size);
    if (self->rank == t->by) {
        if (t->others == STOP)
            stop(t->counts->other);
        ranks_assert(self, reset_all() > 0);
    }
    if (t->others == COMPUTE && !stays)
        await(&t->counts->freed, __builtin_popcount(t->stays));
    while (st == TRIB_OK)
        st = sum(self, comm, &all);
    st = trib_comm_shrink(comm, &smaller);
    if (!stays) {
        ranks_expect(self, st, TRIB_ERR_PEER_LOST, "trib_comm_shrink of the others");
        atomic_fetch_add(&t->counts->ended, 1);
        ranks_ok(self, trib_free_comm(comm));
        return 0;
    }
    ranks_expect(self, st, TRIB_OK, trib_last_error(NULL));
    ranks_ok(self, trib_free_comm(comm));
    atomic_fetch_add(&t->counts->freed, 1);
    if (t->others == STOP)
        ranks_assert(self, kill(t->counts->other, SIGCONT) == 0);
    ranks_ok(self, sum(self, smaller, &all));
    ranks_assert(self, all == (int64_t)t->stays);
    ranks_ok(self, trib_free_comm(smaller));
    return 0;
}

static void test_reset(void **state)
{
    struct resets t = *(const struct resets *)*state;
    char config[160];

    t.counts = mmap(NULL, sizeof(*t.counts), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(t.counts, MAP_FAILED);
    snprintf(config, sizeof(config), "transport=%s;algorithm=direct;timeout_ms=%d",
             t.transport, tribtest_patience_ms());
    ranks_pass(.size = t.size, .fn = act, .arg = &t, .config = config, .bare = true,
               .noisy = true);
    munmap(t.counts, sizeof(*t.counts));
}

static const char hosts[] = "auto:ranks_per_host=1";
static const struct resets halves = {hosts, 2, 1, 1, CALL, NULL};
static const struct resets first = {hosts, 3, 0, 6, CALL, NULL};
static const struct resets last = {hosts, 4, 3, 7, CALL, NULL};
static const struct resets late = {hosts, 3, 0, 6, COMPUTE, NULL};
static const struct resets stopped = {hosts, 2, 1, 2, STOP, NULL};
static const struct resets one_host = {"tcp", 2, 1, 1, CALL, NULL};
static const struct CMUnitTest rows[] = {
    {"test_halves", test_reset, NULL, NULL, (void *)(uintptr_t)&halves},
    {"test_first_rank", test_reset, NULL, NULL, (void *)(uintptr_t)&first},
    {"test_last_rank", test_reset, NULL, NULL, (void *)(uintptr_t)&last},
    {"test_late", test_reset, NULL, NULL, (void *)(uintptr_t)&late},
    {"test_stopped", test_reset, NULL, NULL, (void *)(uintptr_t)&stopped},
    {"test_one_host", test_reset, NULL, NULL, (void *)(uintptr_t)&one_host},
};

TEST_ROWS(rows)
