/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp: the work of the heartbeat thread. It accepts connections, answers and checks
 * proofs, and sends queued writes, while the owner does not poll.
 */
#include <assert.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/fd.h"
#include "transport/common/heartbeat.h"
#include "transport/tcp/tcp.h"

enum { READY = 16 };

static void help_proofs(struct tcp *tcp)
{
    struct epoll_event ready[READY];
    uint64_t one = 1;
    int n = epoll_wait(tcp->proofs, ready, READY, 0);
    bool on_listener = false;

    for (int i = 0; i < n; i++) {
        int peer = (int)(ready[i].data.u64 >> 32) - 1;
        on_listener |= peer < 0;
        if (peer < 0)
            continue;
        trib_tcp_poll_challenge(tcp, peer);
        (void)trib_tcp_flush(tcp, peer);
    }
    if (on_listener) {
        pthread_mutex_lock(&tcp->lock);
        trib_tcp_progress_listener(tcp);
        pthread_mutex_unlock(&tcp->lock);
    }
    if (n > 0 && write(tcp->wakeup_fd, &one, sizeof(one)) < 0)
        return; /* a wakeup is pending already */
}

/* Runs on the heartbeat thread: the owner may compute for seconds, or wait in another
 * communicator, but its writes must reach a peer that polls. */
static bool help(void *arg)
{
    struct tcp *tcp = arg;

    if (tcp->proofs >= 0)
        help_proofs(tcp);
    return trib_tcp_push_for_owner(tcp);
}

bool trib_tcp_helper_open(struct tcp *tcp)
{
    assert(!tcp->is_helped);
    if (tcp_has_secret(tcp)) {
        tcp->proofs = trib_fd_keep(epoll_create1(EPOLL_CLOEXEC));
        if (tcp->proofs < 0)
            return false;
        trib_tcp_watch_proof(tcp, tcp->listener.fd, -1);
    }
    trib_heartbeat_help(tcp->local.heartbeat, tcp->proofs, help, tcp);
    tcp->is_helped = true;
    return true;
}

void trib_tcp_helper_close(struct tcp *tcp)
{
    /* A forked child does not have the thread. */
    if (tcp->is_helped && getpid() == tcp->local.me.pid)
        trib_heartbeat_help(tcp->local.heartbeat, -1, NULL, NULL);
    tcp->is_helped = false;
    if (tcp->proofs >= 0)
        close(tcp->proofs);
    tcp->proofs = -1;
}
