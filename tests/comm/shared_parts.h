/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For tests of workers that share the sums and copies of large raw chunks: two ranks
 * with TRIB_ENCODE_THREADS and chunks of 1M, over any transport.
 */
#ifndef TESTS_COMM_SHARED_PARTS_H
#define TESTS_COMM_SHARED_PARTS_H

#include <sched.h>

#include "comm/core/communicator.h"
#include "tests/comm/oracle.h"
#include "tests/harness/ranks.h"

enum { SHARED_COUNT = (1 << 20) - 3, SHARED_STRIDE = 61 };

/* Assert that the sum, or a part of it from `first` on, is right in some elements. */
static inline void shared_is_right(struct ranks_self *self, const struct oracle *o,
                                   const float *sum, size_t first, size_t n)
{
    for (size_t i = 0; i < n; i += i + SHARED_STRIDE < n ? SHARED_STRIDE : 1) {
        const struct oracle_answer want = oracle_reduced(o, first + i);
        if (!oracle_equal(o->dtype, &want, (union perf_number){.f = (double)sum[i]}))
            ranks_die(self, "element %zu is %g", first + i, (double)sum[i]);
    }
}

/* Sum, reduce-scatter and broadcast in two buffers. */
static inline void shared_round(struct ranks_self *self, float *x, float *y,
                                uint64_t seed)
{
    const struct oracle o = {.seed = seed, .dtype = TRIB_F32, .size = self->size};
    const size_t part = SHARED_COUNT / 2, at = (size_t)self->rank * part;
    trib_comm_t *c = self->comm;

    oracle_fill(&o, self->rank, 0, SHARED_COUNT, x);
    ranks_ok(self, trib_allreduce(c, x, y, SHARED_COUNT, TRIB_F32, TRIB_SUM));
    shared_is_right(self, &o, y, 0, SHARED_COUNT);
    ranks_ok(self, trib_reduce_scatter(c, x, y, part, TRIB_F32, TRIB_SUM));
    shared_is_right(self, &o, y, at, part);
    ranks_ok(self, trib_allreduce(c, NULL, x, SHARED_COUNT, TRIB_F32, TRIB_SUM));
    shared_is_right(self, &o, x, 0, SHARED_COUNT);
    if (self->rank == 1)
        memset(x, 0, SHARED_COUNT * sizeof(*x));
    ranks_ok(self, trib_broadcast(c, x, SHARED_COUNT, TRIB_F32, 0));
    shared_is_right(self, &o, x, 0, SHARED_COUNT);
}

/* Return true if this host can share: the ranks have two cores or more. */
static inline bool shared_cores(const struct ranks_self *self)
{
    cpu_set_t allowed;

    return !self->comm->engine.oversubscribed && self->comm->engine.quota != 1 &&
           sched_getaffinity(0, sizeof(allowed), &allowed) == 0 &&
           CPU_COUNT(&allowed) > 1;
}

/* Sums are right from memory of malloc and of trib_alloc, and were split. */
static inline int shared_sums(struct ranks_self *self)
{
    const size_t bytes = SHARED_COUNT * sizeof(float);
    const uint64_t *splits = &self->comm->engine.stats.splits;
    void *mine[2], *shared[2];

    for (int i = 0; i < 2; i++) {
        mine[i] = malloc(bytes);
        ranks_assert(self, mine[i]);
        ranks_ok(self, trib_alloc(self->comm, bytes, &shared[i]));
    }
    shared_round(self, mine[0], mine[1], 1);
    const uint64_t before = *splits;
    ranks_assert(self, shared_cores(self) == (before > 0));
    shared_round(self, shared[0], shared[1], 2);
    ranks_assert(self, shared_cores(self) == (*splits > before));
    for (int i = 0; i < 2; i++) {
        free(mine[i]);
        ranks_ok(self, trib_free(self->comm, shared[i]));
    }
    return 0;
}

/* After a failure no worker writes to the memory. */
static inline int shared_abort(struct ranks_self *self)
{
    static float x[1 << 20];
    float *mine = x;
    trib_status_t status = TRIB_OK;

    if (self->rank == 1) /* ranks may be threads */
        mine = malloc(sizeof(x));
    ranks_assert(self, mine);
    for (size_t i = 0; i < sizeof(x) / sizeof(*x); i++)
        mine[i] = 0;
    for (int round = 0; status == TRIB_OK; round++) {
        if (round == 3 && self->rank == 1)
            ranks_ok(self, trib_comm_abort(self->comm, "a test"));
        status = trib_allreduce(self->comm, NULL, mine, sizeof(x) / sizeof(*x),
                                TRIB_F32, TRIB_SUM);
    }
    memset(mine, 0x55, sizeof(x));
    usleep(5000);
    for (size_t i = 0; i < sizeof(x); i++)
        ranks_assert(self, ((const uint8_t *)mine)[i] == 0x55);
    if (self->rank == 1)
        free(mine);
    return 0;
}

/* Long chunks, for which sleeping workers are woken. */
#define SHARED_SPLIT "encode_threads=2;chunk=1M"

/* Run both over a transport. */
static inline void shared_run(const char *config, bool threads)
{
    ranks_pass(.size = 2, .fn = shared_sums, .threads = threads, .config = config);
    ranks_pass(.size = 2, .fn = shared_abort, .threads = threads, .noisy = true,
               .config = config);
}

#endif
