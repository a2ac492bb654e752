/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sparse all-reduces that send partial sums, and those in regions, compared with a
 * plain sum.
 */
#include <math.h>

#include "tests/comm/sparse_scene.h"

/* Sent partial sums: every number of ranks up to 9, unions that fill up, unions of
 * disjoint indices, and no pairs. */
TEST_ON(test_merges, "shm", "tcp")
{
    static const size_t lengths[] = {1, 131, 4097, 20011};
    static const uint32_t one_in[] = {1, 3, 50, 50000};
    static const trib_dtype_t dtypes[] = {TRIB_F32, TRIB_BF16, TRIB_I8,     TRIB_F16,
                                          TRIB_F64, TRIB_U16,  TRIB_F8_E5M2};

    for (int k = 0; k < 18; k += strcmp(*state, "transport=shm") ? 2 : 1) {
        const int size = 1 + (k + k / 9) % 9;
        const struct scene s = {.length = lengths[k % 4],
                                .dtype = dtypes[k % 7],
                                .op = k / 2 % 2 ? TRIB_MEAN : TRIB_SUM,
                                .one_in = one_in[(k + k / 4) % 4],
                                .most = k % 3 == 1,
                                .apart = k % 5 == 2 ? size : 0,
                                .algorithm = "doubling"};
        ranks_pass(.size = size, .fn = sums, .arg = (void *)(uintptr_t)&s,
                   .config = *state);
    }
}

/* Chunks of about equal numbers of pairs, computed in every start: also for unions that
 * fill up, and if nearly all pairs are in one place. */
TEST_ON(test_regions, "shm", "tcp")
{
    static const uint32_t one_in[] = {997, 1, 300, 7};
    static const trib_dtype_t dtypes[] = {TRIB_F32, TRIB_BF16, TRIB_F64, TRIB_I16};
    static const char *const algorithms[] = {"direct", "doubling", NULL, "flat"};
    char config[80];

    snprintf(config, sizeof(config), "%s;chunk=4096", (const char *)*state);
    for (int k = 0; k < 8; k++) {
        const struct scene s = {.length = 150001,
                                .dtype = dtypes[(k + k / 4) % 4],
                                .op = k % 3 ? TRIB_SUM : TRIB_MEAN,
                                .one_in = one_in[k % 4],
                                .most = k % 2 == 0,
                                .skewed = k / 2 % 2,
                                .regions = true,
                                .algorithm = algorithms[(k + k / 4) % 4]};
        ranks_pass(.size = 2 + k % 4, .fn = sums, .arg = (void *)(uintptr_t)&s,
                   .config = config);
    }
}

static float rough(int rank, size_t i)
{
    const uint64_t x = oracle_mix((uint64_t)rank << 32 ^ i);

    return ((float)(x % 2000001) - 1e6f) / (float)(1 + x / 2000001 % 9999);
}

/* Sums that round, and sums of different NaNs of each rank, have the same bits on all
 * ranks; the former are correct. */
static int rounds_alike(struct ranks_self *self)
{
    enum { N = 3001 };
    trib_sparse_desc_t d = TRIB_SPARSE_DESC_INIT;
    const struct scene s = {.length = N, .dtype = TRIB_F32};
    uint64_t indices[N];
    float values[N];
    trib_plan_t *plan;
    struct memory m;
    size_t n = 0;

    open_memory(self, &m, N);
    for (size_t i = 0; i < N - 1; i++)
        if (oracle_mix((uint64_t)self->rank << 40 ^ i) % 3) {
            indices[n] = i;
            values[n++] = rough(self->rank, i);
        }
    const uint32_t nan = 0x7fc00000 + (uint32_t)self->rank;
    indices[n] = N - 1;
    memcpy(&values[n++], &nan, sizeof(nan));
    d.length = N;
    d.algorithm = "doubling";
    ranks_ok(self, trib_plan_sparse(self->comm, &d, &plan));
    ranks_ok(self, trib_plan_start_sparse(plan, indices, values, n));
    ranks_ok(self, trib_plan_wait(plan));
    ranks_ok(self, trib_plan_sparse_dense(plan, m.dense));
    compare(self, &s, &m);
    for (size_t i = 0; i < N - 1; i++) {
        double sum = 0, all = 0;
        for (int r = 0; r < self->size; r++)
            if (oracle_mix((uint64_t)r << 40 ^ i) % 3) {
                const double v = (double)rough(r, i);
                sum += v;
                all += fabs(v);
            }
        const double got = (double)((const float *)(const void *)m.dense)[i];
        ranks_assert(self, fabs(got - sum) <= all * self->size * 6e-8);
    }
    ranks_ok(self, trib_plan_free(plan));
    close_memory(&m);
    return 0;
}

TEST_ON(test_rounds_alike, "shm")
{
    ranks_pass(.size = 7, .fn = rounds_alike, .config = *state);
    ranks_pass(.size = 8, .fn = rounds_alike, .config = *state);
}
