/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The algorithm of a plan: named by the caller, or chosen by the library.
 */
#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "tests/harness/ranks.h"

static trib_status_t make(struct ranks_self *self, const char *algorithm, trib_op_t op,
                          trib_plan_t **plan)
{
    trib_desc_t d = sized(trib_desc_t, .count = 5000, .op = op, .algorithm = algorithm);

    return trib_plan_allreduce(self->comm, &d, plan);
}

RANKS_TEST(test_named, .size = 3)
{
    static const char *const names[] = {"direct", "ring", "flat", "tree"};
    trib_plan_t *plan;

    for (int i = 0; i < 4; i++) {
        ranks_ok(self, make(self, names[i], TRIB_SUM, &plan));
        ranks_assert(self, strcmp(plan->run.desc.name, names[i]) == 0);
        ranks_assert(self, strstr(plan->why, "requested by name"));
        ranks_ok(self, trib_plan_free(plan));
    }
    ranks_ok(self, make(self, "auto", TRIB_SUM, &plan));
    ranks_assert(self, trib_algo_find(plan->run.desc.name) && plan->why[0]);
    ranks_ok(self, trib_plan_free(plan));
    return 0;
}

RANKS_TEST(test_refused, .size = 3)
{
    trib_plan_t *plan;

    ranks_assert(self, make(self, "rinq", TRIB_SUM, &plan) == TRIB_ERR_INVALID);
    ranks_assert(self, strstr(trib_last_error(self->comm), "did you mean \"ring\""));
    ranks_assert(self, make(self, "ring", TRIB_MEDIAN, &plan) == TRIB_ERR_UNSUPPORTED);
    ranks_assert(self, strstr(trib_last_error(self->comm), "forwards partial sums"));
    ranks_assert(self, make(self, "doubling", TRIB_SUM, &plan) == TRIB_ERR_UNSUPPORTED);
    ranks_assert(self, strstr(trib_last_error(self->comm), "(index, value) pairs"));
    ranks_ok(self, make(self, "auto", TRIB_MEDIAN, &plan));
    ranks_assert(self, plan->run.desc.gathers);
    ranks_ok(self, trib_plan_free(plan));
    return 0;
}

/* Return the bytes that a rank sends in one start of a selection, frames included. */
static double sent_by(struct ranks_self *self, const char *codec, const char *algorithm,
                      trib_plan_t **plan)
{
    enum { N = 100000 };
    static float x[N];
    trib_desc_t d = TRIB_DESC_INIT;
    trib_stats_t a = {.size = sizeof(a)}, b = {.size = sizeof(b)};

    for (size_t i = 0; i < N; i++) /* each rank selects other elements */
        x[i] = (float)((i * 7919 + (size_t)self->rank * 104729) % 65537);
    d.recv = x;
    d.count = N;
    d.codec = codec;
    d.algorithm = algorithm;
    ranks_ok(self, trib_plan_allreduce(self->comm, &d, plan));
    ranks_ok(self, trib_stats(self->comm, &a));
    ranks_step(self, *plan);
    ranks_ok(self, trib_stats(self->comm, &b));
    return (double)(b.wire_bytes - a.wire_bytes);
}

/* The choice depends on the encoded size of contributions and results, not on the
 * elements. */
RANKS_TEST(test_chosen_by_words, .size = 4)
{
    static const struct {
        const char *codec, *name; /* for four ranks */
    } rows[] = {
        {"topk:ratio=0.02+qsgd:bits=2", "flat"},
        {"topk:ratio=0.02,result=selected+efsign", "direct"},
        {"topk:ratio=0.01+natural", "flat"},
        {"adacomp:bin=500", "flat"},
        {"topk:ratio=0.02,result=selected", "direct"},
        {"randomk:ratio=0.02", "direct"},
    };
    trib_plan_t *plan, *other;

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const double mine = sent_by(self, rows[i].codec, "auto", &plan);
        if (strcmp(plan->run.desc.name, rows[i].name) != 0 ||
            !strstr(plan->why, "B per contribution"))
            ranks_die(self, "%s: %s", rows[i].codec, plan->why);
        const bool flat = strcmp(rows[i].name, "flat") == 0;
        const double not_taken =
            sent_by(self, rows[i].codec, flat ? "direct" : "flat", &other);
        if (!(mine < not_taken))
            ranks_die(self, "%s: %s sends %.0f B, the other %.0f", rows[i].codec,
                      rows[i].name, mine, not_taken);
        ranks_ok(self, trib_plan_free(plan));
        ranks_ok(self, trib_plan_free(other));
    }
    ranks_ok(self, make(self, "auto", TRIB_SUM, &plan));
    ranks_assert(self, !strstr(plan->why, "encoded"));
    ranks_ok(self, trib_plan_free(plan));
    return 0;
}
