/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/dial.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/addresses.h"
#include "base/fd.h"
#include "base/time.h"
#include "base/wait.h"

#define MS UINT64_C(1000000)

/* Attempt i connects to address i. */
struct dialling {
    const struct trib_dial *dial;
    struct pollfd polls[TRIB_DIAL_MAX]; /* fd -1: finished, or not started */
    uint64_t until[TRIB_DIAL_MAX];
    int begun;
    int open; /* attempts in progress */
    uint64_t next_at; /* when to start the next attempt */
    int error; /* errno of the last finished attempt */
};

/*
 * Detect TCP self-connect: with no listener on an ephemeral port, an attempt may
 * connect to itself.
 */
static bool met_itself(int fd)
{
    struct sockaddr_storage here;
    struct sockaddr_storage there;
    socklen_t here_bytes = sizeof(here);
    socklen_t there_bytes = sizeof(there);

    memset(&here, 0, sizeof(here));
    memset(&there, 0, sizeof(there));
    return getsockname(fd, (struct sockaddr *)&here, &here_bytes) == 0 &&
           getpeername(fd, (struct sockaddr *)&there, &there_bytes) == 0 &&
           here_bytes == there_bytes && memcmp(&here, &there, here_bytes) == 0;
}

static void end(struct dialling *d, int i, int error)
{
    if (d->polls[i].fd >= 0) {
        close(d->polls[i].fd);
        d->open--;
    }
    d->polls[i].fd = -1;
    d->dial->to[i].error = d->error = error;
    d->next_at = 0; /* start the next attempt at once */
}

/* Finish an attempt; return true if the connection is established. */
static bool is_connected(struct dialling *d, int i)
{
    int error = 0;
    socklen_t bytes = sizeof(error);

    if (getsockopt(d->polls[i].fd, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0)
        error = errno;
    if (!error && met_itself(d->polls[i].fd))
        error = ECONNREFUSED;
    if (error)
        end(d, i, error);
    return !error;
}

static bool is_loopback(const struct trib_dial_to *to)
{
    uint8_t ip[16];

    trib_net_ip((const struct sockaddr *)&to->at, ip);
    return trib_net_is_loopback(ip);
}

/* Start the next attempt; return true if it connects immediately. */
static bool begin(struct dialling *d, uint64_t now)
{
    int i = d->begun++, ms = d->dial->attempt_ms;
    const struct trib_dial_to *to = &d->dial->to[i];
    int fd = trib_fd_keep(
        socket(to->at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));

    d->polls[i] = (struct pollfd){.fd = fd, .events = POLLOUT};
    d->until[i] = now + (uint64_t)(ms ? ms : TRIB_DIAL_ATTEMPT_MS) * MS;
    d->next_at = now + TRIB_DIAL_STEP_MS * MS;
    if (fd < 0) {
        end(d, i, errno);
        return false;
    }
    d->open++;
    if (d->dial->reuse)
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    if (d->dial->segment)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &d->dial->segment, sizeof(int));
    if (d->dial->loopback && is_loopback(to))
        (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, d->dial->loopback,
                         (socklen_t)strlen(d->dial->loopback));
    if (connect(fd, (const struct sockaddr *)&to->at, to->len) == 0)
        return is_connected(d, i);
    /* A connect() interrupted by a signal continues in the background. */
    if (errno != EINPROGRESS && errno != EINTR)
        end(d, i, errno);
    return false;
}

/* Return the time until an attempt times out or the next one starts. */
static int pause_ms(const struct dialling *d, uint64_t now)
{
    uint64_t first = d->begun < d->dial->n ? d->next_at : UINT64_MAX;

    for (int i = 0; i < d->begun; i++) {
        if (d->polls[i].fd >= 0 && d->until[i] < first)
            first = d->until[i];
    }
    if (d->dial->deadline && d->dial->deadline < first)
        first = d->dial->deadline;
    return first <= now ? 0 : (int)((first - now + MS - 1) / MS);
}

/* Return the attempt that has succeeded, or -1. */
static int find_connected(struct dialling *d, uint64_t now)
{
    for (int i = 0; i < d->begun; i++) {
        if (d->polls[i].fd < 0)
            continue;
        if (d->polls[i].revents && is_connected(d, i))
            return i;
        if (d->polls[i].fd >= 0 && now >= d->until[i])
            end(d, i, ETIMEDOUT);
    }
    return -1;
}

static int await(struct dialling *d)
{
    for (;;) {
        uint64_t now = trib_now_ns();
        bool over = d->dial->deadline && now >= d->dial->deadline;
        while (!over && d->begun < d->dial->n && (!d->open || now >= d->next_at)) {
            if (begin(d, now))
                return d->begun - 1;
        }
        if (over)
            d->error = ETIMEDOUT;
        if (over || !d->open)
            return -1;
        if (trib_idle_poll(d->dial->idle, d->polls, (nfds_t)d->begun,
                           pause_ms(d, now)) < 0) {
            if (errno != EINTR) {
                d->error = errno;
                return -1;
            }
            continue;
        }
        int found = find_connected(d, trib_now_ns());
        if (found >= 0)
            return found;
    }
}

int trib_dial(const struct trib_dial *dial, int *which_out)
{
    struct dialling d = {.dial = dial, .error = EADDRNOTAVAIL};
    int fd = -1;

    assert(dial->n <= TRIB_DIAL_MAX);
    for (int i = 0; i < dial->n; i++)
        dial->to[i].error = 0;
    *which_out = await(&d);
    if (*which_out >= 0)
        fd = d.polls[*which_out].fd;
    for (int i = 0; i < d.begun; i++) {
        if (d.polls[i].fd >= 0 && i != *which_out) {
            close(d.polls[i].fd);
            dial->to[i].error = fd < 0 ? d.error : 0;
        }
    }
    errno = d.error;
    return fd;
}

/* After the connection ------------------------------------------------------------- */

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

void trib_dial_pause(struct trib_dial_retry *retry, uint64_t deadline,
                     struct trib_idle *idle)
{
    const int ms =
        retry->ms / 2 + (int)(next_random(&retry->random) % (uint64_t)retry->ms);
    const int left = trib_deadline_left_ms(deadline), longer = retry->ms * 3 / 2;

    assert(retry->ms > 1 && retry->ms <= retry->most_ms);
    (void)trib_idle_sleep(idle, (uint64_t)(ms < left ? ms : left) * MS);
    retry->ms = longer < retry->most_ms ? longer : retry->most_ms;
}

/* Wait until the socket may be ready; on failure, return false and set errno. */
static bool wait_for(const struct trib_dialled *d, short events)
{
    const uint64_t slice = trib_deadline_ms(TRIB_DIAL_ALIVE_MS);

    if (!d->is_alive || slice >= d->deadline)
        return trib_wait_fd(d->fd, events, d->deadline, d->idle);
    errno = ETIMEDOUT;
    return d->is_alive(d->arg) &&
           (trib_wait_fd(d->fd, events, slice, d->idle) || errno == ETIMEDOUT);
}

static bool may_continue(const struct trib_dialled *d, short events)
{
    return errno == EINTR || (errno == EAGAIN && wait_for(d, events));
}

bool trib_dial_receive(const struct trib_dialled *d, void *to, size_t n)
{
    uint8_t *at = to;

    while (n) {
        const ssize_t got = recv(d->fd, at, n, MSG_DONTWAIT);
        if (got == 0)
            errno = 0;
        if (got == 0 || (got < 0 && !may_continue(d, POLLIN)))
            return false;
        at += got > 0 ? got : 0;
        n -= got > 0 ? (size_t)got : 0;
    }
    return true;
}

bool trib_dial_send(const struct trib_dialled *d, const void *from, size_t n)
{
    const uint8_t *at = from;

    while (n) {
        const ssize_t sent = send(d->fd, at, n, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && !may_continue(d, POLLOUT))
            return false;
        at += sent > 0 ? sent : 0;
        n -= sent > 0 ? (size_t)sent : 0;
    }
    return true;
}
