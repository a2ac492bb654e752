/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Starts of a job with a secret: a peer without the secret takes no rank and ends no
 * start, whatever it sends.
 */
#include "tests/boot/boottest.h"

#include "boot/tcp/tcp_proto.h"

#define KEY "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define OTHER "ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static char root_text[64];

/* Answers that an unauthenticated peer received, in memory that processes share. */
struct told {
    int challenges;
    int welcomes;
    int fails;
};
static struct told *told;

/* Skip the test if libsodium, which computes the proofs, is not available. */
static void skip_without_proofs(void)
{
    struct trib_secret secret = {.is_set = true};
    char why[160];

    if (!trib_secret_arm(&secret, why, sizeof(why)))
        tribtest_skip(why);
}

static struct start new_start(int size, const char *key)
{
    struct start s = {
        .root = root_text, .size = size, .boot_ms = 30000, .stop_ms = 4000};

    snprintf(root_text, sizeof(root_text), "127.0.0.1:%d", boottest_port());
    for (int i = 0; i < BOOTTEST_RANKS; i++)
        s.key[i] = key;
    return s;
}

/* Rank 1 opens after the unauthenticated peer is done. */
static bool after_strangers(const struct start *s, int rank)
{
    return rank == 0 || *s->flag;
}

static int dial_root(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    uint64_t deadline = trib_deadline_ms(tribtest_patience_ms());

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons((uint16_t)atoi(strrchr(root_text, ':') + 1));
    while (!trib_deadline_passed(deadline)) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
            return fd;
        close(fd);
        boottest_sleep(2);
    }
    _exit(1);
}

/* Receive the next frame of the server. Return false if the server closed the
 * connection. */
static bool hear(int fd, uint8_t bytes[TRIB_TCP_SMALL_BYTES],
                 struct trib_tcp_frame *out)
{
    size_t have = 0, used;

    for (;;) {
        if (trib_tcp_parse(bytes, have, 0, out, &used) == TRIB_OK)
            break;
        ssize_t n = recv(fd, bytes + have, 1, 0);
        if (n <= 0)
            return false;
        have += (size_t)n;
    }
    told->challenges += out->kind == TRIB_TCP_CHALLENGE;
    told->welcomes += out->kind == TRIB_TCP_WELCOME;
    told->fails += out->kind == TRIB_TCP_FAIL;
    return true;
}

static void hear_out(int fd)
{
    uint8_t bytes[TRIB_TCP_SMALL_BYTES];
    struct trib_tcp_frame frame;

    while (hear(fd, bytes, &frame))
        continue;
    close(fd);
}

static struct trib_tcp_hello hello_of(int rank, bool has_secret)
{
    struct trib_tcp_hello hello = {.size = 2,
                                   .who = {.rank = rank, .pid = 1, .host = "stranger"},
                                   .has_secret = has_secret};

    memset(hello.nonce, 7, sizeof(hello.nonce));
    return hello;
}

static void say_hello(int fd, const struct trib_tcp_hello *hello)
{
    uint8_t bytes[TRIB_TCP_SMALL_BYTES];
    size_t n = trib_tcp_put_hello(bytes, TRIB_TCP_HELLO, hello);

    (void)!send(fd, bytes, n, MSG_NOSIGNAL);
}

static void say_proof(int fd, const uint8_t proof[TRIB_PROOF_BYTES])
{
    uint8_t bytes[TRIB_TCP_SMALL_BYTES];
    size_t n = trib_tcp_put_proof(bytes, proof);

    (void)!send(fd, bytes, n, MSG_NOSIGNAL);
}

/* Send a hello, receive the challenge, and send the proof that `answer` makes of it. */
static void try_proof(void (*answer)(const struct trib_challenge *c, uint8_t *proof))
{
    uint8_t bytes[TRIB_TCP_SMALL_BYTES], proof[TRIB_PROOF_BYTES];
    struct trib_tcp_hello hello = hello_of(1, true);
    struct trib_challenge c;
    struct trib_tcp_frame frame;
    int fd = dial_root();

    say_hello(fd, &hello);
    if (!hear(fd, bytes, &frame) || trib_tcp_parse_challenge(&frame, &c) != TRIB_OK)
        _exit(2);
    answer(&c, proof);
    say_proof(fd, proof);
    hear_out(fd);
}

static void with_zeros(const struct trib_challenge *c, uint8_t *proof)
{
    (void)c;
    memset(proof, 0, TRIB_PROOF_BYTES);
}

static void reflected(const struct trib_challenge *c, uint8_t *proof)
{
    memcpy(proof, c->proof, TRIB_PROOF_BYTES);
}

/* A proof that was valid for an earlier nonce of the server. */
static void replayed(const struct trib_challenge *c, uint8_t *proof)
{
    struct trib_tcp_hello hello = hello_of(1, true);
    struct trib_secret secret;
    struct trib_proof claim = trib_tcp_proof(&hello);
    char why[160];

    memcpy(claim.nonce[TRIB_PROOF_LISTENER], c->nonce, TRIB_NONCE_BYTES);
    claim.nonce[TRIB_PROOF_LISTENER][0] ^= 1;
    if (!trib_secret_parse(KEY, strlen(KEY), &secret) ||
        !trib_secret_arm(&secret, why, sizeof(why)))
        _exit(3);
    trib_proof_make(&secret, &claim, TRIB_PROOF_CALLER, proof);
}

/* A proof with the right secret, but for another rank than in the hello. */
static void of_another_rank(const struct trib_challenge *c, uint8_t *proof)
{
    struct trib_tcp_hello hello = hello_of(0, true);
    struct trib_secret secret;
    struct trib_proof claim = trib_tcp_proof(&hello);
    char why[160];

    memcpy(claim.nonce[TRIB_PROOF_LISTENER], c->nonce, TRIB_NONCE_BYTES);
    if (!trib_secret_parse(KEY, strlen(KEY), &secret) ||
        !trib_secret_arm(&secret, why, sizeof(why)))
        _exit(3);
    trib_proof_make(&secret, &claim, TRIB_PROOF_CALLER, proof);
}

static void strangers_with_proofs(void)
{
    try_proof(with_zeros);
    try_proof(reflected);
    try_proof(replayed);
    try_proof(of_another_rank);
}

/* Five bytes of another version, a hello without a secret, a rank claimed without a
 * proof. */
static void strangers_with_words(void)
{
    struct trib_tcp_hello none = hello_of(1, false), some = hello_of(1, true);
    uint8_t gather[TRIB_TCP_SMALL_BYTES];
    struct trib_tcp_gather mine = {
        .phase = "address", .bytes = 5, .blob = (const uint8_t *)"12345"};
    int fd = dial_root();

    (void)!send(fd, "Trib\7", 5, MSG_NOSIGNAL);
    hear_out(fd);
    fd = dial_root();
    say_hello(fd, &none);
    hear_out(fd);
    fd = dial_root();
    say_hello(fd, &some);
    (void)!send(fd, gather, trib_tcp_put_gather(gather, 1, &mine), MSG_NOSIGNAL);
    hear_out(fd);
}

static void run_with(struct start *s, void (*strangers)(void))
{
    told = boottest_shared(sizeof(*told));
    s->flag = boottest_shared(sizeof(*s->flag));
    s->may_open = after_strangers;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        tribtest_deadline(60);
        strangers();
        *s->flag = true;
        _exit(0);
    }
    boottest_run(s);
    int status = -1;
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
}

static void end_with(struct start *s)
{
    munmap(s->flag, sizeof(*s->flag));
    munmap(told, sizeof(*told));
    boottest_free(s);
}

TEST(test_wrong_proofs)
{
    struct start s = new_start(2, KEY);

    skip_without_proofs();
    run_with(&s, strangers_with_proofs);
    boottest_all_well(&s);
    assert_int_equal(told->challenges, 4);
    assert_int_equal(told->welcomes, 0);
    end_with(&s);
}

TEST(test_wrong_words)
{
    struct start s = new_start(2, KEY);

    skip_without_proofs();
    run_with(&s, strangers_with_words);
    boottest_all_well(&s);
    assert_int_equal(told->welcomes, 0);
    end_with(&s);
}

static void five_bytes(void)
{
    int fd = dial_root();

    (void)!send(fd, "Trib\7", 5, MSG_NOSIGNAL);
    hear_out(fd);
    fd = dial_root();
    (void)!send(fd, "hello", 5, MSG_NOSIGNAL);
    hear_out(fd);
}

/* Also without a secret. */
TEST(test_five_bytes)
{
    struct start s = new_start(2, NULL);

    run_with(&s, five_bytes);
    boottest_all_well(&s);
    end_with(&s);
}

/* The other rank fails at once. Rank 0 cannot know whether the peer was a rank and
 * fails at the end. */
static void mismatched(const char *of_0, const char *of_1, const char *sentence,
                       const char *note)
{
    struct start s = new_start(2, of_0);

    s.key[1] = of_1;
    s.boot_ms = 1500;
    boottest_run(&s);
    for (int i = 0; i < 2; i++) {
        assert_true(s.seen[i].done);
        assert_true(s.seen[i].status != TRIB_OK);
    }
    assert_status(s.seen[1].status, TRIB_ERR_MISMATCH);
    if (!strstr(s.seen[1].text, sentence))
        fail_msg("rank 1: \"%s\", not \"...%s...\"", s.seen[1].text, sentence);
    if (!strstr(s.seen[0].text, "rank 1 of 2 did not come") ||
        !strstr(s.seen[0].text, note))
        fail_msg("rank 0: \"%s\", not \"...%s...\"", s.seen[0].text, note);
    boottest_free(&s);
}

TEST(test_mismatch)
{
    skip_without_proofs();
    mismatched(KEY, OTHER, "does not have the key of rank 1",
               "did not prove that it has the secret");
    mismatched(KEY, NULL, "has no secret, and rank 0",
               "has no secret, where this job has one");
    mismatched(NULL, KEY, "has a secret, and rank 0", "has a secret (TRIB_KEY), where");
}

/* The text of trib_root_create contains the secret. */
TEST(test_root_text)
{
    char root[TRIB_ROOT_TEXT_MAX], again[TRIB_ROOT_TEXT_MAX + 8];
    struct trib_secret secret;
    trib_root_t *made;

    skip_without_proofs();
    assert_status(trib_root_create(&made), TRIB_OK);
    assert_true(trib_secret_split(trib_root_text(made), root, sizeof(root), &secret));
    assert_true(secret.is_set);
    assert_null(strchr(root, '#'));
    struct start s = new_start(3, NULL);
    s.root = trib_root_text(made);
    boottest_run(&s);
    boottest_all_well(&s);
    boottest_free(&s);
    trib_root_destroy(made);
    snprintf(again, sizeof(again), "%s#0123", root);
    assert_false(trib_secret_split(again, root, sizeof(root), &secret));
    assert_false(secret.is_set);
}
