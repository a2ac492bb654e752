/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx: who is taken for a peer and who is not; what a peer must not write.
 */
#include "tests/transport/pair.h"

#include <errno.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "transport/ucx/ucx.h"

/* The answer of a rank to this greeting; 0 bytes: it hung up. */
static ssize_t answer(uint16_t port, const void *hello, size_t len,
                      struct ucx_control *out)
{
    struct sockaddr_storage to;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    socklen_t to_len = trib_net_sockaddr(trib_net_loopback, port, AF_INET, &to);
    struct pollfd p = {.fd = fd, .events = POLLIN};

    assert_int_equal(connect(fd, (struct sockaddr *)&to, to_len), 0);
    assert_int_equal(send(fd, hello, len, MSG_NOSIGNAL), len);
    assert_int_equal(poll(&p, 1, 10000), 1);
    memset(out, 0, sizeof(*out));
    ssize_t n = recv(fd, out, sizeof(*out), MSG_DONTWAIT);
    close(fd);
    return n;
}

struct greeting {
    struct ucx_hello hello;
    uint8_t name[64];
};

TEST(test_refusals)
{
    struct pair pair;
    struct trib_event e;

    pair_open(&pair, "ucx", "ucx");
    const struct ucx *u = ucx_of(pair.t[1]);
    struct trib_ip_address a = pair_ip_address(&pair, 1);
    const struct ucx_hello good = {.magic = UCX_MAGIC,
                                   .version = UCX_VERSION,
                                   .size = 2,
                                   .key = a.key,
                                   .settings = u->settings,
                                   .release = u->release,
                                   .name_len = sizeof(((struct greeting *)0)->name)};
    struct {
        struct ucx_hello hello;
        uint64_t reason;
    } cases[] = {
        {good, UCX_OTHER_VERSION | (uint64_t)UCX_VERSION << 32},
        {good, UCX_OTHER_JOB},
        {good, UCX_OTHER_RANK},
        {good, UCX_OTHER_RANK},
        {good, UCX_OTHER_SETTINGS},
        {good, UCX_OTHER_RELEASE | (uint64_t)u->release << 32},
        {good, UCX_TWICE},
    };
    cases[0].hello.version++;
    cases[1].hello.key++;
    cases[2].hello.rank = 1;
    cases[3].hello.size = 3;
    cases[4].hello.settings++;
    cases[5].hello.release++;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct greeting g = {.hello = cases[i].hello};
        struct ucx_control word;
        assert_int_equal(answer(a.port, &g, sizeof(g), &word), sizeof(word));
        assert_int_equal(word.magic, UCX_MAGIC);
        assert_int_equal(word.kind, UCX_REFUSE);
        assert_int_equal(word.value, cases[i].reason);
    }
    /* None of it was of any harm. */
    assert_ok(pair_write(&pair, 8, 3));
    assert_int_equal(pair_await(&pair, 1, &e), 1);
    assert_int_equal(e.imm, 3);
    pair_close(&pair);
}

static uint32_t named; /* bytes of address that came */
static _Atomic int zeros; /* of requested endpoints: with zeros after the address */

static ucs_status_t look_behind(ucp_worker_h worker, const ucp_ep_params_t *params,
                                ucp_ep_h *out)
{
    const uint8_t *name = (const uint8_t *)params->address;
    int other = 0;

    (void)worker;
    (void)out;
    for (uint32_t i = named; i < UCX_NAME_MAX; i++)
        other |= name[i];
    zeros += !other;
    return UCS_ERR_UNREACHABLE;
}

/* UCX reads an address as far as the lengths in it say, not as far as it was sent:
 * zeros follow one that ends too early, and it is refused. */
TEST(test_short_names)
{
    struct pair pair = {.lines = 0};
    struct ucx_control word;

    for (int i = 0; i < 2; i++) {
        struct trib_transport_opts opts = pair_opts(&pair, i);
        assert_ok(trib_transport_open("ucx", &opts, &pair.t[i]));
    }
    const struct ucx *u = ucx_of(pair.t[0]);
    struct {
        struct ucx_hello hello;
        uint8_t name[UCX_NAME_MAX];
    } g = {.hello = {.magic = UCX_MAGIC,
                     .version = UCX_VERSION,
                     .size = 2,
                     .key = pair_ip_address(&pair, 1).key,
                     .settings = u->settings,
                     .release = u->release}};
    memcpy(g.name, u->name, u->name_len);
    for (uint32_t n = 0; n < u->name_len; n++) {
        const bool by_ucx = n < u->name_len / 2;
        ucx_of(pair.t[1])->api.ucp_ep_create =
            by_ucx ? u->api.ucp_ep_create : look_behind;
        g.hello.name_len = named = 1 + n % ((uint32_t)u->name_len / 2);
        assert_int_equal(
            answer(pair_ip_address(&pair, 1).port, &g, sizeof(g.hello) + named, &word),
            sizeof(word));
        assert_int_equal(word.kind, UCX_REFUSE);
        assert_int_equal(word.value, UCX_NO_ENDPOINT);
    }
    assert_int_equal(zeros, u->name_len - u->name_len / 2);
    pair_close(&pair);
}

TEST(test_strangers)
{
    struct pair pair;
    struct ucx_control word;

    pair_open(&pair, "ucx", "ucx");
    struct trib_ip_address a = pair_ip_address(&pair, 1);
    assert_int_equal(answer(a.port, "GET / HTTP/1.1\r\n\r\n", 18, &word), 0);
    pair_close(&pair); /* and with it the thread that logs */
    assert_true(pair_has_logged(&pair, "rejected an unauthenticated peer"));
}

/* One peer has sent its hello, then more silent ones than there are slots connect at
 * once: it gets its answer. */
TEST(test_burst)
{
    enum { CROWD = 2 + TRIB_NET_UNAUTHENTICATED + 8 };
    struct sockaddr_storage to;
    struct ucx_control word;
    struct pair pair;
    int fd[CROWD];

    pair_open(&pair, "ucx", "ucx");
    struct ucx *u = ucx_of(pair.t[1]);
    struct trib_ip_address a = pair_ip_address(&pair, 1);
    const struct ucx_hello hello = {
        .magic = UCX_MAGIC, .version = UCX_VERSION + 1, .size = 2, .key = a.key};
    socklen_t len = trib_net_sockaddr(trib_net_loopback, a.port, AF_INET, &to);
    pthread_mutex_lock(&u->links); /* the manager waits */
    pair.t[0]->ops->wake(pair.t[0], 1);
    usleep(20000);
    for (int i = 0; i < CROWD; i++) {
        fd[i] = socket(AF_INET, SOCK_STREAM, 0);
        assert_int_equal(connect(fd[i], (struct sockaddr *)&to, len), 0);
        if (i == 0)
            assert_int_equal(send(fd[i], &hello, sizeof(hello), MSG_NOSIGNAL),
                             sizeof(hello));
    }
    pthread_mutex_unlock(&u->links);
    struct pollfd p = {.fd = fd[0], .events = POLLIN};
    assert_int_equal(poll(&p, 1, 60000), 1);
    assert_int_equal(recv(fd[0], &word, sizeof(word), 0), sizeof(word));
    assert_int_equal(word.kind, UCX_REFUSE);
    for (int i = 0; i < CROWD; i++)
        close(fd[i]);
    pair_close(&pair);
}

/* Side 0 is notified, with a reason, that side 1 refuses it. */
static void is_refused(void (*change)(struct trib_ip_address *), int size,
                       int64_t chunk, const char *sentence)
{
    struct pair pair = {0};
    struct trib_config other;
    struct trib_address address;
    struct trib_ip_address a;

    for (int i = 0; i < 2; i++) {
        struct trib_transport_opts opts = pair_opts(&pair, i);
        other = pair.cfg;
        other.chunk += chunk;
        opts.size = i ? size : 2;
        opts.cfg = i ? &other : &pair.cfg;
        assert_ok(trib_transport_open("ucx", &opts, &pair.t[i]));
    }
    assert_ok(pair.t[1]->ops->address(pair.t[1], &address));
    memcpy(&a, address.bytes, sizeof(a));
    if (change)
        change(&a);
    memcpy(address.bytes, &a, sizeof(a));
    assert_status(pair.t[0]->ops->connect(pair.t[0], 1, &address), TRIB_ERR_PEER_LOST);
    if (!strstr(trib_error_text(&pair.err), sentence))
        fail_msg("\"%s\", not \"%s\"", trib_error_text(&pair.err), sentence);
    pair_close(&pair);
}

static void other_key(struct trib_ip_address *a)
{
    a->key++;
}

TEST(test_told_why)
{
    is_refused(other_key, 2, 0, "refused rank 0: it belongs to another job");
    is_refused(NULL, 3, 0, "refused rank 0: it knows no such rank");
    is_refused(NULL, 2, 4096, "refused rank 0: it has different settings");
}

#define LARGE ((size_t)1 << 20) /* UCX asks for it from where it lies */

/* Memory of the caller on both sides; side 0 may write to side 1's. */
static struct trib_write large_write(struct pair *pair, uint8_t *mem[2])
{
    struct trib_write w = {.len = LARGE};
    struct trib_region *region[2];
    struct trib_remote *remote;
    struct trib_blob blob;

    for (int i = 0; i < 2; i++) {
        mem[i] = malloc(LARGE);
        assert_non_null(mem[i]);
        memset(mem[i], 8 - i, LARGE);
        assert_ok(pair->t[i]->ops->reg(pair->t[i], mem[i], LARGE, &region[i]));
    }
    pair->region[1] = region[1];
    assert_ok(pair->t[1]->ops->export_region(pair->t[1], region[1], &blob));
    assert_ok(pair->t[0]->ops->import_region(pair->t[0], 1, &blob, &remote));
    w.local = region[0];
    w.remote = remote;
    return w;
}

/* Both sides poll, as UCX requires for large messages, until side 1 has an event. */
static void poll_both(struct pair *pair, struct trib_event *e)
{
    uint64_t until = trib_deadline_ms(tribtest_patience_ms());
    struct trib_event none;

    while (!trib_deadline_passed(until)) {
        (void)pair->t[0]->ops->poll(pair->t[0], &none, 1);
        if (pair_poll(pair, 1, 0, e))
            return;
    }
    fail_msg("side 1 has no event");
}

/* UCX may first tell that a large write was turned away. */
static void is_given_up(struct pair *pair, bool large)
{
    struct trib_event e;

    assert_int_equal(pair_await(pair, 0, &e), 1);
    assert_int_equal(e.kind, TRIB_EVENT_PEER_LOST);
    assert_true(large || strstr(e.why, "has declared this rank lost"));
}

static bool is_helped(struct ucx *u, int peer)
{
    pthread_mutex_lock(&u->links);
    bool helped = u->peers[peer].wire_until != 0;
    pthread_mutex_unlock(&u->links);
    return helped;
}

/* A rank progresses UCX for a peer that connects to it, until that is done. */
TEST(test_helped)
{
    enum { MS = 8000 }; /* the limit is 10 s */
    uint64_t until = trib_deadline_ms(MS);
    struct pair pair;

    pair_open(&pair, "ucx", "ucx");
    for (int i = 0; i < 2; i++) {
        while (is_helped(ucx_of(pair.t[i]), !i) && !trib_deadline_passed(until))
            usleep(1000);
        assert_false(is_helped(ucx_of(pair.t[i]), !i));
    }
    pair_close(&pair);
}

/* A write past the end of a region: the target disconnects the writer, which is
 * notified. */
static void outside(size_t len)
{
    struct pair pair;
    struct trib_event e;
    uint8_t *mem[2];

    pair_open(&pair, "ucx", "ucx");
    struct trib_write w = large_write(&pair, mem);
    ((struct trib_table_remote *)(uintptr_t)w.remote)->len = (size_t)1 << 40;
    w.remote_off = LARGE - len + 1;
    w.len = len;
    assert_ok(pair.t[0]->ops->write(pair.t[0], 1, &w));
    assert_int_equal(pair_await(&pair, 1, &e), 1);
    assert_int_equal(e.kind, TRIB_EVENT_PEER_LOST);
    assert_non_null(strstr(e.why, "wrote outside a region"));
    for (size_t i = 0; i < LARGE; i++)
        assert_int_equal(mem[1][i], 7);
    is_given_up(&pair, len == LARGE);
    pair_close(&pair);
    free(mem[0]);
    free(mem[1]);
}

TEST(test_outside)
{
    outside(8);
    outside(LARGE);
}

TEST(test_large)
{
    struct pair pair;
    struct trib_event e;
    uint8_t *mem[2];

    pair_open(&pair, "ucx", "ucx");
    struct trib_write w = large_write(&pair, mem);
    w.imm = 11;
    assert_ok(pair.t[0]->ops->write(pair.t[0], 1, &w));
    poll_both(&pair, &e);
    assert_int_equal(e.kind, TRIB_EVENT_ARRIVED);
    assert_int_equal(e.imm, 11);
    assert_int_equal(e.len, LARGE);
    assert_memory_equal(mem[0], mem[1], LARGE);
    pair_close(&pair);
    free(mem[0]);
    free(mem[1]);
}

/* The target of a pending large message is freed: UCX releases it first. Return true if
 * so; false if side 0's helper thread had already sent all of it. */
static bool take_memory_back(void)
{
    struct pair pair;
    struct trib_event e;
    uint8_t *mem[2];

    pair_open(&pair, "ucx", "ucx");
    struct trib_write w = large_write(&pair, mem);
    const struct ucx_peer *p = &ucx_of(pair.t[1])->peers[0];
    assert_ok(pair.t[0]->ops->write(pair.t[0], 1, &w));
    int n = 0;
    for (int i = 0; i < 20000 && n == 0 && p->pending == 0; i++)
        n = pair_poll(&pair, 1, 0, &e); /* side 0's helper may send */
    if (n == 0) {
        assert_true(p->pending > 0);
        pair.t[1]->ops->dereg(pair.t[1], pair.region[1]);
        assert_int_equal(p->pending, 0);
        free(mem[1]);
        mem[1] = NULL;
        n = pair_await(&pair, 1, &e);
    }
    assert_int_equal(n, 1);
    const bool taken = e.kind == TRIB_EVENT_PEER_LOST;
    if (taken) {
        assert_non_null(strstr(e.why, "was still writing into a deregistered region"));
        is_given_up(&pair, true);
    } else {
        assert_int_equal(e.kind, TRIB_EVENT_ARRIVED);
        assert_int_equal(e.len, LARGE);
    }
    pair_close(&pair);
    free(mem[0]);
    free(mem[1]);
    return taken;
}

TEST(test_memory_taken_back)
{
    int tries = 0;

    while (!take_memory_back())
        assert_true(++tries < 10); /* on a busy machine */
}

static ucs_status_ptr_t flush_fails(ucp_ep_h ep, const ucp_request_param_t *param)
{
    (void)ep;
    (void)param;
    return UCS_STATUS_PTR(UCS_ERR_UNREACHABLE);
}

/* An endpoint that UCX cannot bring up is no connection. */
TEST(test_endpoint_fails)
{
    struct pair pair = {0};
    struct trib_address address;

    for (int i = 0; i < 2; i++) {
        struct trib_transport_opts opts = pair_opts(&pair, i);
        assert_ok(trib_transport_open("ucx", &opts, &pair.t[i]));
    }
    ucx_of(pair.t[0])->api.ucp_ep_flush_nbx = flush_fails;
    assert_ok(pair.t[1]->ops->address(pair.t[1], &address));
    assert_status(pair.t[0]->ops->connect(pair.t[0], 1, &address), TRIB_ERR_PEER_LOST);
    if (!strstr(trib_error_text(&pair.err), "UCX cannot reach it"))
        fail_msg("\"%s\"", trib_error_text(&pair.err));
    pair_close(&pair);
}

static _Atomic bool peers_die; /* as soon as UCX has connected to them */
static _Atomic int deaths, refusals;

/* UCX calls these functions, too. Its sockets begin with this magic number. */
__attribute__((visibility("default"))) ssize_t send(int fd, const void *buffer,
                                                    size_t bytes, int flags)
{
    const uint64_t magic = 0xCAFEBABE12345678;

    if (!peers_die || bytes < sizeof(magic) || memcmp(buffer, &magic, sizeof(magic)))
        return sendto(fd, buffer, bytes, flags, NULL, 0);
    deaths++;
    errno = ECONNRESET;
    return -1;
}

__attribute__((visibility("default"))) int connect(int fd, const struct sockaddr *to,
                                                   socklen_t bytes)
{
    const struct sockaddr_in closed_port = {.sin_family = AF_INET,
                                            .sin_port = htons(1),
                                            .sin_addr = {htonl(INADDR_LOOPBACK)}};

    if (!deaths)
        return (int)syscall(SYS_connect, fd, to, bytes);
    refusals++;
    return (int)syscall(SYS_connect, fd, &closed_port, sizeof(closed_port));
}

/* A peer that dies between UCX's connect and its first message, and refuses the second
 * connection, is lost; an assertion of UCX must not end this process. */
TEST(test_peer_dies_while_connecting)
{
    struct pair pair = {0};
    struct trib_address address;

    for (int i = 0; i < 2; i++) {
        struct trib_transport_opts opts = pair_opts(&pair, i);
        assert_ok(trib_transport_open("ucx", &opts, &pair.t[i]));
    }
    assert_ok(pair.t[1]->ops->address(pair.t[1], &address));
    peers_die = true;
    assert_status(pair.t[0]->ops->connect(pair.t[0], 1, &address), TRIB_ERR_PEER_LOST);
    pair_close(&pair);
    peers_die = false;
    assert_true(deaths > 0 && refusals > 0);
    deaths = 0;
}

enum { SMALL = 100 };

/* Side 0 writes, and leaves while side 1 does not look; false: the machine was so busy
 * that it was not heard in time. */
static bool leaves(struct pair *pair, uint8_t *mem[2])
{
    struct trib_write w = large_write(pair, mem);

    for (uint32_t i = 0; i <= SMALL; i++) {
        w.imm = i;
        assert_ok(pair->t[0]->ops->write(pair->t[0], 1, &w));
        w.len = 8;
    }
    pair->t[0]->ops->disconnect(pair->t[0], 1);
    return ucx_of(pair->t[0])->peers[1].got_all;
}

/* All messages that a peer sent before it disconnected arrive, the large one too,
 * though this rank did not poll meanwhile. */
TEST(test_leaves)
{
    bool heard = false;

    for (int tries = 0; !heard && tries < 10; tries++) {
        struct pair pair;
        struct trib_event e;
        uint8_t *mem[2];
        pair_open(&pair, "ucx", "ucx");
        heard = leaves(&pair, mem);
        for (uint32_t i = 0; heard && i <= SMALL; i++) {
            assert_int_equal(pair_await(&pair, 1, &e), 1);
            assert_int_equal(e.kind, TRIB_EVENT_ARRIVED);
            assert_int_equal(e.imm, i);
        }
        assert_true(!heard || pair_await(&pair, 1, &e) == 1);
        assert_true(!heard || (e.kind == TRIB_EVENT_PEER_LOST && e.left));
        pair_close(&pair);
        free(mem[0]);
        free(mem[1]);
    }
    assert_true(heard);
}

/* A process whose sockets have ended may have written more, until UCX, too, has read
 * to the end: then the loss is reported at once. */
TEST(test_end_of_both)
{
    struct pair pair;
    struct trib_event e;

    pair_open(&pair, "ucx", "ucx");
    struct ucx *u = ucx_of(pair.t[0]);
    pthread_mutex_lock(&u->links); /* as the manager does */
    u->peers[1].gone = true;
    pthread_mutex_unlock(&u->links);
    u->async_events = true;
    assert_int_equal(pair.t[0]->ops->poll(pair.t[0], &e, 1), 0);
    pthread_mutex_lock(&u->lock); /* as those that drive UCX do */
    u->peers[1].fault = UCS_ERR_CONNECTION_RESET;
    pthread_mutex_unlock(&u->lock);
    assert_int_equal(pair.t[0]->ops->poll(pair.t[0], &e, 1), 1);
    assert_int_equal(e.kind, TRIB_EVENT_PEER_LOST);
    assert_non_null(strstr(e.why, "closed its connection"));
    pair_close(&pair);
}

/* UCX catches signals and prints where a program crashed; ours does not become so. */
TEST(test_signals)
{
    struct trib_ucx_api api;
    struct sigaction before, after;
    char why[200];

    assert_int_equal(sigaction(SIGBUS, NULL, &before), 0);
    assert_true(trib_ucx_load(&api, why, sizeof(why)));
    assert_int_equal(sigaction(SIGBUS, NULL, &after), 0);
    assert_ptr_equal(before.sa_sigaction, after.sa_sigaction);
}

static double cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* A connection that cannot be taken waits, and the manager sleeps; later it is taken.
 * UCX, however, closes its listener when it cannot accept, but keeps the descriptor's
 * number, and may then fail to start: this is the last case. */
TEST(test_no_descriptor)
{
    const struct ucx_hello hello = {.magic = UCX_MAGIC, .version = UCX_VERSION + 1};
    struct sockaddr_storage to;
    struct rlimit all, none;
    struct ucx_control word;
    struct pair pair;

    pair_open(&pair, "ucx", "ucx");
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    socklen_t len = trib_net_sockaddr(trib_net_loopback, pair_ip_address(&pair, 1).port,
                                      AF_INET, &to);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &all), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = all.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, len), 0);
    const double before = cpu_seconds();
    usleep(500000);
    const double used = cpu_seconds() - before;
    const bool said = pair_has_logged(&pair, "raise ulimit -n"); /* once */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &all), 0);
    assert_int_equal(send(fd, &hello, sizeof(hello), MSG_NOSIGNAL), sizeof(hello));
    struct pollfd p = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 60000), 1);
    assert_int_equal(recv(fd, &word, sizeof(word), 0), sizeof(word));
    assert_int_equal(word.kind, UCX_REFUSE);
    close(fd);
    pair_close(&pair);
    if (used > 0.1 * tribtest_slowness())
        fail_msg("%.3f s of a processor within half a second", used);
    assert_true(said);
}
