/* SPDX-License-Identifier: BSD-3-Clause */
/* Attacks by peers that accept connections, or open them, and send nothing. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/sockets.h"
#include "base/time.h"
#include "tests/agg/daemon/attack.h"
#include "transport/tcp/tcp.h"

enum {
    PEERS = 400,
    STALL_MS = 1500, /* time within which tribd has connected to all peers */
    HOSTS = 8,
    HELD = 3000,
    HOLD_MS = 3000,
    BUSY_MOST = 50, /* percent of a core */
};

/* stall, mute ---------------------------------------------------------------------- */

/* Return a port of this host at which the kernel accepts connections but no process
 * reads; 0: none. */
static uint16_t listen_deaf(int type)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof(at);
    const int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) ||
        (type == SOCK_STREAM && listen(fd, 4096)) ||
        getsockname(fd, (struct sockaddr *)&at, &bytes))
        return 0;
    return ntohs(at.sin_port);
}

/* Take the hello of the node, with the address of a process in another pid namespace
 * that listens at the port: tribd cannot see it in /proc. */
static bool readdress(uint8_t *hello, uint32_t each, const uint16_t port[2])
{
    static const uint8_t loopback[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};
    const size_t at = attack_find(hello, each, TCP_MAGIC);
    struct trib_ip_address address;

    if (at + sizeof(address) > each)
        return false;
    memcpy(&address, hello + at, sizeof(address));
    address.port = port[0];
    address.heartbeat_port = port[1];
    address.space ^= 1;
    address.list = (struct trib_net_list){.n = 0};
    const bool good = port[0] && port[1] && trib_net_list_put(&address.list, loopback);
    memcpy(hello + at, &address, sizeof(address));
    return good;
}

/* Play all peers in one exchange: they repeat the blob of the node; `port` is their
 * address, or NULL. */
static bool give_peers(struct attack *a, uint32_t exchange, const uint16_t *port)
{
    if (!caller_hear(&a->c, TRIB_CONTROL_BLOBS))
        return false;
    const uint32_t each = a->c.m.blobs.each;
    const uint8_t *own = a->c.m.blobs.data.at;
    uint8_t *all = malloc((PEERS + 1) * (size_t)each);
    bool good = all;

    for (size_t i = 0; all && i <= PEERS; i++)
        memcpy(all + i * each, own, each);
    for (size_t i = 0; all && port && i < PEERS; i++)
        good &= readdress(all + i * each, each, port);
    good = good && attack_give(&a->c, exchange, all, PEERS + 1, each);
    free(all);
    return good;
}

static bool bring_silent_peers(struct attack *a, bool secret)
{
    struct trib_control join = caller_join(&a->c, a->name, PEERS, "tcp");
    const uint16_t port[] = {listen_deaf(SOCK_STREAM), listen_deaf(SOCK_DGRAM)};
    struct trib_secret made;

    if (secret && !attack_secret(&join, &made))
        return false;
    if (!attack_join(a, &join) || !give_peers(a, 0, port) ||
        !give_peers(a, 1, NULL))
        return false;
    attack_await_end(a, &a->c, STALL_MS);
    if (a->said[0])
        return false;
    trib_session_free(a->c.session);
    usleep(STALL_MS * 1000); /* the peers stay connected and send nothing */
    return true;
}

bool attack_stall(struct attack *a)
{
    return bring_silent_peers(a, false);
}

bool attack_mute(struct attack *a)
{
    return bring_silent_peers(a, true);
}

/* emfile --------------------------------------------------------------------------- */

/* Return the processor time of a process so far, in ms; -1: unknown. */
static long used_ms(const char *pid)
{
    char path[64], line[1024] = "";
    unsigned long user = 0, kernel = 0;

    snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
    FILE *f = fopen(path, "r");
    const bool read_it = f && fgets(line, sizeof(line), f);
    const char *name_end = strrchr(line, ')');

    if (f)
        fclose(f);
    if (!read_it || !name_end ||
        sscanf(name_end, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
               &kernel) != 2)
        return -1;
    return (long)((user + kernel) * 1000 / (unsigned long)sysconf(_SC_CLK_TCK));
}

/* Read the last message of tribd on a connection that it closed. Messages before a
 * proof are not sealed. */
static void hear_one(struct attack *a, int fd)
{
    uint8_t room[1024];
    const ssize_t got = recv(fd, room, sizeof(room) - 1, MSG_DONTWAIT);

    if (got <= TRIB_CONTROL_HEAD_BYTES + 2 || a->said[0])
        return;
    room[got] = 0;
    snprintf(a->said, sizeof(a->said), "%.590s",
             (const char *)room + TRIB_CONTROL_HEAD_BYTES + 2);
}

bool attack_emfile(struct attack *a)
{
    const struct rlimit files = {HELD + 100, HELD + 100};
    const char *pid = trib_config_environment("TRIBD_PID");
    static int held[HELD];
    struct sockaddr_in to;
    int n = 0;

    if (setrlimit(RLIMIT_NOFILE, &files) != 0 || !caller_address(a->c.cfg.service, &to))
        return false;
    for (uint32_t i = 0; i < HELD; i++) {
        const int fd = caller_connect_from(&to, i % HOSTS);
        if (fd >= 0)
            held[n++] = fd;
        if (i % 20 == 0)
            usleep(1000);
    }
    const long before = used_ms(pid ? pid : "-");
    usleep(HOLD_MS * 1000);
    const long used = used_ms(pid ? pid : "-") - before;
    for (int i = 0; i < n; i++)
        hear_one(a, held[i]);
    if (before >= 0)
        printf(
            "%s: %d connections were made; then tribd used %ld ms of the processor in "
            "%d ms\n",
            a->name, n, used, HOLD_MS);
    if (before >= 0 && used * 100 > (long)HOLD_MS * BUSY_MOST)
        snprintf(a->harm, sizeof(a->harm),
                 "tribd is busy with connections that say nothing");
    return true;
}
