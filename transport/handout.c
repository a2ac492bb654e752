/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/handout.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/time.h"
#include "base/wait.h"

#define REQUEST_MAGIC UINT64_C(0x5472696248616e64)

enum {
    NAME_DIGITS = 5, /* the kernel's, hexadecimal */
    REQUEST_MS = 1000, /* for an asker to say what it wants: it does so at once */
    ANSWER_MS = 5000,
    REST_MS = 20, /* when no connection can be taken, as without a free descriptor */
};

struct request {
    uint64_t magic;
    uint64_t key;
};

enum answer { ANSWER_HERE = 1, ANSWER_NONE = 2 };

struct entry {
    uint64_t key;
    int fd;
};

struct trib_handout {
    int fd; /* listens */
    uint32_t name;
    pid_t pid;
    bool serves; /* there is a thread */
    _Atomic bool stop;
    pthread_t thread;
    pthread_mutex_t lock; /* of what follows */
    struct entry *entries;
    size_t n, room;
};

/* The kernel's names are a zero and five digits; ours are numbers from 1 on. */
static socklen_t address_of(uint32_t name, struct sockaddr_un *out)
{
    char digits[NAME_DIGITS + 1];

    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(digits, sizeof(digits), "%05x", (name - 1) & 0xfffffu);
    memcpy(out->sun_path + 1, digits, NAME_DIGITS);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + NAME_DIGITS);
}

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

static int make_socket(void)
{
    return trib_fd_keep(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
}

struct trib_handout *trib_handout_open(void)
{
    struct sockaddr_un any = {.sun_family = AF_UNIX};
    struct trib_handout *h = calloc(1, sizeof(*h));

    if (!h)
        return NULL;
    h->fd = make_socket();
    h->pid = getpid();
    if (h->fd < 0 || bind(h->fd, (struct sockaddr *)&any, sizeof(sa_family_t)) ||
        listen(h->fd, SOMAXCONN) || !(h->name = name_of(h->fd))) {
        if (h->fd >= 0)
            close(h->fd);
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
        atomic_store(&h->stop, true);
        shutdown(h->fd, SHUT_RDWR); /* ends accept() */
        pthread_join(h->thread, NULL);
    }
    close(h->fd);
    free(h->entries);
    free(h);
}

trib_status_t trib_handout_add(struct trib_handout *h, uint64_t key, int fd)
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
        h->entries[h->n++] = (struct entry){key, fd};
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

/* The kernel's word, in this process's user namespace. */
static bool same_user(int fd, uid_t *uid_out)
{
    struct ucred who = {0};
    socklen_t bytes = sizeof(who);

    *uid_out = (uid_t)-1;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes))
        return false;
    *uid_out = who.uid;
    return who.uid == geteuid();
}

/* A byte, with the descriptor if it is not -1. */
static void send_answer(int fd, enum answer answer, int passed)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.bytes = {0}};
    char byte = (char)answer;
    struct iovec part = {&byte, 1};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};

    if (passed >= 0) {
        m.msg_control = control.bytes;
        m.msg_controllen = sizeof(control.bytes);
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &passed, sizeof(int));
    }
    /* One that does not want the answer any more, or cannot be given it, finds out. */
    (void)!sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* The lock is held while it is sent, so that it is not closed meanwhile. */
static void hand_out(struct trib_handout *h, int fd, uint64_t key)
{
    int passed = -1;

    pthread_mutex_lock(&h->lock);
    for (size_t i = 0; i < h->n && passed < 0; i++)
        if (h->entries[i].key == key)
            passed = h->entries[i].fd;
    send_answer(fd, passed >= 0 ? ANSWER_HERE : ANSWER_NONE, passed);
    pthread_mutex_unlock(&h->lock);
}

static void answer(struct trib_handout *h, int fd)
{
    struct request r;
    uid_t uid;

    if (!same_user(fd, &uid) || !trib_wait_fd(fd, POLLIN, trib_deadline_ms(REQUEST_MS)))
        return;
    if (recv(fd, &r, sizeof(r), MSG_DONTWAIT) == (ssize_t)sizeof(r) &&
        r.magic == REQUEST_MAGIC)
        hand_out(h, fd, r.key);
}

static void *serve(void *arg)
{
    struct trib_handout *h = arg;

    while (!atomic_load(&h->stop)) {
        int fd = trib_fd_keep(accept4(h->fd, NULL, NULL, SOCK_CLOEXEC));
        if (fd >= 0) {
            answer(h, fd);
            close(fd);
        } else if (!atomic_load(&h->stop)) {
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
        return trib_fail(err, TRIB_ERR_SYSTEM,
                         "cannot start the thread that hands out memory to other user "
                         "namespaces: %m");
    h->serves = true;
    return TRIB_OK;
}

/* Asking ------------------------------------------------------------------------------
 */

static trib_status_t reach(uint32_t name, int pid, int *fd_out, struct trib_error *err)
{
    struct sockaddr_un at;
    socklen_t bytes = address_of(name, &at);
    uid_t uid;
    int fd = make_socket();

    if (fd < 0)
        return trib_fail(err, TRIB_ERR_SYSTEM, "cannot make a socket of this host: %m");
    if (connect(fd, (struct sockaddr *)&at, bytes)) {
        trib_status_t status =
            trib_fail(err, TRIB_ERR_UNSUPPORTED,
                      "the socket at which process %d hands out its memory is not "
                      "reached: %m; let the ranks share a network namespace",
                      pid);
        close(fd);
        return status;
    }
    if (!same_user(fd, &uid)) {
        close(fd);
        return trib_fail(err, TRIB_ERR_UNSUPPORTED,
                         "process %d runs as user %u, this one as %u: start the ranks as "
                         "one user",
                         pid, (unsigned)uid, (unsigned)geteuid());
    }
    *fd_out = fd;
    return TRIB_OK;
}

trib_status_t trib_handout_knock(uint32_t name, int pid, struct trib_error *err)
{
    int fd;
    trib_status_t status = reach(name, pid, &fd, err);

    if (status == TRIB_OK)
        close(fd);
    return status;
}

/* -1 where none came. */
static int take_descriptor(struct msghdr *m)
{
    int fd = -1;

    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
            c->cmsg_len == CMSG_LEN(sizeof(int)))
            memcpy(&fd, CMSG_DATA(c), sizeof(int));
    return fd;
}

static trib_status_t read_answer(int socket, int pid, int *fd_out, struct trib_error *err)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    char byte = 0;
    struct iovec part = {&byte, 1};
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof(control.bytes)};

    ssize_t n = recvmsg(socket, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    int fd = n == 1 ? take_descriptor(&m) : -1;
    if (n == 1 && byte == ANSWER_HERE && fd < 0)
        return trib_fail(err, TRIB_ERR_SYSTEM,
                         "process %d gave its memory, but this one can open no more "
                         "files (raise ulimit -n)",
                         pid);
    if (n == 1 && byte == ANSWER_HERE) {
        *fd_out = fd;
        return TRIB_OK;
    }
    if (fd >= 0)
        close(fd);
    if (n == 1)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "process %d no longer has the memory that it told of", pid);
    return trib_fail(err, TRIB_ERR_PEER_LOST,
                     "process %d has died or closed its memory", pid);
}

trib_status_t trib_handout_ask(uint32_t name, uint64_t key, int pid, int *fd_out,
                               struct trib_error *err)
{
    struct request r = {.magic = REQUEST_MAGIC, .key = key};
    int fd;
    trib_status_t status = reach(name, pid, &fd, err);

    if (status != TRIB_OK)
        return status;
    if (send(fd, &r, sizeof(r), MSG_NOSIGNAL) != (ssize_t)sizeof(r))
        status = trib_fail(err, TRIB_ERR_PEER_LOST,
                           "process %d has died or closed its memory", pid);
    else if (!trib_wait_fd(fd, POLLIN, trib_deadline_ms(ANSWER_MS)))
        status = trib_fail(err, TRIB_ERR_PEER_LOST,
                           "process %d has not handed out its memory within %d ms: is it "
                           "stopped?",
                           pid, ANSWER_MS);
    else
        status = read_answer(fd, pid, fd_out, err);
    close(fd);
    return status;
}
