/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The numbers of lost ranks: one or two that are killed, one that is stopped, one that
 * has disconnected.
 */
#include "build-config.h"
#include "tests/harness/ranks.h"

#define SIZE 5
#define WAIT_S 10

enum end { END_KILLED, END_STOPPED, END_LEFT };

struct loss {
    enum end how;
    unsigned victims; /* bit r: rank r */
};

static bool is_victim(const struct loss *l, int rank)
{
    return l->victims >> rank & 1;
}

static void end(struct ranks_self *self)
{
    const struct loss *l = self->arg;

    if (l->how == END_LEFT)
        (void)trib_free_comm(self->comm);
    raise(l->how == END_STOPPED ? SIGSTOP : SIGKILL);
}

/* Return true if the victims, and no others, are lost; *n_out grows until all are. */
static bool all_are_lost(struct ranks_self *self)
{
    const struct loss *l = self->arg;
    int ranks[SIZE] = {-1, -1, -1, -1, -1}, n = -1;

    ranks_ok(self, trib_comm_lost(self->comm, ranks, SIZE, &n));
    for (int i = 0; i < n; i++) {
        ranks_assert(self, is_victim(l, ranks[i]));
        ranks_assert(self, i == 0 || ranks[i] > ranks[i - 1]);
    }
    return n == __builtin_popcount(l->victims);
}

/* Wait until all remaining ranks have reached this phase. */
static void meet(struct ranks_self *self, int phase)
{
    atomic_store(&self->slot->count, (uint64_t)phase);
    while (atomic_load(&self->slot->phase) < phase)
        usleep(500);
}

static int tells(struct ranks_self *self)
{
    const struct loss *l = self->arg;
    const double until = ranks_seconds() + WAIT_S * (double)tribtest_slowness();
    float x = 1;
    int n = -1, rank = -1;

    ranks_ok(self, trib_init(&self->opts, &self->comm));
    for (int i = 0; i < 3; i++) /* all ranks connect to each other */
        ranks_ok(self, trib_allreduce(self->comm, NULL, &x, 1, TRIB_F32, TRIB_SUM));
    ranks_assert(self, trib_comm_lost(self->comm, NULL, 1, &n) == TRIB_ERR_INVALID);
    ranks_assert(self, trib_comm_lost(self->comm, &n, -1, &n) == TRIB_ERR_INVALID);
    ranks_assert(self, trib_comm_lost(self->comm, &n, 1, NULL) == TRIB_ERR_INVALID);
    ranks_assert(self, trib_comm_lost(NULL, &n, 1, &n) == TRIB_ERR_INVALID);
    ranks_ok(self, trib_comm_lost(self->comm, &rank, 1, &n));
    ranks_assert(self, n == 0);
    meet(self, 1);
    if (is_victim(l, self->rank))
        end(self);
    if (l->how == END_LEFT) /* it waits for the others, which detect that */
        ranks_assert(self,
                     trib_allreduce(self->comm, NULL, &x, 1, TRIB_F32, TRIB_SUM) < 0);
    while (!all_are_lost(self)) {
        ranks_assert(self, ranks_seconds() < until);
        usleep(1000);
    }
    ranks_assert(self, trib_allreduce(self->comm, NULL, &x, 1, TRIB_F32, TRIB_SUM) < 0);
    ranks_ok(self, trib_comm_lost(self->comm, &rank, 1, &n));
    ranks_assert(self, rank == __builtin_ctz(l->victims));
    ranks_assert(self, n == __builtin_popcount(l->victims));
    meet(self, 2);
    ranks_ok(self, trib_free_comm(self->comm));
    return 0;
}

/* Return true if all ranks have reached that phase; victims reach only the first. */
static bool all_have_met(const struct ranks *r, uint64_t phase)
{
    const struct loss *l = r->job.arg;

    for (int i = 0; i < SIZE; i++)
        if (atomic_load(&r->slots[i].count) < phase && !r->ended[i] &&
            (phase == 1 || !is_victim(l, i)))
            return false;
    return true;
}

static void run(struct ranks *r)
{
    const struct loss *l = r->job.arg;

    for (int phase = 1; !ranks_poll(r); usleep(500)) {
        if (phase > 2 || !all_have_met(r, (uint64_t)phase))
            continue;
        for (int i = 0; i < SIZE; i++) {
            if (phase == 2 && is_victim(l, i))
                ranks_signal(r, i, SIGKILL);
            atomic_store(&r->slots[i].phase, phase);
        }
        phase++;
    }
}

static void lose(const char *config, struct loss l)
{
    struct ranks r;
    char text[200];

    snprintf(text, sizeof(text), "%s,stop_timeout_ms=%d", config,
             500 * (int)tribtest_slowness());
    struct ranks_job job = {.size = SIZE,
                            .fn = tells,
                            .arg = &l,
                            .config = text,
                            .bare = true,
                            .noisy = true,
                            .seconds = 30};
    assert_true(ranks_start(&r, &job));
    run(&r);
    ranks_survived(&r, l.victims, "%s: loss %d of ranks %#x", config, (int)l.how,
                   l.victims);
}

TEST_ON(test_lost, "shm,algorithm=direct", "tcp,algorithm=direct",
        IF_UCX("ucx,algorithm=direct"), "auto:ranks_per_host=2,algorithm=direct")
{
    const char *config = *state;

    lose(config, (struct loss){END_KILLED, 1u << 1});
    lose(config, (struct loss){END_KILLED, 1u << 0});
    lose(config, (struct loss){END_KILLED, 1u << 1 | 1u << 3});
    lose(config, (struct loss){END_STOPPED, 1u << 2});
    lose(config, (struct loss){END_LEFT, 1u << 4});
}
