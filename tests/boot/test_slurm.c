/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include "boot/slurm.h"

TEST(test_first_host)
{
    static const struct {
        const char *list;
        const char *host;
    } cases[] = {
        {"localhost", "localhost"},
        {"node7,node9", "node7"},
        {"n[3-5,7],m", "n3"},
        {"n[7]", "n7"},
        {"n[008-011]", "n008"},
        {"rack[1-2]-n[05,06].example.org,x", "rack1-n05.example.org"},
        {"[10-12]", "10"},
    };
    char host[64];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_true(trib_slurm_first_host(cases[i].list, host, sizeof(host)));
        assert_string_equal(host, cases[i].host);
    }
}

TEST(test_no_list)
{
    static const char *const lists[] = {
        "",
        ",n1",
        "n[",
        "n[3",
        "n[]",
        "n[a-b]",
        "n[-3]",
        "n]",
        "n[3x]",
        "n 1",
        "n/1",
        "n:1",
        "n[1,2",
        "n[[1]]",
        "n1\n",
        "(null)",
        "n[1234567890123456789012345678901234567890]",
    };
    char host[16];

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        if (trib_slurm_first_host(lists[i], host, sizeof(host)))
            fail_msg("\"%s\" gave \"%s\"", lists[i], host);
}

/* A name that just fits, and one that is too long. */
TEST(test_room)
{
    char host[5];

    assert_true(trib_slurm_first_host("abcd", host, sizeof(host)));
    assert_true(trib_slurm_first_host("ab[12-13]", host, sizeof(host)));
    assert_string_equal(host, "ab12");
    assert_false(trib_slurm_first_host("abcde", host, sizeof(host)));
    assert_false(trib_slurm_first_host("ab[123]", host, sizeof(host)));
    assert_false(trib_slurm_first_host("ab[12]x", host, sizeof(host)));
}

TEST(test_ports)
{
    assert_int_equal(trib_slurm_port(77, 0), 20077);
    assert_int_equal(trib_slurm_port(77, 1), 20178);
    assert_int_equal(trib_slurm_port(19999, 0), 29999);
    for (unsigned step = 0; step < 32; step++) {
        int port = trib_slurm_port(4294967295u - step, step * 134217727u);
        assert_in_range(port, 20000, 29999);
    }
}
