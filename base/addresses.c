/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/addresses.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"

#define LINK_AT 4 /* offset of the interface index in a link-local address */

const uint8_t trib_net_loopback[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};

bool trib_net_is_v4(const uint8_t ip[16])
{
    return memcmp(ip, trib_net_loopback, 12) == 0;
}

bool trib_net_is_link_local(const uint8_t ip[16])
{
    return ip[0] == 0xfe && (ip[1] & 0xc0) == 0x80;
}

bool trib_net_is_loopback(const uint8_t ip[16])
{
    static const uint8_t six[16] = {[15] = 1};

    return memcmp(ip, trib_net_loopback, 13) == 0 || memcmp(ip, six, 16) == 0;
}

bool trib_net_is_set(const uint8_t ip[16])
{
    static const uint8_t none[16] = {0};

    return memcmp(ip, none, 16) != 0;
}

static uint32_t link_of(const uint8_t ip[16])
{
    uint32_t link;

    memcpy(&link, ip + LINK_AT, sizeof(link));
    return trib_net_is_link_local(ip) ? link : 0;
}

void trib_net_set_link(uint8_t ip[16], uint32_t link)
{
    if (trib_net_is_link_local(ip))
        memcpy(ip + LINK_AT, &link, sizeof(link));
}

socklen_t trib_net_sockaddr(const uint8_t ip[16], uint16_t port, int family,
                            struct sockaddr_storage *out)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};
    uint8_t wire[16];

    memset(out, 0, sizeof(*out));
    if (family == AF_INET) {
        memcpy(&four.sin_addr, ip + 12, 4);
        memcpy(out, &four, sizeof(four));
        return sizeof(four);
    }
    memcpy(wire, ip, 16);
    six.sin6_scope_id = link_of(ip);
    trib_net_set_link(wire, 0);
    memcpy(&six.sin6_addr, wire, 16);
    memcpy(out, &six, sizeof(six));
    return sizeof(six);
}

void trib_net_ip(const struct sockaddr *from, uint8_t ip_out[16])
{
    const struct sockaddr_in *four = (const void *)from;
    const struct sockaddr_in6 *six = (const void *)from;

    memcpy(ip_out, trib_net_loopback, 12);
    if (from->sa_family == AF_INET) {
        memcpy(ip_out + 12, &four->sin_addr, 4);
        return;
    }
    memcpy(ip_out, &six->sin6_addr, 16);
    trib_net_set_link(ip_out, six->sin6_scope_id);
}

uint16_t trib_net_port(const struct sockaddr *from)
{
    return ntohs(from->sa_family == AF_INET6
                     ? ((const struct sockaddr_in6 *)(const void *)from)->sin6_port
                     : ((const struct sockaddr_in *)(const void *)from)->sin_port);
}

void trib_net_text(const uint8_t ip[16], char *text, unsigned bytes)
{
    bool four = trib_net_is_v4(ip);
    uint8_t wire[16];
    char name[IF_NAMESIZE];
    uint32_t link = link_of(ip);

    memcpy(wire, ip, 16);
    trib_net_set_link(wire, 0);
    text[0] = '\0';
    (void)inet_ntop(four ? AF_INET : AF_INET6, four ? wire + 12 : wire, text, bytes);
    if (link && if_indextoname(link, name))
        trib_text_append(text, bytes, "%%%s", name);
}

int trib_net_common_bits(const uint8_t a[16], const uint8_t b[16])
{
    for (int i = 0; i < 16; i++) {
        if (a[i] != b[i])
            return 8 * i + __builtin_clz((unsigned)(a[i] ^ b[i]) << 24);
    }
    return 128;
}

/* This host ------------------------------------------------------------------------ */

bool trib_net_usable(const struct ifaddrs *i, int family, uint8_t ip_out[16])
{
    if (!i->ifa_addr || i->ifa_addr->sa_family != family || !(i->ifa_flags & IFF_UP) ||
        (i->ifa_flags & IFF_LOOPBACK))
        return false;
    trib_net_ip(i->ifa_addr, ip_out);
    return !trib_net_is_link_local(ip_out);
}

static int ones(const struct sockaddr *mask, int family)
{
    uint8_t bytes[16];
    struct sockaddr_storage as = {0};
    static const uint8_t all[16] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

    if (!mask)
        return 128;
    memcpy(&as, mask,
           family == AF_INET ? sizeof(struct sockaddr_in)
                             : sizeof(struct sockaddr_in6));
    memcpy(bytes, all, sizeof(bytes));
    if (family == AF_INET)
        memcpy(bytes + 12, &((struct sockaddr_in *)&as)->sin_addr, 4);
    else
        memcpy(bytes, &((struct sockaddr_in6 *)&as)->sin6_addr, 16);
    return trib_net_common_bits(bytes, all);
}

/* Return the pass of trib_own_ips, of four, that lists an address; -1: none. */
static int pass_of(const struct ifaddrs *i)
{
    uint8_t ip[16];

    if (!i->ifa_addr || !(i->ifa_flags & IFF_UP) ||
        (i->ifa_addr->sa_family != AF_INET && i->ifa_addr->sa_family != AF_INET6))
        return -1;
    trib_net_ip(i->ifa_addr, ip);
    if (trib_net_is_loopback(ip))
        return 3;
    if (trib_net_is_link_local(ip))
        return 2;
    return i->ifa_addr->sa_family == AF_INET ? 0 : 1;
}

int trib_own_ips(struct trib_own_ip *out, int max)
{
    struct ifaddrs *list = NULL;
    int n = 0;

    if (getifaddrs(&list) != 0)
        return 0;
    for (int pass = 0; pass < 4; pass++) {
        for (const struct ifaddrs *i = list; i && n < max; i = i->ifa_next) {
            if (pass_of(i) != pass)
                continue;
            struct trib_own_ip *own = &out[n++];
            trib_net_ip(i->ifa_addr, own->ip);
            own->prefix = (uint8_t)ones(i->ifa_netmask, i->ifa_addr->sa_family);
            own->link = if_nametoindex(i->ifa_name);
            snprintf(own->name, sizeof(own->name), "%s", i->ifa_name);
        }
    }
    freeifaddrs(list);
    return n;
}

int trib_net_own(uint8_t (*ip_out)[16], int max)
{
    static const int families[] = {AF_INET, AF_INET6};
    struct ifaddrs *list = NULL;
    int n = 0;

    if (getifaddrs(&list) != 0)
        return 0;
    for (int f = 0; f < 2; f++) {
        for (const struct ifaddrs *i = list; i && n < max; i = i->ifa_next)
            n += trib_net_usable(i, families[f], ip_out[n]);
    }
    freeifaddrs(list);
    return n;
}

bool trib_net_loopback_up(void)
{
    struct ifaddrs *list = NULL;
    bool up = false, seen = false;

    if (getifaddrs(&list) != 0)
        return true;
    for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
        seen |= (i->ifa_flags & IFF_LOOPBACK) != 0;
        up |= (i->ifa_flags & IFF_LOOPBACK) && (i->ifa_flags & IFF_UP);
    }
    freeifaddrs(list);
    return up || !seen;
}

/* Return the kernel's round-trip time; 0: unknown. Before any data is sent this is the
 * handshake's, which no process delays. */
static uint32_t round_trip_us(int fd)
{
    struct tcp_info info = {0};
    socklen_t len = sizeof(info);

    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 ? info.tcpi_rtt : 0;
}

void trib_net_met_by(int fd, struct trib_net_met *out)
{
    struct sockaddr_storage own, root;
    socklen_t own_len = sizeof(own), root_len = sizeof(root);

    memset(out, 0, sizeof(*out));
    if (getsockname(fd, (struct sockaddr *)&own, &own_len) != 0 ||
        getpeername(fd, (struct sockaddr *)&root, &root_len) != 0 ||
        (own.ss_family != AF_INET && own.ss_family != AF_INET6))
        return;
    trib_net_ip((struct sockaddr *)&own, out->own);
    trib_net_ip((struct sockaddr *)&root, out->root);
    out->round_trip_us = round_trip_us(fd);
}

/* Network selection
 * ----------------------------------------------------------------- */

/* Parse "10.0.0.0/8", "fd77::/64" or a single address. */
static bool read_network(const char *text, uint8_t ip[16], int *prefix)
{
    char address[INET6_ADDRSTRLEN];
    const char *slash = strchr(text, '/');
    size_t len = slash ? (size_t)(slash - text) : strlen(text);
    bool four = !memchr(text, ':', len);
    char *end = NULL;

    if (len >= sizeof(address))
        return false;
    memcpy(address, text, len);
    address[len] = '\0';
    memcpy(ip, trib_net_loopback, 12);
    if (inet_pton(four ? AF_INET : AF_INET6, address, four ? ip + 12 : ip) != 1)
        return false;
    int bits = four ? 32 : 128;
    long given = slash ? strtol(slash + 1, &end, 10) : bits;
    if (slash && (slash[1] < '0' || slash[1] > '9' || *end || given > bits))
        return false;
    *prefix = (int)given + (four ? 96 : 0);
    return true;
}

static bool is_link_name(const char *text)
{
    size_t len = strlen(text);

    return len > 0 && len < IF_NAMESIZE && !strpbrk(text, "/: \t") &&
           strspn(text, "0123456789.") != len;
}

bool trib_net_chosen(const struct trib_net_choice *choice,
                     const struct trib_own_ip *own)
{
    uint8_t wire[16];

    memcpy(wire, own->ip, sizeof(wire));
    trib_net_set_link(wire, 0);
    for (int i = 0; i < choice->n; i++) {
        if (choice->of[i].name[0] ? strcmp(choice->of[i].name, own->name) == 0
                                  : trib_net_common_bits(choice->of[i].ip, wire) >=
                                        choice->of[i].prefix)
            return true;
    }
    return choice->n == 0;
}

/* Format "eth0 10.0.0.1/24, ib0 10.1.0.1/16". */
static void list_networks(const struct trib_own_ip *own, int n, char *text,
                          size_t bytes)
{
    char ip[TRIB_IP_TEXT_BYTES];

    text[0] = '\0';
    for (int i = 0; i < n; i++) {
        uint8_t wire[16];
        memcpy(wire, own[i].ip, sizeof(wire));
        trib_net_set_link(wire, 0);
        trib_net_text(wire, ip, sizeof(ip));
        if (!trib_text_append(text, bytes, "%s%s %s/%d", text[0] ? ", " : "",
                              own[i].name, ip,
                              own[i].prefix - (trib_net_is_v4(wire) ? 96 : 0)))
            break;
    }
}

static trib_status_t none_matches(const char *owner,
                                  const struct trib_net_choice *choice,
                                  struct trib_error *err)
{
    struct trib_own_ip own[TRIB_OWN_IPS_MAX];
    char has[320];
    int n = trib_own_ips(own, TRIB_OWN_IPS_MAX);

    for (int i = 0; i < n; i++) {
        if (trib_net_chosen(choice, &own[i]))
            return TRIB_OK;
    }
    list_networks(own, n, has, sizeof(has));
    return trib_fail(err, TRIB_ERR_CONFIG,
                     "%s: no address of this host is of net=%s; it has %s: name one of "
                     "these networks or interfaces, or leave net out",
                     owner, choice->text, has[0] ? has : "none that is up");
}

trib_status_t trib_net_choose(const char *owner, const char *text,
                              struct trib_net_choice *out, struct trib_error *err)
{
    char item[INET6_ADDRSTRLEN + 8];

    memset(out, 0, sizeof(*out));
    snprintf(out->text, sizeof(out->text), "%s", text);
    while (*text) {
        size_t len = strcspn(text, ",");
        if (out->n == TRIB_NET_CHOICES)
            return trib_fail(err, TRIB_ERR_CONFIG,
                             "%s: net=%s names more than %d networks", owner, out->text,
                             TRIB_NET_CHOICES);
        snprintf(item, sizeof(item), "%.*s", (int)len, text);
        bool network = len < sizeof(item) &&
                       read_network(item, out->of[out->n].ip, &out->of[out->n].prefix);
        if (!network && (len >= sizeof(item) || !is_link_name(item)))
            return trib_fail(err, TRIB_ERR_CONFIG,
                             "%s: \"%.*s\" in net=%s is neither a network, as in "
                             "10.0.0.0/8, nor an interface, as in eth0",
                             owner, (int)len, text, out->text);
        if (!network)
            memcpy(out->of[out->n].name, item, len + 1);
        out->n++;
        text += len + (text[len] == ',');
    }
    return out->n ? none_matches(owner, out, err) : TRIB_OK;
}
