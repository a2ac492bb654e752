/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every row of compress/feedback_rules.def, with whole plans: it compensates losses if
 * its row claims that, and a saved state contains all of its vectors.
 */
#include "tests/comm/fed.h"

#define COUNT 2500

/* The results eventually contain all of a constant gradient. */
static int arrives(struct ranks_self *self)
{
    static double mean[COUNT];
    struct fed f;

    fed_open(&f, self, self->arg, COUNT);
    fed_fill(&f, 1);
    for (int step = 0; step < 120; step++) {
        fed_run(&f);
        for (size_t i = 0; i < COUNT && step >= 40; i++)
            mean[i] += fed_result(&f, i) / 80;
    }
    double off = 0, all = 0;
    for (size_t i = 0; i < COUNT; i++) {
        double want = 0;
        for (int r = 0; r < self->size; r++)
            want += fed_input(&f, r, i);
        off += (mean[i] - want) * (mean[i] - want);
        all += want * want;
    }
    const bool arrived = off <= 0.01 * all;
    fed_close(&f);
    return arrived ? 0 : 1;
}

/* A rule corrects if its row claims that: with "none", a good part of a gradient never
 * arrives. */
TEST(test_every_rule_corrects)
{
    for (int i = 0; trib_feedback_rules[i]; i++) {
        const struct trib_feedback_ops *ops = trib_feedback_rules[i];
        const struct fed_scene scene = {"topk:ratio=0.1,ef=0", ops->name, "flat",
                                        TRIB_F32, TRIB_SUM};
        struct ranks_job job = {.size = 3,
                                .fn = arrives,
                                .arg = (void *)&scene,
                                .config = "transport=shm"};
        if ((ranks_run(&job) == 0) != ops->corrects)
            fail_msg("%s does %s", ops->name,
                     ops->corrects ? "not correct" : "correct");
    }
}

/* A plan that loads the state of another one continues like that one. */
static int goes_on(struct ranks_self *self)
{
    struct fed f, other;
    size_t bytes;

    fed_open(&f, self, self->arg, COUNT);
    fed_open(&other, self, self->arg, COUNT);
    for (uint64_t step = 1; step <= 3; step++) {
        fed_fill(&f, step);
        fed_run(&f);
    }
    ranks_ok(self, trib_plan_state_save(f.plan, NULL, 0, &bytes));
    void *saved = malloc(bytes);
    ranks_assert(self, saved);
    ranks_ok(self, trib_plan_state_save(f.plan, saved, bytes, &bytes));
    ranks_ok(self, trib_plan_state_load(other.plan, saved, bytes));
    for (uint64_t step = 4; step <= 8; step++) {
        fed_fill(&f, step);
        fed_run(&f);
        fed_fill(&other, step);
        fed_run(&other);
        ranks_assert(self, memcmp(f.recv, other.recv, COUNT * f.element) == 0);
    }
    free(saved);
    fed_close(&other);
    fed_close(&f);
    return 0;
}

TEST(test_states_are_saved)
{
    static const trib_dtype_t dtypes[] = {TRIB_F32, TRIB_F64, TRIB_F16, TRIB_BF16};

    for (int i = 0; trib_feedback_rules[i]; i++)
        for (int k = 0; trib_feedback_rules[i]->examples[k][0]; k++) {
            const char *const *example = trib_feedback_rules[i]->examples[k];
            const struct fed_scene scene = {example[1], example[0], "flat",
                                            dtypes[k % 4], TRIB_MEAN};
            struct ranks_job job = {.size = 1 + (i + k) % 3,
                                    .fn = goes_on,
                                    .arg = (void *)&scene,
                                    .config = "transport=shm"};
            if (ranks_run(&job) != 0)
                fail_msg("%s with %s", example[0], example[1]);
        }
}
