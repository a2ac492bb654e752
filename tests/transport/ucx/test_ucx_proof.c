/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx: a rank by hand that proves, or fails to prove, that it has the job's secret.
 */
#include "tests/transport/pair.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/dial.h"
#include "tests/transport/connect_to.h"
#include "transport/ucx/ucx.h"

static void open_two(struct pair *pair)
{
    for (int i = 0; i < 2; i++) {
        pair_secret(pair, i, 7);
        struct trib_transport_opts opts = pair_opts(pair, i);
        assert_status(trib_transport_open("ucx", &opts, &pair->t[i]), TRIB_OK);
    }
}

/* A connection to side 1 as rank 0, with the worker address of side 0. */
struct by_hand {
    struct trib_dialled peer;
    struct trib_proof proof;
    struct trib_challenge challenge;
};

static void begin(struct pair *pair, struct by_hand *h)
{
    const struct ucx *own = ucx_of(pair->t[0]), *other = ucx_of(pair->t[1]);
    struct ucx_control control;
    struct ucx_hello hello = {.magic = UCX_MAGIC,
                              .version = UCX_VERSION,
                              .size = 2,
                              .key = other->local.key,
                              .settings = other->settings,
                              .release = other->release,
                              .name_len = (uint32_t)own->name_len,
                              .flags = UCX_HAS_SECRET};

    h->proof = (struct trib_proof){.label = "ucx 3",
                                   .listener = hello.key,
                                   .rank = {0, 1},
                                   .more = UCX_HAS_SECRET};
    assert_true(trib_proof_begin(&h->proof, hello.nonce));
    h->peer = (struct trib_dialled){.deadline = trib_deadline_ms(60000)};
    h->peer.fd =
        connect_to(trib_net_loopback, pair_ip_address(pair, 1).port, h->peer.deadline);
    assert_true(h->peer.fd >= 0);
    assert_true(trib_dial_send(&h->peer, &hello, sizeof(hello)));
    assert_true(trib_dial_send(&h->peer, own->name, own->name_len));
    assert_true(trib_dial_receive(&h->peer, &control, sizeof(control)));
    assert_int_equal(control.kind, UCX_CHALLENGE);
    assert_true(trib_dial_receive(&h->peer, &h->challenge, sizeof(h->challenge)));
}

static void is_refused(struct by_hand *h, const uint8_t *proof)
{
    struct ucx_control control;

    assert_true(trib_dial_send(&h->peer, proof, TRIB_PROOF_BYTES));
    assert_true(trib_dial_receive(&h->peer, &control, sizeof(control)));
    assert_int_equal(control.kind, UCX_REFUSE);
    assert_int_equal((uint32_t)control.value, UCX_NOT_PROVED);
    close(h->peer.fd);
}

/* Zeros, the listener's own proof, one of another connection, one of another rank. */
TEST(test_wrong_proofs)
{
    uint8_t proof[TRIB_PROOF_BYTES] = {0};
    struct pair pair = {0};
    struct by_hand h, other;

    open_two(&pair);
    begin(&pair, &h);
    is_refused(&h, proof);
    assert_true(pair_has_logged(&pair, TRIB_PROOF_UNPROVED));
    begin(&pair, &h);
    is_refused(&h, h.challenge.proof);
    begin(&pair, &h);
    begin(&pair, &other);
    assert_true(trib_proof_answer(&pair.secret[0], &h.proof, &h.challenge, proof));
    is_refused(&other, proof);
    close(h.peer.fd);
    begin(&pair, &h);
    memcpy(h.proof.nonce[TRIB_PROOF_LISTENER], h.challenge.nonce, TRIB_NONCE_BYTES);
    h.proof.rank[TRIB_PROOF_CALLER] = 1;
    trib_proof_make(&pair.secret[0], &h.proof, TRIB_PROOF_CALLER, proof);
    is_refused(&h, proof);
    assert_int_equal(ucx_of(pair.t[1])->peers[0].in, -1);
    pair_close(&pair);
}

/* More silent connections than places, all younger, evict no rank that has been
 * challenged. */
TEST(test_crowd_before_proof)
{
    enum { CROWD = 2 * (2 + TRIB_NET_UNAUTHENTICATED) };
    uint8_t proof[TRIB_PROOF_BYTES];
    struct ucx_control control;
    struct pair pair = {0};
    struct by_hand h;
    int fds[CROWD];
    char byte;

    open_two(&pair);
    begin(&pair, &h);
    for (int i = 0; i < CROWD; i++)
        fds[i] = connect_to(trib_net_loopback, pair_ip_address(&pair, 1).port,
                            trib_deadline_ms(60000));
    const struct trib_dialled evicted = {.fd = fds[CROWD / 2 - 2],
                                         .deadline = trib_deadline_ms(60000)};
    assert_false(trib_dial_receive(&evicted, &byte, 1));
    assert_int_equal(errno, 0);
    assert_true(trib_proof_answer(&pair.secret[0], &h.proof, &h.challenge, proof));
    assert_true(trib_dial_send(&h.peer, proof, sizeof(proof)));
    assert_true(trib_dial_receive(&h.peer, &control, sizeof(control)));
    assert_int_equal(control.kind, UCX_WELCOME);
    for (int i = 0; i < CROWD; i++)
        close(fds[i]);
    close(h.peer.fd);
    pair_close(&pair);
}

static uint64_t cpu_ms(void)
{
    struct timespec t;

    assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t), 0);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Part of a control message keeps no thread busy; if the connection ends there, the
 * peer is gone. */
TEST(test_half_control)
{
    uint8_t proof[TRIB_PROOF_BYTES];
    struct ucx_control control;
    struct pair pair = {0};
    struct by_hand h;
    bool gone = false;

    open_two(&pair);
    begin(&pair, &h);
    assert_true(trib_proof_answer(&pair.secret[0], &h.proof, &h.challenge, proof));
    assert_true(trib_dial_send(&h.peer, proof, sizeof(proof)));
    assert_true(trib_dial_receive(&h.peer, &control, sizeof(control)));
    assert_int_equal(control.kind, UCX_WELCOME);
    struct ucx *u = ucx_of(pair.t[1]);
    pthread_mutex_lock(&u->links);
    u->peers[0].wire_until = 0; /* no wire-up follows */
    pthread_mutex_unlock(&u->links);
    usleep(100000);
    assert_true(trib_dial_send(&h.peer, &control, 3));
    const uint64_t before = cpu_ms();
    usleep(500000);
    assert_in_range(cpu_ms() - before, 0, 250);
    close(h.peer.fd);
    for (uint64_t until = trib_deadline_ms(20000);
         !gone && !trib_deadline_passed(until); usleep(1000)) {
        pthread_mutex_lock(&u->links);
        gone = u->peers[0].gone;
        pthread_mutex_unlock(&u->links);
    }
    assert_true(gone);
    pair_close(&pair);
}

/* A truncated proof is refused; one that arrives byte by byte is accepted. */
TEST(test_slow_proof)
{
    uint8_t proof[TRIB_PROOF_BYTES];
    struct ucx_control control;
    struct pair pair = {0};
    struct by_hand h;

    open_two(&pair);
    begin(&pair, &h);
    assert_true(trib_proof_answer(&pair.secret[0], &h.proof, &h.challenge, proof));
    assert_true(trib_dial_send(&h.peer, proof, sizeof(proof) - 1));
    (void)shutdown(h.peer.fd, SHUT_WR);
    assert_false(trib_dial_receive(&h.peer, &control, sizeof(control)));
    assert_int_equal(errno, 0);
    close(h.peer.fd);
    begin(&pair, &h);
    assert_true(trib_proof_answer(&pair.secret[0], &h.proof, &h.challenge, proof));
    for (size_t i = 0; i < sizeof(proof); i++) {
        usleep(500);
        assert_true(trib_dial_send(&h.peer, proof + i, 1));
    }
    assert_true(trib_dial_receive(&h.peer, &control, sizeof(control)));
    assert_int_equal(control.kind, UCX_WELCOME);
    close(h.peer.fd);
    pair_close(&pair);
}
