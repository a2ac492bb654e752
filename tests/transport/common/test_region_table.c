/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include <sys/mman.h>

#include "base/error.h"
#include "transport/common/region_table.h"
#include "transport/transport.h"

static struct trib_error err;

static struct trib_table_region *add(struct trib_region_table *table, void *ptr,
                                     size_t len)
{
    struct trib_table_region *region = NULL;

    assert_ok(trib_table_add(table, ptr, len, &err, &region));
    return region;
}

/* One too many is an error that says what to do, and no back-pressure. */
TEST(test_full)
{
    struct trib_region_table table = {.owner = "test"};
    struct trib_table_region *some = NULL, *none = NULL;
    char bytes[8];

    for (uint32_t i = 0; i < TRIB_TABLE_ROWS_MAX; i++) {
        struct trib_table_region *region = add(&table, bytes, sizeof(bytes));
        if (i == 4711)
            some = region;
    }
    assert_status(trib_table_add(&table, bytes, sizeof(bytes), &err, &none),
                  TRIB_ERR_OVERFLOW);
    assert_non_null(strstr(err.text, "test: 65536 regions are registered"));
    assert_non_null(strstr(err.text, "register larger pieces of memory"));
    assert_status(trib_table_alloc(&table, 4096, &err, &none), TRIB_ERR_OVERFLOW);
    uint32_t id = some->id;
    trib_table_remove(&table, some);
    assert_null(trib_table_place(&table, id, 0, 1));
    some = add(&table, bytes, sizeof(bytes)); /* in the same row */
    assert_int_not_equal(some->id, id);
    assert_null(trib_table_place(&table, id, 0, 1));
    assert_ptr_equal(trib_table_place(&table, some->id, 0, 8), bytes);
    trib_table_free(&table);
}

TEST(test_place)
{
    struct trib_region_table table = {.owner = "test"};
    uint8_t bytes[64];

    assert_null(trib_table_place(&table, 1, 0, 0));
    uint32_t id = add(&table, bytes, sizeof(bytes))->id;
    assert_ptr_equal(trib_table_place(&table, id, 10, 54), bytes + 10);
    assert_ptr_equal(trib_table_place(&table, id, 64, 0), bytes + 64);
    assert_null(trib_table_place(&table, id, 10, 55));
    assert_null(trib_table_place(&table, id, 65, 0));
    assert_null(trib_table_place(&table, id, 10, UINT64_MAX - 5));
    assert_null(trib_table_place(&table, id + 1, 0, 1));
    trib_table_free(&table);
}

/* An arena is large, and most of it is never touched. */
TEST(test_untouched)
{
    enum { LEN = 64 << 20 };
    struct trib_region_table table = {.owner = "test"};
    struct trib_table_region *region;
    static unsigned char there[LEN / 4096];
    size_t n = 0;

    assert_ok(trib_table_alloc(&table, LEN, &err, &region));
    assert_int_equal((uintptr_t)region->ptr % 4096, 0);
    assert_int_equal(mincore(region->ptr, LEN, there), 0);
    for (size_t i = 0; i < sizeof(there); i++)
        n += there[i] & 1;
    assert_int_equal(n, 0);
    assert_int_equal(region->ptr[LEN - 1], 0);
    trib_table_free(&table);
}

TEST(test_imports)
{
    struct trib_region_table table = {.owner = "test"};
    struct trib_table_stamp stamp = {.magic = 7, .key = 9}, other = {.magic = 7};
    struct trib_table_remote *remote[3];
    struct trib_blob blob;
    char bytes[8];

    trib_error_clear(&err);
    trib_table_export(add(&table, bytes, sizeof(bytes)), &stamp, &blob);
    assert_status(trib_table_import(&table, 3, &other, &blob, &err, &remote[0]),
                  TRIB_ERR_INVALID);
    assert_non_null(strstr(err.text, "peer 3: not an exported region of its test"));
    for (int i = 0; i < 3; i++) {
        assert_ok(trib_table_import(&table, 3, &stamp, &blob, &err, &remote[i]));
        assert_int_equal(remote[i]->len, sizeof(bytes));
    }
    trib_table_release(remote[1]);
    trib_table_release(remote[2]);
    trib_table_release(NULL);
    blob.len--;
    assert_status(trib_table_import(&table, 3, &stamp, &blob, &err, &remote[1]),
                  TRIB_ERR_INVALID);
    trib_table_free(&table);
}
