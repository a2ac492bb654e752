/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/protocol/session.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "agg/protocol/crypt.h"
#include "build-config.h"
#include "tests/agg/protocol/authtest.h"

/*
 * A job and an aggregator on separate sockets; a middle between them forwards frames,
 * or does not.
 */
struct line {
    struct trib_auth *auth;
    struct trib_session *job;
    struct trib_session *aggregator;
    struct trib_error job_err;
    struct trib_error aggregator_err;
    int near[2]; /* the middle's ends: to the job, to the aggregator */
    struct trib_control got;
};

struct sealed {
    size_t n;
    uint8_t bytes[4096];
};

static struct trib_session *open_session(int fd, enum trib_control_role role,
                                         const struct trib_auth *auth,
                                         struct trib_error *err)
{
    struct trib_session *session = NULL;
    struct trib_session_opts opts = {
        .fd = fd,
        .role = role,
        .auth = auth,
        .job = "train-7",
        .peer = role == TRIB_CONTROL_JOB ? "tribd at node7" : "a job at node3",
        .handshake_ms = 5000 * (int)tribtest_slowness(),
        .err = err};

    trib_error_clear(err);
    assert_ok(trib_session_open(&opts, &session));
    return session;
}

/* Read one frame; its head contains its length. */
static struct sealed read_frame(int fd)
{
    struct sealed f = {.n = 0};
    size_t need = TRIB_CONTROL_HEAD_BYTES;

    while (f.n < need) {
        struct pollfd p = {fd, POLLIN, 0};
        assert_int_equal(poll(&p, 1, tribtest_patience_ms()), 1);
        ssize_t n = recv(fd, f.bytes + f.n, need - f.n, 0);
        assert_true(n > 0);
        f.n += (size_t)n;
        if (f.n == TRIB_CONTROL_HEAD_BYTES)
            need += (size_t)f.bytes[8] | (size_t)f.bytes[9] << 8;
        assert_true(need <= sizeof(f.bytes));
    }
    return f;
}

static void write_frame(int fd, const struct sealed *f)
{
    assert_int_equal(write(fd, f->bytes, f->n), f->n);
}

static void step(struct line *l)
{
    (void)trib_session_step(l->job, &l->got);
    (void)trib_session_step(l->aggregator, &l->got);
}

/* HELLO, WELCOME, two proofs. */
static void line_open(struct line *l, const char *method)
{
    int a[2];
    int b[2];
    int frames = strcmp(method, "none") ? 4 : 2;

    memset(l, 0, sizeof(*l));
    assert_ok(authtest_open(method, "key", NULL, NULL, &l->auth));
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, a), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, b), 0);
    l->near[0] = a[1];
    l->near[1] = b[1];
    l->job = open_session(a[0], TRIB_CONTROL_JOB, l->auth, &l->job_err);
    l->aggregator =
        open_session(b[0], TRIB_CONTROL_AGGREGATOR, l->auth, &l->aggregator_err);
    for (int i = 0; i < frames; i++) {
        struct sealed f = read_frame(l->near[i % 2]);
        write_frame(l->near[1 - i % 2], &f);
        step(l);
    }
    assert_true(trib_session_ready(l->job) && trib_session_ready(l->aggregator));
}

static void line_close(struct line *l)
{
    trib_session_free(l->job);
    trib_session_free(l->aggregator);
    close(l->near[0]);
    close(l->near[1]);
    trib_auth_free(l->auth);
}

static struct trib_control plan(uint32_t number, const char *text)
{
    struct trib_control m = {.kind = TRIB_CONTROL_PLAN, .plan = {.number = number}};

    snprintf(m.plan.text, sizeof(m.plan.text), "%s", text);
    return m;
}

static struct sealed send_plan(struct line *l, uint32_t number)
{
    struct trib_control m = plan(number, "sum of secrets");

    assert_ok(trib_session_send(l->job, &m));
    return read_frame(l->near[0]);
}

static void refuses(struct line *l, const char *sentence)
{
    struct trib_control told;

    assert_status(trib_session_step(l->aggregator, &l->got), TRIB_ERR_PROTOCOL);
    assert_status(trib_session_step(l->aggregator, &l->got), TRIB_ERR_PROTOCOL);
    if (!strstr(l->aggregator_err.text, sentence) ||
        strncmp(l->aggregator_err.text, "a job at node3: ", 16))
        fail_msg("\"%s\" does not say \"%s\"", l->aggregator_err.text, sentence);
    struct sealed f = read_frame(l->near[1]);
    write_frame(l->near[0], &f);
    assert_status(trib_session_step(l->job, &told), TRIB_ERR_ABORTED);
    if (!strstr(l->job_err.text, sentence))
        fail_msg("\"%s\" does not say \"%s\"", l->job_err.text, sentence);
}

/* Messages
 * ------------------------------------------------------------------------------- */

TEST(test_messages)
{
    static const char *const methods[] = {"key", "none"};
    struct line l;

    for (size_t i = 0; i < 2; i++) {
        line_open(&l, methods[i]);
        assert_string_equal(trib_session_job(l.aggregator), "train-7");
        for (uint32_t n = 0; n < 100; n++) {
            struct sealed f = send_plan(&l, n);
            bool legible = memmem(f.bytes, f.n, "secrets", 7) != NULL;
            assert_int_equal(legible, i == 1);
            write_frame(l.near[1], &f);
            assert_ok(trib_session_step(l.aggregator, &l.got));
            assert_int_equal(l.got.kind, TRIB_CONTROL_PLAN);
            assert_int_equal(l.got.plan.number, n);
            assert_string_equal(l.got.plan.text, "sum of secrets");
            assert_status(trib_session_step(l.aggregator, &l.got), TRIB_INPROGRESS);
        }
        struct trib_control ok = {.kind = TRIB_CONTROL_PLAN_OK,
                                  .answer = {.number = 99}};
        assert_ok(trib_session_send(l.aggregator, &ok));
        struct sealed f = read_frame(l.near[1]);
        write_frame(l.near[0], &f);
        assert_ok(trib_session_step(l.job, &l.got));
        assert_int_equal(l.got.answer.number, 99);
        line_close(&l);
    }
}

TEST(test_changed)
{
    struct line l;

    for (size_t at = 0;; at++) {
        line_open(&l, "key");
        struct sealed f = send_plan(&l, 1);
        if (at == f.n) {
            line_close(&l);
            break;
        }
        f.bytes[at] ^= (uint8_t)(1u << at % 8);
        write_frame(l.near[1], &f);
        trib_status_t status = trib_session_step(l.aggregator, &l.got);
        /* A longer frame is read to its end and then rejected. */
        if (status == TRIB_INPROGRESS && at >= 8 && at < 12) {
            struct sealed rest = {.n = sizeof(rest.bytes)};
            memset(rest.bytes, 0, sizeof(rest.bytes));
            write_frame(l.near[1], &rest);
            status = trib_session_step(l.aggregator, &l.got);
        }
        if (status != TRIB_ERR_PROTOCOL && status != TRIB_ERR_UNSUPPORTED)
            fail_msg("byte %zu: %s", at, trib_status_name(status));
        line_close(&l);
    }
}

TEST(test_order)
{
    struct line l;
    struct sealed f;
    struct sealed second;

    line_open(&l, "key"); /* repeated */
    f = send_plan(&l, 1);
    write_frame(l.near[1], &f);
    assert_ok(trib_session_step(l.aggregator, &l.got));
    write_frame(l.near[1], &f);
    refuses(&l, "broken seal");
    line_close(&l);

    line_open(&l, "key"); /* left out */
    (void)send_plan(&l, 1);
    f = send_plan(&l, 2);
    write_frame(l.near[1], &f);
    refuses(&l, "broken seal");
    line_close(&l);

    line_open(&l, "key"); /* in another order */
    f = send_plan(&l, 1);
    second = send_plan(&l, 2);
    write_frame(l.near[1], &second);
    write_frame(l.near[1], &f);
    refuses(&l, "broken seal");
    line_close(&l);
}

TEST(test_foreign)
{
    struct line l;
    struct sealed f;

    line_open(&l, "key"); /* back to its sender: of a kind that both may send */
    struct trib_control bye = {.kind = TRIB_CONTROL_GOODBYE, .said = {"done"}};
    assert_ok(trib_session_send(l.aggregator, &bye));
    f = read_frame(l.near[1]);
    write_frame(l.near[0], &f);
    assert_ok(trib_session_step(l.job, &l.got));
    assert_int_equal(l.got.kind, TRIB_CONTROL_GOODBYE);
    write_frame(l.near[1], &f);
    refuses(&l, "broken seal");
    line_close(&l);

    line_open(&l, "key"); /* of another connection with the same key and job */
    f = send_plan(&l, 1);
    line_close(&l);
    line_open(&l, "key");
    write_frame(l.near[1], &f);
    refuses(&l, "broken seal");
    line_close(&l);

    line_open(&l, "key"); /* never sealed at all */
    struct trib_control m = plan(1, "sum of all that is left");
    assert_ok(trib_control_put(&m, f.bytes, sizeof(f.bytes), &f.n));
    write_frame(l.near[1], &f);
    refuses(&l, "broken seal");
    line_close(&l);
}

/* A client authenticated for one job cannot join another. */
TEST(test_other_job)
{
    struct line l;
    struct trib_control join = {
        .kind = TRIB_CONTROL_JOIN,
        .join = {
            .job = "train-7", .ranks = 2, .aggregators = 1, .weight = 1, .slots = 8}};

    line_open(&l, "none");
    assert_ok(trib_session_send(l.job, &join));
    struct sealed f = read_frame(l.near[0]);
    write_frame(l.near[1], &f);
    assert_ok(trib_session_step(l.aggregator, &l.got));
    assert_string_equal(l.got.join.job, "train-7");
    strcpy(join.join.job, "train-8");
    assert_status(trib_session_send(l.job, &join), TRIB_ERR_INVALID);
    f.bytes[TRIB_CONTROL_HEAD_BYTES + 8] = '8'; /* as a job that misbehaves */
    write_frame(l.near[1], &f);
    refuses(&l, "another job than the authenticated one");
    line_close(&l);

    line_open(&l, "none");
    struct trib_control m = {.kind = TRIB_CONTROL_AUTH,
                             .auth = {TRIB_CONTROL_PROOF, {(const uint8_t *)"x", 1}}};
    assert_ok(trib_control_put(&m, f.bytes, sizeof(f.bytes), &f.n));
    write_frame(l.near[1], &f);
    refuses(&l, "authentication was restarted");
    line_close(&l);
}

/* Time
 * -----------------------------------------------------------------------------------
 */

/* The middle falls silent after this number of handshake frames. */
TEST(test_silent_in_handshake)
{
    for (int passed = 0; passed < 4; passed++) {
        struct line l = {.near = {-1, -1}};
        int a[2];
        int b[2];
        struct trib_session_opts opts = {
            .auth = NULL, .job = "train-7", .handshake_ms = 300};
        assert_ok(authtest_open("key", "key", NULL, NULL, &l.auth));
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, a), 0);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, b), 0);
        l.near[0] = a[1];
        l.near[1] = b[1];
        opts.auth = l.auth;
        opts.fd = a[0];
        opts.role = TRIB_CONTROL_JOB;
        opts.peer = "tribd at node7";
        opts.err = &l.job_err;
        assert_ok(trib_session_open(&opts, &l.job));
        opts.fd = b[0];
        opts.role = TRIB_CONTROL_AGGREGATOR;
        opts.peer = "a job at node3";
        opts.err = &l.aggregator_err;
        assert_ok(trib_session_open(&opts, &l.aggregator));
        for (int i = 0; i < passed; i++) {
            struct sealed f = read_frame(l.near[i % 2]);
            write_frame(l.near[1 - i % 2], &f);
            step(&l);
        }
        uint64_t begin = trib_now_ns();
        uint64_t deadline = trib_deadline_ms(tribtest_patience_ms());
        trib_status_t status = trib_session_ready_wait(l.job, deadline);
        assert_status(status, passed == 4 ? TRIB_OK : TRIB_ERR_TIMEOUT);
        assert_string_equal(
            l.job_err.text,
            "tribd at node7: authentication did not complete within 300 ms");
        status = trib_session_ready_wait(l.aggregator, deadline);
        assert_status(status, passed == 3 ? TRIB_OK : TRIB_ERR_TIMEOUT);
        assert_in_range(trib_now_ns() - begin, 0,
                        UINT64_C(5000000000) * tribtest_slowness());
        line_close(&l);
    }
}

TEST(test_silence_and_alive)
{
    struct line l;
    int limit = 2500 * (int)tribtest_slowness();

    line_open(&l, "key");
    trib_session_free(l.job);
    trib_session_free(l.aggregator);
    close(l.near[0]);
    close(l.near[1]);
    /* Connected directly; the aggregator detects silence. */
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    l.job = open_session(fds[0], TRIB_CONTROL_JOB, l.auth, &l.job_err);
    struct trib_session_opts opts = {.fd = fds[1],
                                     .role = TRIB_CONTROL_AGGREGATOR,
                                     .auth = l.auth,
                                     .peer = "a job at node3",
                                     .handshake_ms = 5000 * (int)tribtest_slowness(),
                                     .silent_ms = limit,
                                     .err = &l.aggregator_err};
    assert_ok(trib_session_open(&opts, &l.aggregator));
    while (!trib_session_ready(l.job) || !trib_session_ready(l.aggregator))
        step(&l);
    /* The session lives as long as both are driven. */
    uint64_t until = trib_deadline_ms(limit + 1000);
    while (!trib_deadline_passed(until)) {
        assert_status(trib_session_take_wait(l.job, trib_deadline_ms(50), &l.got),
                      TRIB_INPROGRESS);
        assert_status(
            trib_session_take_wait(l.aggregator, trib_deadline_ms(50), &l.got),
            TRIB_INPROGRESS);
    }
    /* The job is no longer driven. */
    assert_status(trib_session_take_wait(
                      l.aggregator, trib_deadline_ms(tribtest_patience_ms()), &l.got),
                  TRIB_ERR_PEER_LOST);
    assert_non_null(strstr(l.aggregator_err.text, "a job at node3: silent for"));
    trib_session_free(l.job);
    trib_session_free(l.aggregator);
    trib_auth_free(l.auth);
}

/* A peer that sends without pause hears ALIVE, too: its long push must not end because
 * this side seems silent. */
TEST(test_alive_during_input)
{
    const struct trib_control m = {.kind = TRIB_CONTROL_STORE_PULL,
                                   .store_pull = {.count = 1}};
    struct line l;

    line_open(&l, "key");
    assert_ok(trib_session_send(l.job, &m));
    const struct sealed f = read_frame(l.near[0]);
    usleep((TRIB_SESSION_ALIVE_MS + 100) * 1000);
    write_frame(l.near[1], &f);
    assert_ok(trib_session_step(l.aggregator, &l.got));
    assert_int_equal(l.got.kind, TRIB_CONTROL_STORE_PULL);
    struct pollfd p = {l.near[1], POLLIN, 0};
    assert_int_equal(poll(&p, 1, 0), 1);
    line_close(&l);
}

/* A peer that sends ALIVE without end does not keep a step from returning; no message
 * is lost. */
TEST(test_chatter)
{
    static uint8_t chatter[15000 * TRIB_CONTROL_HEAD_BYTES];
    struct trib_control alive = {.kind = TRIB_CONTROL_ALIVE};
    struct trib_control bye = {.kind = TRIB_CONTROL_GOODBYE};
    struct line l;
    struct sealed f;
    size_t used;
    int left = 0;

    line_open(&l, "none");
    for (size_t at = 0; at < sizeof(chatter); at += used)
        assert_ok(trib_control_put(&alive, chatter + at, sizeof(chatter) - at, &used));
    assert_int_equal(write(l.near[1], chatter, sizeof(chatter)), sizeof(chatter));
    assert_status(trib_session_step(l.aggregator, &l.got), TRIB_INPROGRESS);
    assert_int_equal(ioctl(trib_session_fd(l.aggregator), FIONREAD, &left), 0);
    assert_true(left > 0);
    assert_ok(trib_control_put(&bye, f.bytes, sizeof(f.bytes), &f.n));
    write_frame(l.near[1], &f);
    assert_ok(trib_session_take_wait(l.aggregator,
                                     trib_deadline_ms(tribtest_patience_ms()), &l.got));
    assert_int_equal(l.got.kind, TRIB_CONTROL_GOODBYE);
    line_close(&l);
}

TEST(test_closed)
{
    struct line l;

    line_open(&l, "key");
    shutdown(l.near[0], SHUT_RDWR);
    assert_status(trib_session_step(l.job, &l.got), TRIB_ERR_PEER_LOST);
    assert_string_equal(l.job_err.text, "tribd at node7: connection closed by peer");
    struct trib_control m = plan(1, "");
    assert_status(trib_session_send(l.job, &m), TRIB_ERR_PEER_LOST);
    line_close(&l);
}

TEST(test_unauthenticated)
{
    struct line l = {.near = {-1, -1}};
    int fds[2];

    assert_ok(authtest_open("key", "key", NULL, NULL, &l.auth));
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    l.aggregator =
        open_session(fds[0], TRIB_CONTROL_AGGREGATOR, l.auth, &l.aggregator_err);
    assert_int_equal(write(fds[1], "GET /", 5), 5);
    assert_status(trib_session_step(l.aggregator, &l.got), TRIB_ERR_PROTOCOL);
    assert_non_null(strstr(l.aggregator_err.text, "not of the control protocol"));
    close(fds[1]);
    trib_session_free(l.aggregator);
    trib_auth_free(l.auth);
}

/* Blocking
 * ------------------------------------------------------------------------------ */

#define BLOBS 40 /* of 2048 bytes: in three messages */

static int blocking_job(struct trib_session *s, uint64_t deadline)
{
    static uint8_t data[16 * 2048];
    struct trib_control m;

    if (trib_session_ready_wait(s, deadline) != TRIB_OK)
        return 1;
    for (uint32_t first = 0; first < BLOBS; first += 16) {
        uint32_t count = BLOBS - first < 16 ? BLOBS - first : 16;
        for (uint32_t i = 0; i < count * 2048; i++)
            data[i] = (uint8_t)((first * 2048 + i) % 251);
        m = (struct trib_control){
            .kind = TRIB_CONTROL_BLOBS,
            .blobs = {1, BLOBS, first, count, 2048, {data, count * 2048}}};
        if (trib_session_send_wait(s, deadline, &m) != TRIB_OK)
            return 2;
    }
    if (trib_session_take_wait(s, deadline, &m) != TRIB_OK ||
        m.kind != TRIB_CONTROL_ADMITTED || m.admitted.slots != 8)
        return 3;
    return 0;
}

static int blocking_aggregator(struct trib_session *s, uint64_t deadline)
{
    struct trib_control m;
    uint32_t next = 0;

    while (next < BLOBS) {
        if (trib_session_take_wait(s, deadline, &m) != TRIB_OK ||
            m.kind != TRIB_CONTROL_BLOBS || m.blobs.first != next ||
            m.blobs.each != 2048)
            return 4;
        for (uint32_t i = 0; i < m.blobs.data.n; i++)
            if (m.blobs.data.at[i] != (uint8_t)((next * 2048 + i) % 251))
                return 5;
        next += m.blobs.count;
    }
    m = (struct trib_control){.kind = TRIB_CONTROL_ADMITTED, .admitted = {8, 1 << 20}};
    return trib_session_send_wait(s, deadline, &m) == TRIB_OK ? 0 : 6;
}

static int blocking_side(int rank, int size, void *arg)
{
    int *fds = arg;
    struct trib_auth *auth = NULL;
    struct trib_session *s = NULL;
    struct trib_error err = {.status = TRIB_OK};
    struct trib_session_opts opts = {.fd = fds[rank],
                                     .role = rank ? TRIB_CONTROL_AGGREGATOR
                                                  : TRIB_CONTROL_JOB,
                                     .job = "train-7",
                                     .peer = "peer",
                                     .handshake_ms = tribtest_patience_ms(),
                                     .silent_ms = tribtest_patience_ms(),
                                     .err = &err};
    uint64_t deadline = trib_deadline_ms(tribtest_patience_ms());

    (void)size;
    if (authtest_open("key", rank ? "key" : "same", NULL, &err, &auth) != TRIB_OK)
        return 7;
    opts.auth = auth;
    if (trib_session_open(&opts, &s) != TRIB_OK)
        return 8;
    int result = rank ? blocking_aggregator(s, deadline) : blocking_job(s, deadline);
    if (result)
        fprintf(stderr, "side %d: %d: %s\n", rank, result, err.text);
    trib_session_free(s);
    trib_auth_free(auth);
    return result;
}

TEST(test_blocking)
{
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    assert_int_equal(tribtest_threads(2, blocking_side, fds), 0);
}

/* A peer that does not read: an error at the deadline. */
TEST(test_send_wait_ends)
{
    static uint8_t data[16 * 2048];
    struct trib_control m = {.kind = TRIB_CONTROL_BLOBS,
                             .blobs = {1, 16, 0, 16, 2048, {data, sizeof(data)}}};
    struct line l;
    trib_status_t status = TRIB_OK;

    line_open(&l, "key");
    for (int i = 0; i < 1000 && status == TRIB_OK; i++)
        status = trib_session_send_wait(l.job, trib_deadline_ms(100), &m);
    assert_status(status, TRIB_ERR_TIMEOUT);
    assert_string_equal(l.job_err.text, "tribd at node7: messages are not read");
    line_close(&l);
}

TEST_GROUP(authtest_begin, authtest_end)

int main(void)
{
    if (!HAVE_SODIUM) {
        printf("# skipped: built without libsodium\n");
        return TRIBTEST_SKIPPED;
    }
    return tribtest_run();
}
