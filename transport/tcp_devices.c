/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp: by which addresses others reach this host, and what devices it would use.
 */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <limits.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/text.h"
#include "transport/tcp.h"

static const int families[] = {AF_INET, AF_INET6};

/* An address of this host as peers may use it, mapped into IPv6; false: not one. */
static bool usable_address(const struct ifaddrs *i, int family, uint8_t ip_out[16])
{
    if (!i->ifa_addr || i->ifa_addr->sa_family != family || !(i->ifa_flags & IFF_UP) ||
        (i->ifa_flags & IFF_LOOPBACK))
        return false;
    if (family == AF_INET6) {
        const struct in6_addr *a = &((struct sockaddr_in6 *)i->ifa_addr)->sin6_addr;
        memcpy(ip_out, a, 16);
        return !IN6_IS_ADDR_LINKLOCAL(a);
    }
    memset(ip_out, 0, 10);
    memset(ip_out + 10, 0xff, 2);
    memcpy(ip_out + 12, &((struct sockaddr_in *)i->ifa_addr)->sin_addr, 4);
    return true;
}

uint16_t trib_socket_own_addresses(uint8_t ip_out[TCP_ADDRESSES][16])
{
    struct ifaddrs *list = NULL;
    uint16_t n = 0;

    if (getifaddrs(&list) != 0)
        return 0;
    for (int f = 0; f < 2; f++) {
        for (const struct ifaddrs *i = list; i && n < TCP_ADDRESSES; i = i->ifa_next)
            n += usable_address(i, families[f], ip_out[n]);
    }
    freeifaddrs(list);
    return n;
}

/*
 * Mb/s as the driver says; 0: it does not. Not out of /sys, which may show the network
 * of another name space.
 */
static int link_rate(const char *name)
{
    struct ethtool_cmd link = {.cmd = ETHTOOL_GSET};
    struct ifreq request = {.ifr_data = (char *)&link};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return 0;
    snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
    int failed = ioctl(fd, SIOCETHTOOL, &request);
    close(fd);
    uint32_t mbps = failed ? 0 : ethtool_cmd_speed(&link);
    return mbps > INT_MAX ? 0 : (int)mbps;
}

static bool append_device(const struct ifaddrs *i, const uint8_t ip[16], char *text,
                          size_t bytes)
{
    bool four = i->ifa_addr->sa_family == AF_INET;
    char address[INET6_ADDRSTRLEN] = "?";
    char rate[32] = "";
    int mbps = link_rate(i->ifa_name);

    inet_ntop(four ? AF_INET : AF_INET6, four ? ip + 12 : ip, address, sizeof(address));
    if (mbps >= 1000)
        snprintf(rate, sizeof(rate), ", %g Gb/s", mbps / 1e3);
    else if (mbps > 0)
        snprintf(rate, sizeof(rate), ", %d Mb/s", mbps);
    return trib_text_append(text, bytes, "%s%s (%s%s)", text[0] ? ", " : "",
                            i->ifa_name, address, rate);
}

/* Also those beyond TCP_ADDRESSES, of which peers do not hear: they are there. */
void trib_socket_devices(char *text, size_t bytes)
{
    struct ifaddrs *list = NULL;
    uint8_t ip[16];
    bool fits = true;

    text[0] = '\0';
    if (getifaddrs(&list) != 0)
        return;
    for (int f = 0; f < 2; f++) {
        for (const struct ifaddrs *i = list; i && fits; i = i->ifa_next)
            fits = !usable_address(i, families[f], ip) ||
                   append_device(i, ip, text, bytes);
    }
    freeifaddrs(list);
    if (!text[0])
        trib_text_append(text, bytes, "loopback alone: this host's ranks");
}
