/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TRIB_CHECK: an invalid contribution ends the operation on all ranks, and the error
 * names its rank; even if that rank does not check its own, where contributions are
 * combined.
 */
#include <math.h>

#include "tests/agg/client/aggregators.h"

enum { COUNT = 16411, BAD_RANK = 1, BAD_AT = 4321 };

struct scene {
    const char *algorithm;
    trib_dtype_t dtype;
    trib_feed_t feed;
    float bad;
    bool lies; /* the rank does not check its own contribution */
    const char *codec;
    const char *says;
};

static void put(const struct scene *s, uint8_t *x, size_t i, float v)
{
    trib_kernels_get(NULL)->from_f32[s->dtype](x + i * trib_dtype_size(s->dtype), &v,
                                               1);
}

static void feed(struct ranks_self *self, trib_plan_t *plan)
{
    trib_status_t st = TRIB_OK;

    (void)self;
    for (size_t i = 0; i < COUNT && st == TRIB_OK; i += 1000)
        st = trib_plan_ready(plan, i, COUNT - i < 1000 ? COUNT - i : 1000);
}

static trib_status_t step(struct ranks_self *self, const struct scene *s,
                          trib_plan_t *plan)
{
    trib_status_t st = trib_plan_start(plan);

    if (st == TRIB_OK && s->feed)
        feed(self, plan);
    return st == TRIB_OK ? trib_plan_wait(plan) : st;
}

static void use(struct ranks_self *self, trib_comm_t *comm, const struct scene *s)
{
    const bool bad = self->rank == BAD_RANK;
    uint8_t *x = calloc(COUNT + 1, 8);

    trib_plan_t *plan = ranks_plan_on(self, comm, TRIB_ALLREDUCE, .recv = x,
                                      .count = COUNT, .dtype = s->dtype,
                                      .algorithm = s->algorithm, .codec = s->codec,
                                      .feed = s->feed, .chunk = 4096, .name = "layer");
    if (bad && s->lies)
        plan->run.desc.check.finite = false;
    for (size_t i = 0; i < COUNT; i++)
        put(s, x, i, 0.25f);
    ranks_ok(self, step(self, s, plan));
    for (size_t i = 0; i < COUNT; i++)
        put(s, x, i, 0.25f);
    if (bad)
        put(s, x, BAD_AT, s->bad);
    trib_status_t st = step(self, s, plan);
    if (bad && s->lies && st == TRIB_OK) /* it had all data before it was notified */
        st = step(self, s, plan);
    ranks_assert(self, st == TRIB_ERR_INVALID);
    if (!strstr(trib_last_error(comm), s->says) ||
        !strstr(trib_last_error(comm), "rank 1 gave"))
        ranks_die(self, "%s, not: %s", trib_last_error(comm), s->says);
    (void)trib_plan_free(plan);
    free(x);
}

static int by_ranks(struct ranks_self *self)
{
    use(self, self->comm, self->arg);
    return 0;
}

static void run(const struct scene *s, const char *config)
{
    for (int size = 2; size <= 4; size++)
        ranks_pass(.size = size, .fn = by_ranks, .arg = (void *)(uintptr_t)s,
                   .config = config, .noisy = true);
}

#define AT "NaN or an infinity, element 4321 of \"layer\", in allreduce"

TEST(test_ranks)
{
    const struct scene scenes[] = {
        {"direct", TRIB_F32, TRIB_FEED_WHOLE, NAN, false, NULL, AT},
        {"ring", TRIB_F16, TRIB_FEED_WHOLE, -INFINITY, false, NULL, AT},
        {"tree", TRIB_F64, TRIB_FEED_WHOLE, INFINITY, false, NULL, AT},
        {"direct", TRIB_BF16, TRIB_FEED_FORWARD, NAN, false, NULL, AT},
        {"ring", TRIB_F32, TRIB_FEED_FORWARD, NAN, false, "exact", AT},
        {"flat", TRIB_F32, TRIB_FEED_WHOLE, NAN, true, NULL, AT},
        {"flat", TRIB_F64, TRIB_FEED_WHOLE, NAN, true, NULL, AT},
    };
    for (size_t i = 0; i < sizeof(scenes) / sizeof(*scenes); i++)
        run(&scenes[i],
            i % 2 ? "transport=tcp;check=finite" : "transport=shm;check=finite");
}

TEST(test_norms)
{
    static const char says[] = "a vector of \"layer\" with norm 1000";
    const struct scene whole = {"ring", TRIB_F32, TRIB_FEED_WHOLE, 1000, false,
                                NULL,   says};
    const struct scene fed = {"direct", TRIB_F16, TRIB_FEED_FORWARD, 1000, false, NULL,
                              "with norm 1000"};
    const struct scene finite = {"direct", TRIB_F32, TRIB_FEED_WHOLE, NAN, false,
                                 NULL,     AT};
    run(&whole, "transport=shm;check=norm:999");
    run(&fed, "transport=shm;check=norm:999.5");
    run(&finite, "transport=shm;check=norm:1e6");
}

/* An aggregator checks arriving contributions, whatever the rank has found; or rank 0
 * does, if it sums for its host. */
static int by_aggregators(struct ranks_self *self)
{
    static const struct scene lie = {"auto",
                                     TRIB_F32,
                                     TRIB_FEED_WHOLE,
                                     NAN,
                                     true,
                                     NULL,
                                     "NaN or an infinity, element 4321"};
    struct aggregators *s = self->arg;
    struct trib_comm *agg_comm = aggregators_join(self, s, self->comm);

    if (self->rank < s->ranks) {
        use(self, agg_comm, &lie);
        (void)trib_free_comm(agg_comm);
        return 0;
    }
    agg_comm->cfg.check[0] = 0; /* the announcement contains the check */
    aggregators_serve(self, s, agg_comm);
    ranks_assert(self,
                 strstr(trib_error_text(&agg_comm->engine.failure), "rank 1 gave"));
    trib_agg_comm_dispose(agg_comm);
    return 0;
}

TEST(test_aggregators)
{
    static const char *const configs[] = {
        "transport=shm;check=finite", "transport=tcp;check=finite",
        "transport=auto:ranks_per_host=2;check=finite"};
    for (int i = 0; i < 3; i++) {
        struct aggregators s = {.ranks = 3, .n = 1};
        aggregators_run(&s, (struct ranks_job){.fn = by_aggregators,
                                               .arg = &s,
                                               .config = configs[i],
                                               .noisy = true});
    }
}
