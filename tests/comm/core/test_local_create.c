/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib_local_create reports the reason of an error through trib_last_error(NULL).
 */
#include "tests/harness/tribtest.h"


TEST(test_sizes)
{
    trib_local_t *local = NULL;

    assert_status(trib_local_create(2, &local), TRIB_OK);
    assert_true(strlen(trib_local_root(local)) > 0);
    trib_local_destroy(local);
    for (int ranks = -1; ranks <= 0; ranks++) {
        local = NULL;
        assert_true(trib_local_create(ranks, &local) != TRIB_OK);
        assert_null(local);
        assert_true(strlen(trib_last_error(NULL)) > 0);
    }
}
