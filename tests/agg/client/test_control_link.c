/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control connections to addresses where no tribd listens: each fails with an error
 * message, and no descriptor leaks. Also a connection with a replaced key. test_tribd
 * covers connections that succeed.
 */
#include "tests/harness/tribtest.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "agg/client/control_link.h"
#include "base/time.h"

static void make_job(struct trib_control_link_job *job, const char *address)
{
    struct trib_error err = {0};

    memset(job, 0, sizeof(*job));
    assert_status(trib_config_load(&job->cfg, "service_auth=none", NULL, &err),
                  TRIB_OK);
    job->ranks = 2;
    job->n = 1;
    snprintf(job->addresses[0], sizeof(job->addresses[0]), "%s", address);
}

TEST(test_nobody)
{
    static const struct {
        const char *address, *says;
        trib_status_t st;
    } rows[] = {
        {"127.0.0.1:1", "no service at 127.0.0.1:1", TRIB_ERR_BOOT},
        {"nonsense", "is not host:port", TRIB_ERR_CONFIG},
        {"", "is not host:port", TRIB_ERR_CONFIG},
    };
    static struct trib_control_link_job job;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct trib_control_link *link;
        struct trib_error err = {0};
        make_job(&job, rows[i].address);
        assert_status(trib_control_link_create(&job, NULL, &err, &link), TRIB_OK);
        assert_status(trib_control_link_connect(link, 0, true), rows[i].st);
        assert_non_null(strstr(trib_error_text(&link->err), rows[i].says));
        assert_int_equal(link->n, 0);
        assert_true(trib_control_link_is_whole(link)); /* no link has been closed */
        trib_control_link_free(link);
    }
    trib_control_link_free(NULL);
}

enum { MEETINGS_MAX = 8 };

/* A tribd that only authenticates. It reads its key file for each connection. */
struct fake {
    int fd; /* listener */
    int port;
    char key[96]; /* its key file; "": no authentication, and it floods the job */
    int n;
    struct trib_auth *auths[MEETINGS_MAX];
    struct trib_session *sessions[MEETINGS_MAX]; /* open until fake_close */
    _Atomic bool floods;
    pthread_t thread;
};

static void write_key(const char *path, unsigned seed)
{
    uint8_t bytes[32];
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * 37 + seed);
    assert_return_code(fd, errno);
    assert_int_equal(write(fd, bytes, sizeof(bytes)), sizeof(bytes));
    close(fd);
}

/* Send messages as fast as the job reads them, until it closes the connection. */
static void flood(struct fake *fake, int fd)
{
    static const struct trib_control drain = {.kind = TRIB_CONTROL_DRAIN};
    static uint8_t bytes[TRIB_CONTROL_HEAD_BYTES * 4096];
    struct pollfd room = {.fd = fd, .events = POLLOUT};
    size_t at = 0, n;
    ssize_t sent = 1;

    for (size_t i = 0; i < sizeof(bytes); i += n)
        if (trib_control_put(&drain, bytes + i, sizeof(bytes) - i, &n) != TRIB_OK)
            abort();
    atomic_store(&fake->floods, true);
    while (sent > 0 && poll(&room, 1, tribtest_patience_ms()) > 0) {
        sent = send(fd, bytes + at, sizeof(bytes) - at, MSG_NOSIGNAL);
        at = sent > 0 ? (at + (size_t)sent) % sizeof(bytes) : at;
    }
}

static void *fake_run(void *arg)
{
    struct fake *fake = arg;
    int fd;

    for (int i = 0; i < MEETINGS_MAX && (fd = accept(fake->fd, NULL, NULL)) >= 0; i++) {
        const struct trib_auth_opts with = {.method = fake->key[0] ? "key" : "none",
                                            .key_file = fake->key};
        struct trib_session_opts opts = {.fd = fd,
                                         .role = TRIB_CONTROL_AGGREGATOR,
                                         .peer = "a job",
                                         .handshake_ms = tribtest_patience_ms()};
        if (trib_auth_open(&with, NULL, &fake->auths[i]) != TRIB_OK)
            abort();
        opts.auth = fake->auths[i];
        if (trib_session_open(&opts, &fake->sessions[i]) != TRIB_OK)
            abort();
        fake->n = i + 1;
        (void)trib_session_ready_wait(fake->sessions[i],
                                      trib_deadline_ms(tribtest_patience_ms()));
        if (!fake->key[0])
            flood(fake, fd);
    }
    return NULL;
}

static void fake_open(struct fake *fake)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof(at);

    fake->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fake->fd, (struct sockaddr *)&at, bytes), 0);
    assert_int_equal(listen(fake->fd, 8), 0);
    assert_int_equal(getsockname(fake->fd, (struct sockaddr *)&at, &bytes), 0);
    fake->port = ntohs(at.sin_port);
    assert_int_equal(pthread_create(&fake->thread, NULL, fake_run, fake), 0);
}

static void fake_close(struct fake *fake)
{
    shutdown(fake->fd, SHUT_RDWR);
    assert_int_equal(pthread_join(fake->thread, NULL), 0);
    for (int i = 0; i < fake->n; i++) {
        trib_session_free(fake->sessions[i]);
        trib_auth_free(fake->auths[i]);
    }
    close(fake->fd);
}

static trib_status_t reconnect(struct trib_control_link *link)
{
    struct trib_control_fresh fresh;

    const trib_status_t st = trib_control_link_reconnect(link, 0, &fresh);
    if (st == TRIB_OK)
        trib_control_link_replace(link, 0, &fresh);
    return st;
}

/* A job that outlives its key reads the key file again on reconnect, once tribd refuses
 * the old key. */
TEST(test_replaced_key)
{
    char folder[] = "/tmp/triblink-XXXXXX", mine[96], text[160], address[32];
    static struct trib_control_link_job job;
    struct trib_control_link *link;
    struct trib_error err = {0};
    struct fake fake = {0};

    assert_non_null(mkdtemp(folder));
    snprintf(mine, sizeof(mine), "%s/mine", folder);
    snprintf(fake.key, sizeof(fake.key), "%s/theirs", folder);
    write_key(mine, 1);
    write_key(fake.key, 1);
    fake_open(&fake);
    snprintf(address, sizeof(address), "127.0.0.1:%d", fake.port);
    make_job(&job, address);
    snprintf(job.name, sizeof(job.name), "long");
    snprintf(text, sizeof(text), "service_auth=key;service_key=%s", mine);
    assert_status(trib_config_load(&job.cfg, text, NULL, &err), TRIB_OK);
    trib_status_t st = trib_control_link_create(&job, NULL, &err, &link);
    if (st == TRIB_ERR_CONFIG && strstr(trib_error_text(&err), "libsodium")) {
        fake_close(&fake);
        tribtest_skip("built without libsodium");
    }
    assert_status(st, TRIB_OK);
    assert_status(trib_control_link_connect(link, 0, true), TRIB_OK);
    write_key(mine, 2);
    assert_status(reconnect(link), TRIB_OK);
    write_key(fake.key, 2);
    assert_status(reconnect(link), TRIB_OK);
    unlink(mine);
    assert_status(reconnect(link), TRIB_OK);
    write_key(fake.key, 3);
    assert_status(reconnect(link), TRIB_ERR_CONFIG);
    assert_non_null(strstr(trib_error_text(&link->err), "the same key file"));
    trib_control_link_free(link);
    fake_close(&fake);
    unlink(fake.key);
    rmdir(folder);
}

/* A tribd that sends without end does not block the ranks. */
TEST(test_flood)
{
    static struct trib_control_link_job job;
    struct trib_control_link *link;
    struct trib_error err = {0};
    struct fake fake = {0};
    char address[32];

    fake_open(&fake);
    snprintf(address, sizeof(address), "127.0.0.1:%d", fake.port);
    make_job(&job, address);
    snprintf(job.name, sizeof(job.name), "flooded");
    assert_status(trib_control_link_create(&job, NULL, &err, &link), TRIB_OK);
    assert_status(trib_control_link_connect(link, 0, true), TRIB_OK);
    while (!atomic_load(&fake.floods))
        sched_yield();
    for (int i = 0; i < 20; i++) {
        struct pollfd more = {.fd = trib_session_fd(link->sessions[0]),
                              .events = POLLIN};
        (void)poll(&more, 1, tribtest_patience_ms());
        assert_status(trib_control_link_step(link), TRIB_OK);
    }
    trib_control_link_free(link);
    fake_close(&fake);
}
