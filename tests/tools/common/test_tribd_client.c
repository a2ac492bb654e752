/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests to a server that answers, answers too slowly, or is not a tribd. */
#include "tests/harness/tribtest.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "base/time.h"
#include "tools/common/tribd_client.h"

#define HEADER "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n"

enum ending { CLOSES, STAYS_OPEN, DRIPS, ENDLESS };

/* A server of one connection, in a thread. */
struct server {
    const char *response;
    enum ending ending;
    int listener;
    char port[8];
    char request[512]; /* of the client */
    atomic_bool done; /* the client has returned */
    pthread_t thread;
};

/* Send a byte every 20 ms, so that no single wait of the client times out. */
static void drip(struct server *s, int fd)
{
    while (!atomic_load(&s->done) && send(fd, "x", 1, MSG_NOSIGNAL) == 1)
        usleep(20000);
}

static void send_forever(int fd)
{
    static char block[1 << 16];

    memset(block, 'x', sizeof(block));
    while (send(fd, block, sizeof(block), MSG_NOSIGNAL) > 0)
        ;
}

static void *serve(void *arg)
{
    struct server *s = arg;
    const int fd = accept(s->listener, NULL, NULL);
    size_t n = 0;
    ssize_t got;

    assert_true(fd >= 0);
    while (!strchr(s->request, '\n') &&
           (got = read(fd, s->request + n, sizeof(s->request) - 1 - n)) > 0)
        n += (size_t)got;
    (void)!write(fd, s->response, strlen(s->response));
    if (s->ending == DRIPS)
        drip(s, fd);
    if (s->ending == ENDLESS)
        send_forever(fd);
    while (s->ending == STAYS_OPEN && !atomic_load(&s->done))
        usleep(1000);
    close(fd);
    return NULL;
}

static void start(struct server *s)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);

    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(s->listener >= 0);
    assert_int_equal(bind(s->listener, (struct sockaddr *)&at, len), 0);
    assert_int_equal(listen(s->listener, 1), 0);
    assert_int_equal(getsockname(s->listener, (struct sockaddr *)&at, &len), 0);
    snprintf(s->port, sizeof(s->port), "%u", ntohs(at.sin_port));
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void stop(struct server *s)
{
    atomic_store(&s->done, true);
    assert_int_equal(pthread_join(s->thread, NULL), 0);
    close(s->listener);
}

/* Return the body from such a server, or NULL and the cause. */
static char *status_of(struct server *s, int timeout_ms, char why[128])
{
    start(s);
    char *body = tool_tribd_status("127.0.0.1", s->port, timeout_ms, why, 128);
    stop(s);
    return body;
}

TEST(test_body)
{
    struct server s = {.response = HEADER "{\"jobs\": []}\n"};
    char why[128] = "";
    char *body = status_of(&s, tribtest_patience_ms(), why);

    assert_non_null(body);
    assert_string_equal(body, "{\"jobs\": []}\n");
    assert_true(strncmp(s.request, "GET /status HTTP/1.0\r\n", 22) == 0);
    free(body);
}

/* A tribd that listens on loopback accepts no other name. */
TEST(test_host_is_loopback)
{
    struct server s = {.response = HEADER};
    char why[128] = "";

    free(status_of(&s, tribtest_patience_ms(), why));
    assert_non_null(strstr(s.request, "\r\nHost: localhost:"));
}

TEST(test_not_a_tribd)
{
    static const char *const responses[] = {
        "",
        "SSH-2.0-OpenSSH_9.2p1\r\n",
        "HTTP/1.0 200 OK\r\n", /* the header does not end */
        "HTTP/1.0 404 Not Found\r\n\r\n{}",
        "HTTP/1.0 2000 OK\r\n\r\n{}",
        "\r\n\r\n",
    };
    char why[128];

    for (size_t i = 0; i < sizeof(responses) / sizeof(*responses); i++) {
        struct server s = {.response = responses[i]};
        why[0] = '\0';
        assert_null(status_of(&s, tribtest_patience_ms(), why));
        assert_string_equal(why, "the server is not a tribd");
    }
}

/* The deadline applies to the whole response, not to each piece of it. */
TEST(test_deadline)
{
    static const enum ending endings[] = {STAYS_OPEN, DRIPS};
    char why[128];

    for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++) {
        struct server s = {.response = HEADER, .ending = endings[i]};
        const uint64_t begin = trib_now_ns();
        why[0] = '\0';
        assert_null(status_of(&s, 300, why));
        assert_string_equal(why, "no answer within 0.3 s");
        assert_true(trib_now_ns() - begin >= 300000000u);
    }
}

TEST(test_too_long)
{
    struct server s = {.response = HEADER, .ending = ENDLESS};
    char why[128] = "";

    assert_null(status_of(&s, tribtest_patience_ms(), why));
    assert_string_equal(why, strerror(EMSGSIZE));
}

/* More than one buffer of the client. */
TEST(test_long_body)
{
    const size_t n = 3000000;
    char why[128] = "", *text = malloc(sizeof(HEADER) + n);

    assert_non_null(text);
    memcpy(text, HEADER, sizeof(HEADER));
    memset(text + sizeof(HEADER) - 1, 'j', n);
    text[sizeof(HEADER) - 1 + n] = '\0';
    struct server s = {.response = text};
    char *body = status_of(&s, tribtest_patience_ms(), why);
    assert_non_null(body);
    assert_int_equal(strlen(body), n);
    free(body);
    free(text);
}

TEST(test_unreachable)
{
    char why[128] = "";

    assert_null(tool_tribd_status("127.0.0.1", "1", 5000, why, sizeof(why)));
    assert_string_equal(why, strerror(ECONNREFUSED));
    assert_null(tool_tribd_status("no.such.host.invalid", "1", 5000, why, sizeof(why)));
    assert_true(why[0] != '\0');
}

/* The client of the control socket sends any line and returns the answer as it is. */
TEST(test_exchange)
{
    char why[128] = "";
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    assert_int_equal(write(ends[1], "ok: done\n", 9), 9);
    assert_int_equal(shutdown(ends[1], SHUT_WR), 0);
    char *answer = tool_exchange(ends[0], "drain\n", 5000, why, sizeof(why));
    assert_non_null(answer);
    assert_string_equal(answer, "ok: done\n");
    free(answer);
    char request[16] = "";
    assert_int_equal(read(ends[1], request, sizeof(request) - 1), 6);
    assert_string_equal(request, "drain\n");
    close(ends[0]);
    close(ends[1]);
}

/* A server that closes without reading does not kill the client by SIGPIPE. */
TEST(test_closed_peer)
{
    char why[128] = "";
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    close(ends[1]);
    assert_null(tool_exchange(ends[0], "drain\n", 5000, why, sizeof(why)));
    assert_string_equal(why, strerror(EPIPE));
    close(ends[0]);
}
