/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Paths to a peer: which addresses this host offers, and the order in which a peer's
 * addresses are tried.
 */
#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dial.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "base/time.h"
#include "transport/common/net_addr.h"

enum {
    /* link-local addresses offered: a host with many containers has one per link */
    LINK_LOCALS = 8,
    /* common bits that make two routed addresses count as near */
    ROUTED_BITS_4 = 96 + 16,
    ROUTED_BITS_6 = 48,
    LISTED = 3, /* failed attempts listed in a message */
};

trib_status_t trib_net_ways_init(struct trib_net_ways *ways, const char *owner,
                                 const char *text, const struct trib_net_met *met,
                                 struct trib_error *err)
{
    memset(ways, 0, sizeof(*ways));
    if (met)
        ways->met = *met;
    return trib_net_choose(owner, text, &ways->choice, err);
}

/* Offered addresses ---------------------------------------------------------------- */

bool trib_net_list_put(struct trib_net_list *list, const uint8_t ip[16])
{
    bool four = trib_net_is_v4(ip);
    size_t len = four ? 4 : 16, at = 0;

    for (int i = 0; i < list->n; i++)
        at += 1 + (size_t)list->bytes[at];
    if (list->n == TRIB_NET_OFFERED || at + 1 + len > sizeof(list->bytes))
        return false;
    list->bytes[at] = (uint8_t)len;
    memcpy(list->bytes + at + 1, four ? ip + 12 : ip, len);
    if (!four)
        trib_net_set_link(list->bytes + at + 1, 0);
    list->n++;
    return true;
}

int trib_net_list_get(const struct trib_net_list *list, uint8_t (*ip_out)[16], int max)
{
    size_t at = 0;
    int n = 0;

    while (n < list->n && n < max && at < sizeof(list->bytes)) {
        size_t len = list->bytes[at];
        if ((len != 4 && len != 16) || at + 1 + len > sizeof(list->bytes))
            break;
        memcpy(ip_out[n], trib_net_loopback, 12);
        memcpy(ip_out[n] + 16 - len, list->bytes + at + 1, len);
        trib_net_set_link(ip_out[n++], 0);
        at += 1 + len;
    }
    return n;
}

/* Loopback reaches only this host, so offer it only if the user names it. */
static bool serves(const struct trib_net_ways *ways, const struct trib_own_ip *own)
{
    return trib_net_chosen(&ways->choice, own) &&
           (ways->choice.n || !trib_net_is_loopback(own->ip));
}

void trib_net_offer(const struct trib_net_ways *ways, const char *owner,
                    const struct trib_log *log, struct trib_net_list *out)
{
    struct trib_own_ip own[TRIB_OWN_IPS_MAX];
    int n = trib_own_ips(own, TRIB_OWN_IPS_MAX), link_locals = 0, left = 0;

    memset(out, 0, sizeof(*out));
    for (int met = 1; met >= 0; met--) {
        for (int i = 0; i < n; i++) {
            bool is_met = memcmp(own[i].ip, ways->met.own, 16) == 0;
            bool local = trib_net_is_link_local(own[i].ip);
            if (is_met != (met == 1) || !serves(ways, &own[i]) ||
                (met && trib_net_is_loopback(own[i].ip)))
                continue;
            if (local && !met && link_locals++ >= LINK_LOCALS)
                continue;
            bool fits = trib_net_list_put(out, own[i].ip);
            out->met |= fits && met;
            left += !fits && !local;
        }
    }
    if (left)
        trib_log(log, TRIB_LOG_WARN, owner,
                 "peers get %d addresses of this host, but %d more do not fit: choose "
                 "networks with %s:net=10.0.0.0/8 or %s:net=eth0 in TRIB_TRANSPORT",
                 out->n, left, owner, owner);
}

/* Attempts to connect -------------------------------------------------------------- */

/* In the order of attempts. */
enum kind { MET, LIKED, SUBNET, OTHER, LINK, LAST };

struct way {
    uint8_t ip[16];
    uint8_t kind;
    uint8_t liked; /* common bits with the last address that worked */
    uint8_t at; /* keeps the order of equals */
};

struct search {
    struct trib_net_ways *ways;
    struct trib_own_ip own[TRIB_OWN_IPS_MAX];
    int n_own;
    struct way way[TRIB_DIAL_MAX];
    int n;
};

static bool is_own(const struct search *s, const uint8_t ip[16])
{
    for (int i = 0; i < s->n_own; i++) {
        if (memcmp(s->own[i].ip, ip, 16) == 0)
            return true;
    }
    return false;
}

/* Return the prefix length of the local subnet that contains the address; 129: none. */
static int subnet_of(const struct search *s, const uint8_t ip[16])
{
    int best = 129;

    for (int i = 0; i < s->n_own; i++) {
        int common = trib_net_common_bits(s->own[i].ip, ip);
        if (!trib_net_is_loopback(ip) && common >= s->own[i].prefix &&
            (best == 129 || s->own[i].prefix > best))
            best = s->own[i].prefix;
    }
    return best;
}

/* Return how near an address is to the one that reached the last peer; 0: not near. */
static int likeness(const struct search *s, const uint8_t ip[16])
{
    uint64_t words[2];
    uint8_t last[16];

    for (int i = 0; i < 2; i++)
        words[i] = atomic_load_explicit(&s->ways->last[i], memory_order_relaxed);
    memcpy(last, words, sizeof(last));
    int common = trib_net_common_bits(last, ip), subnet = subnet_of(s, last);
    int routed = trib_net_is_v4(last) ? ROUTED_BITS_4 : ROUTED_BITS_6;

    return trib_net_is_set(last) && common >= (subnet == 129 ? routed : subnet) ? common
                                                                                : 0;
}

static void add(struct search *s, const uint8_t ip[16], enum kind kind)
{
    assert(s->n >= 0 && s->n <= TRIB_DIAL_MAX);
    if (s->n == TRIB_DIAL_MAX)
        return;
    struct way *w = &s->way[s->n];
    memcpy(w->ip, ip, 16);
    w->kind = (uint8_t)kind;
    w->liked = (uint8_t)likeness(s, ip);
    w->at = (uint8_t)s->n++;
}

/* A peer's link-local address may be reachable over any link of this host. Try the link
 * of the rendezvous first. */
static void add_link_local(struct search *s, const uint8_t ip[16])
{
    uint8_t own[16];

    for (int i = 0; i < s->n_own; i++) {
        if (!trib_net_is_link_local(s->own[i].ip))
            continue;
        memcpy(own, ip, 16);
        trib_net_set_link(own, s->own[i].link);
        bool met = memcmp(s->own[i].ip, s->ways->met.own, 16) == 0 ||
                   memcmp(own, s->ways->met.root, 16) == 0;
        add(s, own,
            is_own(s, own)     ? LAST
            : likeness(s, own) ? LIKED
            : met              ? MET
                               : LINK);
    }
}

static int compare(const void *a, const void *b)
{
    const struct way *x = a, *y = b;

    if (x->kind != y->kind)
        return x->kind - y->kind;
    return x->liked != y->liked ? y->liked - x->liked : x->at - y->at;
}

static enum kind kind_of(const struct search *s, const uint8_t ip[16], bool met)
{
    if (is_own(s, ip) || memcmp(ip, trib_net_loopback, 16) == 0)
        return LAST;
    if ((met || memcmp(ip, s->ways->met.root, 16) == 0) && !s->ways->elsewhere)
        return MET;
    if (likeness(s, ip))
        return LIKED;
    return subnet_of(s, ip) < 129 ? SUBNET : OTHER;
}

/* Build the list of addresses to try. A process on another host has none of this host's
 * addresses. */
static void collect(struct search *s, const struct trib_net_place *place)
{
    const struct trib_net_list *list = place->list;
    uint8_t ip[TRIB_NET_OFFERED][16];
    int n = trib_net_list_get(list, ip, TRIB_NET_OFFERED);

    s->n_own = trib_own_ips(s->own, TRIB_OWN_IPS_MAX);
    for (int i = 0; i < n; i++) {
        if (trib_net_is_link_local(ip[i]))
            add_link_local(s, ip[i]);
        else
            add(s, ip[i], kind_of(s, ip[i], i == 0 && list->met));
    }
    add(s, trib_net_loopback, LAST);
    qsort(s->way, (size_t)s->n, sizeof(s->way[0]), compare);
    while (place->apart && s->n && s->way[s->n - 1].kind == LAST)
        s->n--;
}

/* List the addresses tried, each with its error if that differs from errno. */
static void list_attempts(const struct way *way, const struct trib_dial_to *to, int n,
                          struct trib_net_found *out)
{
    const int last = errno;
    char ip[TRIB_IP_TEXT_BYTES];
    int listed = 0;

    out->at[0] = '\0';
    for (int i = 0; i < n && listed < LISTED; i++, listed++) {
        trib_net_text(way[i].ip, ip, sizeof(ip));
        trib_text_append(out->at, sizeof(out->at), "%s%s", listed ? ", " : "", ip);
        if (to[i].error != last)
            trib_text_append(out->at, sizeof(out->at), " (%s)", strerror(to[i].error));
    }
    if (n > listed)
        trib_text_append(out->at, sizeof(out->at), " and %d more", n - listed);
    errno = last;
}

static int dial_ways(const struct search *s, const struct way *way, int n,
                     uint16_t port, struct trib_net_found *out)
{
    struct trib_dial_to to[TRIB_DIAL_MAX];
    struct trib_dial dial = {
        .to = to, .n = n, .loopback = TRIB_NET_UNPACED, .idle = s->ways->idle};
    int which;

    assert(n > 0 && n <= TRIB_DIAL_MAX);
    for (int i = 0; i < n; i++)
        to[i].len = trib_net_sockaddr(
            way[i].ip, port, trib_net_is_v4(way[i].ip) ? AF_INET : AF_INET6, &to[i].at);
    int fd = trib_dial(&dial, &which);
    memcpy(out->ip, way[fd >= 0 ? which : n - 1].ip, 16);
    if (fd < 0)
        list_attempts(way, to, n, out);
    return fd;
}

/* A host sends packets to itself over its loopback interface, whatever the address. */
static int dial_here(const struct search *s, const struct way *way, int n,
                     uint16_t port, struct trib_net_found *out)
{
    int fd = dial_ways(s, way, n, port, out), error = errno;

    if (fd < 0 && !trib_net_loopback_up())
        out->cure =
            "; the loopback interface of this host is down, but its processes need it "
            "to reach each other: ip link set lo up";
    errno = error;
    return fd;
}

/* Remember for the next peer which address worked. */
static void learn(struct search *s, const struct trib_net_found *out)
{
    uint64_t words[2];
    bool met = false;

    assert(s->n > 0);
    for (int i = 0; i < s->n; i++) {
        if (memcmp(s->way[i].ip, out->ip, 16) == 0)
            met = s->way[i].kind == MET;
    }
    if (s->way[0].kind == MET && !met)
        s->ways->elsewhere = true;
    memcpy(words, out->ip, sizeof(words));
    for (int i = 0; i < 2; i++)
        atomic_store_explicit(&s->ways->last[i], words[i], memory_order_relaxed);
}

static int dial_all(struct search *s, const struct trib_net_place *place,
                    struct trib_net_found *out)
{
    struct trib_net_found here = {.cure = ""};
    int fd = -1, last = 0;

    collect(s, place);
    while (last < s->n && s->way[last].kind != LAST)
        last++;
    errno = EADDRNOTAVAIL;
    if (s->n)
        out->cure = "";
    if (last)
        fd = dial_ways(s, s->way, last, place->port, out);
    if (fd >= 0) {
        learn(s, out);
        return fd;
    }
    int error = errno;
    if (s->n > last && error != ECANCELED) {
        fd = dial_here(s, s->way + last, s->n - last, place->port, &here);
        if (fd >= 0 || !last)
            *out = here;
        error = last ? error : errno;
    }
    errno = error;
    return fd;
}

int trib_net_reach(struct trib_net_ways *ways, const struct trib_net_place *place,
                   struct trib_net_found *out)
{
    struct way loopback = {.kind = LAST};
    struct search *s = calloc(1, sizeof(*s));
    int fd = -1;

    memcpy(loopback.ip, trib_net_loopback, 16);
    *out = (struct trib_net_found){
        .at = "any address,",
        .cure = "; it offers none, or only addresses that this host has, too"};
    memcpy(out->ip, trib_net_loopback, 16);
    errno = ENOMEM;
    if (!s)
        return -1;
    s->ways = ways;
    if (place->near)
        fd = dial_here(s, &loopback, 1, place->port, out);
    if (fd < 0 && !(place->near && errno != ENETUNREACH && errno != EADDRNOTAVAIL))
        fd = dial_all(s, place, out);
    int error = errno;
    free(s);
    errno = error;
    return fd;
}
