/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/ip.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>

static bool is_mapped(const struct trib_ip *ip)
{
    static const uint8_t prefix[12] = {[10] = 0xff, 0xff};

    return memcmp(ip->bytes, prefix, sizeof(prefix)) == 0;
}

static bool usable(const struct ifaddrs *i, int family, struct trib_ip *out)
{
    if (!i->ifa_addr || i->ifa_addr->sa_family != family || !(i->ifa_flags & IFF_UP) ||
        (i->ifa_flags & IFF_LOOPBACK))
        return false;
    memset(out, 0, sizeof(*out));
    if (family == AF_INET6) {
        const struct sockaddr_in6 *six = (const void *)i->ifa_addr;
        memcpy(out->bytes, &six->sin6_addr, 16);
        return !IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr);
    }
    const struct sockaddr_in *four = (const void *)i->ifa_addr;
    memset(out->bytes + 10, 0xff, 2);
    memcpy(out->bytes + 12, &four->sin_addr, 4);
    return true;
}

int trib_ip_own(struct trib_ip *out, int max)
{
    static const int families[] = {AF_INET, AF_INET6};
    struct ifaddrs *list = NULL;
    int n = 0;

    if (getifaddrs(&list) != 0)
        return 0;
    for (int f = 0; f < 2; f++) {
        for (const struct ifaddrs *i = list; i && n < max; i = i->ifa_next)
            n += usable(i, families[f], &out[n]);
    }
    freeifaddrs(list);
    return n;
}

socklen_t trib_ip_socket(const struct trib_ip *ip, uint16_t port,
                         struct sockaddr_storage *out)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};

    memset(out, 0, sizeof(*out));
    if (is_mapped(ip)) {
        memcpy(&four.sin_addr, ip->bytes + 12, 4);
        memcpy(out, &four, sizeof(four));
        return sizeof(four);
    }
    memcpy(&six.sin6_addr, ip->bytes, 16);
    memcpy(out, &six, sizeof(six));
    return sizeof(six);
}

char *trib_ip_text(const struct trib_ip *ip, char text[TRIB_IP_TEXT])
{
    if (is_mapped(ip))
        inet_ntop(AF_INET, ip->bytes + 12, text, TRIB_IP_TEXT);
    else
        inet_ntop(AF_INET6, ip->bytes, text, TRIB_IP_TEXT);
    return text;
}
