/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Survivors of a loss go on: sums over those that are left, of every dtype and of odd
 * sizes, in place and not, with the same bits on all; whoever is lost, and also where
 * nobody is. tests/fault/test_shrink_faults has losses at any time.
 */
#include "tests/harness/tribtest.h"

#include <signal.h>

#include "build-config.h"
#include "tests/comm/oracle.h"
#include "tests/harness/ranks.h"

#define SIZE 4

struct loss {
    unsigned victims; /* bit r: rank r */
    int signal;
    bool unknown; /* rank 0 is in no call when the others shrink */
};

static bool is_victim(const struct loss *l, int rank)
{
    return l->victims >> rank & 1;
}

/* The place of a rank among those that are left. */
static int place_of(const struct loss *l, int rank)
{
    return rank - __builtin_popcount(l->victims & ((1u << rank) - 1));
}

static trib_comm_t *shrink(struct ranks_self *self)
{
    const struct loss *l = self->arg;
    trib_comm_t *smaller = NULL;
    const trib_status_t st = trib_comm_shrink(self->comm, &smaller);

    if (st != TRIB_OK)
        ranks_die(self, "trib_comm_shrink gave %s: %s", trib_status_name(st),
                  trib_last_error(NULL));
    ranks_assert(self, trib_size(smaller) == SIZE - __builtin_popcount(l->victims));
    ranks_assert(self, trib_rank(smaller) == place_of(l, self->rank));
    return smaller;
}

/* The bytes of a sum are the same on all ranks, and right. */
static void check_sum(struct ranks_self *self, trib_comm_t *comm,
                      const struct oracle *o, const void *sum, size_t count)
{
    const size_t bytes = trib_dtype_size(o->dtype);
    uint64_t all[SIZE], mine = oracle_hash(sum, count * bytes);

    for (size_t i = 0; i < count; i++) {
        const struct oracle_answer a = oracle_reduced(o, i);
        ranks_assert(
            self, oracle_equal(o->dtype, &a,
                               oracle_load(o->dtype, (const char *)sum + i * bytes)));
    }
    ranks_ok(self, trib_allgather(comm, &mine, all, 1, TRIB_I64));
    for (int r = 0; r < trib_size(comm); r++)
        ranks_assert(self, all[r] == mine);
}

static void sum_all(struct ranks_self *self, trib_comm_t *comm)
{
    static const trib_dtype_t dtypes[] = {TRIB_F32, TRIB_F64, TRIB_F16, TRIB_BF16,
                                          TRIB_I8,  TRIB_I32, TRIB_I64};
    static const size_t counts[] = {1, 7, 1023, 30011};

    const struct loss *l = self->arg;

    for (size_t k = l->victims == 1u << 2 ? 0 : 24; k < 7 * 4; k++) {
        const size_t count = counts[k % 4];
        struct oracle o = {ORACLE_EXACT, k, dtypes[k / 4], TRIB_SUM, trib_size(comm)};
        char *x = malloc(2 * count * 8), *y = x + count * 8;
        ranks_assert(self, x);
        for (int round = 0; round < 3; round++) {
            const bool in_place = (k + (size_t)round) % 2;
            o.seed += 100;
            oracle_fill(&o, trib_rank(comm), 0, count, in_place ? y : x);
            ranks_ok(self, trib_allreduce(comm, in_place ? NULL : x, y, count, o.dtype,
                                          o.op));
            check_sum(self, comm, &o, y, count);
        }
        free(x);
    }
}

static int shrinks(struct ranks_self *self)
{
    const struct loss *l = self->arg;
    float x = 1;

    ranks_ok(self, trib_init(&self->opts, &self->comm));
    for (int i = 0; i < 3; i++)
        ranks_ok(self, trib_allreduce(self->comm, NULL, &x, 1, TRIB_F32, TRIB_SUM));
    (void)trib_barrier(self->comm); /* a victim may be ahead of others */
    if (is_victim(l, self->rank))
        raise(l->signal);
    if (l->victims && !(l->unknown && self->rank == 0))
        while (trib_allreduce(self->comm, NULL, &x, 1, TRIB_F32, TRIB_SUM) == TRIB_OK)
            ;
    trib_comm_t *smaller = shrink(self);
    ranks_assert(self, trib_barrier(self->comm) < 0);
    sum_all(self, smaller);
    trib_comm_t *none = smaller;
    ranks_assert(self,
                 trib_comm_shrink(self->comm, &none) == TRIB_ERR_INVALID && !none);
    ranks_ok(self, trib_free_comm(self->comm));
    ranks_ok(self, trib_barrier(smaller));
    ranks_ok(self, trib_free_comm(smaller));
    return 0;
}

static void lose(const char *config, struct loss l)
{
    struct ranks r;
    char text[200];

    snprintf(text, sizeof(text), "%s,stop_timeout_ms=%d", config,
             500 * (int)tribtest_slowness());
    struct ranks_job job = {.size = SIZE,
                            .fn = shrinks,
                            .arg = &l,
                            .config = text,
                            .bare = true,
                            .noisy = true,
                            .seconds = 30};
    assert_true(ranks_start(&r, &job));
    bool all = false;
    while (!all) {
        all = ranks_poll(&r);
        bool left = false;
        for (int i = 0; i < SIZE; i++)
            left |= !is_victim(&l, i) && !r.ended[i];
        for (int i = 0; i < SIZE && !left; i++)
            ranks_signal(&r, i, SIGKILL);
        usleep(500);
    }
    for (int i = 0; i < SIZE; i++)
        if (!is_victim(&l, i) && r.slots[i].status != 0)
            fail_msg("%s: rank %d, when ranks %#x got signal %d: %s", config, i,
                     l.victims, l.signal, r.slots[i].text);
    ranks_close(&r);
}

static void test_goes_on(void **state)
{
    const char *config = *state;

    lose(config, (struct loss){0, 0, false});
    lose(config, (struct loss){1u << 2, SIGKILL, false});
    lose(config, (struct loss){1u << 0, SIGKILL, false});
    lose(config, (struct loss){1u << 0 | 1u << 3, SIGKILL, false});
    lose(config, (struct loss){1u << 0 | 1u << 1 | 1u << 2, SIGKILL, false});
    lose(config, (struct loss){1u << 3, SIGKILL, true});
    lose(config, (struct loss){1u << 1, SIGSTOP, false});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RANKS_ON(test_goes_on, "shm"),
        RANKS_ON(test_goes_on, "shm+nomap"),
        RANKS_ON(test_goes_on, "tcp"),
#if HAVE_UCX
        RANKS_ON(test_goes_on, "ucx"),
#endif
        RANKS_ON(test_goes_on, "auto:ranks_per_host=2"),
    };

    tribtest_deadline(120);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
