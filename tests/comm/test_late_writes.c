/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes in flight when their operation fails. The caller stores other data in its
 * input as soon as its call returns. A rank that receives its data before the notice
 * of the failure returns TRIB_OK, and must have the old data.
 */
#include <pthread.h>
#include <sys/mman.h>

#include "tests/harness/fake_pages.h"
#include "tests/harness/fake_verbs.h"
#include "tests/harness/ranks.h"

enum {
    COUNT = 3 << 15,
    RANKS = 3,
    WARM = 3, /* rounds before; the cache registers from the second on */
    START_MS = 20, /* of the last round, after a barrier */
    ABORT_MS = 60, /* from the start of the last round */
    ANNOUNCE_MS = 190, /* a late announcement comes before the elements of a message */
    LATE_MS = 150, /* delay of messages to rank LATE in the last round */
    STOP_MS = 2000,
    LATE = 0,
    LAST =
        RANKS - 1, /* calls trib_comm_abort; the root of broadcasts, and the sender */
    OTHER = 777,
};

enum kind { REDUCE, BROADCAST, ALLGATHER, ALLTOALL, MESSAGE, KINDS };

struct late {
    enum kind kind;
    bool registers;
    int late_ms;
    trib_status_t status; /* of rank LATE */
    struct fake_verbs_opts *fake;
};

static float value_of(int rank, int round)
{
    return (float)(rank + 10 * round + 1);
}

static trib_status_t run(struct ranks_self *self, enum kind kind, float *in, float *out)
{
    switch (kind) {
    case REDUCE:
        return trib_reduce(self->comm, in, self->rank == LATE ? out : NULL, COUNT,
                           TRIB_F32, TRIB_SUM, LATE);
    case BROADCAST:
        return trib_broadcast(self->comm, self->rank == LAST ? in : out, COUNT,
                              TRIB_F32, LAST);
    case MESSAGE:
        return self->rank == LAST ? trib_send(self->comm, in, COUNT, TRIB_F32, LATE, 1)
               : self->rank == LATE
                   ? trib_recv(self->comm, out, COUNT, TRIB_F32, LAST, 1)
                   : TRIB_OK;
    case ALLTOALL:
        return trib_alltoall(self->comm, in, out, COUNT / RANKS, TRIB_F32);
    default:
        return trib_allgather(self->comm, in, out, COUNT / RANKS, TRIB_F32);
    }
}

static float expected(enum kind kind, size_t i, int round)
{
    float sum = 0;

    for (int r = 0; r < RANKS; r++)
        sum += value_of(r, round);
    return kind == REDUCE ? sum
           : kind == BROADCAST || kind == MESSAGE
               ? value_of(LAST, round)
               : value_of((int)(i / (COUNT / RANKS)), round);
}

static void *give_up(void *comm)
{
    usleep(ABORT_MS * 1000);
    (void)trib_comm_abort(comm, "a test");
    return NULL;
}

static void *give_up_later(void *comm)
{
    usleep(ANNOUNCE_MS * 1000);
    return give_up(comm);
}

static float *take(struct ranks_self *self, bool registers)
{
    const size_t bytes = COUNT * sizeof(float);
    float *p =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    ranks_assert(self, p != MAP_FAILED);
    if (registers)
        ranks_ok(self, trib_register(self->comm, p, bytes));
    return p;
}

static void fill(float *p, float value)
{
    for (size_t i = 0; i < COUNT; i++)
        p[i] = value;
}

static int last_round(struct ranks_self *self)
{
    struct late *l = self->arg;

    ranks_ok(self, trib_init(&self->opts, &self->comm));
    float *in = take(self, l->registers), *out = take(self, l->registers);
    pthread_t thread;

    for (int round = 0; round < WARM; round++) {
        fill(in, value_of(self->rank, round));
        ranks_ok(self, run(self, l->kind, in, out));
    }
    fill(in, value_of(self->rank, WARM));
    /* On a busy machine the abort may come before this rank has left the barrier. */
    const bool begins = trib_barrier(self->comm) == TRIB_OK;
    if (self->rank == LATE)
        l->fake->late_us = l->late_ms * 1000;
    if (self->rank != LATE)
        usleep(START_MS * 1000);
    if (self->rank == LAST)
        ranks_assert(self, !pthread_create(&thread, NULL,
                                           l->kind == MESSAGE ? give_up_later : give_up,
                                           self->comm));
    const trib_status_t status =
        begins ? run(self, l->kind, in, out) : TRIB_ERR_ABORTED;
    fill(in, OTHER);
    if (self->rank == LATE)
        l->status = status;
    if (self->rank == LATE && status == TRIB_OK)
        for (size_t i = 0; i < COUNT; i++)
            if (out[i] != expected(l->kind, i, WARM))
                ranks_die(self, "element %zu is %g, not %g", i, (double)out[i],
                          (double)expected(l->kind, i, WARM));
    if (self->rank == LAST)
        pthread_join(thread, NULL);
    (void)trib_free_comm(self->comm); /* it has failed */
    munmap(in, COUNT * sizeof(*in));
    munmap(out, COUNT * sizeof(*out));
    return 0;
}

static struct fake_verbs_opts *reset(bool real_pages)
{
    struct fake_verbs_opts *fake = fake_verbs_reset();

    if (real_pages && !fake_pages_work())
        tribtest_skip("no io_uring");
    fake->real_pages = real_pages;
    fake->late_peer = LATE;
    return fake;
}

static trib_status_t expect_old_data(struct late what, const char *config)
{
    struct late *l = mmap(NULL, sizeof(*l), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct ranks_job job = {.size = RANKS,
                            .threads = true,
                            .fn = last_round,
                            .arg = l,
                            .bare = true,
                            .noisy = true,
                            .config = config};

    assert_true(l != MAP_FAILED);
    *l = what;
    l->fake = reset(!l->registers);
    assert_int_equal(ranks_run(&job), 0);
    what = *l;
    munmap(l, sizeof(*l));
    return what.status;
}

/* On a busy machine the failure may come before the data. */
static void each_kind(bool registers, const char *config)
{
    for (int kind = 0; kind < KINDS; kind++) {
        const struct late l = {
            .kind = (enum kind)kind, .registers = registers, .late_ms = LATE_MS};
        int tries = 20;
        while (expect_old_data(l, config) != TRIB_OK)
            assert_true(--tries);
    }
}

TEST(test_registered_memory)
{
    each_kind(true, "transport=verbs");
}

TEST(test_two_paths)
{
    each_kind(true, "transport=verbs:qps=2");
}

TEST(test_memory_of_malloc)
{
    each_kind(false, "transport=verbs:cache=1024");
}

/* The receiver of a message fails while its elements come: once its call has returned,
 * they do not. */
static int stop_receiving(struct ranks_self *self)
{
    struct late *l = self->arg;

    ranks_ok(self, trib_init(&self->opts, &self->comm));
    float *in = take(self, l->registers), *out = take(self, l->registers);
    pthread_t thread;

    for (int round = 0; round < WARM; round++)
        ranks_ok(self, run(self, MESSAGE, in, out));
    ranks_ok(self, trib_barrier(self->comm));
    if (self->rank == LATE) {
        l->fake->late_us = LATE_MS * 1000;
        ranks_assert(self, !pthread_create(&thread, NULL, give_up_later, self->comm));
    }
    l->status = run(self, MESSAGE, in, out);
    if (self->rank == LATE) {
        fill(out, OTHER);
        usleep(2 * LATE_MS * 1000);
        for (size_t i = 0; i < COUNT; i++)
            ranks_assert(self, out[i] == OTHER);
        pthread_join(thread, NULL);
    }
    (void)trib_free_comm(self->comm); /* it has failed */
    munmap(in, COUNT * sizeof(*in));
    munmap(out, COUNT * sizeof(*out));
    return 0;
}

TEST(test_receiver_gives_up)
{
    for (int i = 0; i < 6; i++) {
        struct late l = {.registers = i % 2, .fake = reset(i % 2 == 0)};
        struct ranks_job job = {.size = RANKS,
                                .threads = true,
                                .fn = stop_receiving,
                                .arg = &l,
                                .bare = true,
                                .noisy = true,
                                .config = i % 2 ? "transport=verbs:qps=2"
                                                : "transport=verbs:cache=1024"};
        assert_int_equal(ranks_run(&job), 0);
    }
}

/* Writes that take longer than a peer may be silent end with their connection. */
TEST(test_too_late)
{
    assert_int_not_equal(
        expect_old_data(
            (struct late){.kind = REDUCE, .registers = true, .late_ms = 3 * STOP_MS},
            "transport=verbs;stop_timeout_ms=2000"),
        TRIB_OK);
}

enum { STARTS = 12, AWAY_MS = 3000 };

/* Rank 1 computes, so it sends no notice of the failure. */
static int many_starts(struct ranks_self *self)
{
    trib_desc_t desc = TRIB_DESC_INIT;
    trib_plan_t *plans[STARTS];

    ranks_ok(self, trib_init(&self->opts, &self->comm));
    float *in = take(self, true), *out = take(self, true);
    desc.count = COUNT / STARTS;
    desc.dtype = TRIB_F32;
    desc.op = TRIB_SUM;
    for (int i = 0; i < STARTS; i++) {
        desc.send = in + i * (COUNT / STARTS);
        desc.recv = out + i * (COUNT / STARTS);
        ranks_ok(self, trib_plan_allreduce(self->comm, &desc, &plans[i]));
        ranks_ok(self, trib_plan_start(plans[i]));
        ranks_ok(self, trib_plan_wait(plans[i]));
    }
    ranks_ok(self, trib_barrier(self->comm));
    if (self->rank == 1)
        usleep(AWAY_MS * 1000);
    const double begin = ranks_seconds();
    for (int i = 0; i < STARTS && self->rank == 0; i++)
        ranks_ok(self, trib_plan_start(plans[i]));
    (void)trib_comm_abort(self->comm, "a test");
    for (int i = 0; i < STARTS; i++)
        if (self->rank == 0)
            ranks_assert(self, trib_plan_wait(plans[i]) == TRIB_ERR_ABORTED);
    const double took = ranks_seconds() - begin;
    if (self->rank == 0 && took > AWAY_MS / 2e3)
        ranks_die(self, "%d operations took %.1f s to end", STARTS, took);
    for (int i = 0; i < STARTS; i++)
        ranks_ok(self, trib_plan_free(plans[i]));
    (void)trib_free_comm(self->comm);
    munmap(in, COUNT * sizeof(*in));
    munmap(out, COUNT * sizeof(*out));
    return 0;
}

TEST(test_many_starts)
{
    struct ranks_job job = {.size = 2,
                            .threads = true,
                            .fn = many_starts,
                            .bare = true,
                            .noisy = true,
                            .config = "transport=verbs"};

    (void)reset(false);
    assert_int_equal(ranks_run(&job), 0);
}

enum { TENSORS = 2, GIVE_UP_MS = 160, MARK_MS = 20 };

/* Rank LAST marks its second tensor after the abort. The progress thread then still
 * waits for writes from the first tensor. */
static int step(struct ranks_self *self)
{
    struct late *l = self->arg;
    trib_tensor_t tensors[TENSORS];
    trib_group_opts_t opts = TRIB_GROUP_OPTS_INIT;
    trib_group_t *group;
    pthread_t thread;

    ranks_ok(self, trib_init(&self->opts, &self->comm));
    float *in = take(self, true), *out = take(self, true);
    for (size_t i = 0; i < TENSORS; i++)
        tensors[i] =
            sized(trib_tensor_t, .name = i ? "second" : "first",
                  .send = in + i * (COUNT / TENSORS),
                  .recv = out + i * (COUNT / TENSORS), .count = COUNT / TENSORS);
    opts.feed = TRIB_FEED_FORWARD;
    opts.algorithm = "direct";
    ranks_ok(self, trib_group_create(self->comm, tensors, TENSORS, &opts, &group));
    for (int round = 0; round < WARM; round++) {
        fill(in, value_of(self->rank, round));
        ranks_ok(self, trib_group_start(group));
        for (size_t i = 0; i < TENSORS; i++)
            ranks_ok(self, trib_group_ready(group, i));
        ranks_ok(self, trib_group_wait(group));
    }
    fill(in, value_of(self->rank, WARM));
    trib_status_t status = trib_barrier(self->comm); /* or aborted, as in last_round */
    if (self->rank == LATE)
        l->fake->late_us = l->late_ms * 1000;
    usleep(START_MS * 1000);
    if (status == TRIB_OK)
        status = trib_group_start(group);
    if (status == TRIB_OK)
        status = trib_group_ready(group, 0);
    if (self->rank == LAST) {
        for (const double end = ranks_seconds() + GIVE_UP_MS / 1e3;
             ranks_seconds() < end;)
            (void)trib_group_test(group);
        ranks_assert(self, !pthread_create(&thread, NULL, give_up, self->comm));
        usleep((ABORT_MS + MARK_MS) * 1000);
        (void)trib_group_ready(group, 1);
    }
    if (status == TRIB_OK)
        status = trib_group_wait_tensor(group, 0);
    if (self->rank == LATE)
        l->status = status;
    if (self->rank == LATE && status == TRIB_OK)
        for (size_t i = 0; i < COUNT / TENSORS; i++)
            if (out[i] != expected(REDUCE, i, WARM))
                ranks_die(self, "element %zu is %g, not %g", i, (double)out[i],
                          (double)expected(REDUCE, i, WARM));
    fill(in, OTHER);
    fill(out, OTHER);
    if (self->rank == LAST)
        pthread_join(thread, NULL);
    (void)trib_group_wait_tensor(group, 1);
    (void)trib_group_free(group);
    (void)trib_free_comm(self->comm); /* it has failed */
    munmap(in, COUNT * sizeof(*in));
    munmap(out, COUNT * sizeof(*out));
    return 0;
}

TEST(test_step_of_a_group)
{
    struct late *l = mmap(NULL, sizeof(*l), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct ranks_job job = {.size = RANKS,
                            .threads = true,
                            .fn = step,
                            .arg = l,
                            .bare = true,
                            .noisy = true,
                            .config = "transport=verbs"};
    int tries = 20;

    do {
        *l = (struct late){.registers = true, .late_ms = LATE_MS, .fake = reset(false)};
        assert_int_equal(ranks_run(&job), 0);
    } while (l->status != TRIB_OK && --tries);
    assert_true(tries);
    munmap(l, sizeof(*l));
}
