/* SPDX-License-Identifier: BSD-3-Clause */
/* Requesting memory from another process on this host. */
#include "transport/common/handout.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/time.h"
#include "base/wait.h"
#include "transport/common/guard.h"
#include "transport/common/handout_wire.h"

enum {
    NAME_DIGITS = 5, /* of the kernel's abstract names, hexadecimal */
    FULL_MS = 5, /* between two attempts while the owner's connection queue is full */
    /* More than an owner can close after TRIB_HANDOUT_REQUEST_MS in TRIB_HANDOUT_MS, so
     * that a requester which is stopped again and again fails by its time-out. */
    CLOSED_MAX = 8,
};

/* The kernel's names are a zero byte and five digits; ours are numbers from 1 on. */
static socklen_t address_of(uint32_t name, struct sockaddr_un *out)
{
    char digits[NAME_DIGITS + 1];

    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(digits, sizeof(digits), "%05x", (name - 1) & 0xfffffu);
    memcpy(out->sun_path + 1, digits, NAME_DIGITS);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + NAME_DIGITS);
}

static trib_status_t wrong_user(const struct trib_handout_owner *o, uid_t uid,
                                uid_t wanted, struct trib_error *err)
{
    return trib_fail(
        err, TRIB_ERR_UNSUPPORTED,
        "process %d runs as user %u, but the job belongs to user %u: its memory is "
        "refused",
        o->pid, (unsigned)uid, (unsigned)wanted);
}

/* The socket name and the process number came from outside, so ask the kernel which
 * process listens there. */
static trib_status_t check_owner(const struct trib_handout_owner *o, int fd,
                                 struct trib_error *err)
{
    struct ucred who;

    assert(fd >= 0);
    if (!trib_handout_peer(fd, &who))
        return trib_fail(err, TRIB_ERR_SYSTEM,
                         "the kernel does not report the owner of a socket: %m");
    if (!o->guard && who.uid != geteuid())
        return trib_fail(
            err, TRIB_ERR_UNSUPPORTED,
            "process %d runs as user %u, this one as %u: start all ranks as the same "
            "user",
            o->pid, (unsigned)who.uid, (unsigned)geteuid());
    if (!o->guard)
        return TRIB_OK;
    if (who.pid <= 0 || who.pid != o->pid)
        return trib_fail(
            err, TRIB_ERR_UNSUPPORTED,
            "process %d does not own the socket in its address: process %d does",
            o->pid, (int)who.pid);
    if (!o->guard->serves || (o->aggregator && who.uid == geteuid()))
        return TRIB_OK;
    return trib_guard_is_user(o->guard, who.uid)
               ? TRIB_OK
               : wrong_user(o, who.uid, (uid_t)atomic_load(&o->guard->user), err);
}

/* Connect and check the owner; TRIB_INPROGRESS: its connection queue is full. `again`:
 * it was reached before. */
static trib_status_t reach(const struct trib_handout_owner *o, bool again, int *fd_out,
                           struct trib_error *err)
{
    struct sockaddr_un at;
    const socklen_t bytes = address_of(o->name, &at);
    trib_status_t status;

    if (!o->name)
        return trib_fail(err, TRIB_ERR_UNSUPPORTED,
                         "process %d has no socket for handing out its memory", o->pid);
    int fd = trib_handout_socket();
    if (fd < 0)
        return trib_fail(err, TRIB_ERR_SYSTEM, "cannot create a local socket: %m");
    if (connect(fd, (struct sockaddr *)&at, bytes) == 0)
        status = check_owner(o, fd, err);
    else if (errno == EAGAIN)
        status = TRIB_INPROGRESS;
    else if (errno == ECONNREFUSED && again)
        status = trib_fail(err, TRIB_ERR_PEER_LOST,
                           "process %d has died or closed its memory", o->pid);
    else
        status =
            trib_fail(err, TRIB_ERR_UNSUPPORTED,
                      "cannot reach the socket from which process %d hands out its "
                      "memory: %m; run the ranks, and the aggregators of their host, "
                      "in one network namespace",
                      o->pid);
    if (status == TRIB_OK)
        *fd_out = fd;
    else
        close(fd);
    return status;
}

trib_status_t trib_handout_probe(const struct trib_handout_owner *o,
                                 struct trib_error *err)
{
    int fd;
    trib_status_t status = reach(o, false, &fd, err);

    if (status == TRIB_OK)
        close(fd);
    return status == TRIB_INPROGRESS
               ? trib_fail(err, TRIB_ERR_UNSUPPORTED,
                           "too many requests for memory of process %d are waiting",
                           o->pid)
               : status;
}

/* Take the received descriptors. The kernel closes those that do not fit. */
static void take_descriptors(struct msghdr *m, int fds[TRIB_HANDOUT_FDS])
{
    for (int i = 0; i < TRIB_HANDOUT_FDS; i++)
        fds[i] = -1;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t bytes = c->cmsg_len - CMSG_LEN(0);
        if (bytes > TRIB_HANDOUT_FDS * sizeof(int))
            bytes = TRIB_HANDOUT_FDS * sizeof(int);
        memcpy(fds, CMSG_DATA(c), bytes);
        for (size_t i = 0; i < bytes / sizeof(int); i++)
            fds[i] = trib_fd_keep(fds[i]);
    }
}

static void close_all(const int fds[TRIB_HANDOUT_FDS])
{
    for (int i = 0; i < TRIB_HANDOUT_FDS; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

/* The owner closed the connection without an answer; `error` is 0 if it had read the
 * request. Its process may live: it closes if this process is stopped or delayed before
 * it sends the request. So ask again. If the owner has ended, its socket refuses the
 * next connection. */
static trib_status_t ask_again(const struct trib_handout_owner *o,
                               struct trib_handout_call *call, int error,
                               struct trib_error *err)
{
    const char *how = error ? "before it read the request" : "without an answer";

    if (call->fd > 0)
        close(call->fd);
    call->fd = 0;
    if (++call->closed < CLOSED_MAX) {
        trib_log(o->log, TRIB_LOG_INFO, "handout",
                 "process %d closed the connection %s for its memory: asking again",
                 o->pid, how);
        return TRIB_INPROGRESS;
    }
    return trib_fail(err, TRIB_ERR_PEER_LOST,
                     "process %d closed %d connections %s for its memory: does it "
                     "refuse to share it with this process, which runs as user %u?",
                     o->pid, call->closed, how, (unsigned)geteuid());
}

/* Return the status of an answer without descriptors. */
static trib_status_t refused(const uint8_t answer[2], ssize_t n, int pid,
                             struct trib_error *err)
{
    if (n == 2 && answer[0] == TRIB_HANDOUT_FAILED) {
        errno = answer[1];
        return trib_fail(err, TRIB_ERR_SYSTEM, "process %d cannot send its memory: %m",
                         pid);
    }
    if (answer[0] == TRIB_HANDOUT_HERE)
        return trib_fail(err, TRIB_ERR_SYSTEM,
                         "process %d handed out its memory, but this one has too many "
                         "open files (raise ulimit -n)",
                         pid);
    return trib_fail(err, TRIB_ERR_INVALID,
                     "process %d no longer has the memory that it announced", pid);
}

static trib_status_t read_answer(const struct trib_handout_owner *o,
                                 struct trib_handout_call *call,
                                 struct trib_handout_fds *out, struct trib_error *err)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(TRIB_HANDOUT_FDS * sizeof(int))];
    } control;
    uint8_t answer[2] = {0};
    struct iovec part = {answer, sizeof(answer)};
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof(control.bytes)};
    int fds[TRIB_HANDOUT_FDS];

    assert(call->fd > 0);
    ssize_t n = recvmsg(call->fd, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return TRIB_INPROGRESS;
    if (n < 0 && errno != ECONNRESET)
        return trib_fail(err, TRIB_ERR_SYSTEM,
                         "cannot read the answer of process %d, which was asked for "
                         "its memory: %m",
                         o->pid);
    if (n < 0)
        return ask_again(o, call, errno, err);
    take_descriptors(&m, fds); /* an empty message may have some, too */
    if (n == 0) {
        close_all(fds);
        return ask_again(o, call, 0, err);
    }
    if (n == 1 && answer[0] == TRIB_HANDOUT_HERE && fds[0] >= 0) {
        *out = (struct trib_handout_fds){fds[0], fds[1]};
        return TRIB_OK;
    }
    close_all(fds);
    return refused(answer, n, o->pid, err);
}

/* Connect and send the request; a new socket has room for it. */
static trib_status_t begin(const struct trib_handout_owner *o,
                           struct trib_handout_call *call, struct trib_error *err)
{
    const struct trib_handout_request r = {.magic = TRIB_HANDOUT_MAGIC,
                                           .key = call->key};
    int fd;
    trib_status_t status = reach(o, call->closed > 0, &fd, err);

    assert(!call->fd);
    if (status != TRIB_OK)
        return status;
    call->fd = fd;
    if (send(fd, &r, sizeof(r), MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof(r))
        return TRIB_INPROGRESS;
    return errno == EPIPE || errno == ECONNRESET
               ? ask_again(o, call, errno, err)
               : trib_fail(err, TRIB_ERR_SYSTEM,
                           "cannot ask process %d for its memory: %m", o->pid);
}

trib_status_t trib_handout_step(const struct trib_handout_owner *o, uint64_t key,
                                struct trib_handout_call *call,
                                struct trib_handout_fds *out, struct trib_error *err)
{
    const bool passed = call->until && trib_deadline_passed(call->until);
    const bool fresh = !call->until || (passed && call->key != key);
    const bool late = passed && !fresh;

    if (!fresh && call->key != key)
        return TRIB_INPROGRESS;
    if (fresh) {
        trib_handout_drop(call);
        *call = (struct trib_handout_call){.until = trib_deadline_ms(TRIB_HANDOUT_MS),
                                           .key = key};
    }
    trib_status_t status = TRIB_INPROGRESS;
    if (!call->fd)
        status = begin(o, call, err);
    if (status == TRIB_INPROGRESS && call->fd)
        status = read_answer(o, call, out, err);
    if (status == TRIB_INPROGRESS && late)
        status =
            trib_fail(err, TRIB_ERR_PEER_LOST,
                      "process %d has not handed out its memory within %d ms: is it "
                      "stopped?",
                      o->pid, TRIB_HANDOUT_MS);
    if (status != TRIB_INPROGRESS)
        trib_handout_drop(call);
    return status;
}

void trib_handout_drop(struct trib_handout_call *call)
{
    if (call->fd > 0)
        close(call->fd);
    *call = (struct trib_handout_call){.until = 0};
}

/* Without a connection there is no descriptor to poll, so just sleep. */
trib_status_t trib_handout_ask(const struct trib_handout_owner *o, uint64_t key,
                               struct trib_handout_fds *out, struct trib_error *err)
{
    struct trib_handout_call call = {.until = 0};
    trib_status_t status;

    while ((status = trib_handout_step(o, key, &call, out, err)) == TRIB_INPROGRESS) {
        struct pollfd fd = {.fd = call.fd ? call.fd : -1, .events = POLLIN};
        (void)trib_poll(&fd, 1, call.fd ? trib_deadline_left_ms(call.until) : FULL_MS);
    }
    return status;
}
