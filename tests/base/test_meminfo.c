/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/error.h"
#include "base/meminfo.h"
#include "tests/harness/fakeroot.h"

TEST(test_what_is_free)
{
    struct fakeroot root;
    uint64_t bytes = 1;

    fakeroot_make(&root);
    assert_false(trib_meminfo_free(root.path, &bytes));
    fakeroot_write(&root, "/proc/meminfo", "MemTotal:  900 kB\nMemAvailable:   30 kB");
    assert_true(trib_meminfo_free(root.path, &bytes));
    assert_int_equal(bytes, 30 << 10);
    fakeroot_write(&root, "/proc/meminfo",
                   "MemAvailable:   30 kB\nSwapCached: 7 kB\nSwapFree: 12 kB");
    assert_true(trib_meminfo_free(root.path, &bytes));
    assert_int_equal(bytes, 42 << 10);
    fakeroot_write(&root, "/proc/meminfo", "MemAvailable: kB");
    assert_false(trib_meminfo_free(root.path, &bytes));
    fakeroot_remove(&root);
}

TEST(test_check)
{
    struct trib_error err = {0};

    assert_status(trib_meminfo_check(4096, &err), TRIB_OK);
    assert_status(trib_meminfo_check((size_t)1 << 50, &err), TRIB_ERR_NO_MEMORY);
    assert_non_null(strstr(trib_error_text(&err), "cannot allocate 1048576.0 GiB"));
    assert_non_null(strstr(trib_error_text(&err), "GiB of memory free"));
}
