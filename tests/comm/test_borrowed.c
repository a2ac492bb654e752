/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sums and messages in memory of malloc over verbs, which registers it. The device in
 * memory keeps the pages that were registered, so an outdated registration gives wrong
 * results.
 */
#include <sys/mman.h>

#include "base/map_watch.h"
#include "tests/comm/placed.h"
#include "tests/comm/shared_parts.h"
#include "tests/harness/fake_pages.h"
#include "tests/harness/fake_verbs.h"

static struct fake_verbs_opts *reset_with_pages(void)
{
    const char *why = trib_map_watch_start(NULL);
    struct fake_verbs_opts *fake = fake_verbs_reset();

    if (why)
        tribtest_skip(why);
    trib_map_watch_stop();
    if (!fake_pages_work())
        tribtest_skip("no io_uring");
    fake->real_pages = true;
    return fake;
}

/* From the third round on at the latest, nothing is copied; one more for each rail. */
TEST(test_memory_of_malloc)
{
    static const struct {
        const char *config;
        int devices;
    } cases[] = {{"transport=verbs:cache=1024", 1},
                 {"transport=verbs:cache=1024", 2},
                 {"transport=verbs:qps=2,cache=1024;", 1},
                 {"transport=verbs:cache=1024+trace", 1},
                 {"transport=auto:ranks_per_host=1,cache=1024;", 1}};

    for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
        struct placed p = {.algorithm = "ring",
                           .count = 12 * 16384,
                           .plain = true,
                           .warm = 4,
                           .in_place = i % 2 == 1};
        struct ranks_job job = {.size = 3,
                                .threads = true,
                                .fn = placed_run,
                                .arg = &p,
                                .config = cases[i / 2].config};
        reset_with_pages()->devices = cases[i / 2].devices;
        assert_int_equal(ranks_run(&job), 0);
    }
}

enum { PART = 70001, ROUNDS = 12 };

static float value_of(int rank, int round, size_t i)
{
    return (float)((i * 7 + (size_t)round * 13) % 512 + (size_t)rank);
}

static void expect_sum(struct ranks_self *self, const float *x, size_t first, size_t n,
                       int round)
{
    for (size_t i = 0; i < n; i++) {
        float sum = 0;
        for (int r = 0; r < self->size; r++)
            sum += value_of(r, round, first + i);
        if (x[i] != sum)
            ranks_die(self, "round %d: element %zu is %g, not %g", round, first + i,
                      (double)x[i], (double)sum);
    }
}

static void expect_parts(struct ranks_self *self, const float *x, int round, bool all)
{
    for (int r = 0; r < self->size; r++)
        for (size_t i = 0; i < PART; i++) {
            const int from = all ? r : self->rank;
            const size_t at = all ? i : (size_t)r * PART + i;
            if (x[(size_t)r * PART + i] != value_of(from, round, at))
                ranks_die(self, "round %d: part %d: element %zu is %g", round, r, i,
                          (double)x[(size_t)r * PART + i]);
        }
}

static void fill(struct ranks_self *self, float *x, size_t n, int round)
{
    for (size_t i = 0; i < n; i++)
        x[i] = value_of(self->rank, round, i);
}

static void *take(size_t bytes, void *at)
{
    return mmap(at, bytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);
}

/* A message to the next rank, from a, and one from the previous rank, into b; return
 * how many bytes of both this rank copied. */
static uint64_t messages(struct ranks_self *self, float *a, float *b, int round)
{
    const size_t all = (size_t)self->size * PART;
    const int next = (self->rank + 1) % self->size;
    const int previous = (self->rank + self->size - 1) % self->size;
    trib_stats_t before = {.size = sizeof(before)}, after = before;
    trib_request_t *requests[2];

    fill(self, a, all, round);
    ranks_ok(self, trib_stats(self->comm, &before));
    ranks_ok(self, trib_irecv(self->comm, b, all, TRIB_F32, previous, 1, &requests[0]));
    ranks_ok(self, trib_isend(self->comm, a, all, TRIB_F32, next, 1, &requests[1]));
    for (int i = 0; i < 2; i++) {
        ranks_ok(self, trib_request_wait(requests[i]));
        ranks_ok(self, trib_request_free(requests[i]));
    }
    ranks_ok(self, trib_stats(self->comm, &after));
    for (size_t i = 0; i < all; i++)
        ranks_assert(self, b[i] == value_of(previous, round, i));
    return after.copied_bytes - before.copied_bytes;
}

static int messages_run_often(struct ranks_self *self)
{
    const size_t bytes = (size_t)self->size * PART * sizeof(float);
    float *a = malloc(bytes), *b = malloc(bytes);

    for (int round = 0; round < 8; round++) {
        const uint64_t copied = messages(self, a, b, round);
        if (round > 4) /* the location in GRANT */
            ranks_assert(self, copied < 1000);
        ranks_ok(self, trib_barrier(self->comm));
    }
    free(a);
    free(b);
    return 0;
}

/* Blocks do, too: nothing is copied but the own one. */
static int all_to_all_often(struct ranks_self *self)
{
    const size_t bytes = (size_t)self->size * PART * sizeof(float);
    float *a = malloc(bytes), *b = malloc(bytes);
    trib_stats_t before = {.size = sizeof(before)}, after = before;

    for (int round = 0; round < 8; round++) {
        fill(self, a, (size_t)self->size * PART, round);
        ranks_ok(self, trib_stats(self->comm, &before));
        ranks_ok(self, trib_alltoall(self->comm, a, b, PART, TRIB_F32));
        ranks_ok(self, trib_stats(self->comm, &after));
        if (round > 4)
            ranks_assert(self, after.copied_bytes - before.copied_bytes ==
                                   PART * sizeof(float));
        for (int r = 0; r < self->size; r++)
            ranks_assert(self, b[(size_t)r * PART] ==
                                   value_of(r, round, (size_t)self->rank * PART));
        ranks_ok(self, trib_barrier(self->comm));
    }
    free(a);
    free(b);
    return 0;
}

/* Messages go from malloc memory into malloc memory without slots. */
TEST(test_messages_of_malloc)
{
    for (int i = 0; i < 6; i++) {
        struct ranks_job job = {.size = 3,
                                .threads = true,
                                .fn = i < 3 ? messages_run_often : all_to_all_often,
                                .config = i % 3 ? "transport=verbs:qps=2,cache=1024;"
                                                : "transport=verbs:cache=1024"};
        reset_with_pages()->devices = i % 3 > 1 ? 2 : 1;
        assert_int_equal(ranks_run(&job), 0);
    }
}

static void each_collective(struct ranks_self *self, float *a, float *b, int round)
{
    trib_comm_t *c = self->comm;
    const size_t all = (size_t)self->size * PART;

    fill(self, a, all, round);
    ranks_ok(self, trib_allreduce(c, a, b, all, TRIB_F32, TRIB_SUM));
    expect_sum(self, b, 0, all, round);
    ranks_ok(self, trib_allreduce(c, NULL, a, all, TRIB_F32, TRIB_SUM));
    expect_sum(self, a, 0, all, round);
    fill(self, a, PART, round);
    ranks_ok(self, trib_allgather(c, a, b, PART, TRIB_F32));
    expect_parts(self, b, round, true);
    fill(self, a, all, round);
    ranks_ok(self, trib_reduce_scatter(c, a, b, PART, TRIB_F32, TRIB_SUM));
    expect_sum(self, b, (size_t)self->rank * PART, PART, round);
    if (self->rank == 1)
        for (size_t i = 0; i < all; i++)
            b[i] = value_of(1, round, i);
    ranks_ok(self, trib_broadcast(c, b, all, TRIB_F32, 1));
    for (size_t i = 0; i < all; i++)
        ranks_assert(self, b[i] == value_of(1, round, i));
    (void)messages(self, a, b, round);
    fill(self, a, all, round);
    for (int in_place = 0; in_place < 2; in_place++) {
        float *result = in_place ? a : b;
        ranks_ok(self, trib_alltoall(c, in_place ? NULL : a, result, PART, TRIB_F32));
        for (int r = 0; r < self->size; r++)
            for (size_t i = 0; i < PART; i++)
                ranks_assert(self,
                             result[(size_t)r * PART + i] ==
                                 value_of(r, round, (size_t)self->rank * PART + i));
    }
    fill(self, a, all, round);
    float *sums = self->rank ? NULL : b;
    ranks_ok(self, trib_reduce(c, a, sums, all, TRIB_F32, TRIB_SUM, 0));
    if (self->rank == 0)
        expect_sum(self, b, 0, all, round);
}

/* Buffers are unmapped and mapped again at the same addresses, at other times on each
 * rank, so some ranks use slots while others do not. */
static int come_and_go(struct ranks_self *self)
{
    const size_t bytes = (size_t)self->size * PART * sizeof(float) + 100;
    uint8_t *p[2] = {take(bytes, NULL), take(bytes, NULL)};

    for (int round = 0; round < ROUNDS; round++) {
        each_collective(self, (float *)(void *)(p[0] + 12),
                        (float *)(void *)(p[1] + 4 * (round / 6)), round);
        for (int i = 0; i < 2; i++)
            if ((round + self->rank + i) % 4 == 0)
                ranks_assert(self, take(bytes, p[i]) == p[i]);
    }
    munmap(p[0], bytes);
    munmap(p[1], bytes);
    return 0;
}

TEST(test_comes_and_goes)
{
    static const char *const configs[] = {
        "transport=verbs:cache=1024", "transport=verbs:qps=2,cache=1024;",
        "transport=verbs:cache=1", "transport=auto:ranks_per_host=1,cache=1024;",
        "transport=verbs:cache=1024;check=sum"};

    for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
        struct ranks_job job = {.size = 3,
                                .threads = true,
                                .seconds = 120,
                                .fn = come_and_go,
                                .config = configs[i]};
        (void)reset_with_pages();
        assert_int_equal(ranks_run(&job), 0);
    }
}

/* Send the first half to the next rank, and receive the second. */
static trib_status_t ring(struct ranks_self *self, float *x, size_t n)
{
    const int next = (self->rank + 1) % self->size;
    const int previous = (self->rank + self->size - 1) % self->size;
    trib_request_t *request = NULL;
    trib_status_t status =
        trib_irecv(self->comm, x + n / 2, n / 2, TRIB_F32, previous, 1, &request);

    if (status == TRIB_OK)
        status = trib_send(self->comm, x, n / 2, TRIB_F32, next, 1);
    if (request) {
        const trib_status_t received = trib_request_wait(request);
        status = status == TRIB_OK ? received : status;
        ranks_ok(self, trib_request_free(request));
    }
    return status;
}

/* After a failure nothing writes to the memory, and the ranks continue together. */
static int fail_and_go_on(struct ranks_self *self)
{
    const size_t n = 1 << 20;
    float *x = take(n * sizeof(*x), NULL);
    trib_comm_t *rest;
    trib_status_t status = TRIB_OK;

    for (int round = 0; status == TRIB_OK; round++) {
        fill(self, x, n, round);
        if (round == 5 && self->rank == 1)
            ranks_ok(self, trib_comm_abort(self->comm, "a test"));
        status = self->arg ? ring(self, x, n)
                           : trib_allreduce(self->comm, NULL, x, n, TRIB_F32, TRIB_SUM);
    }
    memset(x, 0x55, n * sizeof(*x));
    usleep(20000);
    for (size_t i = 0; i < n * sizeof(*x); i++)
        ranks_assert(self, ((const uint8_t *)x)[i] == 0x55);
    ranks_ok(self, trib_comm_shrink(self->comm, &rest));
    ranks_assert(self, trib_size(rest) == self->size);
    for (int round = 0; round < 4; round++) {
        fill(self, x, n, round);
        ranks_ok(self, trib_allreduce(rest, NULL, x, n, TRIB_F32, TRIB_SUM));
        expect_sum(self, x, 0, n, round);
    }
    ranks_ok(self, trib_free_comm(rest));
    munmap(x, n * sizeof(*x));
    return 0;
}

TEST(test_failure)
{
    for (int i = 0; i < 8; i++) {
        struct ranks_job job = {.size = 3,
                                .threads = true,
                                .seconds = 120,
                                .fn = fail_and_go_on,
                                .arg = i < 4 ? NULL : (void *)(uintptr_t) "messages",
                                .config = i % 2 ? "transport=verbs:qps=2,cache=1024;"
                                                : "transport=verbs:cache=1024"};
        reset_with_pages()->delay_us = i % 4 < 2 ? 300 : 0;
        assert_int_equal(ranks_run(&job), 0);
    }
}

/* Workers share sums and copies, from registered memory and through slots. */
TEST(test_shared_parts)
{
    fake_verbs_reset();
    shared_run("transport=verbs:cache=0;" SHARED_SPLIT, true);
}
