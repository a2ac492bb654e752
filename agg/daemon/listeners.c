/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Accepts connections so that unauthenticated peers cannot keep jobs out.
 *
 * At most UNAUTHENTICATED_MAX connections may be unauthenticated (base/acceptor.h). An
 * address may have UNAUTHENTICATED_PER_SOURCE connections. Beyond
 * these, its oldest is evicted after UNAUTHENTICATED_MS, which is many times the
 * duration of a handshake. A job keeps its place once authenticated.
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

/* The acceptor removes a client that has not authenticated. */
static void send_away(struct server *s, struct client *c)
{
    int i = 0;

    assert(c->session);
    server_event(s, TRIB_SERVICE_COUNTS_EVICTED);
    (void)trib_session_end(
        c->session, TRIB_ERR_NO_RESOURCE,
        "too many pending connections: this one was closed to admit another, as the "
        "oldest that %s",
        c->proven ? "had not sent a request" : "had not authenticated");
    listener_log_end(s, c);
    server_hang_up(s, c);
    while (s->clients[i] != c)
        i++;
    server_free_client(s, i);
}

static enum trib_pending_fate finish(void *owner, struct trib_pending *p,
                                     enum trib_pending_end why)
{
    assert(why == TRIB_PENDING_EVICTED); /* sessions have their own timeouts */
    (void)why;
    send_away(owner, (struct client *)p);
    return TRIB_PENDING_TAKEN;
}

/* Evict an unauthenticated client, or else the oldest authenticated one that has not
 * sent a JOIN; false: all others have jobs. */
static bool evict(struct server *s)
{
    struct client *oldest = NULL;

    if (trib_acceptor_evict(&s->acceptor))
        return true;
    for (int i = 0; i < s->n_clients; i++) {
        struct client *c = s->clients[i];
        if (c->session && c->proven && !c->asked &&
            (!oldest || c->base.since < oldest->base.since))
            oldest = c;
    }
    if (oldest)
        send_away(s, oldest);
    return oldest;
}

static struct trib_pending *admit(void *owner, int fd, const uint8_t ip[16])
{
    static const unsigned unheard = UNHEARD_MS;
    struct server *s = owner;
    const bool fits = s->n_clients < s->n_clients_max || evict(s);
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

    if (evict(s))
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
