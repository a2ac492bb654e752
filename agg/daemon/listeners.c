/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Accepts connections so that unauthenticated peers cannot keep jobs out.
 *
 * At most UNAUTHENTICATED_MAX connections may be unauthenticated. A further one evicts
 * the oldest of the source address with most of them, so a flood evicts its own
 * connections. An address may have UNAUTHENTICATED_PER_SOURCE connections. Beyond
 * these, its oldest is evicted after UNAUTHENTICATED_MS, which is many times the
 * duration of a handshake. A job keeps its place once authenticated.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agg/daemon/server_parts.h"
#include "base/addresses.h"
#include "base/crowd.h"
#include "base/fd.h"
#include "base/time.h"
#include "base/token_bucket.h"

enum {
    UNAUTHENTICATED_PER_SOURCE = 64,
    UNAUTHENTICATED_MS = 500,
    ACCEPTS_AT_ONCE = 128, /* accepts per pass; then clients are served */
    SAY_AT_ONCE = 20, /* burst of log lines about unauthenticated peers */
    SAY_MS = 500,
};

static bool is_unauthenticated(const struct client *c)
{
    return c->session && !c->proven;
}

/* Return true for an authenticated client that has not sent a JOIN. */
static bool is_idle(const struct client *c)
{
    return c->session && c->proven && !c->asked;
}

static uint64_t source_of(const struct server *s, const struct sockaddr_storage *from)
{
    uint8_t ip[16];

    trib_net_ip((const struct sockaddr *)from, ip);
    return trib_crowd_source(ip, s->seed);
}

/* Return the oldest unauthenticated client of a source, and their number. */
static int oldest_of(const struct server *s, uint64_t source, int *n_out)
{
    int oldest = -1;

    *n_out = 0;
    for (int i = 0; i < s->n_clients; i++) {
        const struct client *c = s->clients[i];
        if (!is_unauthenticated(c) || c->source != source)
            continue;
        ++*n_out;
        if (oldest < 0 || c->came_ns < s->clients[oldest]->came_ns)
            oldest = i;
    }
    return oldest;
}

/* Return the client to evict: the oldest unauthenticated one of the largest source,
 * else the oldest authenticated one without a job; -1: all others have jobs. */
static int first_to_leave(const struct server *s)
{
    struct trib_crowds crowds = {0};
    int best = -1, idle = -1;

    for (int i = 0; i < s->n_clients; i++)
        if (is_unauthenticated(s->clients[i]))
            trib_crowds_add(&crowds, s->clients[i]->source);
    for (int i = 0; i < s->n_clients; i++) {
        const struct client *c = s->clients[i];
        const struct client *before = best < 0 ? NULL : s->clients[best];
        const int crowd = trib_crowds_size(&crowds, c->source);
        const int most = before ? trib_crowds_size(&crowds, before->source) : 0;
        if (is_idle(c) && (idle < 0 || c->came_ns < s->clients[idle]->came_ns))
            idle = i;
        if (is_unauthenticated(c) &&
            (crowd > most || (crowd == most && c->came_ns < before->came_ns)))
            best = i;
    }
    return best < 0 ? idle : best;
}

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

static void send_away(struct server *s, int i)
{
    struct client *c = s->clients[i];

    assert(i < s->n_clients && c->session);
    server_event(s, TRIB_SERVICE_COUNTS_EVICTED);
    (void)trib_session_end(
        c->session, TRIB_ERR_NO_RESOURCE,
        "too many pending connections: this one was closed to admit another, as the "
        "oldest that %s",
        c->proven ? "had not sent a request" : "had not authenticated");
    listener_log_end(s, c);
    server_hang_up(s, c);
    server_free_client(s, i);
}

/* Make a place for one more connection; false: jobs hold all places. */
static bool make_place(struct server *s, uint64_t source)
{
    const uint64_t now_ns = trib_now_ns();
    int n_own, n_unauthenticated = 0;
    int leaves = oldest_of(s, source, &n_own);

    if (n_own >= UNAUTHENTICATED_PER_SOURCE &&
        now_ns - s->clients[leaves]->came_ns >= (uint64_t)UNAUTHENTICATED_MS * 1000000)
        send_away(s, leaves);
    for (int i = 0; i < s->n_clients; i++)
        n_unauthenticated += is_unauthenticated(s->clients[i]);
    if (n_unauthenticated < UNAUTHENTICATED_MAX && s->n_clients < s->n_clients_max)
        return true;
    leaves = first_to_leave(s);
    if (leaves >= 0)
        send_away(s, leaves);
    return s->n_clients < s->n_clients_max;
}

static void add_client(struct server *s, int fd, const struct sockaddr_storage *from)
{
    static const unsigned unheard = UNHEARD_MS;
    const uint64_t source = source_of(s, from);
    const bool fits = make_place(s, source);
    struct client *c = calloc(1, sizeof(*c));

    assert(fd >= 0 && !s->draining);
    if (!c) {
        close(fd);
        return;
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
        return;
    }
    server_event(s, TRIB_SERVICE_COUNTS_CONNECTIONS);
    if (!fits) {
        (void)trib_session_end(c->session, TRIB_ERR_NO_RESOURCE,
                               "all %d places for jobs are in use", s->n_clients_max);
        trib_session_free(c->session);
        free(c);
        return;
    }
    c->source = source;
    c->came_ns = trib_now_ns();
    c->credentials = credentials_hold(s->credentials);
    assert(s->n_clients < s->n_clients_max);
    s->clients[s->n_clients++] = c;
}

/* Handle a failed accept(). Without a free descriptor, evict a client, or use the spare
 * descriptor to accept and close, so that the peer fails at once. true: retry now. */
static bool find_descriptor(struct server *s, int listener, int error)
{
    if (trib_accept_failed(&s->pause, error))
        trib_log(&s->log, TRIB_LOG_WARN, "tribd",
                 "cannot accept connections of jobs: %s; %s; closing unauthenticated "
                 "connections and retrying every %d ms",
                 strerror(error), trib_accept_cure(error), TRIB_ACCEPT_PAUSE_MS);
    if (!trib_accept_paused(&s->pause))
        return true; /* the error concerned only this connection */
    const int leaves = first_to_leave(s);
    if (leaves >= 0) {
        send_away(s, leaves);
        s->pause.until = 0;
        return true;
    }
    if (s->spare_fd >= 0)
        close(s->spare_fd);
    const int fd =
        trib_fd_keep(accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd >= 0)
        close(fd);
    s->spare_fd = trib_fd_keep(open("/dev/null", O_RDONLY | O_CLOEXEC));
    return false;
}

void listener_accept(struct server *s, int listener)
{
    for (int i = 0; i < ACCEPTS_AT_ONCE && !s->draining; i++) {
        struct sockaddr_storage from = {0};
        socklen_t bytes = sizeof(from);
        const int fd = trib_fd_keep(accept4(listener, (struct sockaddr *)&from, &bytes,
                                            SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (fd >= 0)
            add_client(s, fd, &from);
        else if (errno == EAGAIN || !find_descriptor(s, listener, errno))
            break;
    }
}
