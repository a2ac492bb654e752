/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Survivors of a loss continue: sums over the remaining ranks, of every dtype and of
 * odd sizes, in place and not, with the same bits on all; for each lost rank, and
 * without a loss. tests/fault/test_shrink_faults has losses at any time.
 */
#include "build-config.h"
#include "tests/comm/right_sums.h"

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

/* Return the place of a rank among the remaining ranks. */
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
    sums_are_right(self, smaller, l->victims == 1u << 2 ? 0 : 24);
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
    ranks_outlive(&r, l.victims);
    ranks_survived(&r, l.victims, "%s, signal %d to ranks %#x", config, l.signal,
                   l.victims);
}

TEST_ON(test_goes_on, "shm", "shm+nomap", "tcp", IF_UCX("ucx"), "auto:ranks_per_host=2")
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
