/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include <errno.h>

#include "base/log.h"
#include "base/quiet.h"

static volatile sig_atomic_t caught;

static void note(int signal)
{
    (void)signal;
    caught++;
}

/* Return a pipe without a reader. */
static int broken_pipe(void)
{
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    return ends[1];
}

TEST(test_no_signal)
{
    struct trib_quiet quiet;
    int fd = broken_pipe();

    signal(SIGPIPE, note);
    caught = 0;
    trib_quiet_begin(&quiet, SIGPIPE);
    assert_int_equal(write(fd, "x", 1), -1);
    trib_quiet_end(&quiet);
    assert_int_equal(errno, EPIPE);
    assert_int_equal(caught, 0);
    assert_int_equal(write(fd, "x", 1), -1); /* the program's own does as before */
    assert_int_equal(caught, 1);
    signal(SIGPIPE, SIG_DFL);
    close(fd);
}

/* A signal that the program waits for is not taken from it. */
TEST(test_pending_before)
{
    struct trib_quiet quiet;
    sigset_t pipe_set, before, pending;
    int fd = broken_pipe();

    sigemptyset(&pipe_set);
    sigaddset(&pipe_set, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_set, &before);
    raise(SIGPIPE);
    trib_quiet_begin(&quiet, SIGPIPE);
    assert_int_equal(write(fd, "x", 1), -1);
    trib_quiet_end(&quiet);
    sigpending(&pending);
    assert_int_equal(sigismember(&pending, SIGPIPE), 1);
    int got;
    assert_int_equal(sigwait(&pipe_set, &got), 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(fd);
}

/* A log line to a standard error without a reader ends no program. */
TEST(test_log)
{
    int fd = broken_pipe(), saved = dup(STDERR_FILENO);

    dup2(fd, STDERR_FILENO);
    trib_log(NULL, TRIB_LOG_WARN, "x", "said");
    clearerr(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(fd);
}
