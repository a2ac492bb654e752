/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The word with which tcp takes a connection, or says why not.
 */
#include "tests/transport/pair.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "transport/tcp/tcp.h"

static struct trib_ip_address address_of(struct pair *pair, int side)
{
    struct trib_address address;
    struct trib_ip_address a;

    assert_status(pair->t[side]->ops->address(pair->t[side], &address), TRIB_OK);
    assert_int_equal(address.len, sizeof(a));
    memcpy(&a, address.bytes, sizeof(a));
    return a;
}

static int dial(uint16_t port)
{
    struct sockaddr_storage to;
    int fd = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    socklen_t len = trib_net_sockaddr(trib_net_loopback, port, AF_INET, &to);

    assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, len), 0);
    return fd;
}

/* The answer of side 1 to this greeting; 0 bytes: it hung up. */
static ssize_t answer(struct pair *pair, int fd, const void *hello, size_t len,
                      struct tcp_head *out)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    struct trib_event e;

    assert_int_equal(send(fd, hello, len, MSG_NOSIGNAL), len);
    for (int i = 0; i < 4000 && poll(&p, 1, 1) == 0; i++)
        (void)pair->t[1]->ops->poll(pair->t[1], &e, 1);
    memset(out, 0, sizeof(*out));
    return recv(fd, out, sizeof(*out), MSG_DONTWAIT);
}

static void test_refusals(void **state)
{
    struct pair pair;

    (void)state;
    pair_open(&pair, "tcp", "tcp");
    struct trib_ip_address a = address_of(&pair, 1);
    const struct tcp_hello good = {
        .magic = TCP_MAGIC, .version = TCP_VERSION, .rank = 0, .size = 2, .key = a.key};
    struct {
        struct tcp_hello hello;
        enum tcp_refusal reason;
    } cases[] = {{good, TCP_OTHER_VERSION},
                 {good, TCP_OTHER_JOB},
                 {good, TCP_OTHER_RANK},
                 {good, TCP_OTHER_RANK},
                 {good, TCP_TWICE}};
    cases[0].hello.version = TCP_VERSION + 1;
    cases[1].hello.key++;
    cases[2].hello.rank = 1;
    cases[3].hello.size = 3;
    struct trib_event e;
    (void)pair_poll(&pair, 1, 50, &e); /* the connection of rank 0 itself is taken */
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tcp_head head;
        int fd = dial(a.port);
        ssize_t n = answer(&pair, fd, &cases[i].hello, sizeof(cases[i].hello), &head);
        assert_int_equal(n, sizeof(head));
        assert_int_equal(head.magic, TCP_MAGIC);
        assert_int_equal(head.kind, TCP_REFUSE);
        assert_int_equal(head.imm, cases[i].reason);
        assert_int_equal(head.off, TCP_VERSION);
        close(fd);
    }
    /* None of it was of any harm. */
    assert_status(pair_write(&pair, 8, 3), TRIB_OK);
    assert_int_equal(pair_await(&pair, 1, &e), 1);
    assert_int_equal(e.imm, 3);
    pair_close(&pair);
}

static void test_strangers(void **state)
{
    struct pair pair;
    struct tcp_head head;

    (void)state;
    pair_open(&pair, "tcp", "tcp");
    struct trib_ip_address a = address_of(&pair, 1);
    int fd = dial(a.port);
    assert_int_equal(answer(&pair, fd, "GET / HTTP/1.1\r\n\r\n", 18, &head), 0);
    assert_non_null(strstr(pair.logged, "a stranger connected"));
    close(fd);
    pair_close(&pair);
}

/* Silent strangers take all places and do not leave: a rank comes in all the same. */
static void test_silent_strangers(void **state)
{
    enum { CROWD = 2 + TRIB_NET_STRANGERS };
    struct trib_address address;
    struct pair pair = {0};
    struct trib_event e;
    int fd[CROWD];
    char byte;

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct trib_transport_opts opts = pair_opts(&pair, i);
        assert_status(trib_transport_open("tcp", &opts, &pair.t[i]), TRIB_OK);
    }
    struct tcp *tcp = tcp_of(pair.t[1]);
    assert_status(pair.t[1]->ops->address(pair.t[1], &address), TRIB_OK);
    for (int i = 0; i < CROWD; i++)
        fd[i] = dial(address_of(&pair, 1).port);
    for (int i = 0; i < 4000 && tcp->n_pending < CROWD; i++)
        assert_int_equal(pair_poll(&pair, 1, 5, &e), 0);
    assert_int_equal(tcp->n_pending, CROWD);
    for (int i = 0; i < CROWD; i++) /* they have all the time, the last but one least */
        tcp->pending_conns[i].until =
            trib_deadline_ms(3600000 + 1000 * (i != CROWD - 2));
    assert_status(pair.t[0]->ops->connect(pair.t[0], 1, &address), TRIB_OK);
    struct trib_write w = {.imm = 5};
    assert_status(pair.t[0]->ops->write(pair.t[0], 1, &w), TRIB_OK);
    assert_int_equal(pair_poll(&pair, 1, (int)(20000 * tribtest_slowness()), &e), 1);
    assert_int_equal(e.imm, 5);
    assert_int_equal(tcp->n_pending, CROWD - 1);
    for (int i = 0; i < CROWD; i++) {
        if (i == CROWD - 2)
            assert_int_equal(recv(fd[i], &byte, 1, 0), 0);
        else
            assert_int_equal(recv(fd[i], &byte, 1, MSG_DONTWAIT), -1);
        close(fd[i]);
    }
    assert_int_equal(pair.lines, 1);
    assert_non_null(strstr(pair.logged, "a stranger connected"));
    pair_close(&pair);
}

/* Side 0 is told by name why its connection to side 1 was not taken. */
static void is_lost(void (*change)(struct trib_ip_address *), int size,
                    const char *sentence)
{
    struct pair pair = {0};
    struct trib_address address;
    struct trib_ip_address a;
    struct trib_event e = {0}, none;

    for (int i = 0; i < 2; i++) {
        struct trib_transport_opts opts = pair_opts(&pair, i);
        opts.size = i ? size : 2;
        assert_status(trib_transport_open("tcp", &opts, &pair.t[i]), TRIB_OK);
    }
    assert_status(pair.t[1]->ops->address(pair.t[1], &address), TRIB_OK);
    memcpy(&a, address.bytes, sizeof(a));
    if (change)
        change(&a);
    memcpy(address.bytes, &a, sizeof(a));
    assert_status(pair.t[0]->ops->connect(pair.t[0], 1, &address), TRIB_OK);
    for (int i = 0; i < 5000 && !pair_poll(&pair, 0, 0, &e); i++) {
        (void)pair.t[1]->ops->poll(pair.t[1], &none, 1);
        usleep(500);
    }
    assert_int_equal(e.kind, TRIB_EVENT_PEER_LOST);
    if (!strstr(e.why, sentence))
        fail_msg("the loss is \"%s\", not \"%s\"", e.why, sentence);
    pair_close(&pair);
}

static void other_key(struct trib_ip_address *a)
{
    a->key++;
}

static void test_told_why(void **state)
{
    (void)state;
    is_lost(other_key, 2, "turned rank 0 away: this rank's key is of another job");
    is_lost(NULL, 3, "turned rank 0 away: it knows no such rank");
}

/* A connection to side 1, made by hand, over which rank 0 has begun to write. */
static int begin_write(struct pair *pair, const struct tcp_head *head,
                       const void *bytes, size_t len)
{
    struct trib_ip_address a = address_of(pair, 1);
    const struct tcp_hello hello = {
        .magic = TCP_MAGIC, .version = TCP_VERSION, .rank = 0, .size = 2, .key = a.key};
    struct tcp_head word;
    int fd = dial(a.port);

    assert_int_equal(answer(pair, fd, &hello, sizeof(hello), &word), sizeof(word));
    assert_int_equal(word.kind, TCP_ACCEPT);
    assert_int_equal(send(fd, head, sizeof(*head), MSG_NOSIGNAL), sizeof(*head));
    assert_int_equal(send(fd, bytes, len, MSG_NOSIGNAL), len);
    return fd;
}

/* Side 1 with memory of its caller; rank 0 is nobody but who dials by hand. */
static struct tcp_head open_target(struct pair *pair, void *mem, size_t len)
{
    struct trib_transport_opts opts = pair_opts(pair, 1);
    struct trib_blob blob;
    struct trib_table_export x;

    assert_status(trib_transport_open("tcp", &opts, &pair->t[1]), TRIB_OK);
    assert_status(pair->t[1]->ops->reg(pair->t[1], mem, len, &pair->region[1]),
                  TRIB_OK);
    assert_status(pair->t[1]->ops->export_region(pair->t[1], pair->region[1], &blob),
                  TRIB_OK);
    memcpy(&x, blob.bytes, sizeof(x));
    return (struct tcp_head){
        .magic = TCP_MAGIC, .kind = TCP_WRITE, .region = x.region, .len = len};
}

static void poll_side_1(struct pair *pair, const uint8_t *until)
{
    struct trib_event e;

    for (int i = 0; i < 20000 && !*until; i++) {
        assert_int_equal(pair->t[1]->ops->poll(pair->t[1], &e, 1), 0);
        usleep(500);
    }
    assert_true(*until);
}

/* A listener without a descriptor says so once, and takes the peers that wait when it
 * has one. */
static void test_no_descriptor(void **state)
{
    struct pair pair = {0};
    struct trib_transport_opts opts = pair_opts(&pair, 1);
    struct rlimit all, none;
    struct trib_event e;
    struct tcp_head word;

    (void)state;
    assert_status(trib_transport_open("tcp", &opts, &pair.t[1]), TRIB_OK);
    struct trib_ip_address a = address_of(&pair, 1);
    const struct tcp_hello hello = {
        .magic = TCP_MAGIC, .version = TCP_VERSION, .rank = 0, .size = 2, .key = a.key};
    int fd = dial(a.port);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &all), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = all.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    pair.lines = 0;
    for (int i = 0; i < 200; i++)
        assert_int_equal(pair.t[1]->ops->poll(pair.t[1], &e, 1), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &all), 0);
    assert_int_equal(pair.lines, 1);
    if (!strstr(pair.logged, "raise ulimit -n"))
        fail_msg("\"%s\" has no cure", pair.logged);
    /* The connection waits in the queue, and yet ends no sleep: nobody spins. */
    struct pollfd sleep = {.fd = pair.t[1]->ops->event_fd(pair.t[1]),
                           .events = POLLIN};
    assert_int_equal(poll(&sleep, 1, 0), 0);
    assert_int_equal(answer(&pair, fd, &hello, sizeof(hello), &word), sizeof(word));
    assert_int_equal(word.kind, TCP_ACCEPT);
    close(fd);
    pair.t[1]->ops->close(pair.t[1]);
}

/* Half of a payload is here when its target is taken away: the rest goes nowhere. */
static void test_memory_taken_back(void **state)
{
    struct pair pair = {0};
    uint8_t mem[512] = {0}, half[256];
    struct trib_event e;

    (void)state;
    struct tcp_head head = open_target(&pair, mem, sizeof(mem));
    memset(half, 7, sizeof(half));
    int fd = begin_write(&pair, &head, half, sizeof(half));
    poll_side_1(&pair, &mem[255]);
    pair.t[1]->ops->dereg(pair.t[1], pair.region[1]);
    memset(mem, 0, sizeof(mem));
    (void)send(fd, half, sizeof(half), MSG_NOSIGNAL);
    assert_int_equal(pair_poll(&pair, 1, 100, &e), 0);
    for (size_t i = 0; i < sizeof(mem); i++)
        assert_int_equal(mem[i], 0);
    close(fd);
    pair.t[1]->ops->close(pair.t[1]);
}

/* Two writes, byte by byte: each has arrived when its last byte has, and not before. */
static void test_split_at_every_byte(void **state)
{
    struct pair pair = {0};
    uint8_t mem[40] = {0}, stream[2 * (sizeof(struct tcp_head) + sizeof(mem))];
    const size_t frame = sizeof(stream) / 2;
    struct trib_event e;

    (void)state;
    struct tcp_head head = open_target(&pair, mem, sizeof(mem));
    for (int i = 0; i < 2; i++) {
        head.imm = 5 + (uint32_t)i;
        memcpy(stream + (size_t)i * frame, &head, sizeof(head));
        memset(stream + (size_t)i * frame + sizeof(head), 7 + i, sizeof(mem));
    }
    int fd = begin_write(&pair, (struct tcp_head *)stream, "", 0);
    for (size_t at = sizeof(head); at < sizeof(stream); at++) {
        bool last = (at + 1) % frame == 0;
        assert_int_equal(send(fd, stream + at, 1, MSG_NOSIGNAL), 1);
        int n = pair_poll(&pair, 1, last ? 10000 : 0, &e);
        assert_int_equal(n, last);
        if (!last)
            continue;
        assert_int_equal(e.kind, TRIB_EVENT_ARRIVED);
        assert_int_equal(e.imm, 5 + at / frame);
        assert_int_equal(e.len, sizeof(mem));
        for (size_t i = 0; i < sizeof(mem); i++)
            assert_int_equal(mem[i], 7 + at / frame);
    }
    close(fd);
    pair.t[1]->ops->close(pair.t[1]);
}

/* The range of a frame must lie in its region, whatever its numbers add up to. */
static void test_frames_outside(void **state)
{
    static const struct {
        uint64_t off, len;
    } claims[] = {{0, 65}, {64, 1}, {1, 64}, {UINT64_MAX, 2}, {8, UINT64_MAX - 4}};
    uint8_t mem[80], bytes[80];

    (void)state;
    memset(bytes, 1, sizeof(bytes));
    for (size_t c = 0; c < sizeof(claims) / sizeof(claims[0]); c++) {
        struct pair pair = {0};
        struct tcp_head word;
        memset(mem, 9, sizeof(mem));
        struct tcp_head head = open_target(&pair, mem, 64);
        head.off = claims[c].off;
        head.len = claims[c].len;
        int fd = begin_write(&pair, &head, bytes, sizeof(bytes));
        assert_true(answer(&pair, fd, "", 0, &word) <= 0);
        for (size_t i = 0; i < sizeof(mem); i++)
            assert_int_equal(mem[i], 9);
        close(fd);
        pair.t[1]->ops->close(pair.t[1]);
    }
}

/*
 * Does side 0 sleep once it has left its peer, though a forked child, as a loader of
 * data is, still holds its sockets?
 */
static void test_child_holds_sockets(void **state)
{
    struct pair pair;
    struct trib_event e;
    uint64_t deadline = trib_deadline_ms(10000 * tribtest_slowness());
    int quiet = 0;

    (void)state;
    pair_open(&pair, "tcp", "tcp");
    const struct trib_transport_ops *ops = pair.t[0]->ops;
    assert_status(pair_write(&pair, 8, 1), TRIB_OK);
    assert_int_equal(pair_await(&pair, 1, &e), 1);
    pid_t child = fork();
    while (child == 0)
        pause();
    ops->disconnect(pair.t[0], 1);
    pair.t[1]->ops->close(pair.t[1]);
    struct pollfd sleep = {.fd = ops->event_fd(pair.t[0]), .events = POLLIN};
    while (quiet < 5 && !trib_deadline_passed(deadline)) {
        ops->arm(pair.t[0]);
        (void)ops->poll(pair.t[0], &e, 1);
        quiet = poll(&sleep, 1, 20) == 0 ? quiet + 1 : 0;
        ops->wait(pair.t[0], 0);
    }
    ops->close(pair.t[0]);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(quiet, 5);
}

/* With a secret -------------------------------------------------------------------- */

/* Side 1 alone, with a secret and memory, and who dials by hand. */
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
                          .key = address_of(pair, 1).key,
                          .flags = TCP_HAS_SECRET};

    memset(h.nonce, first, sizeof(h.nonce));
    return h;
}

/* The proof of rank 0, had it that secret, on a connection that was challenged so. */
static void proof_of(const struct trib_secret *secret, const struct tcp_hello *hello,
                     const uint8_t *nonce, uint8_t out[TRIB_PROOF_BYTES])
{
    struct trib_proof about = {
        .label = "tcp 6",
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
    int fd = dial(address_of(pair, 1).port);
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
static void test_wrong_proofs(void **state)
{
    struct pair pair = {0};
    struct tcp_challenge c, again;
    uint8_t mem[64] = {0}, proof[TRIB_PROOF_BYTES] = {0}, right[TRIB_PROOF_BYTES];
    struct tcp_head word;

    (void)state;
    struct tcp_head head = open_proving(&pair, mem, sizeof(mem));
    struct tcp_hello hello = hello_to(&pair, 3);
    fails(&pair, begin(&pair, &hello, &c), proof, &head);
    assert_non_null(
        strstr(pair.logged, "from 127.0.0.1 and was turned away: it did not prove"));
    int fd = begin(&pair, &hello, &c);
    fails(&pair, fd, c.proof, &head);
    fd = begin(&pair, &hello, &c);
    proof_of(&pair.secret[1], &hello, c.nonce, right);
    int other = begin(&pair, &hello, &again);
    assert_memory_not_equal(c.nonce, again.nonce, sizeof(c.nonce));
    fails(&pair, other, right, &head); /* recorded on fd, which has not ended */
    pair_secret(&pair, 0, 8);
    other = begin(&pair, &hello, &again);
    proof_of(&pair.secret[0], &hello, again.nonce, proof);
    fails(&pair, other, proof, &head);
    for (size_t i = 0; i < sizeof(mem); i++)
        assert_int_equal(mem[i], 0);
    /* None of them has taken the seat. */
    assert_int_equal(answer(&pair, fd, right, sizeof(right), &word), sizeof(word));
    assert_int_equal(word.kind, TCP_ACCEPT);
    other = begin(&pair, &hello, &again);
    proof_of(&pair.secret[1], &hello, again.nonce, proof);
    assert_int_equal(answer(&pair, other, proof, sizeof(proof), &word), sizeof(word));
    assert_int_equal(word.imm, TCP_TWICE);
    close(other);
    close(fd);
    pair.t[1]->ops->close(pair.t[1]);
}

/* Each side says what is wrong, and nobody waits. */
static void test_other_secrets(void **state)
{
    static const uint8_t numbers[][2] = {{1, 2}, {0, 2}, {1, 0}};
    static const char *const lost[] = {"has not the secret of this job",
                                       "one of both has a secret",
                                       "one of both has a secret"};

    (void)state;
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
        if (!strstr(pair.logged, "was turned away"))
            fail_msg("the listener says \"%s\"", pair.logged);
        pair_close(&pair);
    }
}

/* Two sides with one secret: all is as without. */
static void test_same_secret(void **state)
{
    struct pair pair = {0};
    struct trib_address address[2];
    struct trib_event e;

    (void)state;
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

/* Ports of jobs that have just ended are free at once: a range of ten lasts for a
 * hundred. */
static void test_ports_again(void **state)
{
    char text[64];
    uint16_t first = 0;

    (void)state;
    for (int job = 0; job < 100; job++) {
        struct pair pair;
        struct trib_event e;
        if (job == 0) {
            struct trib_net_port at;
            assert_status(trib_net_bind("test", SOCK_STREAM, 0, 1, &at, NULL), TRIB_OK);
            first = at.port > 60000 ? at.port - 100 : at.port;
            close(at.fd);
        }
        snprintf(text, sizeof(text), "tcp:port=%u,ports=10", first);
        pair_open(&pair, text, text);
        assert_status(pair_write(&pair, 8, 3), TRIB_OK);
        assert_int_equal(pair_await(&pair, 1, &e), 1);
        pair_close(&pair);
    }
}

/* true: a connection to an address of this host comes about within half a second. */
static bool comes_in(const uint8_t ip[16], uint16_t port)
{
    int fd = trib_net_connect_to(ip, port, trib_deadline_ms(500));

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* A network that net= does not name does not reach the port; loopback does. */
static void test_other_networks(void **state)
{
    static const char *const texts[] = {"tcp", "tcp:net=127.0.0.0/8"};
    uint8_t ip[1][16];

    (void)state;
    if (trib_net_own(ip, 1) == 0)
        tribtest_skip("this host has no address but loopback");
    for (int fenced = 0; fenced < 2; fenced++) {
        struct pair pair = {0};
        struct trib_transport_opts opts = pair_opts(&pair, 1);
        assert_status(trib_transport_open(texts[fenced], &opts, &pair.t[1]), TRIB_OK);
        uint16_t port = address_of(&pair, 1).port;
        assert_true(comes_in(trib_net_loopback, port));
        assert_int_equal(comes_in(ip[0], port), !fenced);
        pair.t[1]->ops->close(pair.t[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_silent_strangers),
        cmocka_unit_test(test_told_why),
        cmocka_unit_test(test_no_descriptor),
        cmocka_unit_test(test_memory_taken_back),
        cmocka_unit_test(test_child_holds_sockets),
        cmocka_unit_test(test_split_at_every_byte),
        cmocka_unit_test(test_frames_outside),
        cmocka_unit_test(test_wrong_proofs),
        cmocka_unit_test(test_other_secrets),
        cmocka_unit_test(test_same_secret),
        cmocka_unit_test(test_ports_again),
        cmocka_unit_test(test_other_networks),
    };

    tribtest_deadline(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
