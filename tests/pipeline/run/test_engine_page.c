/* SPDX-License-Identifier: BSD-3-Clause */
/* The state that a rank publishes on its page, read from outside by trib_ranks_each. */
#include "base/cache_counts.h"
#include "tests/harness/ranks.h"

enum { SUMS = 2000, SHORT = 5 };

/* Copies of two ranks, which no text survives but `text` and `cache`. */
struct seen {
    int n;
    trib_rank_state_t of[2];
    char text[2][512], cache[2][128];
};

static void take(void *arg, const trib_rank_state_t *s)
{
    struct seen *seen = arg;

    if (s->part[0] || s->rank > 1)
        return;
    seen->n++;
    seen->of[s->rank] = *s;
    snprintf(seen->text[s->rank], sizeof(seen->text[0]), "%s", s->text);
    snprintf(seen->cache[s->rank], sizeof(seen->cache[0]), "%s", s->cache);
}

static struct seen look(int pid)
{
    struct seen seen = {0};

    assert_int_equal(trib_ranks_each(pid, take, &seen), TRIB_OK);
    return seen;
}

static void rest(void)
{
    nanosleep(&(struct timespec){0, 2000000}, NULL);
}

static void await_phase(struct ranks_self *self, int phase)
{
    while (self->slot->phase != phase)
        rest();
}

/* Some short sums, then a long one that rank 1 joins late. */
static int be_late(struct ranks_self *self)
{
    static float x[1 << 16];

    if (self->rank == 0) { /* as the cache of verbs does */
        trib_cache_count_set(&trib_cache_counts.limit, 8 << 20);
        trib_cache_count_set(&trib_cache_counts.pinned, 3 << 20);
        trib_cache_count(&trib_cache_counts.hits, 5);
        trib_cache_count(&trib_cache_counts.misses, 2);
    }
    for (int i = 0; i < SHORT; i++)
        ranks_ok(self, trib_allreduce(self->comm, NULL, x, 1, TRIB_F32, TRIB_SUM));
    if (self->rank == 1) {
        self->slot->phase = 1;
        await_phase(self, 2);
    }
    ranks_ok(self, trib_allreduce(self->comm, NULL, x, 1 << 16, TRIB_F32, TRIB_SUM));
    return 0;
}

/* Looks until rank 0 waits for rank 1, and rank 1 is stopped or not. */
static struct seen look_until(struct ranks *r, bool stopped)
{
    const double until = ranks_seconds() + 20 * tribtest_slowness();
    struct seen seen;

    do {
        rest();
        seen = look(r->pids[0]);
    } while ((seen.n != 2 || !seen.of[0].busy || seen.of[0].waits_for != 1 ||
              seen.of[1].stopped != stopped) &&
             ranks_seconds() < until);
    return seen;
}

TEST(test_late)
{
    struct ranks r;

    assert_true(ranks_start(&r, &(struct ranks_job){.size = 2, .fn = be_late}));
    while (r.slots[1].phase != 1 && !ranks_poll(&r))
        rest();
    struct seen seen = look_until(&r, false);
    assert_int_equal(seen.n, 2);
    assert_int_equal(seen.of[0].pid, r.pids[0]);
    assert_int_equal(seen.of[0].root_pid, r.pids[0]);
    assert_int_equal(seen.of[1].pid, r.pids[1]);
    assert_int_equal(seen.of[0].waits_for, 1);
    assert_int_equal(seen.of[0].bytes, 1 << 18);
    assert_string_equal(seen.cache[0],
                        "3.0 MiB of 8.0 MiB registered, 5 hits, 2 misses");
    assert_string_equal(seen.cache[1], ""); /* it is off */
    assert_non_null(strstr(seen.text[0], ", 256 KiB, "));
    assert_non_null(strstr(seen.text[0], "allreduce "));
    assert_non_null(strstr(seen.text[0], "waits for "));
    assert_non_null(strstr(seen.text[0], " of rank 1, "));
    assert_int_equal(seen.of[1].busy, 0);
    assert_int_equal(seen.of[1].number + 1, seen.of[0].number);
    assert_int_equal(seen.of[1].at_most, 0); /* rank 0 has announced it */
    assert_ptr_equal(strstr(seen.text[1], "outside the library for "), seen.text[1]);
    const double age = seen.of[0].age_s;
    ranks_signal(&r, 1, SIGSTOP);
    seen = look_until(&r, true);
    assert_int_equal(seen.of[1].stopped, 1);
    assert_ptr_equal(strstr(seen.text[1], "stopped; outside "), seen.text[1]);
    assert_true(seen.of[0].age_s > age && seen.of[1].age_s > age);
    ranks_signal(&r, 1, SIGCONT);
    r.slots[1].phase = 2;
    ranks_wait(&r);
    assert_int_equal(ranks_failed(&r), 0);
    ranks_close(&r);
    assert_int_equal(look(r.pids[0]).n, 0); /* nothing is left */
}

static int sum_often(struct ranks_self *self)
{
    float x[2] = {0};

    for (int i = 0; i < SUMS; i++)
        ranks_ok(self, trib_allreduce(self->comm, NULL, x, 2, TRIB_F32, TRIB_SUM));
    if (self->rank == 0) {
        const struct seen seen = look(getpid());
        ranks_assert(self, seen.n == 2);
        ranks_assert(self, seen.of[0].number >= SUMS && seen.of[0].ranks == 2);
        ranks_assert(self, seen.of[0].sent >= 2 * (SUMS - 4) * sizeof(float));
        ranks_assert(self, seen.of[0].operations + 4 > seen.of[0].number);
    }
    ranks_ok(self, trib_barrier(self->comm));
    return 0;
}

/* Threads are ranks, each with its page, which are read while they change. */
TEST(test_moving)
{
    struct ranks r;
    int most = 0;

    assert_true(ranks_start(
        &r, &(struct ranks_job){.size = 2, .fn = sum_often, .threads = true}));
    while (!ranks_poll(&r)) {
        const struct seen seen = look(r.pids[0]);
        most = seen.n > most ? seen.n : most;
        for (int i = 0; i < seen.n; i++)
            assert_in_range(seen.of[i].waits_for + 1, 0, 2);
    }
    assert_int_equal(ranks_failed(&r), 0);
    assert_true(most <= 2);
    ranks_close(&r);
}

/* A program that closes all descriptors has no page, and keeps its own. */
RANKS_TEST(test_closed, .size = 1, .bare = true)
{
    trib_comm_t *comm;
    int pipe_ends[2];

    ranks_ok(self, trib_init(&self->opts, &comm));
    const int before = dup(STDERR_FILENO);
    for (int fd = 3; fd < before; fd++)
        close(fd);
    ranks_assert(self, pipe(pipe_ends) == 0);
    ranks_ok(self, trib_free_comm(comm));
    ranks_assert(self, write(pipe_ends[1], "x", 1) == 1); /* still ours */
    return 0;
}
