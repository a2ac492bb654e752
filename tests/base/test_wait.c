/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/time.h"
#include "base/wait.h"

static void ignore_signal(int number)
{
    (void)number;
}

struct nudge {
    pthread_t whom;
    int pipe; /* written to after all signals; -1: no pipe */
    _Atomic bool enough;
};

/* Signals to a thread that waits; those may not become its result. */
static void *nudge_main(void *arg)
{
    struct nudge *n = arg;

    for (int i = 0; i < 30 && !n->enough; i++) {
        usleep(5000);
        pthread_kill(n->whom, SIGUSR1);
    }
    if (n->pipe >= 0 && write(n->pipe, "", 1) != 1)
        abort();
    return NULL;
}

static bool wait_nudged(int ends[2], bool written, int ms)
{
    const struct sigaction action = {.sa_handler = ignore_signal};
    struct nudge n = {.whom = pthread_self(), .pipe = written ? ends[1] : -1};
    pthread_t thread;

    sigaction(SIGUSR1, &action, NULL);
    assert_int_equal(pthread_create(&thread, NULL, nudge_main, &n), 0);
    bool ready = trib_wait_fd(ends[0], POLLIN, trib_deadline_ms(ms), NULL);
    int error = errno;
    n.enough = true;
    pthread_join(thread, NULL);
    errno = error;
    return ready;
}

TEST(test_wait_fd)
{
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    uint64_t deadline = trib_deadline_ms(60);
    assert_false(wait_nudged(ends, false, 60));
    assert_int_equal(errno, ETIMEDOUT);
    assert_true(trib_deadline_passed(deadline));
    assert_true(wait_nudged(ends, true, 60000));
    assert_true(
        trib_wait_fd(ends[0], POLLIN, 0, NULL)); /* ready counts, however late */
    close(ends[0]);
    close(ends[1]);
}

static void *mask_main(void *arg)
{
    pthread_sigmask(SIG_SETMASK, NULL, arg);
    return NULL;
}

TEST(test_threads_take_no_signals)
{
    sigset_t before;
    sigset_t after;
    sigset_t inside;
    pthread_t thread;

    pthread_sigmask(SIG_SETMASK, NULL, &before);
    assert_int_equal(trib_thread_start(&thread, mask_main, &inside), 0);
    pthread_join(thread, NULL);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (int number = 1; number < 32; number++) {
        assert_int_equal(sigismember(&after, number), sigismember(&before, number));
        if (number != SIGKILL && number != SIGSTOP)
            assert_int_equal(sigismember(&inside, number), 1);
    }
}

struct job {
    _Atomic bool may_end;
    _Atomic bool worked;
    _Atomic bool discarded;
};

static int nice_of_this_thread(void)
{
    return getpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid));
}

static void *give_way(void *arg)
{
    int *now = arg;

    trib_thread_give_way();
    *now = nice_of_this_thread();
    return NULL;
}

/* One thread gives way, and the one that has started it does not. */
TEST(test_thread_gives_way)
{
    const int before = nice_of_this_thread();
    pthread_t thread;
    int inside = -1;

    assert_int_equal(trib_thread_start(&thread, give_way, &inside), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(inside > before || before == 19);
    assert_int_equal(nice_of_this_thread(), before);
}

static void job_work(void *arg)
{
    struct job *job = arg;

    while (!job->may_end)
        usleep(1000);
    job->worked = true;
}

static void job_discard(void *arg)
{
    ((struct job *)arg)->discarded = true;
}

TEST(test_detached_call_in_time)
{
    struct job job = {.may_end = true};

    assert_int_equal(
        trib_detached_call(job_work, job_discard, &job, trib_deadline_ms(60000), NULL),
        0);
    assert_true(job.worked);
    assert_false(job.discarded);
}

TEST(test_detached_call_abandoned)
{
    struct job job = {0};
    uint64_t deadline = trib_deadline_ms(30);

    assert_int_equal(trib_detached_call(job_work, job_discard, &job, deadline, NULL),
                     ETIMEDOUT);
    assert_true(trib_deadline_passed(deadline));
    assert_false(job.worked);
    job.may_end = true;
    while (!job.discarded) /* the test's own deadline ends a wait for ever */
        usleep(1000);
    assert_true(job.worked);
}

TEST(test_cond_deadline)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t cond;
    uint64_t deadline = trib_deadline_ms(20);

    trib_cond_init(&cond);
    pthread_mutex_lock(&lock);
    while (trib_cond_wait(&cond, &lock, deadline))
        continue;
    pthread_mutex_unlock(&lock);
    assert_true(trib_deadline_passed(deadline));
    pthread_cond_destroy(&cond);
}

/* More entries than files may be open: a failure with its errno, and no old result. */
TEST(test_poll_fails)
{
    struct pollfd fds[4] = {{.fd = -1, .revents = POLLIN}};
    struct rlimit all, few;

    for (int i = 1; i < 4; i++)
        fds[i] = fds[0];
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &all), 0);
    few = (struct rlimit){.rlim_cur = 3, .rlim_max = all.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    const int fails = trib_poll(fds, 4, 0), error = errno;
    const int works = trib_poll(fds, 3, 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &all), 0);
    assert_int_equal(fails, -1);
    assert_int_equal(error, EINVAL);
    assert_int_equal(works, 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(fds[i].revents, 0);
}
