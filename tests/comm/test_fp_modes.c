/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The same bits on all ranks as in a run without, whatever floating-point modes the
 * application has set in a thread of one rank; the modes are unchanged afterwards.
 */
#include <fenv.h>

#include "base/fpenv.h"
#include "tests/comm/algorithms.h"
#include "tests/comm/oracle.h"
#include "tests/harness/ranks.h"

enum { COUNT = 4096, STARTS = 4 };

enum modes {
    USUAL,
    FLUSHED, /* flush to zero, and denormals are zero */
    UPWARD,
    DOWNWARD,
    TRAPPED, /* inexact, overflow, underflow, invalid, by zero */
    MODES,
};

static const char *const names[MODES] = {"usual", "flush to zero", "upward", "downward",
                                         "traps"};

static bool set(enum modes modes)
{
    (void)fesetenv(FE_DFL_ENV);
    switch (modes) {
    case FLUSHED:
#if defined(__x86_64__)
        trib_fpenv_write(trib_fpenv_read() | 0x8040);
        return true;
#elif defined(__aarch64__)
        trib_fpenv_write(trib_fpenv_read() | 1u << 24);
        return true;
#else
        return false;
#endif
    case UPWARD:
        return fesetround(FE_UPWARD) == 0;
    case DOWNWARD:
        return fesetround(FE_DOWNWARD) == 0;
    case TRAPPED:
#if defined(__GLIBC__)
        return feenableexcept(FE_ALL_EXCEPT) != -1;
#else
        return false;
#endif
    default:
        return true;
    }
}

struct scene {
    const char *codec, *algorithm;
    float scale;
    enum modes modes;
};

static trib_plan_t *plan_of(struct ranks_self *self, const struct scene *s, float *x)
{
    trib_plan_t *plan;
    trib_desc_t d = sized(trib_desc_t, .recv = x, .count = COUNT, .op = TRIB_MEAN,
                          .codec = s->codec);

    d.name = "one of all modes"; /* its name determines the random numbers */
    d.algorithm = s->algorithm;
    d.chunk = 4096;
    if (trib_plan_allreduce(self->comm, &d, &plan) != TRIB_OK)
        ranks_die(self, "%s", trib_last_error(self->comm));
    return plan;
}

/* Return a hash of the results of all starts; every other plan is created in these
 * modes, too. */
static uint64_t results(struct ranks_self *self, const struct scene *s, bool late)
{
    static float x[COUNT], input[COUNT];
    uint64_t hash = 1;

    for (size_t i = 0; i < COUNT; i++)
        input[i] = s->scale * (float)(1 + (i * 7 + (size_t)self->rank * 3) % 11) / 7.0f;
    trib_plan_t *plan = late ? plan_of(self, s, x) : NULL;
    const bool there = set(s->modes);
    const uint64_t before = trib_fpenv_read() & TRIB_FPENV_MODES;
    if (!late)
        plan = plan_of(self, s, x);
    for (int start = 0; start < STARTS; start++) {
        memcpy(x, input, sizeof(x));
        ranks_ok(self, trib_plan_start(plan));
        if (self->rank == 0 && start % 2)
            usleep(3000); /* so that the progress thread sums */
        ranks_ok(self, trib_plan_wait(plan));
        hash = oracle_mix(hash ^ oracle_hash(x, sizeof(x)));
    }
    if (there && (trib_fpenv_read() & TRIB_FPENV_MODES) != before)
        ranks_die(self, "the modes are not what they were: %s", names[s->modes]);
    (void)fesetenv(FE_DFL_ENV);
    ranks_ok(self, trib_plan_free(plan));
    return hash;
}

static void compare(struct ranks_self *self, const struct scene *s, uint64_t usual,
                    bool late)
{
    const uint64_t mine = results(self, s, late);
    uint64_t all[RANKS_MAX];

    ranks_ok(self, trib_allgather(self->comm, &mine, all, sizeof(mine), TRIB_I8));
    for (int r = 0; r < self->size; r++)
        if (all[r] != usual)
            ranks_die(
                self,
                "codec %s by %s, numbers about %g, %s on %s: rank %d has other bits",
                s->codec, s->algorithm, (double)s->scale, names[s->modes],
                s->modes == FLUSHED ? "all ranks" : "rank 1", r);
}

static int same_bits(struct ranks_self *self)
{
    static const char *const codecs[] = {
        "none", "qsgd:bits=4", "int8", "powersgd:rank=2",
        "f8",   "onebit",      "thc",  "topk:ratio=0.1"};

    for (size_t k = 0; k < sizeof(codecs) / sizeof(codecs[0]); k++) {
        for (size_t a = 0; a < algorithms_count(true); a++) {
            struct scene s = {codecs[k], algorithm_of(a, true),
                              (k + a) % 2 ? 1e-39f : 1.0f, USUAL};
            if (self->size < 3 && strcmp(s.algorithm, "hierarchical") == 0)
                continue;
            const uint64_t usual = results(self, &s, true);
            for (int modes = FLUSHED; modes < MODES; modes++) {
                s.modes =
                    modes == FLUSHED || self->rank == 1 ? (enum modes)modes : USUAL;
                compare(self, &s, usual, modes % 2);
                compare(self, &s, usual, !(modes % 2));
            }
        }
    }
    return 0;
}

TEST_WITH(test_same_bits, "transport=shm", "transport=tcp;encode_threads=2")
{
    for (int size = 2; size <= 3; size++)
        ranks_pass(.size = size, .fn = same_bits, .config = *state, .seconds = 200);
}

/* The blocking calls, and a communicator created in such modes. */
static int made_so(struct ranks_self *self)
{
    static float x[2][COUNT], input[2][COUNT];
    uint64_t mine[2], all[2 * RANKS_MAX];

    for (size_t i = 0; i < 2 * COUNT; i++) /* not in these modes: it would trap */
        input[i % 2][i / 2] =
            (i % 2 ? 1e-39f : 0.1f) * (float)(1 + (i + (size_t)self->rank) % 9);
    for (int modes = FLUSHED; modes < MODES; modes++) {
        trib_comm_t *comm;
        memcpy(x, input, sizeof(x));
        (void)set(modes == FLUSHED || self->rank == 1 ? (enum modes)modes : USUAL);
        ranks_ok(self, trib_split(self->comm, 0, self->rank, &comm));
        for (size_t k = 0; k < 2; k++) {
            ranks_ok(self,
                     trib_allreduce(comm, NULL, x[k], COUNT, TRIB_F32, TRIB_MEAN));
            mine[k] = oracle_hash(x[k], sizeof(x[k]));
        }
        (void)fesetenv(FE_DFL_ENV);
        ranks_ok(self, trib_allgather(self->comm, mine, all, sizeof(mine), TRIB_I8));
        for (int r = 0; r < 2 * self->size; r++)
            if (all[r] != mine[r % 2])
                ranks_die(self, "%s: rank %d has other bits", names[modes], r / 2);
        ranks_ok(self, trib_free_comm(comm));
    }
    return 0;
}

TEST_WITH(test_made_so, "transport=shm", "transport=tcp")
{
    ranks_pass(.size = 3, .fn = made_so, .config = *state);
}
