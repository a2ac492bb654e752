/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Restrict ports to the chosen networks. A socket listens at all addresses of the host,
 * so that one port number serves several networks and loopback. A filter on the socket
 * makes the kernel drop packets to any other address before this process sees them.
 */
#include <assert.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "transport/common/net_addr.h"

enum {
    MOST = 64, /* addresses; further ones are left out */
    AT_VERSION = 0, /* offsets into the IP header */
    AT_DESTINATION_4 = 16,
    AT_DESTINATION_6 = 24,
    KEEP = 0x7fffffff,
};

struct fence {
    struct sock_filter code[16 + MOST * 9];
    unsigned short n;
};

static void put(struct fence *f, uint16_t code, uint32_t k, uint8_t yes, uint8_t no)
{
    assert(f->n < sizeof(f->code) / sizeof(f->code[0]));
    f->code[f->n++] = (struct sock_filter){.code = code, .jt = yes, .jf = no, .k = k};
}

static void load(struct fence *f, uint16_t size, int at)
{
    put(f, (uint16_t)(BPF_LD | size | BPF_ABS), (uint32_t)(SKF_NET_OFF + at), 0, 0);
}

static void keep(struct fence *f)
{
    put(f, BPF_RET | BPF_K, KEEP, 0, 0);
}

static void drop(struct fence *f)
{
    put(f, BPF_RET | BPF_K, 0, 0, 0);
}

static uint32_t word_of(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 |
           (uint32_t)bytes[2] << 8 | bytes[3];
}

/* Each test skips the "keep" after it unless it matches. */
static void keep_4(struct fence *f, const uint8_t ip[16])
{
    put(f, BPF_JMP | BPF_JEQ | BPF_K, word_of(ip + 12), 0, 1);
    keep(f);
}

static void keep_6(struct fence *f, const uint8_t ip[16])
{
    for (int i = 0; i < 4; i++) {
        load(f, BPF_W, AT_DESTINATION_6 + 4 * i);
        put(f, BPF_JMP | BPF_JEQ | BPF_K, word_of(ip + 4 * i), 0,
            (uint8_t)(2 * (3 - i) + 1));
    }
    keep(f);
}

static void fence_4(struct fence *f, const uint8_t (*ip)[16], int n)
{
    load(f, BPF_W, AT_DESTINATION_4);
    put(f, BPF_ALU | BPF_AND | BPF_K, 0xff000000, 0, 0);
    put(f, BPF_JMP | BPF_JEQ | BPF_K, 0x7f000000, 0, 1); /* loopback */
    keep(f);
    load(f, BPF_W, AT_DESTINATION_4);
    for (int i = 0; i < n; i++) {
        if (trib_net_is_v4(ip[i]))
            keep_4(f, ip[i]);
    }
    drop(f);
}

static void fence_6(struct fence *f, const uint8_t (*ip)[16], int n)
{
    static const uint8_t loopback[16] = {[15] = 1};

    keep_6(f, loopback);
    for (int i = 0; i < n; i++) {
        if (!trib_net_is_v4(ip[i]))
            keep_6(f, ip[i]);
    }
    drop(f);
}

static int find_chosen(const struct trib_net_choice *choice, uint8_t (*ip)[16])
{
    struct trib_own_ip own[TRIB_OWN_IPS_MAX];
    int n = 0, n_own = trib_own_ips(own, TRIB_OWN_IPS_MAX);

    for (int i = 0; i < n_own && n < MOST; i++) {
        if (!trib_net_chosen(choice, &own[i]))
            continue;
        trib_net_set_link(own[i].ip, 0);
        memcpy(ip[n++], own[i].ip, sizeof(ip[0]));
    }
    return n;
}

void trib_net_fence(const struct trib_net_choice *choice, const char *owner,
                    const struct trib_log *log, struct trib_net_port *port)
{
    uint8_t ip[MOST][16];
    struct fence f = {.n = 0};

    if (!choice || choice->n == 0)
        return;
    int n = find_chosen(choice, ip);
    load(&f, BPF_B, AT_VERSION);
    put(&f, BPF_ALU | BPF_RSH | BPF_K, 4, 0, 0);
    put(&f, BPF_JMP | BPF_JEQ | BPF_K, 4, 1, 0);
    unsigned short over = f.n;
    /* to the IPv6 part, which follows the IPv4 part */
    put(&f, BPF_JMP | BPF_JA, 0, 0, 0);
    fence_4(&f, (const uint8_t(*)[16])ip, n);
    f.code[over].k = (uint32_t)(f.n - over - 1);
    fence_6(&f, (const uint8_t(*)[16])ip, n);
    struct sock_fprog program = {.len = f.n, .filter = f.code};
    port->fenced = setsockopt(port->fd, SOL_SOCKET, SO_ATTACH_FILTER, &program,
                              sizeof(program)) == 0;
    if (!port->fenced)
        trib_log(
            log, TRIB_LOG_WARN, owner,
            "port %u is open to all networks of this host, not only to net=%s: the "
            "kernel rejects the filter: %m",
            port->port, choice->text);
}
