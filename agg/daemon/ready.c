/* SPDX-License-Identifier: BSD-3-Clause */
/* An epoll set of the clients, so that only clients with input are read. */
#include <assert.h>
#include <errno.h>
#include <sys/epoll.h>

#include "agg/daemon/server_parts.h"

enum { EVENTS_AT_ONCE = 256 }; /* further events follow in the next pass */

/* Fall back to polling all clients, and log why: slow, but the server keeps running. */
void ready_blind(struct server *s, const char *what)
{
    if (!s->said_blind)
        trib_log(
            &s->log, TRIB_LOG_ERROR, "tribd",
            "cannot wait for jobs (%s): %m; polling every %d ms: raise ulimit -n, or "
            "free memory on the host",
            what, BLIND_MS);
    s->said_blind = s->blind = true;
    for (int i = 0; i < s->n_clients; i++)
        s->clients[i]->ready = true;
}

void ready_note(struct server *s)
{
    struct epoll_event events[EVENTS_AT_ONCE];
    const int n = epoll_wait(s->epoll_fd, events, EVENTS_AT_ONCE, 0);

    assert(n <= EVENTS_AT_ONCE);
    for (int i = 0; i < n; i++)
        ((struct client *)events[i].data.ptr)->ready = true;
}

void ready_watch(struct server *s, struct client *c)
{
    const short wanted =
        !c->session || server_holds(c) ? 0 : trib_session_events(c->session);
    struct epoll_event e = {.events = (uint32_t)wanted, .data.ptr = c};
    /* Remove it even if no events are wanted: epoll always reports a hangup, in every
     * pass. */
    const int how = !wanted      ? EPOLL_CTL_DEL
                    : c->watched ? EPOLL_CTL_MOD
                                 : EPOLL_CTL_ADD;

    if (wanted == c->watched)
        return;
    assert(c->session); /* a closed one is watched for nothing */
    if (epoll_ctl(s->epoll_fd, how, trib_session_fd(c->session), &e) == 0)
        c->watched = wanted;
    else
        ready_blind(s, "epoll");
}

void ready_forget(struct server *s, struct client *c)
{
    assert(c->session);
    if (c->watched &&
        epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, trib_session_fd(c->session), NULL) != 0)
        ready_blind(s, "epoll");
    c->watched = 0;
}
