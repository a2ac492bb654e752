/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Exchange control data of all ranks, and of one rank, with any algorithm and codec.
 */
#include "comm/core/communicator.h"
#include "comm/plan/exchange.h"
#include "tests/harness/ranks.h"

enum { BYTES = 5 };

static int exchanges(struct ranks_self *self)
{
    const size_t size = (size_t)self->size;
    char mine[BYTES], all[RANKS_MAX * BYTES], one[BYTES];

    memset(mine, 'a' + self->rank, BYTES);
    ranks_ok(self, trib_comm_exchange(self->comm, TRIB_ALLGATHER, mine, BYTES, all));
    for (size_t i = 0; i < size * BYTES; i++)
        ranks_assert(self, all[i] == (char)('a' + (int)(i / BYTES)));
    for (int root = 0; root < self->size; root++) {
        memcpy(one, mine, BYTES);
        ranks_ok(self, trib_comm_broadcast(self->comm, root, BYTES, one));
        for (size_t i = 0; i < BYTES; i++)
            ranks_assert(self, one[i] == (char)('a' + root));
    }
    ranks_assert(self, self->comm->n_plans == 0);
    return 0;
}

TEST(test_exchanges)
{
    static const char *const configs[] = {"algorithm=ring", "codec=f16"};

    for (int i = 0; i < 2; i++)
        for (int size = 1; size <= 3; size++)
            ranks_pass(.size = size, .fn = exchanges, .config = configs[i]);
}
