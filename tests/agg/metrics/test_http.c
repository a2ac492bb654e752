/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <jansson.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "agg/metrics/http.h"
#include "base/error.h"
#include "base/time.h"
#include "tests/agg/metrics/sample.h"

struct stage {
    struct sample sample;
    struct trib_http *http;
    bool fails;
};

static trib_status_t view(void *arg, struct trib_service_view *out)
{
    const struct stage *stage = arg;

    if (stage->fails)
        return TRIB_ERR_NO_MEMORY;
    return trib_metrics_view_mt(stage->sample.metrics, SAMPLE_T0 + 60 * SAMPLE_S, out);
}

static void start(struct stage *stage, struct trib_http_opts opts)
{
    struct trib_error err = {0};

    *stage = (struct stage){0};
    assert_true(sample_create(&stage->sample));
    opts.view = view;
    opts.arg = stage;
    if (!opts.timeout_s)
        opts.timeout_s = 3600; /* long: connections that end sooner end for another
                                * reason */
    if (trib_http_start(&opts, &err, &stage->http)) {
        sample_destroy(&stage->sample);
        if (err.status == TRIB_ERR_UNSUPPORTED)
            tribtest_skip("built without libmicrohttpd");
        fail_msg("%s", err.text);
    }
}

static void stop(struct stage *stage)
{
    trib_http_stop(stage->http);
    sample_destroy(&stage->sample);
}

/* --- a client --- */

static int dial(const struct stage *stage)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(trib_http_port(stage->http)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

/* Return all data until the other side closes, with a terminating zero; "" on
 * timeout. */
static char *hear(int fd)
{
    uint64_t deadline = trib_deadline_ms(tribtest_patience_ms());
    size_t bytes = 0, most = 1 << 20;
    char *text = calloc(1, most);

    assert_non_null(text);
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, trib_deadline_left_ms(deadline)) <= 0) {
            text[0] = 0;
            break;
        }
        ssize_t n = read(fd, text + bytes, most - 1 - bytes);
        if (n <= 0)
            break;
        bytes += (size_t)n;
        assert_true(bytes < most - 1);
    }
    close(fd);
    return text;
}

static char *ask(const struct stage *stage, const char *request)
{
    int fd = dial(stage);

    assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
    return hear(fd);
}

static char *get(const struct stage *stage, const char *path)
{
    char request[256];

    snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n",
             path);
    return ask(stage, request);
}

static void assert_code(const char *text, int code)
{
    char words[32];

    snprintf(words, sizeof(words), "HTTP/1.1 %d ", code);
    if (strncmp(text, words, strlen(words)) != 0 &&
        strncmp(text + 8, words + 8, 5) != 0)
        fail_msg("no %d: %.200s", code, text);
}

static void assert_has(const char *text, const char *words)
{
    if (!strstr(text, words))
        fail_msg("\"%s\" is not in %.600s", words, text);
}

static const char *body(const char *text)
{
    const char *end = strstr(text, "\r\n\r\n");

    assert_non_null(end);
    return end + 4;
}

/* --- pages --- */

TEST(test_metrics)
{
    struct stage stage;

    start(&stage, (struct trib_http_opts){0});
    char *text = get(&stage, "/metrics");
    assert_code(text, 200);
    assert_has(text, "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n");
    assert_has(body(text), "\ntribd_slots_held 448\n");
    free(text);
    text = get(&stage, "/metrics?x=1");
    assert_code(text, 200);
    free(text);
    stop(&stage);
}

TEST(test_status)
{
    struct stage stage;
    json_error_t error;

    start(&stage, (struct trib_http_opts){0});
    char *text = get(&stage, "/status");
    assert_code(text, 200);
    assert_has(text, "Content-Type: application/json\r\n");
    json_t *o = json_loads(body(text), JSON_REJECT_DUPLICATES, &error);
    assert_non_null(o);
    assert_int_equal(json_array_size(json_object_get(o, "jobs")), 3);
    json_decref(o);
    free(text);
    stop(&stage);
}

/* The page fetches nothing from elsewhere and escapes all names. */
TEST(test_page)
{
    struct stage stage;

    start(&stage, (struct trib_http_opts){0});
    char *text = get(&stage, "/");
    assert_code(text, 200);
    assert_has(text, "Content-Security-Policy: default-src 'none'; ");
    assert_has(text, "X-Content-Type-Options: nosniff\r\n");
    assert_has(body(text), "<title>tribd</title>");
    assert_has(text, "</html>\n");
    assert_null(strstr(body(text), "src="));
    assert_null(strstr(body(text), "https:"));
    assert_null(strstr(body(text), "innerHTML"));
    free(text);
    text = ask(&stage, "HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_code(text, 200);
    assert_has(text, "Content-Length: ");
    assert_string_equal(body(text), "");
    free(text);
    stop(&stage);
}

static bool is_well(void *arg, bool ready, char *say, size_t bytes)
{
    (void)arg;
    snprintf(say, bytes, "%s", ready ? "it drains" : "it turns");
    return !ready;
}

TEST(test_probes)
{
    struct stage stage;

    start(&stage, (struct trib_http_opts){.well = is_well});
    char *text = get(&stage, "/healthz");
    assert_code(text, 200);
    assert_string_equal(body(text), "it turns\n");
    free(text);
    text = get(&stage, "/readyz");
    assert_code(text, 503);
    assert_string_equal(body(text), "it drains\n");
    free(text);
    stop(&stage);
}

TEST(test_bad_requests)
{
    static const struct {
        const char *request;
        int code;
        const char *words;
    } cases[] = {
        {"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n", 404,
         "not found: use /, /metrics, /status, /healthz or /readyz\n"},
        {"GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", 404,
         "not found: use"},
        {"GET /status/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 404, "not found: use"},
        {"POST /status HTTP/1.1\r\nHost: localhost\r\n"
         "Content-Length: 1000000000\r\n\r\nxx",
         405, "Allow: GET, HEAD\r\n"},
        {"DELETE / HTTP/1.1\r\nHost: localhost\r\n\r\n", 405,
         "only GET and HEAD are supported\n"},
        {"\x01gibberish / HTTP/1.1\r\nHost: localhost\r\n\r\n", 405, "are supported"},
        {"GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403,
         "only the host name localhost"},
        {"GET /metrics HTTP/1.1\r\nHost: localhost.evil.example:1\r\n\r\n", 403,
         "only the host name"},
        {"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:9\r\n\r\n", 200, "tribd_slots"},
        {"GET /metrics HTTP/1.1\r\nHost: [::1]:9\r\n\r\n", 200, "tribd_slots"},
        {"GET /metrics HTTP/1.0\r\n\r\n", 200, "tribd_slots"},
    };
    struct stage stage;

    start(&stage, (struct trib_http_opts){0});
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char *text = ask(&stage, cases[i].request);
        assert_code(text, cases[i].code);
        assert_has(text, cases[i].words);
        free(text);
    }
    stop(&stage);
}

TEST(test_endless_header)
{
    char line[1000];
    struct stage stage;

    start(&stage, (struct trib_http_opts){0});
    uint64_t deadline = trib_deadline_ms(tribtest_patience_ms() / 2);
    int fd = dial(&stage);
    memset(line, 'x', sizeof(line));
    send(fd, "GET /metrics HTTP/1.1\r\nHost: ", 29, MSG_NOSIGNAL);
    for (int i = 0; i < 100; i++)
        if (send(fd, line, sizeof(line), MSG_NOSIGNAL) < 0)
            break;
    char *text = hear(fd); /* or nothing, if it was closed during the write */
    assert_false(trib_deadline_passed(deadline));
    assert_true(!text[0] || strncmp(text, "HTTP/1.1 4", 10) == 0);
    free(text);
    text = get(&stage, "/metrics");
    assert_code(text, 200);
    free(text);
    stop(&stage);
}

TEST(test_no_memory)
{
    struct stage stage;

    start(&stage, (struct trib_http_opts){0});
    stage.fails = true;
    char *text = get(&stage, "/status");
    assert_code(text, 503);
    assert_has(text, "out of memory for a response\n");
    free(text);
    stop(&stage);
}

/* --- misbehaving clients --- */

/* Return true if the other side has closed the connection. */
static bool is_closed(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char byte;

    return poll(&p, 1, 50) == 1 && recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) <= 0;
}

/* Silent connections that stay open: a client still gets an answer, and the oldest of
 * them are closed. */
TEST(test_silent_connections_make_place)
{
    enum { SILENT = 100, PLACES = 4 };
    const uint64_t end = trib_deadline_ms(tribtest_patience_ms());
    struct stage stage;
    int silent[SILENT];

    start(&stage, (struct trib_http_opts){.connections = PLACES, .lifetime_s = 3600});
    for (int i = 0; i < SILENT; i++) {
        silent[i] = dial(&stage);
        if (i % 2) /* half of them have sent part of a request */
            assert_int_equal(send(silent[i], "GET /", 5, MSG_NOSIGNAL), 5);
    }
    const uint64_t before = trib_now_ns();
    for (int i = 0; i < 3; i++) {
        char *text = get(&stage, "/metrics");
        assert_code(text, 200);
        free(text);
    }
    printf("# three answers took %llu ms\n",
           (unsigned long long)((trib_now_ns() - before) / 1000000));
    for (int i = 0; i < SILENT - PLACES; i++)
        while (!is_closed(silent[i]))
            assert_false(trib_deadline_passed(end));
    for (int i = 0; i < SILENT; i++)
        close(silent[i]);
    stop(&stage);
}

/* Without other clients, a connection is closed after the limit without progress. */
TEST(test_silent_connections_are_closed)
{
    const uint64_t end = trib_deadline_ms(tribtest_patience_ms());
    struct stage stage;

    start(&stage, (struct trib_http_opts){.timeout_s = 1});
    const int silent = dial(&stage);
    while (!is_closed(silent))
        assert_false(trib_deadline_passed(end));
    close(silent);
    stop(&stage);
}

/* A client that never stops sending, byte by byte, is closed at its deadline. */
TEST(test_slow_connections_are_closed)
{
    const uint64_t end = trib_deadline_ms(tribtest_patience_ms());
    struct stage stage;

    start(&stage, (struct trib_http_opts){.lifetime_s = 1});
    const int slow = dial(&stage);
    assert_int_equal(send(slow, "GET /", 5, MSG_NOSIGNAL), 5);
    while (!is_closed(slow)) {
        assert_false(trib_deadline_passed(end));
        (void)!send(slow, "x", 1, MSG_NOSIGNAL);
        trib_http_tend_mt(stage.http);
    }
    close(slow);
    stop(&stage);
}

static int threads_of_this(void)
{
    DIR *dir = opendir("/proc/self/task");
    int n = 0;

    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));)
        n += e->d_name[0] != '.';
    closedir(dir);
    return n;
}

TEST(test_stops_with_clients)
{
    struct stage stage;
    int before = threads_of_this();

    for (int i = 0; i < 3; i++) {
        start(&stage, (struct trib_http_opts){0});
        assert_int_equal(threads_of_this(), before + 1);
        int fd = dial(&stage);
        send(fd, "GET /met", 8, MSG_NOSIGNAL);
        stop(&stage);
        close(fd);
        assert_int_equal(threads_of_this(), before);
    }
    trib_http_stop(NULL);
}

TEST(test_addresses)
{
    struct trib_error err = {0};
    struct trib_http *http;
    struct stage stage;

    start(&stage, (struct trib_http_opts){0});
    struct trib_http_opts opts = {
        .port = trib_http_port(stage.http), .view = view, .arg = &stage};
    assert_status(trib_http_start(&opts, &err, &http), TRIB_ERR_BOOT);
    assert_null(http);
    assert_has(err.text, "cannot listen for HTTP on 127.0.0.1, port ");
    assert_has(err.text, "in use: choose another port");
    trib_error_clear(&err);
    opts.address = "agg0";
    assert_status(trib_http_start(&opts, &err, &http), TRIB_ERR_CONFIG);
    assert_has(err.text, "on \"agg0\": use *, localhost or a numeric address");
    stop(&stage);
}

/* Names of jobs are hidden if others can reach the port. */
TEST(test_where_others_reach_it)
{
    static const struct {
        const char *address;
        bool loopback;
        int code;
    } cases[] = {{"0.0.0.0", false, 200}, {"*", false, 200}, {"localhost", true, 403}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct stage stage;
        start(&stage, (struct trib_http_opts){.address = cases[i].address});
        assert_int_equal(trib_http_is_loopback(stage.http), cases[i].loopback);
        char *text = ask(&stage, "GET /metrics HTTP/1.1\r\nHost: a.cluster\r\n\r\n");
        assert_code(text, cases[i].code);
        free(text);
        stop(&stage);
    }
}
