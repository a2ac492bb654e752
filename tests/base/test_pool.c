/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include "base/cpu.h"
#include "base/pool.h"

static void test_gives_each_object_once(void **state)
{
    struct trib_pool pool;
    void *objects[5];

    (void)state;
    assert_status(trib_pool_create(&pool, 5, 24), TRIB_OK);
    for (int i = 0; i < 5; i++) {
        objects[i] = trib_pool_get(&pool);
        assert_non_null(objects[i]);
        assert_int_equal((uintptr_t)objects[i] % TRIB_CACHE_LINE, 0);
        assert_int_equal(trib_pool_index(&pool, objects[i]), i);
        assert_ptr_equal(trib_pool_at(&pool, (uint32_t)i), objects[i]);
        memset(objects[i], 0xff, 24);
    }
    assert_null(trib_pool_get(&pool));
    trib_pool_put(&pool, objects[1]);
    trib_pool_put(&pool, objects[3]);
    assert_ptr_equal(trib_pool_get(&pool), objects[3]); /* last in, first out */
    assert_ptr_equal(trib_pool_get(&pool), objects[1]);
    assert_null(trib_pool_get(&pool));
    trib_pool_destroy(&pool);
}

static void test_starts_zero(void **state)
{
    struct trib_pool pool;

    (void)state;
    assert_status(trib_pool_create(&pool, 2, 100), TRIB_OK);
    const char *object = trib_pool_get(&pool);
    for (int i = 0; i < 100; i++)
        assert_int_equal(object[i], 0);
    trib_pool_destroy(&pool);
}

static void test_odd_sizes(void **state)
{
    struct trib_pool pool;

    (void)state;
    assert_status(trib_pool_create(&pool, 0, 8), TRIB_OK);
    assert_null(trib_pool_get(&pool));
    trib_pool_destroy(&pool);
    assert_status(trib_pool_create(&pool, 2, 0), TRIB_OK);
    assert_ptr_not_equal(trib_pool_get(&pool), trib_pool_get(&pool));
    trib_pool_destroy(&pool);
    assert_status(trib_pool_create(&pool, 2, SIZE_MAX), TRIB_ERR_OVERFLOW);
    assert_status(trib_pool_create(&pool, UINT32_MAX, SIZE_MAX / 4), TRIB_ERR_OVERFLOW);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gives_each_object_once),
        cmocka_unit_test(test_starts_zero),
        cmocka_unit_test(test_odd_sizes),
    };

    tribtest_deadline(180);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
