/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communicators over verbs, and the memory that they register: little of it may be
 * locked, and devices write from and into it. The device is emulated in memory; the
 * limit is the kernel's.
 */
#include <errno.h>
#include <sys/mman.h>

#include "pipeline/link/link.h"
#include "tests/comm/messages.h"
#include "tests/comm/placed.h"
#include "tests/harness/fake_verbs.h"
#include "tests/harness/limit_locked.h"
#include "transport/multirail/multirail_wire.h"

#define COUNT 100003

static void sum(struct ranks_self *self, trib_comm_t *comm)
{
    float *x = malloc(COUNT * sizeof(*x));

    for (int i = 0; i < COUNT; i++)
        x[i] = (float)(i % 1000 + trib_rank(comm));
    ranks_ok(self, trib_allreduce(comm, NULL, x, COUNT, TRIB_F32, TRIB_SUM));
    int size = trib_size(comm);
    for (int i = 0; i < COUNT; i++) {
        if (x[i] != (float)(i % 1000 * size + size * (size - 1) / 2))
            ranks_die(self, "element %d is %g", i, (double)x[i]);
    }
    free(x);
}

/* A chunk that was allowed before is still allowed. */
static void sum_by_chunk(struct ranks_self *self)
{
    trib_plan_t *plan;
    float x[64] = {1};
    trib_desc_t desc = sized(trib_desc_t, .count = 64, .recv = x, .chunk = 65536);

    ranks_ok(self, trib_plan_create(self->comm, TRIB_ALLREDUCE, &desc, &plan));
    ranks_step(self, plan);
    ranks_assert(self, x[0] == (float)self->size);
    ranks_ok(self, trib_plan_free(plan));
    desc.chunk = 65537;
    ranks_expect(self, trib_plan_create(self->comm, TRIB_ALLREDUCE, &desc, &plan),
                 TRIB_ERR_INVALID, "a chunk of 65537");
}

static int work(struct ranks_self *self)
{
    trib_comm_t *half;

    sum(self, self->comm);
    sum_by_chunk(self);
    ranks_ok(self, trib_split(self->comm, self->rank % 2, 0, &half));
    sum(self, half);
    ranks_ok(self, trib_free_comm(half));
    sum(self, self->comm);
    return 0;
}

/* Return the number of ranks that have warned; `text` is the message of the first. */
static int warned(const struct ranks *r, const char **text)
{
    int n = 0;

    for (int i = 0; i < r->job.size; i++) {
        if (!r->slots[i].warnings)
            continue;
        if (n++ == 0)
            *text = r->slots[i].warning;
    }
    return n;
}

static const char *const shrunk[] = {"may lock 1M of memory and has locked",
                                     "all ranks have 2 slots of",
                                     "instead of 8 of 64K",
                                     "ulimit -l unlimited",
                                     "LimitMEMLOCK",
                                     NULL};

/* Run the job with a small limit of locked memory; check the number of warnings and
 * their words. */
static int run_short(const struct ranks_job *job, size_t limit, int warnings,
                     const char *const *words)
{
    struct ranks r;
    const char *text = "";

    if (!limit_locked(limit) || !ranks_start(&r, job))
        return 1;
    ranks_wait(&r);
    int failed = ranks_failed(&r), n = warned(&r, &text);
    if (n != warnings || !ranks_has(text, words)) {
        fprintf(stderr, "%d ranks have warned: %s\n", n, text);
        failed++;
    }
    ranks_close(&r);
    return failed;
}

static int run_limited(int rank, int size, void *arg)
{
    struct ranks_job job = {.size = 4,
                            .fn = work,
                            .threads = true,
                            .noisy = true,
                            .seconds = 60,
                            .config = "transport=verbs"};

    (void)rank;
    (void)size;
    return run_short(&job, *(size_t *)arg, 1, shrunk);
}

TEST(test_shrinks)
{
    size_t limit = (size_t)1 << 20;

    fake_verbs_reset()->memlock = true;
    assert_int_equal(tribtest_forks(1, 120, run_limited, &limit), 0);
}

static int is_refused(struct ranks_self *self)
{
    static const char *const words[] = {"cannot register another", "may lock 16K",
                                        "ulimit -l unlimited", NULL};
    static const char *const other[] = {"could not join", NULL};
    /* two ranks asked at once, and the kernel refused one */
    static const char *const late[] = {"cannot register", "ulimit -l unlimited", NULL};

    if (trib_init(&self->opts, &self->comm) == TRIB_OK)
        ranks_die(self, "it has joined");
    if (!ranks_has(trib_last_error(NULL), words) &&
        !ranks_has(trib_last_error(NULL), other) &&
        !ranks_has(trib_last_error(NULL), late))
        ranks_die(self, "%s", trib_last_error(NULL));
    return 0;
}

static int run_refused(int rank, int size, void *arg)
{
    struct ranks_job job = {.size = 4,
                            .fn = is_refused,
                            .threads = true,
                            .bare = true,
                            .seconds = 60,
                            .config = "transport=verbs"};

    (void)rank;
    (void)size;
    return !limit_locked(*(size_t *)arg) || ranks_run(&job) != 0;
}

TEST(test_too_little)
{
    size_t limit = 16384;

    fake_verbs_reset()->memlock = true;
    assert_int_equal(tribtest_forks(1, 120, run_refused, &limit), 0);
}

/* A sufficient limit: no warning. */
TEST(test_enough)
{
    struct ranks_job job = {.size = 4,
                            .fn = work,
                            .threads = true,
                            .seconds = 60,
                            .config = "transport=verbs"};

    (void)fake_verbs_reset();
    assert_int_equal(ranks_run(&job), 0);
}

TEST(test_placed)
{
    struct ranks_job job = {.size = 3, .threads = true, .config = "transport=verbs"};

    (void)fake_verbs_reset();
    assert_int_equal(placed_all(job), 0);
}

enum { EDGE_WINDOW = 8, EDGE_CHUNK = 65536, EDGE_RANKS = TRIBTEST_RANKS_MAX };

/* Memory that all ranks of a job share. */
struct pins {
    const char *config;
    const char *root;
    pthread_barrier_t step;
    uint64_t slot_bytes[EDGE_RANKS], peers[EDGE_RANKS];
    size_t pinned;
};

/* On any failure, all ranks still reach each step. */
static int pin(int rank, int size, void *arg)
{
    struct pins *p = arg;
    trib_stats_t s = {.size = sizeof(s)};
    trib_comm_t *comm = NULL;
    float x[1000];
    trib_opts_t opts = sized(trib_opts_t, .rank_plus_1 = rank + 1, .ranks = size,
                             .root = p->root, .config = p->config);

    for (int i = 0; i < 1000; i++)
        x[i] = (float)i;
    bool well = trib_init(&opts, &comm) == TRIB_OK &&
                trib_allreduce(comm, NULL, x, 1000, TRIB_F32, TRIB_SUM) == TRIB_OK &&
                trib_stats(comm, &s) == TRIB_OK;
    for (int i = 0; i < 1000 && well; i++)
        well = x[i] == (float)(i * size);
    if (!well)
        fprintf(stderr, "rank %d: %s\n", rank, trib_last_error(comm));
    p->slot_bytes[rank] = s.slot_bytes;
    p->peers[rank] = s.peers;
    pthread_barrier_wait(&p->step);
    if (rank == 0)
        p->pinned = fake_verbs_pinned();
    pthread_barrier_wait(&p->step);
    return trib_free_comm(comm) != TRIB_OK || !well;
}

static void run_pins(const char *config, int size, uint64_t most)
{
    struct pins p = {.config = config};
    size_t edge = trib_link_bytes(EDGE_WINDOW, EDGE_CHUNK, false), sum = 0;
    trib_local_t *local;

    (void)fake_verbs_reset();
    assert_status(trib_local_create(size, &local), TRIB_OK);
    p.root = trib_local_root(local);
    assert_int_equal(pthread_barrier_init(&p.step, NULL, (unsigned)size), 0);
    assert_int_equal(tribtest_threads(size, pin, &p), 0);
    for (int r = 0; r < size; r++) {
        assert_in_range(p.peers[r], 1, most);
        assert_int_equal(p.slot_bytes[r], trib_arena_heads(size) + p.peers[r] * edge);
        sum += p.slot_bytes[r];
    }
    const size_t boards = (multirail_region_bytes(size) + 4095) & ~(size_t)4095;
    assert_int_equal(p.pinned, sum + (size_t)size * boards);
    assert_int_equal(fake_verbs_pinned(), 0);
    printf("# %d ranks have registered %zu KiB, %zu each; for all edges %zu each\n",
           size, sum / 1024, sum / 1024 / (size_t)size,
           trib_arena_pinned(EDGE_WINDOW, EDGE_CHUNK, size) / 1024);
    pthread_barrier_destroy(&p.step);
    trib_local_destroy(local);
}

/* Registered memory grows with the used edges. A slow build has fewer ranks: all
 * connect at once, and the managers of the others must answer each in time. */
TEST(test_pinned_by_edges)
{
    int ranks = tribtest_slowness() > 1 ? EDGE_RANKS / 4 : EDGE_RANKS;

    run_pins(
        "transport=verbs,algorithm=ring,chunk=65536,window=8,boot_timeout_ms=100000,"
        "timeout_ms=100000",
        ranks, 2);
    run_pins(
        "transport=verbs,algorithm=tree,chunk=65536,window=8,boot_timeout_ms=100000,"
        "timeout_ms=100000",
        16, 5);
    run_pins(
        "transport=verbs,algorithm=direct,chunk=65536,window=8,boot_timeout_ms=100000,"
        "timeout_ms=100000",
        8, 7);
}

enum { DMABUF = 12 * 16384 * sizeof(float), BEFORE = 8192 };

/* A dma-buf from udmabuf: pages of a memfd, part of which is used. */
static int sum_dmabuf(struct ranks_self *self)
{
    static const char *const unmapped[] = {"are not mapped", "the CPU computes", NULL};
    static const char *const closed[] = {"descriptor 1000000 is not open", NULL};
    size_t n = DMABUF / sizeof(float);
    trib_stats_t s = {.size = sizeof(s)};
    int fd = memfd_create("dmabuf", MFD_CLOEXEC);

    ranks_assert(self, fd >= 0 && ftruncate(fd, BEFORE + DMABUF) == 0);
    float *x = mmap(NULL, DMABUF, PROT_READ | PROT_WRITE, MAP_SHARED, fd, BEFORE);
    void *hole = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ranks_assert(self, x != MAP_FAILED && hole != MAP_FAILED && !munmap(hole, 8192));
    trib_comm_t *c = self->comm;
    ranks_expect(self, trib_register_dmabuf(c, 1000000, 0, x, DMABUF), TRIB_ERR_INVALID,
                 "a descriptor that is not open");
    ranks_assert(self, ranks_has(trib_last_error(c), closed));
    ranks_expect(self, trib_register_dmabuf(c, fd, 0, NULL, DMABUF), TRIB_ERR_INVALID,
                 "memory without an address");
    if (!*(bool *)self->arg) { /* with threads another rank may map memory there */
        ranks_expect(self, trib_register_dmabuf(c, fd, 0, hole, 8192), TRIB_ERR_INVALID,
                     "memory that is not mapped");
        ranks_assert(self, ranks_has(trib_last_error(c), unmapped));
    }
    ranks_ok(self, trib_register_dmabuf(c, fd, BEFORE, x, DMABUF));
    close(fd);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(i % 1000);
    ranks_ok(self, trib_allreduce(c, NULL, x, n, TRIB_F32, TRIB_SUM));
    for (size_t i = 0; i < n; i++)
        ranks_assert(self, x[i] == (float)(i % 1000 * (size_t)self->size));
    ranks_ok(self, trib_stats(c, &s));
    ranks_assert(self, s.copied_bytes == 0);
    ranks_ok(self, trib_deregister(c, x));
    munmap(x, DMABUF);
    return 0;
}

TEST(test_dmabuf)
{
    bool threads = true, processes = false;
    struct ranks_job job = {.size = 3,
                            .fn = sum_dmabuf,
                            .arg = &threads,
                            .threads = true,
                            .config = "transport=verbs"};

    (void)fake_verbs_reset();
    assert_int_equal(ranks_run(&job), 0);
    job.arg = &processes; /* by its mapping */
    job.threads = false;
    job.config = "transport=tcp";
    assert_int_equal(ranks_run(&job), 0);
    job.config = "transport=auto:near=tcp,far=tcp;window=8";
    assert_int_equal(ranks_run(&job), 0);
}

/* Memory that the device cannot use, although it connects the peers. */
struct unpinned {
    size_t limit;
    bool dmabuf;
};

static int sum_unpinned(struct ranks_self *self)
{
    const struct unpinned *u = self->arg;
    size_t bytes = u->limit + (u->limit >> 2), n = bytes / sizeof(float);
    int fd = memfd_create("dmabuf", MFD_CLOEXEC);
    trib_stats_t s = {.size = sizeof(s)};

    ranks_assert(self, fd >= 0 && ftruncate(fd, (off_t)bytes) == 0);
    float *x = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ranks_assert(self, x != MAP_FAILED);
    if (u->dmabuf)
        ranks_ok(self, trib_register_dmabuf(self->comm, fd, 0, x, bytes));
    else
        ranks_ok(self, trib_register(self->comm, x, bytes));
    close(fd);
    /* Without ADVERT frames first, then with them. */
    for (size_t count = n / 32; count <= n; count *= 32) {
        for (size_t i = 0; i < count; i++)
            x[i] = (float)(i % 1000);
        ranks_ok(self, trib_allreduce(self->comm, NULL, x, count, TRIB_F32, TRIB_SUM));
        for (size_t i = 0; i < count; i++)
            ranks_assert(self, x[i] == (float)(i % 1000 * (size_t)self->size));
    }
    ranks_ok(self, trib_stats(self->comm, &s));
    ranks_assert(self, s.copied_bytes > bytes / 2);
    ranks_ok(self, trib_deregister(self->comm, x));
    munmap(x, bytes);
    return 0;
}

static int run_unpinned(int rank, int size, void *arg)
{
    static const char *const words[] = {
        "registered memory is copied on its way over verbs", NULL};
    struct unpinned *u = arg;
    struct ranks_job job = {.size = 2,
                            .fn = sum_unpinned,
                            .arg = u,
                            .threads = true,
                            .noisy = true,
                            .seconds = 120,
                            .config = "transport=auto:ranks_per_host=1;window=1;"
                                      "chunk=32K"};

    (void)rank;
    (void)size;
    return run_short(&job, u->limit, 2, words);
}

/* Whatever the peers have seen first, including a vector that a rank has not yet
 * written to. */
static int broadcast_unpinned(struct ranks_self *self)
{
    size_t n = *(size_t *)self->arg / sizeof(float) * 5 / 4;
    trib_reach_t reach = {.size = sizeof(reach)};
    trib_stats_t s = {.size = sizeof(s)};
    float *x;

    ranks_ok(self, trib_alloc(self->comm, n * sizeof(*x), (void **)&x));
    for (size_t i = 0; i < n; i++)
        x[i] = self->rank == 0 ? (float)(i % 1000) : 0;
    ranks_ok(self, trib_broadcast(self->comm, x, n, TRIB_F32, 0));
    for (size_t i = 0; i < n; i++)
        ranks_assert(self, x[i] == (float)(i % 1000));
    ranks_ok(self, trib_stats(self->comm, &s));
    ranks_assert(self, s.peers < (uint64_t)self->size - 1);
    for (int r = 0; r < self->size; r++) {
        ranks_ok(self, trib_reach(self->comm, r, &reach));
        if (r != self->rank && strcmp(reach.transport, "verbs") != 0)
            ranks_die(self, "rank %d is reached by %s: %s", r, reach.transport,
                      reach.why);
    }
    ranks_ok(self, trib_free(self->comm, x));
    return 0;
}

static int run_broadcast(int rank, int size, void *arg)
{
    static const char *const words[] = {
        "registered memory is copied on its way over verbs", "ulimit -l unlimited",
        NULL};
    struct ranks_job job = {.size = 6,
                            .fn = broadcast_unpinned,
                            .arg = arg,
                            .threads = true,
                            .noisy = true,
                            .seconds = 120,
                            .config = "transport=auto:ranks_per_host=1;algorithm=tree;"
                                      "window=1;chunk=4K"};

    (void)rank;
    (void)size;
    return run_short(&job, *(size_t *)arg, job.size, words);
}

/* Memory from trib_alloc that cannot be pinned changes the path to no peer. */
TEST(test_alloc_without_pins)
{
    size_t limit = (size_t)1 << 20;

    fake_verbs_reset()->memlock = true;
    assert_int_equal(tribtest_forks(1, 240, run_broadcast, &limit), 0);
}

TEST(test_memory_that_cannot_be_pinned)
{
    struct unpinned u = {.limit = (size_t)1 << 20};

    fake_verbs_reset()->memlock = true;
    assert_int_equal(tribtest_forks(1, 240, run_unpinned, &u), 0);
    u.dmabuf = true;
    fake_verbs_reset()->dmabuf_errno = EOPNOTSUPP;
    assert_int_equal(tribtest_forks(1, 240, run_unpinned, &u), 0);
}

struct refusal {
    int error;
    size_t offset;
    trib_status_t status;
    const char *words[3];
};

static int is_no_dmabuf(struct ranks_self *self)
{
    const struct refusal *r = self->arg;
    int fd = memfd_create("dmabuf", MFD_CLOEXEC);

    ranks_assert(self, fd >= 0 && ftruncate(fd, DMABUF) == 0);
    void *x = mmap(NULL, DMABUF, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ranks_assert(self, x != MAP_FAILED);
    ranks_expect(self, trib_register_dmabuf(self->comm, fd, r->offset, x, DMABUF),
                 r->status, "trib_register_dmabuf");
    if (!ranks_has(trib_last_error(self->comm), r->words))
        ranks_die(self, "%s", trib_last_error(self->comm));
    munmap(x, DMABUF);
    close(fd);
    return 0;
}

TEST(test_no_dmabuf)
{
    static const struct refusal refusals[] = {
        {-1, 0, TRIB_ERR_UNSUPPORTED, {"rdma-core 34", NULL}},
        {EOPNOTSUPP, 0, TRIB_ERR_UNSUPPORTED, {"fake0", "goes through slots", NULL}},
        {0, 100, TRIB_ERR_INVALID, {"offset 100", "same offset within a page", NULL}},
        {0, 4096, TRIB_ERR_SYSTEM, {"cannot register 768K of the dma-buf", NULL}},
    };

    for (int i = 0; i < 4; i++) {
        struct refusal r = refusals[i];
        struct ranks_job job = {.size = 2,
                                .fn = is_no_dmabuf,
                                .arg = &r,
                                .threads = true,
                                .config = "transport=verbs"};
        fake_verbs_reset()->dmabuf_errno = r.error;
        assert_int_equal(ranks_run(&job), 0);
    }
}

/* Messages, one after the other through slots that the device writes. With the cache,
 * long ones go from and into the program's memory. */
TEST(test_messages)
{
    static const char *const ways[] = {"transport=verbs", "transport=verbs:cache=1024",
                                       "transport=verbs:qps=2,cache=1024;"};
    const struct messages s = {.seed = 11, .n = 100, .tags = 4, .largest = 700000};

    for (int k = 0; k < 6; k++) {
        fake_verbs_reset();
        ranks_pass(.size = 2 + k % 2, .fn = messages_run, .arg = (void *)(uintptr_t)&s,
                   .threads = true, .config = ways[k / 2]);
    }
}

enum { COMMUNICATORS = 8 };

static int split_often(struct ranks_self *self)
{
    trib_comm_t *comms[COMMUNICATORS];

    for (int i = 0; i < COMMUNICATORS; i++) {
        ranks_ok(self, trib_split(i ? comms[i - 1] : self->comm, 0, 0, &comms[i]));
        sum(self, comms[i]);
    }
    ranks_ok(self, trib_barrier(self->comm));
    ranks_assert(self, fake_verbs_contexts() == 2);
    ranks_assert(self, fake_verbs_domains() == 2);
    ranks_ok(self, trib_barrier(self->comm));
    for (int i = 0; i < COMMUNICATORS; i += 2)
        ranks_ok(self, trib_free_comm(comms[i]));
    for (int i = 1; i < COMMUNICATORS; i += 2) {
        sum(self, comms[i]);
        ranks_ok(self, trib_free_comm(comms[i]));
    }
    sum(self, self->comm);
    return 0;
}

/* All communicators of a process share the context of each device. */
TEST(test_contexts)
{
    fake_verbs_reset()->devices = 2;
    ranks_pass(.size = 2, .fn = split_often, .threads = true,
               .config = "transport=verbs");
    assert_int_equal(fake_verbs_contexts() + fake_verbs_domains(), 0);
    assert_int_equal(fake_verbs_mistakes() + fake_verbs_live(), 0);
}

static _Atomic bool timed_out;

/* Rank 1 does not call the sum in time. */
static int waits_in_vain(struct ranks_self *self)
{
    float x[8] = {0};

    ranks_ok(self, trib_init(&self->opts, &self->comm));
    if (self->rank == 0) {
        fake_verbs_port_opts(0, 0, 1)->ack_timeouts = 2;
        ranks_expect(self, trib_allreduce(self->comm, NULL, x, 8, TRIB_F32, TRIB_SUM),
                     TRIB_ERR_TIMEOUT,
                     "; RDMA counters since the start: fake0 port 1: "
                     "local_ack_timeout +2");
        timed_out = true;
    }
    while (!timed_out)
        usleep(1000);
    (void)trib_free_comm(self->comm); /* rank 1 gets rank 0's error */
    return 0;
}

/* The error message of a sum that timed out lists the counters of the device. */
TEST(test_counters_of_a_time_out)
{
    struct ranks_job job = {.size = 2,
                            .fn = waits_in_vain,
                            .threads = true,
                            .bare = true,
                            .noisy = true,
                            .config = "transport=verbs,timeout_ms=300"};

    fake_verbs_reset();
    assert_int_equal(ranks_run(&job), 0);
}
