/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hashes of state that ranks should share: the ranks that differ are named, the same on
 * all ranks, for any set of them.
 */
#include "tests/harness/tribtest.h"

#include <tributary/elastic.h>

#include "build-config.h"
#include "tests/harness/ranks.h"

#define SIZE 5

static void check(struct ranks_self *self, const uint64_t hashes[SIZE],
                  const int *expected, int n_expected)
{
    int ranks[SIZE] = {-1, -1, -1, -1, -1}, n = -1;

    ranks_ok(self, trib_comm_same(self->comm, hashes[self->rank], ranks, SIZE, &n));
    ranks_assert(self, n == n_expected);
    for (int i = 0; i < n; i++)
        ranks_assert(self, ranks[i] == expected[i]);
    ranks_ok(self, trib_comm_same(self->comm, hashes[self->rank], NULL, 0, &n));
    ranks_assert(self, n == n_expected);
}

RANKS_TEST_ON(test_compares, ("shm", "tcp", IF_UCX("ucx")), .size = SIZE)
{
    int n;

    check(self, (uint64_t[]){7, 7, 7, 7, 7}, NULL, 0);
    check(self, (uint64_t[]){7, 7, 7, 6, 7}, (int[]){3}, 1);
    check(self, (uint64_t[]){1, 7, 7, 7, 7}, (int[]){0}, 1);
    check(self, (uint64_t[]){9, 7, 7, 7, 1}, (int[]){0, 4}, 2);
    /* Two groups of equal size: the lowest rank is right. */
    check(self, (uint64_t[]){9, 9, 7, 7, 1}, (int[]){2, 3, 4}, 3);
    check(self, (uint64_t[]){3, 9, 7, 2, 1}, (int[]){1, 2, 3, 4}, 4);
    check(self, (uint64_t[]){UINT64_MAX, 0, 0, UINT64_MAX, UINT64_MAX}, (int[]){1, 2},
          2);
    ranks_assert(self, trib_comm_same(self->comm, 0, NULL, 1, &n) == TRIB_ERR_INVALID);
    ranks_assert(self, trib_comm_same(self->comm, 0, &n, -1, &n) == TRIB_ERR_INVALID);
    ranks_assert(self, trib_comm_same(self->comm, 0, &n, 1, NULL) == TRIB_ERR_INVALID);
    ranks_assert(self, trib_comm_same(NULL, 0, &n, 1, &n) == TRIB_ERR_INVALID);
    return 0;
}

/* A hash depends on each byte, on the length, and on earlier data. */
TEST(test_hash)
{
    uint8_t x[100] = {0};
    const uint64_t none = trib_hash(x, 0, 0), zeros = trib_hash(x, 100, 0);

    assert_true(none != zeros && trib_hash(x, 99, 0) != zeros);
    assert_true(trib_hash(x, 100, 0) == zeros && trib_hash(x, 100, 1) != zeros);
    assert_true(trib_hash(NULL, 0, 0) == none);
    for (size_t i = 0; i < sizeof(x); i++) {
        x[i] = 1;
        assert_true(trib_hash(x, 100, 0) != zeros);
        x[i] = 0;
    }
}
