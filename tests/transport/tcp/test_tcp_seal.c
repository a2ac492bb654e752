/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sealed connections of tcp: somebody between two sides reads nothing, and cannot
 * change, repeat, leave out, move or send back a record without the receiver seeing it.
 * Then the receiver's memory is as it was, and both sides lose the connection with a
 * sentence.
 */
#include "tests/transport/tcp/wiretap.h"

#include "build-config.h"

#define WRITES_MOST 40 /* so that a record that seems longer than it is comes to its
                        * end */

static const char words[] = "a gradient that nobody else may read or change";

struct bed {
    struct pair pair;
    struct tap tap;
    int arrived[2], lost[2]; /* of each side */
    bool left[2];
    char why[2][TRIB_WHY_MAX];
};

static void pump(struct bed *b)
{
    struct trib_event e;

    tap_pump(&b->tap);
    for (int i = 0; i < 2; i++) {
        if (!b->pair.t[i]->ops->poll(b->pair.t[i], &e, 1))
            continue;
        b->arrived[i] += e.kind == TRIB_EVENT_ARRIVED;
        if (e.kind != TRIB_EVENT_PEER_LOST)
            continue;
        assert_int_equal(e.peer, !i);
        b->lost[i]++;
        b->left[i] = e.left;
        memcpy(b->why[i], e.why, sizeof(b->why[i]));
    }
}

static bool has_moved(const struct bed *b)
{
    const struct tcp_peer *lower = &tcp_of(b->pair.t[0])->peers[1];
    const struct tcp_peer *higher = &tcp_of(b->pair.t[1])->peers[0];

    return lower->own >= 0 && lower->in.fd == lower->own && higher->own < 0 &&
           higher->in.fd >= 0 && higher->fd == higher->in.fd;
}

/* Two sides with a secret, which know each other by the tap's ports. */
static void open_sides(struct bed *b, bool sealed, const char *const texts[2])
{
    struct trib_address address[2];
    struct trib_blob blob[2];

    memset(b, 0, sizeof(*b));
    for (int i = 0; i < 2; i++)
        pair_secret(&b->pair, i, 7);
    tap_open(&b->tap, sealed);
    b->pair.cfg.seal = sealed;
    b->pair.cfg.timeout_ms = 20000;
    for (int i = 0; i < 2; i++) {
        struct trib_transport_opts opts = pair_opts(&b->pair, i);
        b->pair.cfg.stop_timeout_ms = 20000;
        assert_ok(trib_transport_open(texts[i], &opts, &b->pair.t[i]));
        pair_offer(&b->pair, i, &address[i], &blob[i]);
        tap_into(&b->tap, i, &address[i]);
    }
    for (int i = 0; i < 2; i++) {
        const struct trib_transport_ops *ops = b->pair.t[i]->ops;
        assert_ok(ops->connect(b->pair.t[i], !i, &address[!i]));
        assert_ok(ops->import_region(b->pair.t[i], !i, &blob[!i], &b->pair.remote[i]));
    }
    for (size_t at = 0; at + sizeof(words) <= PAIR_LEN; at += sizeof(words))
        memcpy(b->pair.mem[0] + at, words, sizeof(words));
    memset(b->pair.mem[1], 0x5a, PAIR_LEN);
}

/* One connection carries both directions, so that the next record is the next write. */
static void open_moved(struct bed *b, bool sealed, const char *text)
{
    const uint64_t until = trib_deadline_ms(tribtest_patience_ms());

    open_sides(b, sealed, (const char *const[]){text, text});
    while (!has_moved(b) && !trib_deadline_passed(until))
        pump(b);
    assert_true(has_moved(b));
}

static void close_sides(struct bed *b)
{
    pair_close(&b->pair);
    tap_close(&b->tap);
}

static void await_arrivals(struct bed *b, int side, int n)
{
    const uint64_t until = trib_deadline_ms(tribtest_patience_ms());

    while (b->arrived[side] < n && !trib_deadline_passed(until))
        pump(b);
    assert_int_equal(b->arrived[side], n);
}

/* Side 0 writes, up to `writes` times, until both sides have lost each other. */
static void write_until_lost(struct bed *b, int writes)
{
    const uint64_t until = trib_deadline_ms(tribtest_patience_ms());
    int posted = 0;

    while (!(b->lost[0] && b->lost[1]) && !trib_deadline_passed(until)) {
        if (posted < writes && pair_write(&b->pair, PAIR_LEN, 1) == TRIB_OK)
            posted++;
        pump(b);
    }
    assert_int_equal(b->lost[0], 1);
    assert_int_equal(b->lost[1], 1);
}

static void expect_untouched(const struct bed *b)
{
    for (size_t i = 0; i < PAIR_LEN; i++)
        assert_int_equal(b->pair.mem[1][i], 0x5a);
}

static void expect_why(const struct bed *b, int side, const char *reason)
{
    char process[40];

    snprintf(process, sizeof(process), "process %d", (int)getpid());
    if (!strstr(b->why[side], process) || !strstr(b->why[side], reason))
        fail_msg("side %d says \"%s\"", side, b->why[side]);
    assert_false(b->left[side]);
}

/* Side 0 writes until its next record has the number of the next one that it reads, so
 * that only the keys differ. */
static void even_out(struct bed *b)
{
    const struct tcp_seals *s = tcp_of(b->pair.t[0])->peers[1].seals;

    while (s->own_out.number < s->own_in.number) {
        assert_ok(pair_write(&b->pair, 8, 1));
        await_arrivals(b, 1, b->arrived[1] + 1);
    }
    assert_int_equal(s->own_out.number, s->own_in.number);
    memset(b->pair.mem[1], 0x5a, PAIR_LEN);
    b->arrived[1] = 0;
}

/* A deed spoils the bytes of side 0, and side 1 takes none of them. */
static void spoil(const char *text, enum tap_deed deed, size_t at, const char *reason)
{
    struct bed b;

    open_moved(&b, true, text);
    even_out(&b);
    b.tap.deed = deed;
    b.tap.at = at;
    write_until_lost(&b, WRITES_MOST);
    assert_int_equal(b.tap.done, 1);
    assert_int_equal(b.arrived[1], 0);
    expect_untouched(&b);
    expect_why(&b, 1, reason);
    expect_why(&b, 0, deed == TAP_REFLECT ? "was changed" : "see the error message");
    assert_status(pair_write(&b.pair, 8, 2), TRIB_ERR_PEER_LOST);
    close_sides(&b);
}

static const char changed[] = "was changed, repeated, dropped or reordered";
static const char *const ciphers[] = {"tcp", "tcp:aes=0"};

/* Bits of the head, of its length, of the frame's head, of the payload and of the
 * tag. */
TEST(test_flipped_bits)
{
    static const size_t places[] = {0,  3,  4,  5,   6,    7,    8,   12,
                                    24, 39, 40, 100, 4135, 4136, 4151};

    for (size_t c = 0; c < 2; c++)
        for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
            spoil(ciphers[c], TAP_FLIP, places[i], changed);
}

TEST(test_left_out)
{
    for (size_t c = 0; c < 2; c++)
        spoil(ciphers[c], TAP_DROP, 0, changed);
}

TEST(test_swapped)
{
    for (size_t c = 0; c < 2; c++)
        spoil(ciphers[c], TAP_HOLD, 0, changed);
}

/* The writer gets its own record back: it is none of the other side's. */
TEST(test_sent_back)
{
    for (size_t c = 0; c < 2; c++)
        spoil(ciphers[c], TAP_REFLECT, 0, "");
}

/* A stream that ends between two records, or within one, is no disconnect. */
TEST(test_cut)
{
    static const size_t places[] = {0, 1, 8, 40, 4151};

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        spoil("tcp", TAP_CUT, places[i], "or it was cut");
}

/* The first time it is valid; then the test overwrites the memory. */
TEST(test_repeated)
{
    for (size_t c = 0; c < 2; c++) {
        struct bed b;
        open_moved(&b, true, ciphers[c]);
        b.tap.deed = TAP_KEEP;
        assert_ok(pair_write(&b.pair, PAIR_LEN, 1));
        await_arrivals(&b, 1, 1);
        assert_memory_equal(b.pair.mem[1], b.pair.mem[0], PAIR_LEN);
        memset(b.pair.mem[1], 0x5a, PAIR_LEN);
        tap_replay(&b.tap, 0);
        write_until_lost(&b, 0);
        assert_int_equal(b.arrived[1], 1);
        expect_untouched(&b);
        expect_why(&b, 1, changed);
        close_sides(&b);
    }
}

/* A record of a connection before, of the same ranks with the same secret, at its
 * place. */
TEST(test_of_another_connection)
{
    static struct tap before;
    struct bed b;

    open_moved(&b, true, "tcp");
    b.tap.deed = TAP_KEEP;
    assert_ok(pair_write(&b.pair, PAIR_LEN, 1));
    await_arrivals(&b, 1, 1);
    memcpy(before.copy, b.tap.copy, sizeof(before.copy));
    before.copied = b.tap.copied;
    close_sides(&b);
    open_moved(&b, true, "tcp");
    memcpy(b.tap.copy, before.copy, sizeof(before.copy));
    b.tap.copied = before.copied;
    tap_replay(&b.tap, 0);
    write_until_lost(&b, 0);
    assert_int_equal(b.arrived[1], 0);
    expect_untouched(&b);
    expect_why(&b, 1, changed);
    close_sides(&b);
}

/* An unsealed frame in the stream of a sealed connection. */
TEST(test_not_sealed)
{
    struct tcp_head head = {.magic = TCP_MAGIC, .kind = TCP_WRITE, .len = 32};
    struct bed b;

    open_moved(&b, true, "tcp");
    memset(b.tap.copy, 1, 64);
    memcpy(b.tap.copy, &head, sizeof(head));
    b.tap.copied = 64;
    tap_replay(&b.tap, 0);
    write_until_lost(&b, 0);
    expect_untouched(&b);
    expect_why(&b, 1, changed);
    close_sides(&b);
}

static bool on_the_wire(const struct tap *tap)
{
    return memmem(tap->seen, tap->n_seen, words, sizeof(words) - 1) != NULL;
}

/* With seals no byte of a gradient is legible, without all of them are. */
TEST(test_legible)
{
    static const char *const texts[] = {"tcp", "tcp", "tcp:aes=0"};

    for (int i = 0; i < 3; i++) {
        struct bed b;
        open_moved(&b, i > 0, texts[i]);
        assert_ok(pair_write(&b.pair, PAIR_LEN, 1));
        assert_ok(pair_write(&b.pair, 8, 2));
        await_arrivals(&b, 1, 2);
        assert_memory_equal(b.pair.mem[1], b.pair.mem[0], PAIR_LEN);
        assert_true(b.tap.n_seen > PAIR_LEN);
        assert_int_equal(on_the_wire(&b.tap), i == 0);
        close_sides(&b);
    }
}

/* One side has no instructions for AES: both take the other cipher. */
TEST(test_ciphers)
{
    static const char *const texts[][2] = {
        {"tcp", "tcp"}, {"tcp:aes=0", "tcp"}, {"tcp", "tcp:aes=0"}};

    for (int i = 0; i < 3; i++) {
        struct bed b;
        open_sides(&b, true, texts[i]);
        assert_ok(pair_write(&b.pair, PAIR_LEN, 1));
        await_arrivals(&b, 1, 1);
        assert_memory_equal(b.pair.mem[1], b.pair.mem[0], PAIR_LEN);
        const bool aes = i == 0 && trib_record_has_aes(&b.pair.secret[0]);
        assert_int_equal(tcp_of(b.pair.t[0])->peers[1].seals->own_out.is_aes, aes);
        close_sides(&b);
    }
}

/* Removing a flag from a hello on its way leads to no connection. */
TEST(test_downgrades)
{
    static const struct {
        uint32_t hello, challenge;
        const char *reason;
    } cases[] = {
        {TCP_SEALS, 0, "only one of the two encrypts"},
        {TCP_SEALS | TCP_HAS_SECRET, 0, "only one of the two has a secret"},
        {TCP_HAS_AES, 0, "does not have this job's secret"},
        {0, TCP_SEALS, "does not have this job's secret"},
        {0, TCP_HAS_AES, "does not have this job's secret"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const uint64_t until = trib_deadline_ms(tribtest_patience_ms());
        struct bed b;
        open_sides(&b, true, (const char *const[]){"tcp", "tcp"});
        b.tap.hello_loses = cases[i].hello;
        b.tap.challenge_loses = cases[i].challenge;
        bool taken = !trib_record_has_aes(&b.pair.secret[0]) &&
                     (cases[i].hello | cases[i].challenge) == TCP_HAS_AES;
        (void)pair_write(&b.pair, PAIR_LEN, 1);
        while (!taken && !b.lost[0] && !trib_deadline_passed(until))
            pump(&b);
        if (!taken)
            expect_why(&b, 0, cases[i].reason);
        assert_int_equal(b.arrived[1], 0);
        expect_untouched(&b);
        close_sides(&b);
    }
}

/* Each side says that the other one does not do as it does. */
TEST(test_one_side_alone)
{
    struct trib_config other = {.stop_timeout_ms = 300};

    for (int sealing = 0; sealing < 2; sealing++) {
        struct pair pair = {0};
        struct trib_address address;
        struct trib_event e = {0}, none;
        for (int i = 0; i < 2; i++) {
            pair_secret(&pair, i, 7);
            struct trib_transport_opts opts = pair_opts(&pair, i);
            pair.cfg.seal = true;
            opts.cfg = i == sealing ? &pair.cfg : &other;
            assert_ok(trib_transport_open("tcp", &opts, &pair.t[i]));
        }
        assert_ok(pair.t[1]->ops->address(pair.t[1], &address));
        assert_ok(pair.t[0]->ops->connect(pair.t[0], 1, &address));
        for (int k = 0; k < 20000 && !pair_poll(&pair, 0, 0, &e); k++) {
            (void)pair.t[1]->ops->poll(pair.t[1], &none, 1);
            usleep(500);
        }
        assert_int_equal(e.kind, TRIB_EVENT_PEER_LOST);
        assert_non_null(strstr(e.why, "set the same TRIB_SEAL on all ranks"));
        assert_non_null(strstr(pair.logged, "TRIB_SEAL"));
        pair_close(&pair);
    }
}

/* A transport that cannot seal returns an error with the cure; auto leaves it out. */
TEST(test_refusals)
{
    static const struct {
        const char *text;
        bool secret;
        const char *words[3];
    } cases[] = {
#if HAVE_SODIUM
        {"tcp",
         false,
         {"TRIB_SEAL=1 needs a secret", "start it with trib-run", "TRIB_KEY"}},
        {"rails:n=2,over=tcp", false, {"TRIB_SEAL=1 needs a secret", "TRIB_KEY", ""}},
        {"auto:far=tcp",
         false,
         {"auto:far=tcp is not available", "needs a secret", "trib-run"}},
#else
        {"tcp",
         false,
         {"TRIB_SEAL=1 needs libsodium", "this build is without", "unset TRIB_SEAL"}},
#endif
#if HAVE_UCX && HAVE_SODIUM
        {"ucx",
         true,
         {"ucx cannot encrypt", "use tcp, or auto", "unset TRIB_SEAL"}},
#endif
#if HAVE_VERBS && HAVE_SODIUM
        {"verbs",
         true,
         {"verbs cannot encrypt", "use tcp, or auto", "unset TRIB_SEAL"}},
        {"auto:far=verbs",
         true,
         {"auto:far=verbs is not available", "cannot encrypt", "TRIB_SEAL"}},
#endif
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct pair pair = {0};
        if (cases[i].secret)
            pair_secret(&pair, 0, 7);
        struct trib_transport_opts opts = pair_opts(&pair, 0);
        pair.cfg.seal = true;
        assert_int_not_equal(trib_transport_open(cases[i].text, &opts, &pair.t[0]),
                             TRIB_OK);
        for (int k = 0; k < 3; k++)
            if (!strstr(trib_error_text(&pair.err), cases[i].words[k]))
                fail_msg("%s: \"%s\" is not in \"%s\"", cases[i].text,
                         cases[i].words[k], trib_error_text(&pair.err));
    }
}

/* Memory of one host needs no secret: auto and shm are not refused for what tcp would
 * need. */
TEST(test_not_refused)
{
    static const char *const texts[] = {"shm", "auto", "auto:near=shm"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct pair pair = {0};
        struct trib_transport_opts opts = pair_opts(&pair, 0);
        pair.cfg.seal = true;
        assert_ok(trib_transport_open(texts[i], &opts, &pair.t[0]));
        pair.t[0]->ops->close(pair.t[0]);
    }
}
