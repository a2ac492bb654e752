/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include <netinet/in.h>

#include "transport/ip.h"

static void test_four(void **state)
{
    const struct trib_ip ip = {{[10] = 0xff, 0xff, 10, 0, 200, 1}};
    struct sockaddr_storage out;
    char text[TRIB_IP_TEXT];

    (void)state;
    assert_string_equal(trib_ip_text(&ip, text), "10.0.200.1");
    assert_int_equal(trib_ip_socket(&ip, 7000, &out), sizeof(struct sockaddr_in));
    const struct sockaddr_in *four = (const void *)&out;
    assert_int_equal(four->sin_family, AF_INET);
    assert_int_equal(ntohs(four->sin_port), 7000);
    assert_int_equal(ntohl(four->sin_addr.s_addr), 0x0a00c801);
}

static void test_six(void **state)
{
    const struct trib_ip ip = {{0xfd, [15] = 7}};
    struct sockaddr_storage out;
    char text[TRIB_IP_TEXT];

    (void)state;
    assert_string_equal(trib_ip_text(&ip, text), "fd00::7");
    assert_int_equal(trib_ip_socket(&ip, 7000, &out), sizeof(struct sockaddr_in6));
    const struct sockaddr_in6 *six = (const void *)&out;
    assert_int_equal(six->sin6_family, AF_INET6);
    assert_int_equal(ntohs(six->sin6_port), 7000);
    assert_memory_equal(&six->sin6_addr, ip.bytes, 16);
}

/* Whatever this host has: none that leads nowhere, and never more than there is room.
 */
static void test_own(void **state)
{
    struct trib_ip ip[8];
    char text[TRIB_IP_TEXT];
    int n = trib_ip_own(ip, 8);

    (void)state;
    assert_in_range(n, 0, 8);
    for (int i = 0; i < n; i++) {
        trib_ip_text(&ip[i], text);
        assert_int_not_equal(strncmp(text, "127.", 4), 0);
        assert_string_not_equal(text, "::1");
        assert_int_not_equal(strncmp(text, "fe80:", 5), 0);
    }
    assert_int_equal(trib_ip_own(ip, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_four),
        cmocka_unit_test(test_six),
        cmocka_unit_test(test_own),
    };

    tribtest_deadline(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
