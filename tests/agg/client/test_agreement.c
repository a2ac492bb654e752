/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An agreement returns the maximum of the values of all ranks to each rank; agreements
 * follow one another.
 */
#include "agg/client/offload_plan.h"
#include "base/config.h"
#include "comm/members/split.h"
#include "tests/harness/ranks.h"

static int agree(struct ranks_self *self)
{
    struct trib_offload o = {.parent = self->comm};

    ranks_ok(self, trib_comm_dup(self->comm, &self->comm->cfg, &o.control_comm));
    for (int round = 0; round < 30; round++) {
        int64_t say[TRIB_AGREE_WORDS];
        for (int w = 0; w < TRIB_AGREE_WORDS; w++)
            say[w] = (w + round) % self->size == self->rank ? 1000 * round + w : -w;
        if (round % 2) {
            ranks_ok(self, trib_agreement_run(&o, say));
        } else {
            ranks_ok(self, trib_agreement_start(&o, say));
            ranks_ok(self, trib_barrier(self->comm)); /* the parent stays usable */
            ranks_ok(self, trib_agreement_wait(&o));
        }
        for (int w = 0; w < TRIB_AGREE_WORDS; w++)
            ranks_assert(self, o.agreed[w] == 1000 * round + w);
    }
    trib_agreement_close(&o);
    ranks_assert(self, !o.agreement);
    ranks_ok(self, trib_free_comm(o.control_comm));
    return 0;
}

TEST(test_agree)
{
    ranks_pass(.size = 2, .fn = agree, .config = "transport=shm");
    ranks_pass(.size = 4, .fn = agree, .config = "transport=tcp");
}
