/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asking a process for memory without a wait: one question at a time, and an owner
 * without a socket is an error and no wait.
 */
#include "tests/harness/tribtest.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/error.h"
#include "transport/common/handout.h"
#include "transport/common/handout_wire.h"

static struct trib_error err;
static _Atomic int unheard; /* requests that the owner is not to read */
static int stalls; /* sends before which this process is to stand still */

/* This takes the place of the C library's send in this program. */
ssize_t send(int fd, const void *bytes, size_t len, int flags)
{
    if (stalls > 0) {
        stalls--;
        usleep((TRIB_HANDOUT_REQUEST_MS + 200) * 1000u);
    }
    return sendto(fd, bytes, len, flags, NULL, 0);
}

/* This one, too. The owner calls it. */
ssize_t recv(int fd, void *bytes, size_t len, int flags)
{
    if (atomic_load(&unheard) > 0) {
        atomic_fetch_sub(&unheard, 1);
        errno = EAGAIN;
        return -1;
    }
    return recvfrom(fd, bytes, len, flags, NULL, NULL);
}

TEST(test_no_socket)
{
    const struct trib_handout_owner owner = {.name = 0, .pid = getpid()};
    struct trib_handout_call call = {.until = 0};
    struct trib_handout_fds fds;

    assert_status(trib_handout_probe(&owner, &err), TRIB_ERR_UNSUPPORTED);
    assert_true(trib_handout_step(&owner, 1, &call, &fds, &err) < 0);
    assert_int_equal(call.until, 0);
    assert_int_equal(call.fd, 0);
}

/* Opens a handout of this process; without one the test is left out. */
static struct trib_handout *open_here(struct trib_handout_owner *owner_out)
{
    struct trib_handout *handout = trib_handout_open(NULL);

    trib_error_clear(&err);
    if (!handout)
        tribtest_skip("no abstract sockets here");
    *owner_out = (struct trib_handout_owner){.name = trib_handout_name(handout),
                                             .pid = getpid()};
    return handout;
}

/* Ask for the key 4711, and close what comes. */
static void gets(const struct trib_handout_owner *owner)
{
    struct trib_handout_fds fds;
    const trib_status_t st = trib_handout_ask(owner, 4711, &fds, &err);

    if (st != TRIB_OK)
        fail_msg("%s: %s", trib_status_name(st), err.text);
    assert_true(fds.memory > 2 && fds.bell == -1);
    close(fds.memory);
}

TEST(test_one_question)
{
    struct trib_handout_owner owner;
    struct trib_handout *handout = open_here(&owner);
    struct trib_handout_call call = {.until = 0};
    struct trib_handout_fds fds;

    assert_false(trib_handout_asked(handout));
    assert_status(trib_handout_step(&owner, 4711, &call, &fds, &err), TRIB_INPROGRESS);
    assert_true(trib_handout_asked(handout));
    assert_status(trib_handout_step(&owner, 4712, &call, &fds, &err), TRIB_INPROGRESS);
    assert_int_equal(call.key, 4711);
    trib_handout_drop(&call);
    trib_handout_drop(&call); /* harmless while no request is pending */
    assert_int_equal(call.until, 0);
    trib_handout_close(handout);
}

TEST(test_unknown_key)
{
    struct trib_handout_owner owner;
    struct trib_handout *handout = open_here(&owner);
    struct trib_handout_fds fds;

    assert_ok(trib_handout_serve(handout, &err));
    trib_error_clear(&err);
    assert_status(trib_handout_ask(&owner, 4711, &fds, &err), TRIB_ERR_INVALID);
    assert_non_null(strstr(err.text, "no longer has the memory"));
    assert_ok(trib_handout_add(handout, 4711, (struct trib_handout_fds){0, -1}));
    gets(&owner);
    trib_handout_close(handout);
}

/* A process that stood still between its connection and its question, while the owner
 * closed, asks again and does not call the owner dead. */
TEST(test_stalled)
{
    struct trib_handout_owner owner;
    struct trib_handout *handout = open_here(&owner);

    assert_ok(trib_handout_serve(handout, &err));
    assert_ok(trib_handout_add(handout, 4711, (struct trib_handout_fds){0, -1}));
    stalls = 2;
    gets(&owner);
    assert_true(stalls < 2); /* an owner that accepts late still waits for the first */
    stalls = 0;
    trib_handout_close(handout);
}

/* The owner lives and closes connections without reading the requests: a rank of
 * test_bad_values was reported lost for that. */
TEST(test_closed_unread)
{
    struct trib_handout_owner owner;
    struct trib_handout *handout = open_here(&owner);
    struct trib_handout_fds fds;

    assert_ok(trib_handout_serve(handout, &err));
    assert_ok(trib_handout_add(handout, 4711, (struct trib_handout_fds){0, -1}));
    atomic_store(&unheard, 2);
    gets(&owner);
    assert_int_equal(atomic_load(&unheard), 0);

    atomic_store(&unheard, 1000000); /* as if it refused */
    assert_status(trib_handout_ask(&owner, 4711, &fds, &err), TRIB_ERR_PEER_LOST);
    assert_non_null(strstr(err.text, "closed 8 connections before it read"));
    assert_true(atomic_load(&unheard) > 1000000 - 10);
    atomic_store(&unheard, 0);
    trib_handout_close(handout);
}

/* It has ended when its socket refuses the next connection. */
TEST(test_ended)
{
    struct trib_handout_owner owner;
    struct trib_handout *handout = open_here(&owner);
    struct trib_handout_call call = {.until = 0};
    struct trib_handout_fds fds;

    assert_status(trib_handout_step(&owner, 4711, &call, &fds, &err), TRIB_INPROGRESS);
    trib_handout_close(handout);
    assert_status(trib_handout_step(&owner, 4711, &call, &fds, &err), TRIB_INPROGRESS);
    assert_status(trib_handout_step(&owner, 4711, &call, &fds, &err),
                  TRIB_ERR_PEER_LOST);
    assert_non_null(strstr(err.text, "has died or closed its memory"));
    assert_int_equal(call.until, 0);
}

TEST(test_owner_cannot_send)
{
    struct trib_handout_owner owner;
    struct trib_handout *handout = open_here(&owner);
    struct trib_handout_fds fds;

    assert_ok(trib_handout_serve(handout, &err));
    assert_ok(trib_handout_add(handout, 4711, (struct trib_handout_fds){1 << 20, -1}));
    assert_status(trib_handout_ask(&owner, 4711, &fds, &err), TRIB_ERR_SYSTEM);
    assert_non_null(strstr(err.text, "cannot send its memory: Bad file descriptor"));
    trib_handout_close(handout);
}

/* A process that answers each request with `bytes` bytes and two descriptors. */
struct hostile {
    int fd;
    size_t bytes;
    pthread_t thread;
};

static void *answer_wrongly(void *arg)
{
    const struct hostile *h = arg;
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(2 * sizeof(int))];
    } control = {.bytes = {0}};
    char answer[3] = {TRIB_HANDOUT_NONE};
    struct iovec part = {answer, h->bytes};
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof(control.bytes)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    struct trib_handout_request r;
    int fd;

    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(2 * sizeof(int));
    memcpy(CMSG_DATA(c), (int[]){0, 0}, 2 * sizeof(int));
    while ((fd = accept(h->fd, NULL, NULL)) >= 0) {
        (void)!read(fd, &r, sizeof(r));
        (void)!sendmsg(fd, &m, MSG_NOSIGNAL);
        close(fd);
    }
    return NULL;
}

static void begin_hostile(struct hostile *h, struct trib_handout_owner *owner_out)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    socklen_t bytes = sizeof(at);
    char digits[6] = "";

    h->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (bind(h->fd, (struct sockaddr *)&at, sizeof(sa_family_t)) || listen(h->fd, 16) ||
        getsockname(h->fd, (struct sockaddr *)&at, &bytes))
        tribtest_skip("no abstract sockets here");
    memcpy(digits, at.sun_path + 1, sizeof(digits) - 1);
    *owner_out = (struct trib_handout_owner){
        .name = (uint32_t)strtoul(digits, NULL, 16) + 1, .pid = getpid()};
    assert_int_equal(pthread_create(&h->thread, NULL, answer_wrongly, h), 0);
}

static int open_files(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;

    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

/* A hostile process sends descriptors with an empty answer, or with one that announces
 * none. The requester keeps none. */
TEST(test_unannounced_descriptors)
{
    for (size_t bytes = 0; bytes <= 3; bytes++) {
        struct hostile hostile = {.bytes = bytes};
        struct trib_handout_owner owner;
        struct trib_handout_fds fds;

        trib_error_clear(&err);
        begin_hostile(&hostile, &owner);
        const int before = open_files();
        const trib_status_t st = trib_handout_ask(&owner, 4711, &fds, &err);
        shutdown(hostile.fd, SHUT_RDWR);
        pthread_join(hostile.thread, NULL);
        const int left = open_files() - before;
        close(hostile.fd);
        assert_int_equal(left, 0);
        assert_true(st < TRIB_OK);
    }
}
