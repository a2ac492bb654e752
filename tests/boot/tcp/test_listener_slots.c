/* SPDX-License-Identifier: BSD-3-Clause */
/* A listener for newcomers evicts connections. A flood from one source evicts only
 * connections of that source. */
#include "tests/harness/tribtest.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/error.h"
#include "base/log.h"
#include "base/secret.h"
#include "boot/tcp/listener_parts.h"

enum { FLOOD = 400 };

static bool fits(const void *ours, const void *theirs, char *why, size_t bytes)
{
    (void)ours, (void)theirs, (void)bytes;
    why[0] = 0;
    return true;
}

static void drop_line(void *arg, trib_log_level_t level, const char *line)
{
    (void)arg, (void)level, (void)line;
}

static struct trib_listen *open_listener(int stop_timeout_ms, uint16_t *port_out)
{
    struct trib_error err = {0};
    struct trib_secret none = {0};
    struct trib_listen *l = NULL;
    char root[64];
    struct trib_log log;

    trib_log_init(&log, TRIB_LOG_ERROR, drop_line, NULL);
    for (int tries = 0; !l && tries < 20; tries++) {
        *port_out = (uint16_t)(20000 + (getpid() * 7 + tries * 131) % 12000);
        snprintf(root, sizeof(root), "127.0.0.1:%u", *port_out);
        const struct trib_listen_opts opts = {.root = root,
                                              .size = 1,
                                              .stop_timeout_ms = stop_timeout_ms,
                                              .log = &log,
                                              .secret = &none,
                                              .request = "k",
                                              .request_bytes = 1,
                                              .fits = fits};
        if (trib_listen_open(&opts, &err, &l) != TRIB_OK)
            l = NULL;
    }
    assert_non_null(l);
    return l;
}

static int connect_from(const char *source, uint16_t port)
{
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in at = {.sin_family = AF_INET};

    assert_true(fd >= 0);
    assert_int_equal(inet_pton(AF_INET, source, &at.sin_addr), 1);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    at.sin_port = htons(port);
    assert_int_equal(inet_pton(AF_INET, "127.0.0.1", &at.sin_addr), 1);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    return fd;
}

static bool is_closed(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char byte;

    return poll(&p, 1, 0) == 1 && recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0;
}

/* Wait until the listener has closed all but `left` connections; the test has a
 * deadline. */
static void wait_evicted(const int *fds, int n, int left)
{
    int open;

    do {
        open = 0;
        for (int i = 0; i < n; i++)
            open += !is_closed(fds[i]);
        usleep(1000);
    } while (open > left);
}

/* A flood from another source does not evict an older connection of a newcomer. */
TEST(test_flood_evicts_its_own)
{
    uint16_t port;
    static int flood[FLOOD];
    struct trib_listen *l = open_listener(0, &port);
    const int newcomer = connect_from("127.0.0.1", port);

    for (int i = 0; i < FLOOD; i++)
        flood[i] = connect_from("127.0.0.2", port);
    wait_evicted(flood, FLOOD, 128);
    assert_false(is_closed(newcomer));
    assert_int_equal(trib_listen_waiting(l), 0);
    assert_int_equal(trib_listen_begin(l, 8), 0);
    trib_listen_close(l);
    for (int i = 0; i < FLOOD; i++)
        close(flood[i]);
    close(newcomer);
}

/* The oldest connections of a source are evicted first. */
TEST(test_oldest_first)
{
    uint16_t port;
    static int flood[FLOOD];
    struct trib_listen *l = open_listener(0, &port);

    for (int i = 0; i < FLOOD; i++)
        flood[i] = connect_from("127.0.0.1", port);
    wait_evicted(flood, FLOOD, 128);
    int open = 0;
    for (int i = 0; i < FLOOD; i++)
        open += !is_closed(flood[i]);
    assert_true(open > 0 && open <= 128);
    assert_false(is_closed(flood[FLOOD - 1])); /* the newest stay */
    trib_listen_close(l);
    for (int i = 0; i < FLOOD; i++)
        close(flood[i]);
}

static int count_taken(struct trib_listen *l)
{
    int n = 0;

    pthread_mutex_lock(&l->lock);
    for (int i = 0; i < SLOTS; i++)
        n += l->slots[i].base.fd >= 0;
    pthread_mutex_unlock(&l->lock);
    return n;
}

/* Peers that were refused, and stay to read why, keep no newcomer out. */
TEST(test_refused_flood)
{
    static const char http[] = "GET / HTTP/1.1\r\n\r\n";
    uint16_t port;
    static int flood[SLOTS];
    struct trib_listen *l = open_listener(0, &port);
    int newcomer, taken = 0;

    /* A busy machine may take longer than LINGER_MS for it. */
    for (int tries = 0; taken < SLOTS && tries < 20; tries++) {
        for (int i = 0; i < SLOTS; i++) {
            flood[i] = connect_from("127.0.0.2", port);
            assert_int_equal(send(flood[i], http, sizeof(http) - 1, MSG_NOSIGNAL),
                             sizeof(http) - 1);
        }
        for (int ms = 0; taken < SLOTS && ms < LINGER_MS / 2; ms++) {
            usleep(1000);
            taken = count_taken(l);
        }
        newcomer = connect_from("127.0.0.1", port);
        usleep(100000);
        assert_false(is_closed(newcomer));
        close(newcomer);
        for (int i = 0; i < SLOTS; i++)
            close(flood[i]);
    }
    assert_int_equal(taken, SLOTS);
    trib_listen_close(l);
}

/* A silent newcomer is disconnected after the limit for ranks or, where that limit is
 * 0, after the 3 s of docs/limits.md. */
TEST(test_silence)
{
    static const struct {
        int stop_timeout_ms, silent_ms;
    } rows[] = {{0, 3000}, {100, 1000}, {4000, 4000}};
    uint16_t port;

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct trib_listen *l = open_listener(rows[i].stop_timeout_ms, &port);
        assert_int_equal(l->silent_ms, rows[i].silent_ms);
        trib_listen_close(l);
    }
}

int main(void)
{
    const struct rlimit files = {4096, 4096};

    (void)setrlimit(RLIMIT_NOFILE, &files);
    return tribtest_run();
}
