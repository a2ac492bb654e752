/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The root text that rank 0 passes through a launcher, and its parser in the other
 * ranks:
 *
 *     node7,10.0.0.1,[fd77::1]:4711/BOOT-NET#SECRET
 *
 * The name comes first, for people. Other hosts may be unable to resolve the name, and
 * several hosts may share it, so addresses follow. BOOT and NET identify the running
 * kernel and its network namespace in hexadecimal digits; they tell whether two ranks
 * are on one host. Last comes the job's secret (base/secret.h), unless rank 0 cannot
 * use one.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/addresses.h"
#include "base/error.h"
#include "base/process.h"
#include "base/text.h"
#include "boot/launcher.h"
#include "base/sockets.h"
#include "boot/rank_names.h"

#define OFFER_BYTES 512 /* launchers carry 1024 bytes, some fewer */
/* Link-local addresses to offer, one per link, if there is no other address. */
#define LINK_LOCALS 4
#define LOOPBACK "127.0.0.1"

/* Host identity of a rank; 0: unknown. */
struct host {
    uint64_t boot, net;
};

static void find_host(struct host *out)
{
    struct trib_process self;
    struct stat net;

    trib_process_self(&self);
    out->boot = self.boot;
    out->net = stat("/proc/self/ns/net", &net) == 0 ? net.st_ino : 0;
}

/* Append an address to a list of hosts; false: no room, list unchanged. */
static bool append(char *list, size_t bytes, const uint8_t ip[16])
{
    char text[TRIB_IP_TEXT_BYTES];
    size_t before = strlen(list);
    bool four = trib_net_is_v4(ip);

    trib_net_text(ip, text, sizeof(text));
    if (trib_text_append(list, bytes, four ? ",%s" : ",[%s]", text))
        return true;
    list[before] = '\0';
    return false;
}

static void append_own(char *list, size_t bytes)
{
    struct trib_own_ip own[TRIB_OWN_IPS_MAX];
    int n = trib_own_ips(own, TRIB_OWN_IPS_MAX), others = 0, locals = 0;

    for (int i = 0; i < n && !trib_net_is_loopback(own[i].ip); i++) {
        bool local = trib_net_is_link_local(own[i].ip);
        others += !local;
        if (local && (others || locals++ >= LINK_LOCALS))
            continue;
        trib_net_set_link(own[i].ip, 0);
        if (!append(list, bytes, own[i].ip))
            return;
    }
}

/* List the host name, if valid in a root, and the addresses. */
static void list_hosts(const struct trib_rank_name *self, char *hosts, size_t bytes)
{
    struct trib_tcp_root parsed;
    char name[TRIB_LAUNCH_ROOT_BYTES];

    snprintf(name, sizeof(name), "%s:1", self->host);
    snprintf(hosts, bytes, "%s",
             trib_tcp_root_parse(name, &parsed) ? self->host : LOOPBACK);
    append_own(hosts, bytes);
}

/* Generate a secret for the job, if this host can use one. */
static void make_secret(struct trib_secret *out)
{
    char why[160];

    if (trib_secret_make(out, NULL) == TRIB_OK)
        (void)trib_secret_arm(out, why, sizeof(why));
}

/* Append the secret to a root, which has room for it. */
static void append_secret(char *text, size_t bytes, const struct trib_secret *secret)
{
    char digits[TRIB_SECRET_TEXT];

    if (!secret->is_set)
        return;
    trib_secret_format(secret, digits);
    (void)trib_text_append(text, bytes, "#%s", digits);
}

void trib_launch_root_text(const char *hosts, int port,
                           const struct trib_secret *secret, char *text, size_t bytes)
{
    enum { PORT_BYTES = 8 }; /* ":65535" */
    struct trib_secret made;
    struct trib_rank_name self;

    assert(strlen(hosts) + PORT_BYTES + TRIB_SECRET_TEXT <= bytes);
    assert(bytes >
           sizeof(self.host) + sizeof(LOOPBACK) + PORT_BYTES + TRIB_SECRET_TEXT);
    trib_rank_name_self(0, &self);
    if (hosts[0])
        snprintf(text, bytes, "%s", hosts);
    else
        list_hosts(&self, text, bytes - PORT_BYTES - TRIB_SECRET_TEXT);
    /* Warn: a host name without addresses may not resolve. */
    if (!hosts[0] && !strchr(text, ',') && strcmp(text, LOOPBACK) != 0)
        (void)trib_text_append(text, bytes, "," LOOPBACK);
    (void)trib_text_append(text, bytes, ":%d", port);
    if (!secret)
        make_secret(&made);
    append_secret(text, bytes, secret ? secret : &made);
    if (!secret)
        trib_secret_wipe(&made);
}

trib_status_t trib_launch_publish(struct trib_launch *launch, int port,
                                  struct trib_error *err)
{
    char hosts[OFFER_BYTES];
    struct trib_rank_name self;
    struct host here;

    trib_rank_name_self(0, &self);
    find_host(&here);
    list_hosts(&self, hosts, sizeof(hosts));
    snprintf(launch->root, sizeof(launch->root), "%s:%d/%" PRIx64 "-%" PRIx64, hosts,
             port, here.boot, here.net);
    make_secret(&launch->secret);
    append_secret(launch->root, sizeof(launch->root), &launch->secret);
    if (strcmp(hosts, LOOPBACK) == 0)
        return trib_fail(
            err, TRIB_ERR_BOOT,
            "this host is called \"%s\", which other hosts cannot look up, and has no "
            "address but " LOOPBACK ": give it an address or a name, or set "
            "TRIB_ROOT=host:port for all ranks",
            self.host);
    return TRIB_OK;
}

void trib_launch_strip(struct trib_launch *launch)
{
    launch->root[strcspn(launch->root, "/#")] = '\0';
}

/* Rank 0's addresses, as this host would try them. */
struct ways {
    struct trib_own_ip own[TRIB_OWN_IPS_MAX];
    int n_own;
};

enum { SUBNET, OTHER, OWN, KINDS };

static int kind_of(const struct ways *w, const uint8_t ip[16])
{
    int kind = OTHER;

    for (int i = 0; i < w->n_own; i++) {
        if (memcmp(w->own[i].ip, ip, 16) == 0)
            return OWN;
        if (!trib_net_is_loopback(ip) &&
            trib_net_common_bits(w->own[i].ip, ip) >= w->own[i].prefix)
            kind = SUBNET;
    }
    return kind;
}

/* A link-local address may be on any link of this host. */
static void append_links(const struct ways *w, char *list, size_t bytes, uint8_t ip[16])
{
    for (int i = 0; i < w->n_own; i++) {
        if (!trib_net_is_link_local(w->own[i].ip))
            continue;
        trib_net_set_link(ip, w->own[i].link);
        if (kind_of(w, ip) != OWN)
            (void)append(list, bytes, ip);
    }
}

/* Append the addresses of one kind from `also`, a list "10.0.0.1,fd77::1". */
static void append_kind(const struct ways *w, const char *also, int kind, char *list,
                        size_t bytes)
{
    char item[INET6_ADDRSTRLEN];
    uint8_t ip[16];

    for (; *also; also += *also == ',') {
        size_t len = strcspn(also, ",");
        snprintf(item, sizeof(item), "%.*s", (int)len, also);
        also += len;
        bool four = !strchr(item, ':');
        memcpy(ip, trib_net_loopback, sizeof(ip));
        if (inet_pton(four ? AF_INET : AF_INET6, item, four ? ip + 12 : ip) != 1)
            continue;
        if (trib_net_is_link_local(ip)) {
            if (kind == OTHER)
                append_links(w, list, bytes, ip);
        } else if (kind_of(w, ip) == kind) {
            (void)append(list, bytes, ip);
        }
    }
}

static void order(struct trib_launch *launch, const struct trib_tcp_root *root,
                  bool apart)
{
    struct ways *w = calloc(1, sizeof(*w));
    char hosts[TRIB_LAUNCH_ROOT_BYTES - sizeof(root->port) - 1];
    bool v6 = strchr(root->host, ':') != NULL;

    if (!w)
        return; /* keep rank 0's order */
    w->n_own = trib_own_ips(w->own, TRIB_OWN_IPS_MAX);
    snprintf(hosts, sizeof(hosts), v6 ? "[%s]" : "%s", root->host);
    for (int kind = 0; kind < (apart ? OWN : KINDS); kind++)
        append_kind(w, root->also, kind, hosts, sizeof(hosts));
    snprintf(launch->root, sizeof(launch->root), "%s:%s", hosts, root->port);
    free(w);
}

trib_status_t trib_launch_accept(struct trib_launch *launch, const char *text,
                                 const char *from, struct trib_error *err)
{
    struct trib_tcp_root root;
    struct trib_rank_name self;
    struct host here, there = {0};
    const char *slash = strchr(text, '/');
    bool sound =
        trib_secret_split(text, launch->root, sizeof(launch->root), &launch->secret);

    trib_launch_strip(launch);
    if (!sound || !trib_tcp_root_parse(launch->root, &root) ||
        (slash && sscanf(slash, "/%" SCNx64 "-%" SCNx64, &there.boot, &there.net) != 2))
        return trib_fail(
            err, TRIB_ERR_BOOT,
            "rank %d: %s reports the rendezvous address \"%.80s\", which is "
            "not host:port: set TRIB_ROOT=host:port for all ranks",
            launch->rank, from, launch->root);
    trib_rank_name_self(launch->rank, &self);
    find_host(&here);
    bool known = here.boot && there.boot, apart = known && here.boot != there.boot;
    bool same_net = !here.net || !there.net || here.net == there.net;
    /* Without identities and addresses, compare host names. */
    if (known ? !apart && same_net
              : !root.also[0] && strcmp(root.host, self.host) == 0)
        snprintf(launch->root, sizeof(launch->root), LOOPBACK ":%s", root.port);
    else if (root.also[0])
        order(launch, &root, apart);
    return TRIB_OK;
}
