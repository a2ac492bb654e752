/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of device contexts: threads that open a device at once, devices that cannot
 * be opened, slow handlers of events, and forks at any time. The device is a fake one.
 */
#include "tests/harness/tribtest.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>

#include "base/time.h"
#include "transport/verbs/verbs_adapter.h"

static struct ibv_device devices[2];
static const struct verbs_trust no_secret;

/* The fake device. */
static struct {
    _Atomic int opens, closes, domains, acks;
    _Atomic(struct ibv_device *) slow; /* opening it waits */
    _Atomic int error; /* of opening */
    _Atomic int event; /* type of the next event */
} fake;

static struct ibv_context *fake_open(struct ibv_device *device)
{
    fake.opens++;
    while (fake.slow == device)
        usleep(500);
    if (fake.error) {
        errno = fake.error;
        return NULL;
    }
    struct ibv_context *context = calloc(1, sizeof(*context));
    context->device = device;
    context->async_fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
    return context;
}

static int fake_close(struct ibv_context *context)
{
    fake.closes++;
    close(context->async_fd);
    free(context);
    return 0;
}

static struct ibv_pd *fake_alloc_pd(struct ibv_context *context)
{
    struct ibv_pd *pd = calloc(1, sizeof(*pd));

    pd->context = context;
    fake.domains++;
    return pd;
}

static int fake_dealloc_pd(struct ibv_pd *pd)
{
    fake.domains--;
    free(pd);
    return 0;
}

static int fake_get_event(struct ibv_context *context, struct ibv_async_event *out)
{
    uint64_t one;

    if (read(context->async_fd, &one, sizeof(one)) != sizeof(one))
        return -1;
    *out = (struct ibv_async_event){.event_type = (enum ibv_event_type)fake.event};
    return 0;
}

static void fake_ack_event(struct ibv_async_event *event)
{
    (void)event;
    fake.acks++;
}

static const struct trib_verbs_api api = {.ibv_open_device = fake_open,
                                          .ibv_close_device = fake_close,
                                          .ibv_alloc_pd = fake_alloc_pd,
                                          .ibv_dealloc_pd = fake_dealloc_pd,
                                          .ibv_get_async_event = fake_get_event,
                                          .ibv_ack_async_event = fake_ack_event};

static void raise_event(const struct verbs_adapter *c, enum ibv_event_type type)
{
    const uint64_t one = 1;

    fake.event = type;
    assert_int_equal(write(c->ibv->async_fd, &one, sizeof(one)), sizeof(one));
}

static int reset(void **state)
{
    (void)state;
    fake.opens = fake.closes = fake.domains = fake.acks = 0;
    fake.error = fake.event = 0;
    fake.slow = NULL;
    return 0;
}

static int all_closed(void **state)
{
    (void)state;
    return fake.domains;
}

static void await(_Atomic int *counter, int n)
{
    const uint64_t until = trib_deadline_ms(tribtest_patience_ms());

    while (*counter < n && !trib_deadline_passed(until))
        usleep(500);
    assert_true(*counter >= n);
}

/* Opening -------------------------------------------------------------------------- */

struct opening {
    pthread_t thread;
    struct verbs_adapter *c;
    int error;
};

static void *opening_main(void *arg)
{
    struct opening *o = arg;

    o->c = trib_verbs_adapter_open(&api, &devices[0]);
    o->error = o->c ? 0 : errno;
    return NULL;
}

/* Threads that open a device while it is being opened. */
static void begin(struct opening *of, int n)
{
    fake.slow = &devices[0];
    for (int i = 0; i < n; i++) {
        assert_int_equal(pthread_create(&of[i].thread, NULL, opening_main, &of[i]), 0);
        await(&fake.opens, 1);
    }
    usleep(20000); /* the others wait */
    assert_int_equal(fake.opens, 1);
}

static void finish(struct opening *of, int n)
{
    fake.slow = NULL;
    for (int i = 0; i < n; i++)
        pthread_join(of[i].thread, NULL);
}

static int open_in_child(int rank, int size, void *arg)
{
    (void)rank;
    (void)size;
    (void)arg;
    fake.slow = NULL;
    const int closes = fake.closes;
    struct verbs_adapter *c = trib_verbs_adapter_open(&api, &devices[0]);
    if (!c || c != trib_verbs_adapter_open(&api, &devices[0]))
        return 1;
    trib_verbs_adapter_close(c);
    trib_verbs_adapter_close(c);
    return fake.closes != closes + 1;
}

/* A slow device is opened once. Another device can be opened at the same time, and the
 * process can fork. */
TEST(test_slow, reset, all_closed)
{
    enum { N = 3 };
    struct opening of[N] = {{0}};

    begin(of, N);
    struct verbs_adapter *other = trib_verbs_adapter_open(&api, &devices[1]);
    assert_non_null(other);
    trib_verbs_adapter_close(other);
    assert_int_equal(tribtest_forks(2, 60, open_in_child, NULL), 0);
    finish(of, N);
    assert_int_equal(fake.opens, 2);
    for (int i = 0; i < N; i++) {
        assert_ptr_equal(of[i].c, of[0].c);
        assert_int_equal(fake.closes, 1);
        trib_verbs_adapter_close(of[i].c);
    }
    assert_int_equal(fake.closes, 2);
}

/* All threads get the error, and the next attempt is a new one. */
TEST(test_error, reset, all_closed)
{
    enum { N = 3 };
    struct opening of[N] = {{0}};

    fake.error = EMFILE;
    begin(of, N);
    finish(of, N);
    for (int i = 0; i < N; i++) {
        assert_null(of[i].c);
        assert_int_equal(of[i].error, EMFILE);
    }
    fake.error = 0;
    struct verbs_adapter *c = trib_verbs_adapter_open(&api, &devices[0]);
    assert_non_null(c);
    assert_int_equal(fake.opens, 2);
    trib_verbs_adapter_close(c);
    assert_int_equal(fake.closes, 1);
}

/* A process that changes its user or group opens the device again. */
TEST(test_other_user, reset, all_closed)
{
    enum { NOBODY = 65534 };
    struct verbs_adapter *of[5];

    if (geteuid() != 0)
        tribtest_skip("only root can change its user");
    of[0] = trib_verbs_adapter_open(&api, &devices[0]);
    assert_int_equal(setegid(NOBODY), 0);
    of[1] = trib_verbs_adapter_open(&api, &devices[0]);
    assert_int_equal(seteuid(NOBODY), 0);
    of[2] = trib_verbs_adapter_open(&api, &devices[0]);
    of[3] = trib_verbs_adapter_open(&api, &devices[0]);
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(setegid(0), 0);
    of[4] = trib_verbs_adapter_open(&api, &devices[0]);
    assert_int_equal(fake.opens, 3);
    assert_ptr_not_equal(of[1], of[0]);
    assert_ptr_not_equal(of[2], of[1]);
    assert_ptr_equal(of[3], of[2]);
    assert_ptr_equal(of[4], of[0]);
    for (int i = 0; i < 5; i++)
        trib_verbs_adapter_close(of[i]);
    assert_int_equal(fake.closes, 3);
}

/* Forks ---------------------------------------------------------------------------- */

static _Atomic bool stops;

static int use_until_stopped(void)
{
    for (int i = 0; !stops; i++) {
        struct verbs_adapter *c = trib_verbs_adapter_open(&api, &devices[i % 2]);
        struct verbs_domain *d = c ? trib_verbs_domain_open(c, &no_secret) : NULL;
        if (!d)
            return 1;
        trib_verbs_domain_close(c, d);
        trib_verbs_adapter_close(c);
    }
    return 0;
}

static int fork_often(void)
{
    int failed = 0;

    for (int i = 0; i < 30; i++) {
        const pid_t child = fork();
        if (child == 0) {
            tribtest_deadline(60);
            _exit(open_in_child(0, 1, NULL));
        }
        int status = -1;
        failed += waitpid(child, &status, 0) != child || status != 0;
    }
    stops = true;
    return failed;
}

static int use_or_fork(int rank, int size, void *arg)
{
    (void)size;
    (void)arg;
    return rank ? use_until_stopped() : fork_often();
}

/* A child finds the table usable, whatever other threads were doing. */
TEST(test_forks, reset, all_closed)
{
    struct verbs_adapter *c = trib_verbs_adapter_open(&api, &devices[0]);

    stops = false;
    assert_int_equal(tribtest_threads(4, use_or_fork, NULL), 0);
    trib_verbs_adapter_close(c);
    assert_int_equal(fake.opens, fake.closes);
}

/* In a child the memory of the parent's context is freed with its last user. */
static int close_in_child(int rank, int size, void *arg)
{
    struct verbs_adapter *c = arg;

    (void)rank;
    (void)size;
    const int closes = fake.closes, domains = fake.domains;
    trib_verbs_adapter_close(c);
    trib_verbs_adapter_close(c);
    return fake.closes != closes || fake.domains != domains;
}

TEST(test_close_in_child, reset, all_closed)
{
    struct verbs_adapter *c = trib_verbs_adapter_open(&api, &devices[0]);

    assert_ptr_equal(trib_verbs_adapter_open(&api, &devices[0]), c);
    struct verbs_domain *d = trib_verbs_domain_open(c, &no_secret);
    assert_ptr_equal(trib_verbs_domain_open(c, &no_secret), d);
    assert_int_equal(tribtest_forks(1, 60, close_in_child, c), 0);
    trib_verbs_domain_close(c, d);
    trib_verbs_domain_close(c, d);
    trib_verbs_adapter_close(c);
    assert_int_equal(fake.closes, 0);
    trib_verbs_adapter_close(c);
    assert_int_equal(fake.closes, 1);
}

/* Events --------------------------------------------------------------------------- */

struct listener {
    struct verbs_event_sink sink;
    _Atomic int events, fatal;
    _Atomic bool slow; /* handling an event waits */
};

static void count_event(void *arg, const struct ibv_async_event *event)
{
    struct listener *l = arg;

    l->events++;
    l->fatal += event && event->event_type == IBV_EVENT_DEVICE_FATAL;
    while (l->slow)
        usleep(500);
}

static void listen_to(struct verbs_adapter *c, struct listener *l)
{
    l->sink = (struct verbs_event_sink){.handle = count_event, .arg = l};
    assert_int_equal(trib_verbs_adapter_listen(c, &l->sink), 0);
}

struct leaving {
    struct verbs_adapter *c;
    struct listener *l;
    _Atomic int left;
};

static void *leave_main(void *arg)
{
    struct leaving *leaving = arg;

    trib_verbs_adapter_ignore(leaving->c, &leaving->l->sink);
    leaving->left = 1;
    return NULL;
}

/* Every listener gets each event once, and none after it has ceased to listen. */
TEST(test_events, reset, all_closed)
{
    struct verbs_adapter *c = trib_verbs_adapter_open(&api, &devices[0]);
    struct listener of[3] = {{.events = 0}};

    for (int i = 0; i < 3; i++)
        listen_to(c, &of[i]);
    for (int n = 1; n <= 20; n++) {
        raise_event(c, IBV_EVENT_PORT_ACTIVE);
        await(&fake.acks, n);
        for (int i = 0; i < 3; i++)
            assert_int_equal(of[i].events, n);
    }
    trib_verbs_adapter_ignore(c, &of[1].sink);
    raise_event(c, IBV_EVENT_PORT_ERR);
    await(&fake.acks, 21);
    assert_int_equal(of[0].events, 21);
    assert_int_equal(of[1].events, 20);
    assert_int_equal(of[2].events, 21);
    for (int i = 0; i < 3; i++)
        trib_verbs_adapter_ignore(c, &of[i].sink); /* no effect on the second */
    trib_verbs_adapter_close(c);
    assert_int_equal(fake.closes, 1);
}

/* A listener leaves after the event that it is handling, but does not wait for others;
 * nor does a new listener. */
TEST(test_slow_handler, reset, all_closed)
{
    struct verbs_adapter *c = trib_verbs_adapter_open(&api, &devices[0]);
    struct listener before = {.events = 0}, slow = {.slow = true},
                    after = {.events = 0}, stays = {.events = 0}, comes = {.events = 0};
    struct leaving leaving = {.c = c, .l = &slow};
    pthread_t thread;

    listen_to(c, &stays);
    listen_to(c, &after);
    listen_to(c, &slow);
    listen_to(c, &before);
    raise_event(c, IBV_EVENT_PORT_ACTIVE);
    await(&slow.events, 1);
    listen_to(c, &comes);
    trib_verbs_adapter_ignore(c, &before.sink);
    trib_verbs_adapter_ignore(c, &after.sink);
    assert_int_equal(pthread_create(&thread, NULL, leave_main, &leaving), 0);
    usleep(20000);
    assert_int_equal(leaving.left, 0);
    slow.slow = false;
    pthread_join(thread, NULL);
    raise_event(c, IBV_EVENT_PORT_ACTIVE);
    await(&fake.acks, 2);
    assert_int_equal(before.events, 1);
    assert_int_equal(slow.events, 1);
    assert_int_equal(after.events, 0);
    assert_int_equal(stays.events, 2);
    assert_int_equal(comes.events, 1);
    trib_verbs_adapter_ignore(c, &stays.sink);
    trib_verbs_adapter_ignore(c, &comes.sink);
    trib_verbs_adapter_close(c);
}

/* A listener that comes after the device has failed is notified; later users get
 * another context. */
TEST(test_late_listener, reset, all_closed)
{
    struct verbs_adapter *c = trib_verbs_adapter_open(&api, &devices[0]);
    struct listener early = {.events = 0}, late = {.events = 0};

    listen_to(c, &early);
    raise_event(c, IBV_EVENT_DEVICE_FATAL);
    await(&fake.acks, 1);
    listen_to(c, &late);
    assert_int_equal(early.fatal, 1);
    assert_int_equal(late.fatal, 1);
    struct verbs_adapter *other = trib_verbs_adapter_open(&api, &devices[0]);
    assert_non_null(other);
    assert_ptr_not_equal(other, c);
    trib_verbs_adapter_ignore(c, &early.sink);
    trib_verbs_adapter_ignore(c, &late.sink);
    trib_verbs_adapter_close(c);
    trib_verbs_adapter_close(other);
    assert_int_equal(fake.closes, 2);
}
