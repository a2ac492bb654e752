/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Strangers at the OOB listener of verbs: their words are refused, and a crowd of them
 * keeps no rank out. The device is one in memory, the sockets are real.
 */
#include "tests/transport/verbs/verbs_oob_pair.h"

#include <poll.h>

/* Strangers ---------------------------------------------------------------------- */

static int knock(struct pair *pair, const void *bytes, size_t n)
{
    int fd = connect_to(trib_net_loopback, inside(pair, 1)->oob.at.port,
                           trib_deadline_ms(5000));

    assert_true(fd >= 0);
    assert_int_equal(send(fd, bytes, n, MSG_NOSIGNAL), n);
    return fd;
}

/* Everything that is said until the end of the connection; -1: it does not end. */
static ssize_t listen_to(int fd, void *bytes, size_t n)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    size_t have = 0;

    for (;;) {
        if (poll(&poll_fd, 1, 60000) <= 0)
            return -1;
        ssize_t got = recv(fd, (uint8_t *)bytes + have, n - have, 0);
        if (got <= 0)
            break;
        have += (size_t)got;
    }
    close(fd);
    return (ssize_t)have;
}

TEST(test_strangers, clean, nothing_left)
{
    struct verbs_oob_request call = {
        .hello = {.magic = VERBS_MAGIC, .version = VERBS_VERSION}, .qp_num = 1u << 24};
    struct trib_address address;
    struct verbs_oob_reply reply;
    struct pair pair;

    open_apart(&pair, BY_GID, &address);
    assert_int_equal(listen_to(knock(&pair, "GET / HTTP", 10), &reply, sizeof(reply)),
                     0);
    assert_int_equal(
        listen_to(knock(&pair, &call, VERBS_OOB_REQUEST_BYTES), &reply, sizeof(reply)),
        sizeof(reply));
    assert_int_equal(reply.answer.refusal, VERBS_NONSENSE);
    call.hello.version++;
    assert_int_equal(listen_to(knock(&pair, &call, 8), &reply, sizeof(reply)),
                     sizeof(reply));
    assert_int_equal(reply.answer.refusal, VERBS_OTHER_VERSION);
    assert_int_equal(reply.answer.magic, VERBS_MAGIC);
    /* A silent caller does not block others, and is disconnected. */
    int silent = knock(&pair, &call, 3), gone = knock(&pair, &call, 3);
    close(gone);
    connects(&pair, &address);
    assert_int_equal(listen_to(silent, &reply, sizeof(reply)), 0);
    pair_close(&pair); /* joins the logging thread */
    contains(pair.logged, "rejected an unauthenticated peer at port");
}

/* More than there are places, and then they go. */
TEST(test_crowd, clean, nothing_left)
{
    enum { CROWD = 2 + TRIB_NET_UNAUTHENTICATED + 20 };
    struct trib_address address;
    int fds[CROWD];
    struct pair pair;

    open_apart(&pair, BY_GID, &address);
    for (int i = 0; i < CROWD; i++)
        fds[i] = knock(&pair, "V", 1);
    for (int i = 0; i < CROWD; i++)
        close(fds[i]);
    connects(&pair, &address);
    pair_close(&pair);
}

/* More callers than slots begin a call and stay: another caller need not wait for their
 * timeouts. A busy machine may be slow once, not three times. */
TEST(test_silent_crowd, clean, nothing_left)
{
    enum { CROWD = 2 + TRIB_NET_UNAUTHENTICATED + 20, MANY_MS = 3000, TRIES = 3 };
    const uint32_t magic = VERBS_MAGIC;
    struct trib_address address;
    int fds[CROWD];
    struct pair pair;
    bool quick = false;

    for (int n = 0; n < TRIES && !quick; n++) {
        open_apart(&pair, BY_GID, &address);
        for (int i = 0; i < CROWD; i++)
            fds[i] = knock(&pair, &magic, 1);
        uint64_t until = trib_deadline_ms(MANY_MS);
        connects(&pair, &address);
        quick = !trib_deadline_passed(until);
        for (int i = 0; i < CROWD; i++)
            close(fds[i]);
        pair_close(&pair);
    }
    assert_true(quick);
}
