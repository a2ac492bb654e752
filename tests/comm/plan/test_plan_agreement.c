/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Codecs whose ranks agree on scales first: the all-reduce of the scales fits into
 * slots, and other codecs have none.
 */
#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "tests/harness/ranks.h"

/* Repeat with a long round trip: agreements then run several rounds ahead. */
static int agrees(struct ranks_self *self)
{
    static const char *const codecs[] = {"int8", "bf16", "topk"};
    static float x[100000];

    for (int turn = 0; turn < 6; turn++) {
        const int c = turn % 3;
        self->comm->round_trip_us = turn < 3 ? 0 : 40000;
        trib_plan_t *plan;
        for (size_t i = 0; i < 100000; i++)
            x[i] = (float)(self->rank + 1);
        plan = ranks_plan(self, TRIB_ALLREDUCE, .recv = x, .count = 100000,
                          .codec = codecs[c], .feedback = "none");
        const size_t piece = plan->run.desc.share_piece;
        ranks_assert(self, (piece > 0) == (c == 0 && self->size > 1));
        ranks_assert(self, piece * sizeof(float) <= self->comm->cfg.chunk);
        const struct trib_run_desc *r = &plan->run.desc;
        const uint32_t all = r->rounds - r->share_lead;
        ranks_assert(self, r->share_lead == (piece == 0 ? 0 : turn < 3 ? 1 : all));
        ranks_step(self, plan);
        const float sum = (float)(self->size * (self->size + 1) / 2);
        for (size_t i = 0; i < 100000 && c < 2; i++)
            ranks_assert(self, x[i] > 0.98f * sum && x[i] < 1.02f * sum);
        ranks_ok(self, trib_plan_free(plan));
    }
    return 0;
}

TEST(test_agrees)
{
    static const char *const configs[] = {"transport=shm", "transport=tcp"};

    for (int i = 0; i < 2; i++)
        for (int size = 1; size <= 3; size++)
            ranks_pass(.size = size, .fn = agrees, .config = configs[i]);
}
