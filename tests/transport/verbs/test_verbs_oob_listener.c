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

/* Proofs ------------------------------------------------------------------------- */

/* A rank 0 by hand, up to the challenge. */
struct by_hand {
    struct trib_dialled peer;
    struct verbs_oob_request request;
    struct verbs_oob_reply reply;
    struct trib_proof proof;
};

static void begin(struct pair *pair, struct by_hand *h)
{
    struct verbs *v = inside(pair, 0);

    *h = (struct by_hand){.peer.deadline = trib_deadline_ms(60000)};
    assert_int_equal(
        trib_verbs_gid_table_read(v, v->context, v->port_num, &h->request.table), 0);
    h->request.pkey = v->pkey;
    h->request.hello =
        (struct verbs_hello){.magic = VERBS_MAGIC,
                             .version = VERBS_VERSION,
                             .sizes = verbs_sizes(h->request.table.mtu, v->piece_shift),
                             .key = inside(pair, 1)->local.key,
                             .settings = v->settings};
    assert_true(trib_verbs_begin_hello(v, 1, &h->request.hello, &h->proof));
    h->proof.request = &h->request;
    h->proof.request_bytes = trib_verbs_oob_request_bytes(&h->request);
    h->peer.fd = knock(pair, &h->request, h->proof.request_bytes);
    assert_true(trib_dial_receive(&h->peer, &h->reply, sizeof(h->reply)));
    assert_int_equal(h->reply.answer.refusal, VERBS_CHALLENGE);
}

static void is_dropped(struct by_hand *h, const uint8_t *proof, size_t n)
{
    uint8_t byte;

    assert_true(trib_dial_send(&h->peer, proof, n));
    (void)shutdown(h->peer.fd, SHUT_WR);
    assert_int_equal(listen_to(h->peer.fd, &byte, 1), 0);
}

/* Zeros, the listener's own proof, one of another connection, one of another request,
 * one that ends early. */
TEST(test_wrong_proofs, clean, nothing_left)
{
    static const uint8_t numbers[] = {7, 7};
    uint8_t proof[TRIB_PROOF_BYTES] = {0};
    struct trib_address address;
    struct by_hand h, other;
    struct pair pair;

    open_with_secrets(&pair, BY_GID, numbers, &address);
    const struct trib_secret *secret = &pair.secret[0];
    begin(&pair, &h);
    is_dropped(&h, proof, sizeof(proof));
    begin(&pair, &h);
    is_dropped(&h, h.reply.answer.challenge.proof, sizeof(proof));
    begin(&pair, &h);
    begin(&pair, &other);
    assert_true(trib_proof_answer(secret, &h.proof, &h.reply.answer.challenge, proof));
    is_dropped(&other, proof, sizeof(proof));
    is_dropped(&h, proof, sizeof(proof) - 1);
    begin(&pair, &h);
    h.request.qp_num++;
    /* The listener's proof covers the request, too. */
    assert_false(trib_proof_answer(secret, &h.proof, &h.reply.answer.challenge, proof));
    trib_proof_make(secret, &h.proof, TRIB_PROOF_CALLER, proof);
    is_dropped(&h, proof, sizeof(proof));
    assert_null(inside(&pair, 1)->peers[0].in.qp);
    connects(&pair, &address);
    pair_close(&pair);
    contains(pair.logged, TRIB_PROOF_UNPROVED);
}

/* More silent connections than places, all younger, evict no rank that has been
 * challenged. */
TEST(test_crowd_before_proof, clean, nothing_left)
{
    enum { CROWD = 2 * (2 + TRIB_NET_UNAUTHENTICATED) };
    static const uint8_t numbers[] = {7, 7};
    uint8_t proof[TRIB_PROOF_BYTES];
    struct trib_address address;
    struct pair pair;
    struct by_hand h;
    int fds[CROWD];
    char byte;

    open_with_secrets(&pair, BY_GID, numbers, &address);
    begin(&pair, &h);
    for (int i = 0; i < CROWD; i++)
        fds[i] = knock(&pair, "", 0);
    const struct trib_dialled evicted = {.fd = fds[CROWD / 2 - 2],
                                         .deadline = trib_deadline_ms(60000)};
    assert_false(trib_dial_receive(&evicted, &byte, 1));
    assert_int_equal(errno, 0);
    assert_true(
        trib_proof_answer(&pair.secret[0], &h.proof, &h.reply.answer.challenge, proof));
    assert_true(trib_dial_send(&h.peer, proof, sizeof(proof)));
    assert_true(trib_dial_receive(&h.peer, &h.reply, sizeof(h.reply)));
    assert_int_equal(h.reply.answer.refusal, VERBS_WELCOME);
    for (int i = 0; i < CROWD; i++)
        close(fds[i]);
    close(h.peer.fd);
    pair_close(&pair);
}

TEST(test_slow_proof, clean, nothing_left)
{
    static const uint8_t numbers[] = {7, 7};
    uint8_t proof[TRIB_PROOF_BYTES];
    struct trib_address address;
    struct pair pair;
    struct by_hand h;

    open_with_secrets(&pair, BY_GID, numbers, &address);
    begin(&pair, &h);
    assert_true(
        trib_proof_answer(&pair.secret[0], &h.proof, &h.reply.answer.challenge, proof));
    for (size_t i = 0; i < sizeof(proof); i++) {
        usleep(500);
        assert_true(trib_dial_send(&h.peer, proof + i, 1));
    }
    assert_true(trib_dial_receive(&h.peer, &h.reply, sizeof(h.reply)));
    assert_int_equal(h.reply.answer.refusal, VERBS_WELCOME);
    assert_true(trib_verbs_check_answer(inside(&pair, 0), &h.proof, &h.reply.answer,
                                        sizeof(h.reply)));
    h.reply.psn ^= 1;
    assert_false(trib_verbs_check_answer(inside(&pair, 0), &h.proof, &h.reply.answer,
                                         sizeof(h.reply)));
    close(h.peer.fd);
    pair_close(&pair);
}
