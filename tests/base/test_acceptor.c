/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The acceptor of all listeners, with hostile peers on real sockets: more connections
 * than places, slow and partial hellos, half-closed peers, and no descriptors.
 */
#include "tests/harness/tribtest.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/acceptor.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/time.h"

enum {
    HELLO = 4, /* bytes */
    MAX = 4,
    PEERS = 16,
};

/* A connection of the listener under test. Its first byte selects the outcome: 't'
 * accepts it, 'r' rejects it, 'x' rejects it before the rest of the hello. */
struct record {
    struct trib_pending base;
    char hello[HELLO];
    int number; /* in the order of accept() */
};

struct listener {
    struct trib_acceptor acceptor;
    struct trib_log log;
    int fd;
    uint16_t port;
    int admitted, freed, watched, starved;
    int taken; /* descriptor of the last accepted one; -1: none */
    int n_ends, end_of[PEERS]; /* by number: 1 + reason of the end; 0: not yet */
    bool none; /* admit() has no record */
    bool gives; /* starved() finds a descriptor */
    char said[512];
};

static struct trib_pending *admit(void *owner, int fd, const uint8_t ip[16])
{
    struct listener *l = owner;
    struct record *r = l->none ? NULL : calloc(1, sizeof(*r));

    assert_int_equal(ip[12], 127);
    if (!r) {
        close(fd);
        return NULL;
    }
    r->number = l->admitted++;
    trib_pending_expect(&r->base, r->hello, sizeof(r->hello));
    return &r->base;
}

static bool judge(void *owner, struct trib_pending *p)
{
    const struct record *r = (const struct record *)p;

    (void)owner;
    assert_in_range(p->have, 1, HELLO);
    return r->hello[0] == 'x' || p->have == HELLO;
}

static enum trib_pending_fate finish(void *owner, struct trib_pending *p,
                                     enum trib_pending_end why)
{
    const struct record *r = (const struct record *)p;
    struct listener *l = owner;

    assert_int_equal(p->slot, 0);
    assert_false(p->refused);
    l->n_ends++;
    l->end_of[r->number % PEERS] = 1 + (int)why;
    if (why != TRIB_PENDING_JUDGED)
        return TRIB_PENDING_CLOSE;
    if (r->hello[0] != 't') {
        assert_int_equal(send(p->fd, "no", 2, MSG_NOSIGNAL), 2);
        return TRIB_PENDING_REFUSED;
    }
    l->taken = p->fd;
    return TRIB_PENDING_TAKEN;
}

static void watch(void *owner, int fd, bool on)
{
    struct listener *l = owner;

    assert_true(fd >= 0);
    l->watched += on ? 1 : -1;
}

static bool starved(void *owner, int listener)
{
    struct listener *l = owner;

    assert_int_equal(listener, l->fd);
    l->starved++;
    return l->gives && trib_acceptor_evict(&l->acceptor);
}

static void free_record(void *record)
{
    free(record);
}

static const struct trib_acceptor_ops ops = {.admit = admit,
                                             .judge = judge,
                                             .finish = finish,
                                             .watch = watch,
                                             .free = free_record};

static const struct trib_acceptor_ops starving_ops = {.admit = admit,
                                                      .judge = judge,
                                                      .finish = finish,
                                                      .starved = starved,
                                                      .free = free_record};

static void note(void *arg, trib_log_level_t level, const char *line)
{
    struct listener *l = arg;

    (void)level;
    snprintf(l->said, sizeof(l->said), "%s", line);
}

static void begin(struct listener *l)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);

    memset(l, 0, sizeof(*l));
    trib_log_init(&l->log, TRIB_LOG_WARN, note, l);
    l->fd =
        trib_fd_keep(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    assert_int_equal(bind(l->fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(l->fd, 64), 0);
    assert_int_equal(getsockname(l->fd, (struct sockaddr *)&at, &len), 0);
    l->port = ntohs(at.sin_port);
    l->taken = -1;
    l->acceptor = (struct trib_acceptor){.ops = &ops,
                                         .owner = l,
                                         .log = &l->log,
                                         .component = "test",
                                         .cannot = "cannot accept peers",
                                         .port = l->port,
                                         .max = MAX,
                                         .batch = PEERS,
                                         .hello_ms = 60000};
    assert_true(trib_acceptor_open(&l->acceptor));
}

static void end(struct listener *l)
{
    trib_acceptor_close(&l->acceptor);
    assert_int_equal(l->acceptor.n, 0);
    close(l->fd);
    if (l->taken >= 0)
        close(l->taken);
}

/* Connect from 127.0.0.`host`. */
static int dial_from(const struct listener *l, uint8_t host)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(l->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in from = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(0x7f000000u + host)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

static int dial(struct listener *l, const char *bytes)
{
    const int fd = dial_from(l, 1);

    assert_int_equal(send(fd, bytes, strlen(bytes), MSG_NOSIGNAL), strlen(bytes));
    return fd;
}

static void step(struct listener *l)
{
    trib_acceptor_accept(&l->acceptor, l->fd);
    trib_acceptor_progress(&l->acceptor);
}

/* Step until n connections have ended; fail after a minute. */
static void until_ends(struct listener *l, int n)
{
    for (const uint64_t late = trib_deadline_ms(60000); l->n_ends < n;) {
        assert_false(trib_deadline_passed(late));
        step(l);
    }
    assert_int_equal(l->n_ends, n);
}

/* Wait for bytes from the listener and return their number, or 0 after it closed. */
static ssize_t hear(int fd, char *bytes, size_t n)
{
    struct pollfd in = {.fd = fd, .events = POLLIN};

    assert_int_equal(poll(&in, 1, 60000), 1);
    return recv(fd, bytes, n, 0);
}

TEST(test_take_over)
{
    struct listener l;
    char bytes[8];

    begin(&l);
    const int fd = dial(&l, "take and the rest");
    until_ends(&l, 1);
    assert_int_equal(l.end_of[0], 1 + TRIB_PENDING_JUDGED);
    assert_int_equal(l.acceptor.n, 0);
    /* The acceptor leaves the bytes after the hello to the new owner. */
    assert_int_equal(recv(l.taken, bytes, 4, 0), 4);
    assert_memory_equal(bytes, " and", 4);
    close(fd);
    end(&l);
    assert_int_equal(l.watched, 1); /* accepted connections stay watched */
}

TEST(test_slow_hello)
{
    struct listener l;

    begin(&l);
    const int fd = dial(&l, "");
    for (int i = 0; i < HELLO; i++) {
        for (int k = 0; k < 50; k++)
            step(&l);
        assert_int_equal(l.n_ends, 0);
        assert_int_equal(send(fd, "take" + i, 1, MSG_NOSIGNAL), 1);
    }
    until_ends(&l, 1);
    assert_int_equal(l.end_of[0], 1 + TRIB_PENDING_JUDGED);
    close(fd);
    end(&l);
}

/* Two bytes of a hello, and then the end of the stream. */
TEST(test_partial_hello)
{
    struct listener l;

    begin(&l);
    const int fd = dial(&l, "ta");
    step(&l);
    assert_int_equal(l.n_ends, 0);
    close(fd);
    until_ends(&l, 1);
    assert_int_equal(l.end_of[0], 1 + TRIB_PENDING_ENDED);
    assert_int_equal(l.watched, 0);
    end(&l);
}

/* A peer that sends a whole hello and closes its half gets its answer. */
TEST(test_half_closed)
{
    struct listener l;
    char bytes[8];

    begin(&l);
    const int fd = dial(&l, "rest");
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    until_ends(&l, 1);
    assert_int_equal(l.end_of[0], 1 + TRIB_PENDING_JUDGED);
    assert_int_equal(hear(fd, bytes, sizeof(bytes)), 2);
    assert_int_equal(hear(fd, bytes, sizeof(bytes)), 0);
    step(&l); /* the stream has ended: its peer waits for nothing */
    assert_int_equal(l.acceptor.n, 0);
    close(fd);
    end(&l);
}

/* A rejected peer can read the refusal, whatever it sends afterwards; then it is
 * closed. */
TEST(test_refused)
{
    struct listener l;
    char bytes[8];

    begin(&l);
    const int fd = dial(&l, "x and much more that nobody reads");
    until_ends(&l, 1);
    assert_int_equal(l.acceptor.n, 1);
    assert_int_equal(hear(fd, bytes, sizeof(bytes)), 2);
    assert_int_equal(hear(fd, bytes, sizeof(bytes)), 0);
    step(&l);
    assert_int_equal(l.acceptor.n, 1); /* not before the peer has closed its end */
    for (const uint64_t late = trib_deadline_ms(60000); l.acceptor.n;) {
        assert_false(trib_deadline_passed(late));
        step(&l);
    }
    assert_int_equal(l.n_ends, 1); /* finished only once */
    close(fd);
    end(&l);
}

TEST(test_deadline)
{
    struct listener l;
    char bytes[8];

    begin(&l);
    l.acceptor.hello_ms = 30;
    const int fd = dial(&l, "tak");
    step(&l);
    assert_int_equal(l.acceptor.n, 1);
    assert_in_range(trib_acceptor_wait_ms(&l.acceptor), 0, 30);
    trib_acceptor_forgive(&l.acceptor, UINT64_C(60000000000));
    assert_in_range(trib_acceptor_wait_ms(&l.acceptor), 30000, 60030);
    (void)poll(NULL, 0, 40);
    trib_acceptor_expire(&l.acceptor);
    assert_int_equal(l.n_ends, 0); /* it was forgiven */
    l.acceptor.pending[0]->until = trib_now_ns();
    trib_acceptor_expire(&l.acceptor);
    assert_int_equal(l.end_of[0], 1 + TRIB_PENDING_LATE);
    assert_int_equal(hear(fd, bytes, sizeof(bytes)), 0);
    assert_int_equal(trib_acceptor_wait_ms(&l.acceptor), -1);
    close(fd);
    end(&l);
}

/* Connect PEERS silent ones one by one. */
static void crowd(struct listener *l, int *fds, const uint8_t *hosts)
{
    for (int i = 0; i < PEERS; i++) {
        fds[i] = dial_from(l, hosts ? hosts[i] : 1);
        while (l->admitted <= i)
            trib_acceptor_accept(&l->acceptor, l->fd);
        assert_in_range(l->acceptor.n, 1, MAX);
    }
}

/* More connections than slots: the earliest deadline is evicted first. */
TEST(test_evict_by_age)
{
    struct listener l;
    int fds[PEERS];

    begin(&l);
    crowd(&l, fds, NULL);
    for (int i = 0; i < PEERS; i++)
        assert_int_equal(l.end_of[i], i < PEERS - MAX ? 1 + TRIB_PENDING_EVICTED : 0);
    assert_int_equal(l.watched, MAX);
    /* One that was given more time stays. */
    l.acceptor.pending[0]->until += UINT64_C(60000000000);
    const int kept = ((struct record *)l.acceptor.pending[0])->number;
    for (int i = 0; i < MAX - 1; i++)
        assert_true(trib_acceptor_evict(&l.acceptor));
    assert_int_equal(((struct record *)l.acceptor.pending[0])->number, kept);
    assert_true(trib_acceptor_evict(&l.acceptor));
    assert_false(trib_acceptor_evict(&l.acceptor));
    for (int i = 0; i < PEERS; i++)
        close(fds[i]);
    end(&l);
}

/* A flood from one address evicts its own connections, the oldest first. */
TEST(test_evict_by_address)
{
    const uint8_t hosts[PEERS] = {7, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    struct listener l;
    int fds[PEERS];

    begin(&l);
    l.acceptor.per_source = PEERS; /* counted, but never reached */
    crowd(&l, fds, hosts);
    assert_int_equal(l.end_of[0], 0);
    for (int i = 1; i < PEERS; i++)
        assert_int_equal(l.end_of[i], i <= PEERS - MAX ? 1 + TRIB_PENDING_EVICTED : 0);
    for (int i = 0; i < PEERS; i++)
        close(fds[i]);
    end(&l);
}

/* Silent connections are evicted first: of one address, or of all if addresses do not
 * count. */
static void evict_silent_first(int per_source)
{
    struct listener l;
    int fds[PEERS];

    begin(&l);
    l.acceptor.per_source = per_source;
    crowd(&l, fds, NULL);
    for (int i = 0; i < MAX; i++)
        l.acceptor.pending[i]->spoke =
            ((struct record *)l.acceptor.pending[i])->number != PEERS - 1;
    assert_true(trib_acceptor_evict(&l.acceptor));
    assert_int_equal(l.end_of[PEERS - 1], 1 + TRIB_PENDING_EVICTED);
    for (int i = 0; i < PEERS; i++)
        close(fds[i]);
    end(&l);
}

TEST(test_evict_silent_first)
{
    evict_silent_first(PEERS);
    evict_silent_first(0);
}

/* Beyond its number, an address loses its oldest connection, but not a young one. */
TEST(test_limit_of_address)
{
    struct listener l;
    int fds[4];

    begin(&l);
    l.acceptor.per_source = 2;
    l.acceptor.source_ms = 30000;
    for (int i = 0; i < 3; i++)
        fds[i] = dial_from(&l, 9);
    while (l.admitted < 3)
        trib_acceptor_accept(&l.acceptor, l.fd);
    assert_int_equal(l.n_ends, 0); /* all are young, and there is room */
    l.acceptor.source_ms = 0;
    fds[3] = dial_from(&l, 9);
    while (l.admitted < 4)
        trib_acceptor_accept(&l.acceptor, l.fd);
    assert_int_equal(l.n_ends, 1);
    assert_int_equal(l.end_of[0], 1 + TRIB_PENDING_EVICTED);
    for (int i = 0; i < 4; i++)
        close(fds[i]);
    end(&l);
}

/* Let this process open no further descriptor. */
static void allow_files(rlim_t n)
{
    struct rlimit files;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    files.rlim_cur = n;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
}

/* Without descriptors the listener is not watched for a moment, with a warning. */
TEST(test_no_descriptors)
{
    struct rlimit files;
    struct listener l;

    begin(&l);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    const int fd = dial(&l, "take");
    allow_files(0);
    trib_acceptor_accept(&l.acceptor, l.fd);
    assert_non_null(strstr(l.said, "cannot accept peers: Too many open files; raise "
                                   "ulimit -n"));
    assert_true(l.acceptor.unwatched);
    assert_int_equal(l.watched, -1);
    assert_in_range(trib_acceptor_wait_ms(&l.acceptor), 0, TRIB_ACCEPT_PAUSE_MS);
    allow_files(files.rlim_cur);
    trib_acceptor_help(&l.acceptor, l.fd); /* has no part in the pause */
    assert_int_equal(l.admitted, 1);
    until_ends(&l, 1);
    (void)poll(NULL, 0, TRIB_ACCEPT_PAUSE_MS);
    step(&l);
    assert_false(l.acceptor.unwatched);
    close(fd);
    end(&l);
}

/* A listener that finds a descriptor accepts at once. */
TEST(test_starved)
{
    struct rlimit files;
    struct listener l;
    int fds[2];

    begin(&l);
    l.acceptor.ops = &starving_ops;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    fds[0] = dial(&l, "ta");
    while (l.admitted < 1)
        trib_acceptor_accept(&l.acceptor, l.fd);
    fds[1] = dial(&l, "take");
    l.gives = true;
    allow_files((rlim_t)l.acceptor.pending[0]->fd + 1);
    /* Every number below the limit is in use, except the one that is evicted. */
    int rest[1024], n = 0;
    while (n < 1024 && (rest[n] = dup(l.fd)) >= 0)
        n++;
    while (l.admitted < 2)
        trib_acceptor_accept(&l.acceptor, l.fd);
    assert_int_equal(l.starved, 1);
    assert_int_equal(l.end_of[0], 1 + TRIB_PENDING_EVICTED);
    assert_false(trib_accept_paused(&l.acceptor.pause));
    assert_non_null(strstr(l.said, "closing unauthenticated connections"));
    while (n > 0)
        close(rest[--n]);
    allow_files(files.rlim_cur);
    close(fds[0]);
    close(fds[1]);
    end(&l);
}

/* The listener has no record for it: closed, and the next one is accepted. */
TEST(test_no_record)
{
    struct listener l;
    char bytes[8];
    int fds[2];

    begin(&l);
    l.none = true;
    fds[0] = dial(&l, "");
    trib_acceptor_accept(&l.acceptor, l.fd);
    assert_int_equal(hear(fds[0], bytes, sizeof(bytes)), 0);
    l.none = false;
    fds[1] = dial(&l, "take");
    until_ends(&l, 1);
    for (int i = 0; i < 2; i++)
        close(fds[i]);
    end(&l);
}

/* A connection that has authenticated elsewhere leaves the table, once. */
TEST(test_remove)
{
    struct listener l;
    int fds[PEERS];

    begin(&l);
    crowd(&l, fds, NULL);
    struct trib_pending *p = l.acceptor.pending[1];
    trib_acceptor_remove(&l.acceptor, p);
    assert_int_equal(l.acceptor.n, MAX - 1);
    trib_acceptor_remove(&l.acceptor, p);
    assert_int_equal(l.acceptor.n, MAX - 1);
    for (int i = 0; i < MAX - 1; i++)
        assert_int_equal(l.acceptor.pending[i]->slot, i + 1);
    close(p->fd);
    free(p);
    trib_acceptor_warn(&l.acceptor, l.acceptor.pending[0], "did nothing");
    assert_non_null(strstr(l.said, "from 127.0.0.1: it did nothing"));
    for (int i = 0; i < PEERS; i++)
        close(fds[i]);
    end(&l);
}
