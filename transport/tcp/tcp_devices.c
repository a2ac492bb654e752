/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp: list the network devices of this host.
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

#include "base/fd.h"
#include "base/text.h"
#include "transport/tcp/tcp.h"

static const int families[] = {AF_INET, AF_INET6};

/*
 * Return the driver's link rate in Mb/s; 0: unknown. Not read from /sys, which may show
 * another network namespace.
 */
static int link_rate(const char *name)
{
    struct ethtool_cmd link = {.cmd = ETHTOOL_GSET};
    struct ifreq request = {.ifr_data = (char *)&link};
    int fd = trib_fd_keep(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));

    if (fd < 0)
        return 0;
    snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
    int failed = ioctl(fd, SIOCETHTOOL, &request);
    close(fd);
    /* ethtool_cmd_speed shifts a signed number. */
    uint32_t mbps = failed ? 0 : (uint32_t)link.speed_hi << 16 | link.speed;
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

/* Lists all devices, also those beyond the TRIB_NET_OFFERED addresses that peers
 * receive. */
void trib_tcp_devices(const char *params, char *text, size_t bytes)
{
    (void)params;
    struct ifaddrs *list = NULL;
    uint8_t ip[16];
    bool fits = true;

    text[0] = '\0';
    if (getifaddrs(&list) != 0)
        return;
    for (int f = 0; f < 2; f++) {
        for (const struct ifaddrs *i = list; i && fits; i = i->ifa_next)
            fits = !trib_net_usable(i, families[f], ip) ||
                   append_device(i, ip, text, bytes);
    }
    freeifaddrs(list);
    if (!text[0])
        trib_text_append(text, bytes, "loopback only: ranks on this host");
}
