/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connecting side of a connection after the connect: pauses between tries, and
 * messages from a peer that is slow, sends too little or too much, or is dead.
 */
#include "tests/harness/tribtest.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>

#include "base/dial.h"
#include "base/error.h"
#include "base/sockets.h"
#include "base/time.h"

#define SIZE 48 /* of a challenge */

struct peer {
    struct trib_dialled dialled;
    int fd; /* of the peer */
    int asked; /* number of calls of is_alive */
    int dies_at;
};

static bool is_alive(void *arg)
{
    struct peer *p = arg;

    return ++p->asked < p->dies_at;
}

static void peer_open(struct peer *p, int ms)
{
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    *p = (struct peer){.dialled = {.fd = fds[0], .deadline = trib_deadline_ms(ms)},
                       .fd = fds[1]};
}

static void peer_close(struct peer *p)
{
    close(p->dialled.fd);
    if (p->fd >= 0)
        close(p->fd);
}

static void *send_slowly(void *arg)
{
    const struct peer *p = arg;

    for (uint8_t i = 0; i < SIZE; i++) {
        usleep(2000);
        assert_int_equal(send(p->fd, &i, 1, 0), 1);
    }
    return NULL;
}

/* One byte at a time. What follows stays in the socket. */
TEST(test_slow)
{
    uint8_t bytes[SIZE], next;
    pthread_t thread;
    struct peer p;

    peer_open(&p, 20000);
    assert_int_equal(pthread_create(&thread, NULL, send_slowly, &p), 0);
    assert_true(trib_dial_receive(&p.dialled, bytes, SIZE - 1));
    for (int i = 0; i < SIZE - 1; i++)
        assert_int_equal(bytes[i], i);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(recv(p.dialled.fd, &next, 1, 0), 1);
    assert_int_equal(next, SIZE - 1);
    peer_close(&p);
}

TEST(test_truncated)
{
    uint8_t bytes[SIZE] = {0};
    struct peer p;

    peer_open(&p, 20000);
    assert_int_equal(send(p.fd, bytes, SIZE - 1, 0), SIZE - 1);
    close(p.fd);
    p.fd = -1;
    errno = EIO;
    assert_false(trib_dial_receive(&p.dialled, bytes, SIZE));
    assert_int_equal(errno, 0);
    assert_false(trib_dial_send(&p.dialled, bytes, SIZE));
    assert_int_equal(errno, EPIPE); /* and no SIGPIPE */
    peer_close(&p);
}

/* A silent peer costs the deadline; one that does not read, too. */
TEST(test_deadline)
{
    static uint8_t bytes[8 << 20];
    struct peer p;

    peer_open(&p, 30);
    assert_int_equal(send(p.fd, bytes, SIZE - 1, 0), SIZE - 1);
    assert_false(trib_dial_receive(&p.dialled, bytes, SIZE));
    assert_int_equal(errno, ETIMEDOUT);
    assert_true(trib_deadline_passed(p.dialled.deadline));
    p.dialled.deadline = trib_deadline_ms(30);
    assert_false(trib_dial_send(&p.dialled, bytes, sizeof(bytes)));
    assert_int_equal(errno, ETIMEDOUT);
    peer_close(&p);
}

/* The owner of the connection is known to be dead long before the deadline. */
TEST(test_dead)
{
    uint8_t bytes[SIZE] = {0};
    struct peer p;

    peer_open(&p, 600000);
    p.dialled.is_alive = is_alive;
    p.dialled.arg = &p;
    p.dies_at = 3;
    assert_false(trib_dial_receive(&p.dialled, bytes, SIZE));
    assert_int_equal(errno, ETIMEDOUT);
    assert_int_equal(p.asked, 3);
    /* Bytes that have arrived are read all the same. */
    assert_int_equal(send(p.fd, bytes, SIZE, 0), SIZE);
    assert_true(trib_dial_receive(&p.dialled, bytes, SIZE));
    assert_int_equal(p.asked, 3);
    peer_close(&p);
}

static int give_up(void *arg)
{
    (void)arg;
    return 7;
}

TEST(test_caller_gives_up)
{
    struct trib_idle idle = {.call = give_up};
    uint8_t bytes[SIZE];
    struct peer p;

    peer_open(&p, 600000);
    p.dialled.idle = &idle;
    assert_false(trib_dial_receive(&p.dialled, bytes, SIZE));
    assert_int_equal(errno, ECANCELED);
    peer_close(&p);
}

static int count(void *arg)
{
    return ++*(int *)arg >= 50;
}

/* While rank 0 waits for its port, it calls the idle function, which ends the wait. */
TEST(test_caller_gives_up_the_port)
{
    int fds[TRIB_TCP_LISTENERS_MAX], n = 0, calls = 0;
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct trib_idle idle = {.call = count, .arg = &calls};
    const int other = socket(AF_INET, SOCK_STREAM, 0);
    struct trib_error err = {0};
    struct trib_tcp_root root;
    socklen_t bytes = sizeof(at);
    char text[32];

    assert_int_equal(bind(other, (struct sockaddr *)&at, bytes), 0);
    assert_int_equal(listen(other, 1), 0);
    assert_int_equal(getsockname(other, (struct sockaddr *)&at, &bytes), 0);
    snprintf(text, sizeof(text), "127.0.0.1:%u", ntohs(at.sin_port));
    assert_true(trib_tcp_root_parse(text, &root));
    assert_status(trib_sockets_listen(&root, &idle, &err, fds, &n), TRIB_ERR_ABORTED);
    assert_int_equal(calls, 50);
    assert_non_null(strstr(trib_error_text(&err), "idle function"));
    close(other);
}

/* The pauses grow up to the limit, end at the deadline, and differ by process. */
TEST(test_pauses)
{
    struct trib_dial_retry a = {.ms = 2, .most_ms = 5, .random = 1};
    const uint64_t began = trib_now_ns();

    for (int i = 0; i < 6; i++)
        trib_dial_pause(&a, TRIB_NEVER, NULL);
    assert_int_equal(a.ms, 5);
    assert_true(trib_now_ns() - began >= 6 * 1000000);
    a = (struct trib_dial_retry){.ms = 600000, .most_ms = 600000, .random = 2};
    trib_dial_pause(&a, trib_deadline_ms(10), NULL);
    assert_true(trib_now_ns() - began < UINT64_C(60000000000));
}
