/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/common/handout.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/time.h"
#include "base/wait.h"
#include "transport/common/guard.h"
#include "transport/common/handout_wire.h"

enum {
    NAME_DIGITS = 5, /* of the kernel's abstract names, hexadecimal */
    REST_MS = 20, /* pause after accept() failed, as when no descriptor is free */
    AGGREGATORS = 64, /* limit of aggregator processes that may be admitted */
};

struct entry {
    uint64_t key;
    struct trib_handout_fds fds;
};

struct trib_handout {
    int fd; /* listening socket */
    int stop; /* eventfd: readable when the thread must end */
    uint32_t name;
    pid_t pid;
    struct trib_guard *guard;
    bool serves; /* the thread runs */
    pthread_t thread;
    pthread_mutex_t lock; /* protects the members below */
    struct entry *entries;
    size_t n, room;
    pid_t admitted[AGGREGATORS];
    int n_admitted;
};

static uint32_t name_of(int fd)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    socklen_t bytes = sizeof(at);
    char digits[NAME_DIGITS + 1] = "", *end;

    if (getsockname(fd, (struct sockaddr *)&at, &bytes) ||
        bytes != offsetof(struct sockaddr_un, sun_path) + 1 + NAME_DIGITS)
        return 0;
    memcpy(digits, at.sun_path + 1, NAME_DIGITS);
    unsigned long number = strtoul(digits, &end, 16);
    return *end ? 0 : (uint32_t)number + 1;
}

int trib_handout_socket(void)
{
    return trib_fd_keep(
        socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

bool trib_handout_peer(int fd, struct ucred *out)
{
    socklen_t bytes = sizeof(*out);

    *out = (struct ucred){.uid = (uid_t)-1};
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, out, &bytes) == 0;
}

struct trib_handout *trib_handout_open(struct trib_guard *guard)
{
    struct sockaddr_un any = {.sun_family = AF_UNIX};
    struct trib_handout *h = calloc(1, sizeof(*h));

    if (!h)
        return NULL;
    h->guard = guard;
    h->fd = trib_handout_socket();
    h->stop = trib_fd_keep(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    h->pid = getpid();
    if (h->fd < 0 || h->stop < 0 ||
        bind(h->fd, (struct sockaddr *)&any, sizeof(sa_family_t)) ||
        listen(h->fd, SOMAXCONN) || !(h->name = name_of(h->fd))) {
        if (h->fd >= 0)
            close(h->fd);
        if (h->stop >= 0)
            close(h->stop);
        free(h);
        return NULL;
    }
    pthread_mutex_init(&h->lock, NULL);
    return h;
}

uint32_t trib_handout_name(const struct trib_handout *h)
{
    return h ? h->name : 0;
}

void trib_handout_close(struct trib_handout *h)
{
    if (!h)
        return;
    if (h->serves && h->pid == getpid()) {
        const uint64_t one = 1;
        (void)!write(h->stop, &one, sizeof(one));
        pthread_join(h->thread, NULL);
    }
    close(h->stop);
    close(h->fd);
    free(h->entries);
    free(h);
}

trib_status_t trib_handout_add(struct trib_handout *h, uint64_t key,
                               struct trib_handout_fds fds)
{
    trib_status_t status = TRIB_OK;

    if (!h)
        return TRIB_OK;
    pthread_mutex_lock(&h->lock);
    if (h->n == h->room) {
        size_t room = h->room ? 2 * h->room : 16;
        struct entry *more = realloc(h->entries, room * sizeof(*more));
        if (more) {
            h->entries = more;
            h->room = room;
        } else {
            status = TRIB_ERR_NO_MEMORY;
        }
    }
    if (status == TRIB_OK)
        h->entries[h->n++] = (struct entry){key, fds};
    pthread_mutex_unlock(&h->lock);
    return status;
}

void trib_handout_remove(struct trib_handout *h, uint64_t key)
{
    if (!h)
        return;
    pthread_mutex_lock(&h->lock);
    for (size_t i = 0; i < h->n; i++) {
        if (h->entries[i].key == key) {
            h->entries[i] = h->entries[--h->n];
            break;
        }
    }
    pthread_mutex_unlock(&h->lock);
}

bool trib_handout_asked(const struct trib_handout *h)
{
    struct pollfd p = {.events = POLLIN};

    if (!h || h->serves)
        return false;
    p.fd = h->fd;
    return poll(&p, 1, 0) == 1 && (p.revents & POLLIN);
}

trib_status_t trib_handout_admit(struct trib_handout *h, int pid)
{
    bool known = false;

    if (!h)
        return TRIB_OK;
    pthread_mutex_lock(&h->lock);
    for (int i = 0; i < h->n_admitted; i++)
        known |= h->admitted[i] == pid;
    const bool fits = known || h->n_admitted < AGGREGATORS;
    if (!known && fits)
        h->admitted[h->n_admitted++] = pid;
    pthread_mutex_unlock(&h->lock);
    return fits ? TRIB_OK : TRIB_ERR_NO_RESOURCE;
}

/* Return true if this process may receive memory whose key it knows. The lock is held.
 * The first process that knows a key determines the job's user. */
static bool may_have(struct trib_handout *h, const struct ucred *who)
{
    bool may = who->uid == geteuid();

    assert(h->n_admitted <= AGGREGATORS);
    if (!may && h->guard && h->guard->serves)
        return trib_guard_is_user(h->guard, who->uid);
    for (int i = 0; i < h->n_admitted && !may; i++)
        may = h->admitted[i] == who->pid;
    return may;
}

/* A requester that disconnected, or cannot receive the answer, finds out by itself. */
static void send_bytes(int fd, enum trib_handout_answer first, int second)
{
    const uint8_t bytes[2] = {(uint8_t)first, (uint8_t)second};

    (void)!send(fd, bytes, second ? 2 : 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void send_descriptors(int fd, const struct trib_handout_fds *fds)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(TRIB_HANDOUT_FDS * sizeof(int))];
    } control = {.bytes = {0}};
    char byte = TRIB_HANDOUT_HERE;
    struct iovec part = {&byte, 1};
    const int passed[TRIB_HANDOUT_FDS] = {fds->memory, fds->bell};
    const size_t bytes = (fds->bell < 0 ? 1 : 2) * sizeof(int);
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = CMSG_SPACE(bytes)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);

    assert(fds->memory >= 0);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(bytes);
    memcpy(CMSG_DATA(c), passed, bytes);
    if (sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        send_bytes(fd, TRIB_HANDOUT_FAILED, errno);
}

/* Hold the lock while sending, so that the descriptor stays open. */
static void hand_out(struct trib_handout *h, int fd, const struct ucred *who,
                     uint64_t key)
{
    const struct trib_handout_fds *fds = NULL;

    pthread_mutex_lock(&h->lock);
    for (size_t i = 0; i < h->n && !fds; i++)
        if (h->entries[i].key == key)
            fds = &h->entries[i].fds;
    if (!fds)
        send_bytes(fd, TRIB_HANDOUT_NONE, 0);
    else if (may_have(h, who))
        send_descriptors(fd, fds);
    pthread_mutex_unlock(&h->lock);
}

/* Return true if the process might be allowed to get descriptors, so that its request
 * is worth waiting for. */
static bool may_ask(struct trib_handout *h, const struct ucred *who)
{
    const bool serves = h->guard && h->guard->serves;
    const int64_t user = serves ? atomic_load(&h->guard->user) : TRIB_GUARD_ANYBODY;

    if (serves && user == TRIB_GUARD_ANYBODY)
        return true; /* the key decides */
    pthread_mutex_lock(&h->lock);
    const bool may = may_have(h, who);
    pthread_mutex_unlock(&h->lock);
    return may;
}

/* Return false at the deadline, or if the thread must end. */
static bool wait_for(struct trib_handout *h, int fd, int ms)
{
    const uint64_t until = trib_deadline_ms(ms);
    struct pollfd fds[2] = {{.fd = fd, .events = POLLIN},
                            {.fd = h->stop, .events = POLLIN}};

    while (trib_poll(fds, 2, ms < 0 ? -1 : trib_deadline_left_ms(until)) <= 0)
        if (ms >= 0 && trib_deadline_passed(until))
            return false;
    return !fds[1].revents;
}

static void answer(struct trib_handout *h, int fd)
{
    struct trib_handout_request r;
    struct ucred who;

    if (!trib_handout_peer(fd, &who) || !may_ask(h, &who) ||
        !wait_for(h, fd, TRIB_HANDOUT_REQUEST_MS))
        return;
    if (recv(fd, &r, sizeof(r), MSG_DONTWAIT) == (ssize_t)sizeof(r) &&
        r.magic == TRIB_HANDOUT_MAGIC)
        hand_out(h, fd, &who, r.key);
}

static void *serve(void *arg)
{
    struct trib_handout *h = arg;

    while (wait_for(h, h->fd, -1)) {
        int fd = trib_fd_keep(accept4(h->fd, NULL, NULL, SOCK_CLOEXEC));
        if (fd >= 0) {
            answer(h, fd);
            close(fd);
        } else if (errno != EAGAIN) {
            nanosleep(&(struct timespec){0, REST_MS * 1000000L}, NULL);
        }
    }
    return NULL;
}

trib_status_t trib_handout_serve(struct trib_handout *h, struct trib_error *err)
{
    if (!h || h->serves)
        return TRIB_OK;
    errno = trib_thread_start(&h->thread, serve, h);
    if (errno)
        return trib_fail(
            err, TRIB_ERR_SYSTEM,
            "cannot start the thread that hands out memory to other processes: %m");
    h->serves = true;
    return TRIB_OK;
}
