/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocking calls with counts: the arrays identify their plans, invalid calls are
 * refused, and two ranks that disagree on the length of a block are both named.
 */
#include "build-config.h"
#include "tests/harness/ranks.h"

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Each call has other arrays with the same total: a plan of one must not be used for
 * another. */
RANKS_TEST_ON(test_turns, ("shm", "tcp"), .size = 3)
{
    const size_t me = (size_t)self->rank;
    int32_t mine[8], all[32];

    for (int i = 0; i < 8; i++)
        mine[i] = 100 * self->rank + i;
    for (size_t turn = 0; turn < 200; turn++) {
        const size_t some = turn % 70 % 7;
        const size_t counts[3] = {some, 7 - some, 1 + turn / 70};
        const size_t offsets[3] = {20, turn % 3, 28};
        memset(all, -1, sizeof(all));
        ranks_ok(self,
                 trib_allgatherv(self->comm, mine, all, counts, offsets, TRIB_I32));
        for (size_t r = 0; r < 3; r++)
            for (size_t i = 0; i < counts[r]; i++)
                ranks_assert(self, all[offsets[r] + i] == (int)(100 * r + i));
        ranks_assert(self, all[31] == -1);
        ranks_ok(self, trib_reduce_scatterv(self->comm, all, mine, (size_t[]){0, 0, 0},
                                            NULL, TRIB_I32, TRIB_SUM));
    }
    ranks_assert(self, mine[7] == 100 * (int)me + 7);
    return 0;
}

RANKS_TEST(test_refusals, .size = 2)
{
    const size_t two[2] = {2, 3}, other[2] = {3, 2}, huge[2] = {SIZE_MAX, 1};
    float x[10] = {0}, y[10];
    trib_desc_t d = TRIB_DESC_INIT;
    trib_plan_t *plan;

    ranks_refused(self, trib_allgatherv(self->comm, x, y, NULL, NULL, TRIB_F32),
                  TRIB_ERR_INVALID, WORDS("allgather", "counts"));
    ranks_refused(self,
                  trib_alltoallv(self->comm, x, two, NULL, y, NULL, NULL, TRIB_F32),
                  TRIB_ERR_INVALID, WORDS("alltoall", "counts"));
    ranks_refused(self, trib_allgatherv(self->comm, x, y, huge, NULL, TRIB_F32),
                  TRIB_ERR_OVERFLOW, WORDS("recv"));
    ranks_refused(self, trib_allgatherv(self->comm, x + 1, x, two, NULL, TRIB_F32),
                  TRIB_ERR_OVERLAP, WORDS("overlap"));
    if (self->rank == 0) /* the lengths of its block for itself differ */
        ranks_refused(
            self, trib_alltoallv(self->comm, x, two, NULL, y, other, NULL, TRIB_F32),
            TRIB_ERR_INVALID, WORDS("itself", "2", "3"));
    ranks_refused(self, trib_scan(self->comm, x, y, 4, TRIB_F32, TRIB_MEAN),
                  TRIB_ERR_UNSUPPORTED, WORDS("mean", "scan"));
    ranks_assert(self, trib_gatherv(NULL, x, 1, y, two, NULL, TRIB_F32, 0) ==
                           TRIB_ERR_INVALID);
    d.send_counts = two;
    ranks_refused(self, trib_plan_create(self->comm, TRIB_ALLGATHER, &d, &plan),
                  TRIB_ERR_INVALID, WORDS("allgather", "send_counts"));
    d.send_counts = NULL;
    d.recv_counts = two;
    d.codec = "bf16";
    ranks_refused(self, trib_plan_create(self->comm, TRIB_ALLGATHER, &d, &plan),
                  TRIB_ERR_UNSUPPORTED, WORDS("bf16", "counts"));
    d.codec = NULL;
    d.algorithm = "tree";
    ranks_refused(self, trib_plan_create(self->comm, TRIB_GATHER, &d, &plan),
                  TRIB_ERR_UNSUPPORTED, WORDS("tree", "gather"));
    return 0;
}

struct differing {
    size_t sent, awaited;
};

/* Rank 1 sends rank 0 another number of elements than rank 0 expects. */
static int differ(struct ranks_self *self)
{
    const struct differing *d = self->arg;
    const size_t most = 40000, other = 3;
    const bool odd = self->rank == 1;
    size_t send[2] = {odd ? d->sent : other, other};
    size_t recv[2] = {other, odd ? other : d->awaited};
    float *x = calloc(2 * most, sizeof(*x)), *y = calloc(2 * most, sizeof(*y));
    char sent[32], awaited[32];

    snprintf(sent, sizeof(sent), "%zu", d->sent);
    snprintf(awaited, sizeof(awaited), "%zu", d->awaited);
    ranks_assert(self, x && y);
    trib_status_t st =
        trib_alltoallv(self->comm, x, send, NULL, y, recv, NULL, TRIB_F32);
    if (st == TRIB_OK) /* this rank had all data: the next call reports the error */
        st = trib_barrier(self->comm);
    ranks_refused(self, st, TRIB_ERR_MISMATCH,
                  WORDS("alltoall", "rank 1", "rank 0", sent, awaited));
    free(x);
    free(y);
    return 0;
}

TEST_ON(test_mismatch, "shm", "tcp", IF_UCX("ucx"))
{
    static const struct differing pairs[] = {
        {5, 4},         {4, 5},         {0, 7},     {7, 0},     {40000, 20000},
        {16384, 32768}, {32768, 16384}, {3, 40000}, {40000, 3},
    };

    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        ranks_pass(.size = 2, .fn = differ, .arg = (void *)(uintptr_t)&pairs[i],
                   .config = *state, .noisy = true);
}
