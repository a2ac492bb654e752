/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of a session to munged that do not block its thread: the aggregator's end of
 * a connection, whose requests the test answers or ignores.
 */
#include <poll.h>
#include <pwd.h>
#include <sys/socket.h>

#include "agg/protocol/session.h"
#include "build-config.h"
#include "tests/agg/protocol/authtest.h"

static struct munged munged;

struct ends {
    struct trib_auth *auth;
    struct trib_session *job, *aggregator;
    struct trib_error job_err, aggregator_err;
    struct trib_control got;
    struct trib_question *question;
};

static struct trib_session *open_end(struct ends *e, int fd,
                                     enum trib_control_role role, int handshake_ms)
{
    struct trib_session *session = NULL;
    const bool job = role == TRIB_CONTROL_JOB;
    struct trib_session_opts opts = {.fd = fd,
                                     .role = role,
                                     .auth = e->auth,
                                     .job = "train-7",
                                     .peer = job ? "tribd" : "a job",
                                     .handshake_ms = handshake_ms,
                                     .err = job ? &e->job_err : &e->aggregator_err,
                                     .lends = !job};

    assert_status(trib_session_open(&opts, &session), TRIB_OK);
    return session;
}

/* Run until the aggregator has the credential of the job and a request. */
static void begin(struct ends *e, int handshake_ms)
{
    const uint64_t until = trib_deadline_ms(tribtest_patience_ms());
    int fds[2];

    if (!munged.pid)
        tribtest_skip("there is no munged, or no MUNGE in this build");
    memset(e, 0, sizeof(*e));
    assert_status(authtest_open("munge", NULL, &munged, NULL, &e->auth), TRIB_OK);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    e->job = open_end(e, fds[0], TRIB_CONTROL_JOB, 5000 * (int)tribtest_slowness());
    e->aggregator = open_end(e, fds[1], TRIB_CONTROL_AGGREGATOR, handshake_ms);
    while (!(e->question = trib_session_question(e->aggregator))) {
        assert_false(trib_deadline_passed(until));
        assert_status(trib_session_step(e->aggregator, &e->got), TRIB_INPROGRESS);
        assert_status(trib_session_step(e->job, &e->got), TRIB_INPROGRESS);
    }
}

static void end(struct ends *e)
{
    trib_session_free(e->job);
    trib_session_free(e->aggregator);
    trib_auth_free(e->auth);
}

/* The thread of the session continues at once, whatever munged does; later it has the
 * answer. */
TEST(test_answered)
{
    struct ends e;

    begin(&e, 5000 * (int)tribtest_slowness());
    kill(munged.pid, SIGSTOP);
    const uint64_t from = trib_now_ns();
    for (int i = 0; i < 100; i++)
        assert_status(trib_session_step(e.aggregator, &e.got), TRIB_INPROGRESS);
    const uint64_t took = trib_now_ns() - from;
    kill(munged.pid, SIGCONT);
    assert_in_range(took / 1000000, 0, 1000 * (uint64_t)tribtest_slowness()); /* munged
                                                                               * had 2
                                                                               * s */
    assert_int_equal(trib_session_events(e.aggregator), 0); /* nothing is expected from
                                                             * the job */
    assert_null(trib_session_question(e.aggregator)); /* it is returned once */
    assert_false(trib_session_ready(e.aggregator));
    trib_question_answer(e.question);
    assert_status(trib_session_answer(e.aggregator, e.question), TRIB_INPROGRESS);
    assert_true(trib_session_events(e.aggregator) & POLLIN);
    while (!trib_session_ready(e.job) || !trib_session_ready(e.aggregator)) {
        assert_status(trib_session_step(e.job, &e.got), TRIB_INPROGRESS);
        assert_status(trib_session_step(e.aggregator, &e.got), TRIB_INPROGRESS);
    }
    const struct trib_auth_peer peer = trib_session_peer(e.aggregator);
    const struct passwd *user = getpwuid(geteuid());
    assert_int_equal(peer.uid, geteuid());
    if (user)
        assert_string_equal(peer.user, user->pw_name);
    end(&e);
}

/* Without an answer the session ends by its deadline, and the error names the missing
 * answer. */
TEST(test_too_late)
{
    const uint64_t until = trib_deadline_ms(tribtest_patience_ms());
    struct ends e;
    trib_status_t st;

    begin(&e, 300 * (int)tribtest_slowness());
    while ((st = trib_session_step(e.aggregator, &e.got)) == TRIB_INPROGRESS) {
        assert_false(trib_deadline_passed(until));
        (void)poll(NULL, 0, 5);
    }
    assert_status(st, TRIB_ERR_TIMEOUT);
    if (!strstr(e.aggregator_err.text,
                "munged or the user database of the service does not answer"))
        fail_msg("%s", e.aggregator_err.text);
    trib_question_answer(e.question);
    assert_status(trib_session_answer(e.aggregator, e.question), TRIB_ERR_TIMEOUT);
    while ((st = trib_session_step(e.job, &e.got)) == TRIB_INPROGRESS)
        assert_false(trib_deadline_passed(until));
    if (!strstr(e.job_err.text, "the credential could not be verified within"))
        fail_msg("%s", e.job_err.text); /* the job receives the reason */
    end(&e);
}

/* The connection may be closed while another thread asks munged. */
TEST(test_gone)
{
    struct ends e;

    begin(&e, 5000 * (int)tribtest_slowness());
    trib_session_free(e.aggregator);
    e.aggregator = NULL;
    trib_question_answer(e.question);
    trib_question_free(e.question);
    end(&e);
    begin(&e, 5000 * (int)tribtest_slowness());
    trib_question_free(e.question); /* before it was asked */
    end(&e); /* a session that waits for an answer that never arrives */
    trib_question_free(NULL);
}

static int begin_all(void **state)
{
    if (authtest_begin(state))
        return -1;
    if (HAVE_MUNGE && HAVE_SODIUM)
        munged_start("here", 3, &munged);
    return 0;
}

static int end_all(void **state)
{
    munged_stop(&munged);
    return authtest_end(state);
}

TEST_GROUP(begin_all, end_all)
