/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/comm/placed.h"

enum { ROUNDS = 12 };

static float *take(struct ranks_self *self, const struct placed *p, bool plain)
{
    size_t bytes = p->count * sizeof(float);
    void *x;

    if (p->alloc && !plain) {
        ranks_ok(self, trib_alloc(self->comm, bytes, &x));
        return x;
    }
    x = malloc(bytes);
    if (!plain)
        ranks_ok(self, trib_register(self->comm, x, bytes));
    return x;
}

static void give_back(struct ranks_self *self, const struct placed *p, bool plain,
                      float *x)
{
    if (p->alloc && !plain) {
        ranks_ok(self, trib_free(self->comm, x));
        return;
    }
    if (!plain)
        ranks_ok(self, trib_deregister(self->comm, x));
    free(x);
}

static float element(int rank, int round, size_t i)
{
    return (float)((i * 7 + (size_t)round * 13) % 512 + (size_t)rank);
}

static uint64_t copied(struct ranks_self *self)
{
    trib_stats_t s = {.size = sizeof(s)};

    ranks_ok(self, trib_stats(self->comm, &s));
    return s.copied_bytes;
}

int placed_run(struct ranks_self *self)
{
    const struct placed *p = self->arg;
    float *recv = take(self, p, p->plain);
    float *send = p->in_place ? recv : take(self, p, p->plain || p->unregistered);

    trib_plan_t *plan = ranks_plan(self, TRIB_ALLREDUCE, .count = p->count,
                                   .send = send, .recv = recv,
                                   .algorithm = p->algorithm);
    uint64_t before = copied(self);
    for (int round = 0; round < ROUNDS; round++) {
        if (round == p->warm)
            before = copied(self);
        for (size_t i = 0; i < p->count; i++)
            send[i] = element(self->rank, round, i);
        ranks_step(self, plan);
        /* Data still read from here arrives wrong. */
        if (!p->in_place)
            memset(send, 0xff, p->count * sizeof(float));
        for (size_t i = 0; i < p->count; i++) {
            float sum = 0;
            for (int r = 0; r < self->size; r++)
                sum += element(r, round, i);
            if (recv[i] != sum)
                ranks_die(self, "round %d: element %zu is %g, not %g", round, i,
                          (double)recv[i], (double)sum);
        }
        memset(recv, 0xff, p->count * sizeof(float));
    }
    const char *kind = p->plain ? "malloc" : p->alloc ? "alloc" : "registered";
    uint64_t n = copied(self) - before, all = ROUNDS * p->count * sizeof(float);
    if (n > (p->unregistered || p->near ? all : 0))
        ranks_die(self, "%llu of %llu bytes were copied (%s%s%s)",
                  (unsigned long long)n, (unsigned long long)all, kind,
                  p->in_place ? " in place" : "", p->unregistered ? " recv only" : "");
    ranks_ok(self, trib_plan_free(plan));
    if (!p->in_place)
        give_back(self, p, p->plain || p->unregistered, send);
    give_back(self, p, p->plain, recv);
    return 0;
}

int placed_all(struct ranks_job job)
{
    static const char *const algorithms[] = {"ring", "direct"};
    int failed = 0;

    job.fn = placed_run;
    for (int i = 0; i < 2 * 4; i++) {
        /* Whole chunks for two to four ranks: no remainder is small enough to be
         * copied. */
        struct placed p = {.algorithm = algorithms[i / 4], .count = 12 * 16384};
        p.alloc = i % 4 == 0;
        p.in_place = i % 4 == 1;
        p.unregistered = i % 4 == 3;
        job.arg = &p;
        failed += ranks_run(&job);
    }
    return failed;
}
