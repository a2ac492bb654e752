/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Accepts connections so that unauthenticated peers cannot keep jobs out.
 *
 * At most UNAUTHENTICATED_MAX connections may be unauthenticated (base/acceptor.h). An
 * address may have UNAUTHENTICATED_PER_SOURCE connections. Beyond
 * these, its oldest is evicted after UNAUTHENTICATED_MS, which is many times the
 * duration of a handshake. Once authenticated, a job keeps its place, unless all are in
 * use while its user has many connections without a request, or with requests that wait
 * because the user sent too many.
 */
#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agg/daemon/server_parts.h"
#include "base/fd.h"
#include "base/minmax.h"
#include "base/time.h"
#include "base/token_bucket.h"

enum {
    UNAUTHENTICATED_PER_SOURCE = 64,
    UNAUTHENTICATED_MS = 500,
    ACCEPTS_AT_ONCE = 128, /* accepts per pass; then clients are served */
    SAY_AT_ONCE = 20, /* burst of log lines about unauthenticated peers */
    SAY_MS = 500,
};

/* Log the end of a client. Unauthenticated peers may come by the thousand, so most are
 * only counted. */
void listener_log_end(struct server *s, struct client *c)
{
    static const uint64_t each_ns = (uint64_t)SAY_MS * 1000000;
    const bool named = c->join.job[0];
    char others[80] = "";

    if (!c->proven) {
        server_event(s, TRIB_SERVICE_COUNTS_UNPROVEN);
        s->unauthenticated_left++;
        if (!trib_token_bucket_take(&s->said_until_ns, trib_now_ns(), each_ns,
                                    SAY_AT_ONCE))
            return;
        if (s->unauthenticated_left > 1)
            snprintf(others, sizeof(others),
                     " (and %" PRIu64 " others not listed here)",
                     s->unauthenticated_left - 1);
        s->unauthenticated_left = 0;
    }
    trib_log(&s->log, TRIB_LOG_INFO, "tribd", "%s%s%s%s (from %s)%s",
             named ? "job " : "", c->join.job, named ? ": " : "",
             trib_error_text(&c->err), server_from(c), others);
}

static void free_place(struct server *s, const struct client *c)
{
    int i = 0;

    while (s->clients[i] != c)
        i++;
    server_free_client(s, i);
}

/* The acceptor removes a client that has not authenticated. */
static void send_away(struct server *s, struct client *c)
{
    assert(c->session);
    server_event(s, TRIB_SERVICE_COUNTS_EVICTED);
    (void)trib_session_end(
        c->session, TRIB_ERR_NO_RESOURCE,
        "too many pending connections: this one was closed to admit another, as the "
        "oldest that %s",
        c->proven ? "had not sent a request" : "had not authenticated");
    listener_log_end(s, c);
    server_hang_up(s, c);
    free_place(s, c);
}

static enum trib_pending_fate finish(void *owner, struct trib_pending *p,
                                     enum trib_pending_end why)
{
    assert(why == TRIB_PENDING_EVICTED); /* sessions have their own timeouts */
    (void)why;
    send_away(owner, (struct client *)p);
    return TRIB_PENDING_TAKEN;
}

/* Authenticated clients without a job. */
struct crowd {
    struct client *idle; /* the oldest that has not sent a JOIN */
    struct client *waiting; /* the newest whose JOIN waits for its token, of the user
                             * with most of them */
    uint32_t n_idle, n_waiting; /* all; of that user */
};

static struct crowd find_crowd(const struct server *s)
{
    uint32_t waiting[JOIN_USERS] = {0};
    struct crowd crowd = {.idle = NULL};

    for (int i = 0; i < s->n_clients; i++)
        if (s->clients[i]->session && s->clients[i]->asked_ns)
            waiting[s->clients[i]->join_bucket - s->join_buckets]++;
    for (int i = 0; i < s->n_clients; i++) {
        struct client *c = s->clients[i];
        const bool is_idle = c->session && c->proven && !c->asked;
        crowd.n_idle += is_idle;
        if (is_idle && (!crowd.idle || c->base.since < crowd.idle->base.since))
            crowd.idle = c;
        if (!c->session || !c->asked_ns)
            continue;
        const uint32_t n = waiting[c->join_bucket - s->join_buckets];
        if (n > crowd.n_waiting ||
            (n == crowd.n_waiting && c->asked_ns > crowd.waiting->asked_ns))
            crowd.waiting = c;
        crowd.n_waiting = trib_max(crowd.n_waiting, n);
    }
    return crowd;
}

/* Evict an authenticated client without a job; false: there is none. */
static bool evict_authenticated(struct server *s)
{
    const struct crowd crowd = find_crowd(s);

    if (crowd.n_idle > crowd.n_waiting) {
        send_away(s, crowd.idle);
    } else if (crowd.waiting) {
        if (crowd.waiting->asks_store)
            store_admit_refuse(s, crowd.waiting, ADMIT_TOO_MANY);
        else
            admit_refuse_waiting(s, crowd.waiting);
        free_place(s, crowd.waiting);
    }
    return crowd.idle || crowd.waiting;
}

static struct trib_pending *admit(void *owner, int fd, const uint8_t ip[16])
{
    static const unsigned unheard = UNHEARD_MS;
    struct server *s = owner;
    /* Unauthenticated clients have places of their own, and jobs have theirs. */
    const bool fits = s->n_clients < s->n_clients_max || evict_authenticated(s) ||
                      trib_acceptor_evict(&s->acceptor);
    struct client *c = calloc(1, sizeof(*c));

    (void)ip;
    assert(fd >= 0 && !s->draining);
    if (!c) {
        close(fd);
        return NULL;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unheard, sizeof(unheard));
    const struct trib_session_opts opts = {.fd = fd,
                                           .role = TRIB_CONTROL_AGGREGATOR,
                                           .auth = s->credentials->auth,
                                           .peer = "a job",
                                           .handshake_ms = HANDSHAKE_MS,
                                           .lends = true,
                                           .err = &c->err};
    if (trib_session_open(&opts, &c->session) != TRIB_OK) {
        free(c);
        return NULL;
    }
    server_event(s, TRIB_SERVICE_COUNTS_CONNECTIONS);
    if (!fits) {
        (void)trib_session_end(c->session, TRIB_ERR_NO_RESOURCE,
                               "all %d places for jobs are in use", s->n_clients_max);
        trib_session_free(c->session);
        free(c);
        return NULL;
    }
    c->credentials = credentials_hold(s->credentials);
    s->clients[s->n_clients++] = c;
    return &c->base;
}

/* Evict a client, or use the spare descriptor to accept and close, so that the peer
 * fails at once. */
static bool starved(void *owner, int listener)
{
    struct server *s = owner;

    if (trib_acceptor_evict(&s->acceptor) || evict_authenticated(s))
        return true;
    if (s->spare_fd >= 0)
        close(s->spare_fd);
    const int fd =
        trib_fd_keep(accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd >= 0)
        close(fd);
    s->spare_fd = trib_fd_keep(open("/dev/null", O_RDONLY | O_CLOEXEC));
    return false;
}

bool listener_open(struct server *s)
{
    static const struct trib_acceptor_ops ops = {
        .admit = admit, .finish = finish, .starved = starved};

    s->acceptor = (struct trib_acceptor){.ops = &ops,
                                         .owner = s,
                                         .log = &s->log,
                                         .component = "tribd",
                                         .cannot = "cannot accept connections of jobs",
                                         .max = UNAUTHENTICATED_MAX,
                                         .batch = ACCEPTS_AT_ONCE,
                                         .hello_ms = HANDSHAKE_MS,
                                         .per_source = UNAUTHENTICATED_PER_SOURCE,
                                         .source_ms = UNAUTHENTICATED_MS};
    return trib_acceptor_open(&s->acceptor);
}
