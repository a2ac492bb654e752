/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A job with a secret: who connects and who listens prove that they have it.
 */
#include "tests/transport/tcp/tcp_by_hand.h"

/* Side 1 alone, with a secret and memory, and a peer that dials by hand. */
static struct tcp_head open_proving(struct pair *pair, uint8_t *mem, size_t len)
{
    pair_secret(pair, 1, 7);
    return open_target(pair, mem, len);
}

static struct tcp_hello hello_to(struct pair *pair, uint8_t first)
{
    struct tcp_hello h = {.magic = TCP_MAGIC,
                          .version = TCP_VERSION,
                          .size = 2,
                          .key = pair_ip_address(pair, 1).key,
                          .flags = TCP_HAS_SECRET};

    memset(h.nonce, first, sizeof(h.nonce));
    return h;
}

/* The proof of rank 0, had it that secret, on a connection that was challenged so. */
static void proof_of(const struct trib_secret *secret, const struct tcp_hello *hello,
                     const uint8_t *nonce, uint8_t out[TRIB_PROOF_BYTES])
{
    struct trib_proof about = {.label = "tcp 7",
                               .listener = hello->key,
                               .rank = {0, 1},
                               .more = hello->flags | TCP_HAS_SECRET << 16};

    memcpy(about.nonce[0], hello->nonce, TRIB_NONCE_BYTES);
    memcpy(about.nonce[1], nonce, TRIB_NONCE_BYTES);
    trib_proof_make(secret, &about, TRIB_PROOF_CALLER, out);
}

static int begin(struct pair *pair, const struct tcp_hello *hello,
                 struct tcp_challenge *out)
{
    int fd = dial(pair_ip_address(pair, 1).port);
    uint8_t *bytes = (uint8_t *)out;

    ssize_t n = answer(pair, fd, hello, sizeof(*hello), &out->head);
    assert_int_equal(n, sizeof(out->head));
    assert_int_equal(out->head.kind, TCP_CHALLENGE);
    assert_int_equal(recv(fd, bytes + n, sizeof(*out) - (size_t)n, MSG_WAITALL),
                     sizeof(*out) - (size_t)n);
    return fd;
}

/* A proof and a write at once: the write is not taken, and the memory not touched. */
static void fails(struct pair *pair, int fd, const uint8_t *proof,
                  const struct tcp_head *head)
{
    struct tcp_head word;
    uint8_t stream[TRIB_PROOF_BYTES + sizeof(*head) + 64];

    memcpy(stream, proof, TRIB_PROOF_BYTES);
    memcpy(stream + TRIB_PROOF_BYTES, head, sizeof(*head));
    memset(stream + TRIB_PROOF_BYTES + sizeof(*head), 1, 64);
    assert_int_equal(answer(pair, fd, stream, sizeof(stream), &word), sizeof(word));
    assert_int_equal(word.kind, TCP_REFUSE);
    assert_int_equal(word.imm, TCP_NOT_PROVED);
    close(fd);
}

/* Zeros, the listener's own proof, one of another connection, one under another
 * secret. */
TEST(test_wrong_proofs)
{
    struct pair pair = {0};
    struct tcp_challenge c, again;
    uint8_t mem[64] = {0}, proof[TRIB_PROOF_BYTES] = {0}, right[TRIB_PROOF_BYTES];
    struct tcp_head word;

    struct tcp_head head = open_proving(&pair, mem, sizeof(mem));
    struct tcp_hello hello = hello_to(&pair, 3);
    fails(&pair, begin(&pair, &hello, &c), proof, &head);
    assert_non_null(strstr(pair.logged, "from 127.0.0.1: it did not prove"));
    int fd = begin(&pair, &hello, &c);
    fails(&pair, fd, c.challenge.proof, &head);
    fd = begin(&pair, &hello, &c);
    proof_of(&pair.secret[1], &hello, c.challenge.nonce, right);
    int other = begin(&pair, &hello, &again);
    assert_memory_not_equal(c.challenge.nonce, again.challenge.nonce,
                            sizeof(c.challenge.nonce));
    fails(&pair, other, right, &head); /* recorded on fd, which has not ended */
    pair_secret(&pair, 0, 8);
    other = begin(&pair, &hello, &again);
    proof_of(&pair.secret[0], &hello, again.challenge.nonce, proof);
    fails(&pair, other, proof, &head);
    for (size_t i = 0; i < sizeof(mem); i++)
        assert_int_equal(mem[i], 0);
    /* None of them was attached. */
    assert_int_equal(answer(&pair, fd, right, sizeof(right), &word), sizeof(word));
    assert_int_equal(word.kind, TCP_ACCEPT);
    other = begin(&pair, &hello, &again);
    proof_of(&pair.secret[1], &hello, again.challenge.nonce, proof);
    assert_int_equal(answer(&pair, other, proof, sizeof(proof), &word), sizeof(word));
    assert_int_equal(word.imm, TCP_TWICE);
    close(other);
    close(fd);
    pair.t[1]->ops->close(pair.t[1]);
}

/* A truncated proof is refused; one that arrives byte by byte is accepted. */
TEST(test_slow_proof)
{
    struct pair pair = {0};
    struct tcp_challenge c;
    struct trib_event e;
    uint8_t mem[64] = {0}, right[TRIB_PROOF_BYTES];
    struct tcp_head word;

    (void)open_proving(&pair, mem, sizeof(mem));
    struct tcp_hello hello = hello_to(&pair, 3);
    int fd = begin(&pair, &hello, &c);
    proof_of(&pair.secret[1], &hello, c.challenge.nonce, right);
    assert_int_equal(send(fd, right, sizeof(right) - 1, MSG_NOSIGNAL),
                     sizeof(right) - 1);
    (void)shutdown(fd, SHUT_WR);
    struct pollfd end = {.fd = fd, .events = POLLIN};
    while (poll(&end, 1, 1) == 0)
        assert_int_equal(pair.t[1]->ops->poll(pair.t[1], &e, 1), 0);
    assert_int_equal(recv(fd, &word, sizeof(word), 0), 0); /* closed, not accepted */
    close(fd);
    fd = begin(&pair, &hello, &c);
    proof_of(&pair.secret[1], &hello, c.challenge.nonce, right);
    for (size_t i = 0; i < sizeof(right) - 1; i++) {
        assert_int_equal(send(fd, right + i, 1, MSG_NOSIGNAL), 1);
        assert_int_equal(pair.t[1]->ops->poll(pair.t[1], &e, 1), 0);
    }
    assert_int_equal(answer(&pair, fd, right + sizeof(right) - 1, 1, &word),
                     sizeof(word));
    assert_int_equal(word.kind, TCP_ACCEPT);
    close(fd);
    pair.t[1]->ops->close(pair.t[1]);
}

/* Each side reports the error, and neither waits. */
TEST(test_other_secrets)
{
    static const uint8_t numbers[][2] = {{1, 2}, {0, 2}, {1, 0}};
    static const char *const lost[] = {"does not have this job's secret",
                                       "only one of the two has a secret",
                                       "only one of the two has a secret"};

    for (size_t i = 0; i < sizeof(lost) / sizeof(lost[0]); i++) {
        struct pair pair = {0};
        struct trib_address address;
        struct trib_event e = {0}, none;
        for (int side = 0; side < 2; side++) {
            if (numbers[i][side])
                pair_secret(&pair, side, numbers[i][side]);
            struct trib_transport_opts opts = pair_opts(&pair, side);
            assert_status(trib_transport_open("tcp", &opts, &pair.t[side]), TRIB_OK);
        }
        assert_status(pair.t[1]->ops->address(pair.t[1], &address), TRIB_OK);
        assert_status(pair.t[0]->ops->connect(pair.t[0], 1, &address), TRIB_OK);
        for (int k = 0; k < 20000 && !pair_poll(&pair, 0, 0, &e); k++) {
            (void)pair.t[1]->ops->poll(pair.t[1], &none, 1);
            usleep(500);
        }
        assert_int_equal(e.kind, TRIB_EVENT_PEER_LOST);
        if (!strstr(e.why, lost[i]))
            fail_msg("the loss is \"%s\", not \"...%s...\"", e.why, lost[i]);
        (void)pair_poll(&pair, 1, 50, &none);
        if (!strstr(pair.logged, "rejected an unauthenticated peer"))
            fail_msg("the listener says \"%s\"", pair.logged);
        pair_close(&pair);
    }
}

/* Two sides with one secret: all is as without. */
TEST(test_same_secret)
{
    struct pair pair = {0};
    struct trib_address address[2];
    struct trib_event e;

    for (int i = 0; i < 2; i++) {
        pair_secret(&pair, i, 9);
        struct trib_transport_opts opts = pair_opts(&pair, i);
        assert_status(trib_transport_open("tcp", &opts, &pair.t[i]), TRIB_OK);
        assert_status(pair.t[i]->ops->address(pair.t[i], &address[i]), TRIB_OK);
    }
    for (int i = 0; i < 2; i++) {
        struct trib_write w = {.imm = 5};
        assert_status(pair.t[i]->ops->connect(pair.t[i], !i, &address[!i]), TRIB_OK);
        assert_status(pair.t[i]->ops->write(pair.t[i], !i, &w), TRIB_OK);
        assert_int_equal(pair_await(&pair, !i, &e), 1);
        assert_int_equal(e.imm, 5);
    }
    pair_close(&pair);
}
