/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists of offered addresses: what was put in comes out, and no list from outside leads
 * beyond its bytes.
 */
#include "tests/harness/tribtest.h"

#include "base/error.h"
#include "transport/common/net_addr.h"

static void address(uint8_t ip[16], bool four, uint8_t number)
{
    memset(ip, 0, 16);
    if (four)
        memcpy(ip, trib_net_loopback, 12);
    else
        ip[0] = 0xfd;
    ip[14] = 9;
    ip[15] = number;
}

TEST(test_list)
{
    uint8_t ip[16], out[TRIB_NET_OFFERED + 1][16];
    struct trib_net_list list = {0};
    int n = 0;

    for (;; n++) {
        address(ip, n % 2 == 0, (uint8_t)n);
        if (!trib_net_list_put(&list, ip))
            break;
    }
    assert_true(n > 20 && n <= TRIB_NET_OFFERED);
    assert_int_equal(trib_net_list_get(&list, out, TRIB_NET_OFFERED + 1), n);
    for (int i = 0; i < n; i++) {
        address(ip, i % 2 == 0, (uint8_t)i);
        assert_memory_equal(out[i], ip, 16);
    }
    assert_int_equal(trib_net_list_get(&list, out, 3), 3);
}

TEST(test_nonsense)
{
    uint8_t out[TRIB_NET_OFFERED][16];
    struct trib_net_list list;

    for (int fill = 0; fill < 256; fill++) {
        memset(&list, fill, sizeof(list));
        list.n = 255;
        int n = trib_net_list_get(&list, out, TRIB_NET_OFFERED);
        assert_true(n >= 0 && n <= TRIB_NET_OFFERED);
        assert_true(n == 0 || fill == 4 || fill == 16);
    }
}

TEST(test_choice)
{
    struct trib_error err = {0};
    struct trib_net_ways ways;
    struct trib_net_list list;
    uint8_t out[TRIB_NET_OFFERED][16];

    assert_status(trib_net_ways_init(&ways, "test", "lo", NULL, &err), TRIB_OK);
    trib_net_offer(&ways, "test", NULL, &list);
    int n = trib_net_list_get(&list, out, TRIB_NET_OFFERED);
    assert_true(n > 0);
    for (int i = 0; i < n; i++)
        assert_true(trib_net_is_loopback(out[i]));
    assert_status(trib_net_ways_init(&ways, "test", "no-such-net0", NULL, &err),
                  TRIB_ERR_CONFIG);
}

/* A peer with no address that answers is not reached, and the words say where. */
TEST(test_reach)
{
    struct trib_net_list none = {0};
    const struct trib_net_place place = {.list = &none, .port = 1, .near = true};
    struct trib_net_ways ways;
    struct trib_net_found found;

    assert_status(trib_net_ways_init(&ways, "test", "", NULL, NULL), TRIB_OK);
    assert_int_equal(trib_net_reach(&ways, &place, &found), -1);
    assert_non_null(strstr(found.at, "127.0.0.1"));
    assert_non_null(found.cure);
}
