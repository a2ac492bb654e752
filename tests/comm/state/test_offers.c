/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All ranks receive the offers of all, the rank that failed, and the fact that no rank
 * passes an input.
 */
#include "comm/state/offers.h"

#include <stdlib.h>

#include "comm/core/communicator.h"
#include "tests/harness/ranks.h"
#include "tests/harness/tribtest.h"

struct offer {
    struct trib_offer head;
    int rank;
};

/* Return the status of trib_offers_exchange; *first_out is -1 unless all agreed. */
static trib_status_t exchange(struct ranks_self *self, trib_status_t status, bool gives,
                              int *first_out)
{
    struct trib_offers o = {.comm = self->comm,
                            .call = "test",
                            .what = "an old one",
                            .bytes = sizeof(struct offer)};
    const struct offer mine = {.head = {status, gives}, .rank = self->rank};

    if (status != TRIB_OK)
        (void)trib_comm_fail(self->comm, status, "my own message");
    const trib_status_t st = trib_offers_exchange(&o, &mine);
    const struct offer *all = o.all;
    for (int r = 0; st == TRIB_OK && r < self->size; r++)
        ranks_assert(self, all[r].rank == r);
    *first_out = st == TRIB_OK ? o.first : -1;
    free(o.all);
    return st;
}

RANKS_TEST_ON(test_offers, ("shm", "tcp"), .size = 4)
{
    const int r = self->rank;
    int first;

    ranks_ok(self, exchange(self, TRIB_OK, true, &first));
    ranks_assert(self, first == 0);
    ranks_ok(self, exchange(self, TRIB_OK, r >= 2, &first));
    ranks_assert(self, first == 2);
    ranks_refused(self, exchange(self, TRIB_OK, false, &first), TRIB_ERR_INVALID,
                  (const char *const[]){"test: no rank has passed an old one", NULL});
    ranks_refused(self, exchange(self, r == 3 ? TRIB_ERR_BUSY : TRIB_OK, true, &first),
                  TRIB_ERR_BUSY,
                  (const char *const[]){r == 3 ? "my own message"
                                               : "test: rank 3 failed; its own",
                                        NULL});
    return 0;
}
