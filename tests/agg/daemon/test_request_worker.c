/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include <poll.h>
#include <semaphore.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

#include "agg/daemon/request_worker.h"
#include "base/error.h"
#include "base/time.h"

/* Offset that clock_gettime subtracts from CLOCK_REALTIME only, in seconds. */
static time_t jump_s;

int clock_gettime(clockid_t clock, struct timespec *out)
{
    const int failed = (int)syscall(SYS_clock_gettime, clock, out);

    if (!failed && clock == CLOCK_REALTIME)
        out->tv_sec -= jump_s;
    return failed;
}

/* A task that reports when it begins and continues when permitted. */
struct errand {
    struct request_worker_task task; /* first */
    sem_t *begun, *go; /* or NULL */
    int *order; /* counts the tasks that were run */
    int place; /* position among them, from 1; 0: not run */
    int done; /* number of runs */
};

static void work(struct request_worker_task *task)
{
    struct errand *e = (struct errand *)task;

    e->place = ++*e->order;
    if (e->begun)
        sem_post(e->begun);
    if (e->go)
        while (sem_wait(e->go) != 0)
            continue;
}

static void done(struct request_worker_task *task)
{
    ((struct errand *)task)->done++;
}

struct stage {
    int wake_fd;
    struct request_worker *request_worker;
    sem_t begun, go;
    int order;
    struct errand slow; /* the request worker runs it until `go` */
};

static struct errand an_errand(struct stage *s, uint64_t until)
{
    return (struct errand){.task = {.work = work, .done = done, .until = until},
                           .order = &s->order};
}

static void begin(struct stage *s)
{
    struct trib_error err = {0};

    memset(s, 0, sizeof(*s));
    s->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    assert_true(s->wake_fd >= 0);
    sem_init(&s->begun, 0, 0);
    sem_init(&s->go, 0, 0);
    assert_status(request_worker_start(s->wake_fd, &err, &s->request_worker), TRIB_OK);
    s->slow = an_errand(s, 0);
    s->slow.begun = &s->begun;
    s->slow.go = &s->go;
    request_worker_submit(s->request_worker, &s->slow.task);
    while (sem_wait(&s->begun) != 0)
        continue;
}

static void end(struct stage *s)
{
    request_worker_stop(s->request_worker);
    sem_destroy(&s->begun);
    sem_destroy(&s->go);
    close(s->wake_fd);
}

/* Wait until a task is done, as a server does. */
static void wait_for(struct stage *s, const struct errand *e)
{
    const uint64_t until = trib_deadline_ms(tribtest_patience_ms());

    while (!e->done) {
        struct pollfd p = {s->wake_fd, POLLIN, 0};
        uint64_t count;
        assert_false(trib_deadline_passed(until));
        if (poll(&p, 1, 1000) == 1)
            assert_int_equal(read(s->wake_fd, &count, sizeof(count)), sizeof(count));
        request_worker_poll(s->request_worker);
    }
}

/* The caller never waits for a long task. */
TEST(test_one_after_the_other)
{
    struct stage s;

    begin(&s);
    struct errand first = an_errand(&s, 0), second = an_errand(&s, 0);
    request_worker_submit(s.request_worker, &first.task);
    request_worker_submit(s.request_worker, &second.task);
    request_worker_poll(s.request_worker);
    assert_int_equal(s.slow.done + first.done + second.done, 0);
    sem_post(&s.go);
    wait_for(&s, &second);
    assert_int_equal(s.slow.place, 1);
    assert_int_equal(first.place, 2);
    assert_int_equal(second.place, 3);
    assert_int_equal(s.slow.done + first.done + second.done, 3);
    assert_true(s.slow.task.worked && second.task.worked);
    end(&s);
}

/* A cancelled task is not started, and its owner is notified. */
TEST(test_too_late)
{
    struct stage s;

    begin(&s);
    struct errand late = an_errand(&s, trib_now_ns() + 1);
    struct errand timely = an_errand(&s, trib_deadline_ms(1000 * 1000));
    request_worker_submit(s.request_worker, &late.task);
    request_worker_submit(s.request_worker, &timely.task);
    sem_post(&s.go);
    wait_for(&s, &timely);
    assert_int_equal(late.place, 0);
    assert_false(late.task.worked);
    assert_int_equal(late.done, 1);
    assert_int_equal(timely.place, 2);
    end(&s);
}

TEST(test_take_back)
{
    struct stage s;

    begin(&s);
    struct errand first = an_errand(&s, 0), last = an_errand(&s, 0),
                  next = an_errand(&s, 0);
    request_worker_submit(s.request_worker, &first.task);
    request_worker_submit(s.request_worker, &last.task);
    assert_false(
        request_worker_cancel(s.request_worker, &s.slow.task)); /* it is running */
    assert_true(request_worker_cancel(s.request_worker, &last.task));
    assert_false(request_worker_cancel(s.request_worker, &last.task));
    request_worker_submit(s.request_worker,
                          &next.task); /* the queue is limited even so */
    assert_true(request_worker_cancel(s.request_worker, &first.task));
    sem_post(&s.go);
    wait_for(&s, &next);
    assert_int_equal(next.place, 2);
    assert_int_equal(first.done + last.done + first.place + last.place, 0);
    end(&s);
}

/* All tasks are returned to their owners. */
TEST(test_stop)
{
    struct stage s;

    begin(&s);
    struct errand waiting = an_errand(&s, 0);
    request_worker_submit(s.request_worker, &waiting.task);
    sem_post(&s.go);
    end(&s);
    assert_int_equal(s.slow.done, 1);
    assert_int_equal(waiting.done, 1);
    request_worker_stop(NULL);
}

static void *let_go(void *arg)
{
    struct stage *s = arg;

    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    sem_post(&s->go);
    return NULL;
}

/* Stopping waits for the running task, although the time of day jumps by an hour. */
TEST(test_stop_and_jump)
{
    struct stage s;
    pthread_t helper;

    begin(&s);
    assert_int_equal(pthread_create(&helper, NULL, let_go, &s), 0);
    jump_s = 3600;
    request_worker_stop(s.request_worker);
    jump_s = 0;
    const int was_done = s.slow.done;
    pthread_join(helper, NULL);
    assert_int_equal(was_done, 1);
    s.request_worker = NULL;
    end(&s);
}
