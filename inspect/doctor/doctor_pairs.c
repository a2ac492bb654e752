/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib_doctor between ranks: check that writes arrive between all pairs.
 *
 * All transports are tried in turn. In each round every rank has one partner. Both
 * connect, write a little, then a lot, and report what arrived. This detects a network
 * that drops large frames. A firewall shows when connecting, and one that drops
 * heartbeats by their absence.
 */
#include "inspect/doctor/doctor_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "boot/boot.h"
#include "transport/backends.h"
#include "transport/common/heartbeat.h"
#include "transport/open.h"

#define OK TRIB_VERDICT_OK
#define WARN TRIB_VERDICT_WARN
#define FAIL TRIB_VERDICT_FAIL

enum {
    LITTLE = 64,
    MUCH = 64 << 10, /* more than any frame carries */
    ARRIVAL_MS = 3000,
    IDLE_US = 1000,
    EVENTS = 16,
};

enum { NO_PAIR, CONNECTED, NOT_CONNECTED };

/* Result of opening a transport on a rank, sent to all others. */
struct door {
    uint16_t open;
    char why[400];
    struct trib_address address;
    struct trib_blob region;
};
_Static_assert(sizeof(struct door) <= TRIB_BOOT_BLOB_MAX, "a door fits a boot blob");

struct probe {
    struct trib_doctor *d;
    const struct trib_transport_ops *ops;
    const char *name; /* ops->name */
    char text[TRIB_CONFIG_TEXT_BYTES + TRIB_NET_TEXT_BYTES]; /* name and parameters */
    struct trib_error err;
    struct trib_transport *t; /* NULL: could not be opened on this rank */
    struct trib_heartbeat *heartbeat; /* of t, if it accepts one; NULL: t has its own */
    struct trib_region *region;
    uint8_t *memory; /* MUCH to send, MUCH to receive */
    struct door *doors; /* by rank */
    uint8_t *states;    /* by rank */
    int64_t good, tried; /* directions judged by this rank: from a partner to itself */
    struct trib_remote *remote; /* the partner's region */
    bool arrived[3];     /* by the immediate of the write */
    char lost[TRIB_WHY_MAX + 32]; /* why the partner was lost */
};

/* Pairs ---------------------------------------------------------------------------- */

int trib_doctor_rounds(int size)
{
    return size < 2 ? 0 : size % 2 ? size : size - 1;
}

/*
 * Round-robin tournament: of ranks 0 to m-1 (m odd), those are paired in round k whose
 * numbers add up to k modulo m. A rank paired with itself gets rank m instead, if there
 * is one.
 */
int trib_doctor_partner(int rank, int size, int round)
{
    int m = trib_doctor_rounds(size), partner;

    if (rank < m) {
        partner = ((round - rank) % m + m) % m;
        return partner != rank || size % 2 ? partner : m;
    }
    for (partner = 0; 2 * partner % m != round;)
        partner++;
    return partner;
}

static void pair_text(const struct trib_doctor *d, int from, int to, char *text,
                      size_t bytes)
{
    snprintf(text, bytes, "rank %d (%.64s) → rank %d (%.64s)", from,
             d->cards[from].host, to, d->cards[to].host);
}

struct way {
    int from, to;
};

static void say_pair(struct probe *p, trib_verdict_t verdict, struct way way,
                     const char *cure, const char *why)
{
    char where[192];

    pair_text(p->d, way.from, way.to, where, sizeof(where));
    trib_report_add(&p->d->report, &(trib_finding_t){.verdict = verdict,
                                                     .where = where,
                                                     .topic = p->name,
                                                     .text = why,
                                                     .cure = cure});
}

/* Opening transports --------------------------------------------------------------- */

/* Return a numeric parameter of a transport's text. */
static int parameter(const char *text, const char *name, int otherwise)
{
    size_t n = strlen(name);

    for (const char *at = strchr(text, ':'); at; at = strpbrk(at, ",+")) {
        at++;
        if (strncmp(at, name, n) == 0 && at[n] == '=')
            return atoi(at + n + 1);
    }
    return otherwise;
}

/* Copy "net=10.0.0.0/8,ib0" from the parameters of a transport's text, with a leading
 * comma; "" if there is none. The list ends before the next name. */
static void networks(const char *text, char *out, size_t bytes)
{
    const char *at = strchr(text, ':');

    out[0] = '\0';
    while (at && strncmp(at + 1, "net=", 4) != 0)
        at = strpbrk(at + 1, ",+");
    if (!at)
        return;
    at++;
    size_t len = strcspn(at, ",+");
    while (at[len] == ',') {
        size_t more = strcspn(at + len + 1, ",+");
        if (memchr(at + len + 1, '=', more))
            break;
        len += 1 + more;
    }
    snprintf(out, bytes, ",%.*s", (int)len, at);
}

static bool takes_ports(const char *name)
{
    for (const struct trib_candidate *c = trib_candidates; c->ops; c++)
        if (strcmp(c->ops->name, name) == 0)
            return c->ports;
    return false;
}

/* Use the configured text if it names this transport, else the ports and networks of
 * auto: these may be the only open ones. */
static void choose_text(struct probe *p)
{
    const char *wanted = p->d->comm.cfg.transport;
    size_t n = strlen(p->name);
    bool same = strncmp(wanted, p->name, n) == 0 && strchr(":+", wanted[n]) != NULL;
    int port = parameter(wanted, "port", 0), ports = parameter(wanted, "ports", 1000);
    char net[TRIB_NET_TEXT_BYTES + 8];

    networks(wanted, net, sizeof(net));
    if (!same && strncmp(wanted, "auto:", 5) == 0 && takes_ports(p->name))
        snprintf(p->text, sizeof(p->text), "%s:port=%d,ports=%d%s", p->name, port,
                 ports, net);
    else
        snprintf(p->text, sizeof(p->text), "%s", same ? wanted : p->name);
}

/* Open heartbeats that can be queried. A transport that accepts none has its own. */
static void open_heartbeat(struct probe *p, struct trib_transport_opts *opts)
{
    struct trib_error err = {0};
    int port = parameter(p->text, "port", 0), ports = parameter(p->text, "ports", 1000);

    opts->err = &err;
    if (takes_ports(p->name) && trib_transport_check(p->text, &err) == TRIB_OK &&
        trib_heartbeat_open(opts, p->name, port, ports, &p->heartbeat) == TRIB_OK)
        opts->heartbeat = p->heartbeat;
    opts->err = &p->err;
}

static trib_status_t open_door(struct probe *p, struct door *door)
{
    struct trib_transport_opts opts = {.self = p->d->rank,
                                       .size = p->d->size,
                                       .params = "",
                                       .cfg = &p->d->comm.cfg,
                                       .log = &p->d->comm.log,
                                       .err = &p->err,
                                       .met = &p->d->comm.met,
                                       .secret = &p->d->comm.secret};
    open_heartbeat(p, &opts);
    trib_status_t st = trib_transport_open(p->text, &opts, &p->t);

    if (st != TRIB_OK) {
        p->t = NULL;
        return st;
    }
    st = p->t->ops->alloc(p->t, 2 * MUCH, (void **)&p->memory, &p->region);
    if (st == TRIB_OK)
        st = p->t->ops->address(p->t, &door->address);
    if (st == TRIB_OK)
        st = p->t->ops->export_region(p->t, p->region, &door->region);
    return st;
}

static void close_door(struct probe *p)
{
    if (p->t && p->region)
        p->t->ops->dereg(p->t, p->region);
    if (p->t)
        p->t->ops->close(p->t);
    trib_heartbeat_close(p->heartbeat);
    p->t = NULL;
    p->region = NULL;
    p->heartbeat = NULL;
}

/* Return a rank's error message without the transport's name, which begins the line. */
static const char *why_not(const struct probe *p, int rank)
{
    const char *why = p->doors[rank].why;
    size_t n = strlen(p->name);

    return strncmp(why, p->name, n) == 0 && strncmp(why + n, ": ", 2) == 0 ? why + n + 2
                                                                           : why;
}

/* On rank 0, report how many ranks cannot open the transport, and one reason. */
static void compare_doors(struct probe *p)
{
    struct trib_doctor *d = p->d;
    int open = 0, first = -1;

    for (int r = 0; r < d->size; r++) {
        open += p->doors[r].open != 0;
        if (!p->doors[r].open && first < 0)
            first = r;
    }
    if (first < 0 && d->size == 1)
        trib_report_say(&d->report, OK, p->name, "", "opens");
    if (first < 0)
        return;
    bool wanted = strncmp(d->comm.cfg.transport, p->name, strlen(p->name)) == 0;
    if (open == 0)
        trib_report_say(&d->report, wanted ? FAIL : OK, p->name, "",
                        "is not used: %.399s", why_not(p, first));
    else
        trib_report_say(&d->report, wanted ? FAIL : WARN, p->name,
                        "configure the hosts alike, else ranks there use a slower "
                        "transport",
                        "opens on %d of %d ranks, but not on rank %d (%.64s): %.399s",
                        open, d->size, first, d->cards[first].host, why_not(p, first));
}

/* Writes --------------------------------------------------------------------------- */

static uint8_t pattern(int from, size_t i)
{
    return (uint8_t)((size_t)from * 31 + i * 7 + (i >> 8) + 1);
}

static void take_events(struct probe *p, int peer)
{
    struct trib_event events[EVENTS];
    int n = p->t->ops->poll(p->t, events, EVENTS);

    for (int i = 0; i < n; i++) {
        const struct trib_event *e = &events[i];
        if (e->peer != peer)
            continue;
        if (e->kind == TRIB_EVENT_ARRIVED && e->imm < 3)
            p->arrived[e->imm] = true;
        else if (e->kind == TRIB_EVENT_PEER_LOST)
            snprintf(p->lost, sizeof(p->lost), "%s", e->why);
    }
}

/* Wait for events for a short time, and handle them. */
static void pause_for_events(struct probe *p, int peer)
{
    p->t->ops->arm(p->t);
    take_events(p, peer);
    p->t->ops->wait(p->t, IDLE_US);
    take_events(p, peer);
}

static bool write_to(struct probe *p, int peer, size_t bytes, uint32_t imm)
{
    struct trib_write write = {.local = p->region,
                               .remote = p->remote,
                               .remote_off = MUCH,
                               .len = bytes,
                               .imm = imm};
    uint64_t deadline = trib_deadline_ms(ARRIVAL_MS);
    trib_status_t st;

    while ((st = p->t->ops->write(p->t, peer, &write)) == TRIB_ERR_NO_RESOURCE &&
           !trib_deadline_passed(deadline))
        pause_for_events(p, peer);
    return st == TRIB_OK;
}

/* Return true if the bytes arrived and are correct. */
static bool await(struct probe *p, int peer, size_t bytes, uint32_t imm)
{
    uint64_t deadline = trib_deadline_ms(ARRIVAL_MS);

    while (!p->arrived[imm] && !p->lost[0] && !trib_deadline_passed(deadline))
        pause_for_events(p, peer);
    for (size_t i = 0; p->arrived[imm] && i < bytes; i++) {
        if (p->memory[MUCH + i] != pattern(peer, i)) {
            snprintf(p->lost, sizeof(p->lost), "byte %zu of %zu has arrived "
                                               "corrupted", i,
                     bytes);
            return false;
        }
    }
    return p->arrived[imm];
}

/* A job runs without heartbeats, but detects a failed host later. */
static void await_heartbeat(struct probe *p, int peer)
{
    uint64_t deadline = trib_deadline_ms(ARRIVAL_MS);
    char why[200];

    if (!p->heartbeat)
        return;
    while (!trib_heartbeat_heard(p->heartbeat, peer) && !trib_deadline_passed(deadline))
        pause_for_events(p, peer);
    if (trib_heartbeat_heard(p->heartbeat, peer))
        return;
    snprintf(
        why, sizeof(why),
        "no heartbeat (UDP) arrives within %d s: a stopped process or a failed host is "
        "detected only after TRIB_TIMEOUT_MS",
        ARRIVAL_MS / 1000);
    say_pair(
        p, WARN, (struct way){peer, p->d->rank},
        "a firewall drops UDP: allow it between all hosts, on the same ports as TCP "
        "(TRIB_TRANSPORT=tcp:port=N,ports=N)",
        why);
}

/* Judge the data from the partner: only the receiving rank knows. */
static void judge(struct probe *p, int peer, bool little, bool much)
{
    const struct trib_card *from = &p->d->cards[peer], *to = &p->d->cards[p->d->rank];
    char why[512];

    p->tried++;
    if (little && much) {
        p->good++;
    } else if (p->lost[0]) {
        say_pair(p, FAIL, (struct way){peer, p->d->rank},
                 "check the logs of that rank and of its host", p->lost);
    } else if (!little) {
        snprintf(why, sizeof(why), "connected, but %d bytes do not arrive within %d s",
                 LITTLE, ARRIVAL_MS / 1000);
        say_pair(
            p, FAIL, (struct way){peer, p->d->rank},
            "a firewall accepts connections but drops their data: allow it in both "
            "directions",
            why);
    } else {
        snprintf(
            why, sizeof(why),
            "%d bytes arrive, but %d KiB do not within %d s: large frames are lost on "
            "the path (MTU of %.64s: %.95s; of %.64s: %.95s)",
            LITTLE, MUCH >> 10, ARRIVAL_MS / 1000, from->host, from->links, to->host,
            to->links);
        say_pair(
            p, FAIL, (struct way){peer, p->d->rank},
            "set all links and switches on the path to the hosts' MTU, or the hosts to "
            "a smaller one (ip link set NAME mtu 1500); tracepath -n shows where",
            why);
    }
}

/* Rounds --------------------------------------------------------------------------- */

/* Shared memory works only within a host; try all other transports open on both
 * ranks. */
static bool is_pair(const struct probe *p, int a, int b)
{
    bool near = p->d->cards[a].machine == p->d->cards[b].machine;

    return a != b && p->doors[a].open && p->doors[b].open &&
           (near || !p->ops->one_host);
}

static const char *cure_of_connect(const struct probe *p, int peer)
{
    if (p->d->cards[peer].machine == p->d->cards[p->d->rank].machine &&
        !p->ops->one_host && !trib_net_loopback_up())
        return "ip link set lo up on that host";
    if (p->ops->one_host)
        return "the ranks' containers must share a PID namespace and run as the same "
               "user";
    return "a firewall, or no route: open the ranks' ports between all hosts, and "
           "choose them with TRIB_TRANSPORT=tcp:port=N,ports=N";
}

static uint8_t connect_to(struct probe *p, int peer)
{
    trib_error_clear(&p->err);
    memset(p->arrived, 0, sizeof(p->arrived));
    memset(p->memory + MUCH, 0, MUCH);
    p->lost[0] = '\0';
    p->remote = NULL;
    const struct trib_transport_ops *ops = p->t->ops;
    if (ops->connect(p->t, peer, &p->doors[peer].address) == TRIB_OK &&
        trib_transport_import(p->t, peer, &p->doors[peer].region, 2 * MUCH,
                              &p->remote) == TRIB_OK)
        return CONNECTED;
    p->tried++;
    say_pair(p, FAIL, (struct way){p->d->rank, peer}, cure_of_connect(p, peer),
             trib_error_text(&p->err));
    return NOT_CONNECTED;
}

/* Write and wait for the partner's bytes; return true if they arrived. */
static bool write_and_await(struct probe *p, int peer, size_t bytes, uint32_t imm)
{
    return write_to(p, peer, bytes, imm) && await(p, peer, bytes, imm);
}

/* Run a round. The exchanges keep the partners in step: neither disconnects or writes
 * more before the other has reported what arrived. */
static trib_status_t run_round(struct probe *p, int round)
{
    const struct trib_exchange *x = p->d->x;
    int rank = p->d->rank, peer = trib_doctor_partner(rank, p->d->size, round);
    bool pair = is_pair(p, rank, peer), little = false, much = false;
    uint8_t mine = pair ? connect_to(p, peer) : NO_PAIR;
    trib_status_t st = x->allgather(x->arg, "reach", &mine, sizeof(mine), p->states);
    bool both = st == TRIB_OK && mine == CONNECTED && p->states[peer] == CONNECTED;

    if (both)
        little = write_and_await(p, peer, LITTLE, 1);
    if (st == TRIB_OK)
        st = x->allgather(x->arg, "little", &mine, sizeof(mine), p->states);
    if (both && st == TRIB_OK)
        much = write_and_await(p, peer, MUCH, 2);
    if (both)
        judge(p, peer, little, much);
    if (both && little && much)
        await_heartbeat(p, peer);
    if (st == TRIB_OK)
        st = x->allgather(x->arg, "much", &mine, sizeof(mine), p->states);
    if (p->t && p->remote)
        p->t->ops->release(p->t, p->remote);
    p->remote = NULL;
    if (mine == CONNECTED)
        p->t->ops->disconnect(p->t, peer);
    return st;
}

static trib_status_t sum_up(struct probe *p)
{
    struct trib_doctor *d = p->d;
    int64_t mine[2] = {p->good, p->tried}, good = 0, tried = 0;
    int64_t(*all)[2] = calloc((size_t)d->size, sizeof(*all));
    trib_status_t st =
        all ? d->x->allgather(d->x->arg, "reached", mine, sizeof(mine), all)
            : trib_fail(&d->comm.err, TRIB_ERR_NO_MEMORY, "no memory for %d ranks",
                        d->size);

    for (int r = 0; st == TRIB_OK && r < d->size; r++) {
        good += all[r][0];
        tried += all[r][1];
    }
    free(all);
    if (st == TRIB_OK && d->rank == 0 && tried)
        trib_report_say(&d->report, good == tried ? OK : FAIL, p->name,
                        good == tried ? "" : "see the lines of these pairs",
                        "%lld of %lld directions between ranks carry %d bytes and %d "
                        "KiB",
                        (long long)good, (long long)tried, LITTLE, MUCH >> 10);
    return st;
}

static trib_status_t run_probe(struct probe *p)
{
    struct trib_doctor *d = p->d;
    struct door door = {.open = 0};
    trib_status_t opened = open_door(p, &door);

    door.open = opened == TRIB_OK;
    if (opened != TRIB_OK)
        snprintf(door.why, sizeof(door.why), "%s", trib_error_text(&p->err));
    for (size_t i = 0; opened == TRIB_OK && i < MUCH; i++)
        p->memory[i] = pattern(d->rank, i);
    trib_status_t st =
        d->x->allgather(d->x->arg, "door", &door, sizeof(door), p->doors);
    for (int r = 0; st == TRIB_OK && r < d->size; r++)
        p->doors[r].why[sizeof(door.why) - 1] = 0; /* peers' strings may be
                                                    * unterminated */
    if (st == TRIB_OK && d->rank == 0)
        compare_doors(p);
    for (int k = 0; st == TRIB_OK && k < trib_doctor_rounds(d->size); k++)
        st = run_round(p, k);
    close_door(p);
    return st == TRIB_OK ? sum_up(p) : st;
}

trib_status_t trib_doctor_reach(struct trib_doctor *d)
{
    trib_status_t st = TRIB_OK;

    for (int i = 0; st == TRIB_OK && trib_transports[i]; i++) {
        const struct trib_transport_ops *ops = trib_transports[i];
        struct probe p = {.d = d, .ops = ops, .name = ops->name};
        if (!trib_transport_links(ops))
            continue;
        choose_text(&p);
        p.doors = calloc((size_t)d->size, sizeof(*p.doors));
        p.states = calloc((size_t)d->size, sizeof(*p.states));
        st = p.doors && p.states ? run_probe(&p)
                                 : trib_fail(&d->comm.err, TRIB_ERR_NO_MEMORY,
                                             "no memory for %d ranks", d->size);
        free(p.doors);
        free(p.states);
    }
    return st;
}
