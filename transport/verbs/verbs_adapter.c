/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/verbs/verbs_adapter.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/wait.h"
#include "transport/verbs/verbs_cache.h"

/* The lock is never held while the device is used or a sink is called, so a fork waits
 * only briefly. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t opened = PTHREAD_COND_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static LIST_HEAD(, verbs_adapter) adapters;

/* Fork ----------------------------------------------------------------------------- */

static void take_lock(void)
{
    pthread_mutex_lock(&lock);
}

static void give_lock(void)
{
    pthread_mutex_unlock(&lock);
}

static void begin_child(void)
{
    struct verbs_adapter *a;

    LIST_FOREACH(a, &adapters, entry)
    a->is_parents = true;
    LIST_INIT(&adapters);
    /* The child does not have the threads that wait. */
    opened = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    give_lock();
}

static void survive_fork(void)
{
    (void)pthread_atfork(take_lock, give_lock, begin_child);
}

/* Events --------------------------------------------------------------------------- */

/* Let the sink after this one, or the first, handle the event. Others may be inserted
 * at the head or removed meanwhile. */
static struct verbs_event_sink *next_sink(struct verbs_adapter *a,
                                          struct verbs_event_sink *sink)
{
    pthread_mutex_lock(&a->lock);
    assert(a->handling == sink);
    a->handling = sink ? LIST_NEXT(sink, entry) : LIST_FIRST(&a->sinks);
    struct verbs_event_sink *next = a->handling;
    pthread_cond_broadcast(&a->handled);
    pthread_mutex_unlock(&a->lock);
    return next;
}

static void tell_all(struct verbs_adapter *a, const struct ibv_async_event *event)
{
    /* A sink that is inserted from now on finds `failed` set. */
    if (!event || event->event_type == IBV_EVENT_DEVICE_FATAL)
        a->failed = true;
    for (struct verbs_event_sink *s = next_sink(a, NULL); s; s = next_sink(a, s))
        s->handle(s->arg, event);
}

static void read_event(struct verbs_adapter *a)
{
    struct ibv_async_event event;

    if (a->api.ibv_get_async_event(a->ibv, &event) != 0)
        return;
    tell_all(a, &event);
    a->api.ibv_ack_async_event(&event);
}

/* Run until `stop` is signalled. A failed descriptor is no longer polled. */
static void *reader_main(void *arg)
{
    struct verbs_adapter *a = arg;
    struct pollfd fds[] = {
        {.fd = a->stop, .events = POLLIN},
        {.fd = a->ibv->async_fd, .events = POLLIN},
    };

    while (!fds[0].revents) {
        if (trib_poll(fds, 2, -1) <= 0)
            continue;
        if (fds[1].revents & POLLIN)
            read_event(a);
        if (fds[1].revents & (POLLERR | POLLNVAL)) {
            fds[1].fd = -1;
            tell_all(a, NULL);
        }
    }
    return NULL;
}

/* Call with the adapter's lock held. Return an errno. */
static int start_reader(struct verbs_adapter *a)
{
    a->stop = trib_fd_keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    int error = a->stop < 0 ? errno : trib_thread_start(&a->reader, reader_main, a);

    a->has_reader = error == 0;
    if (error && a->stop >= 0)
        close(a->stop);
    return error;
}

static void stop_reader(struct verbs_adapter *a)
{
    const uint64_t one = 1;

    assert(a->has_reader && LIST_EMPTY(&a->sinks));
    if (write(a->stop, &one, sizeof(one)) == sizeof(one))
        pthread_join(a->reader, NULL);
    close(a->stop);
}

int trib_verbs_adapter_listen(struct verbs_adapter *a, struct verbs_event_sink *sink)
{
    const struct ibv_async_event fatal = {.event_type = IBV_EVENT_DEVICE_FATAL};

    assert(!sink->listens);
    pthread_mutex_lock(&a->lock);
    const int error = a->has_reader ? 0 : start_reader(a);
    if (!error)
        LIST_INSERT_HEAD(&a->sinks, sink, entry);
    pthread_mutex_unlock(&a->lock);
    sink->listens = !error;
    if (sink->listens && a->failed)
        sink->handle(sink->arg, &fatal);
    return error;
}

void trib_verbs_adapter_ignore(struct verbs_adapter *a, struct verbs_event_sink *sink)
{
    if (!sink->listens)
        return;
    pthread_mutex_lock(&a->lock);
    while (a->handling == sink)
        pthread_cond_wait(&a->handled, &a->lock);
    LIST_REMOVE(sink, entry);
    pthread_mutex_unlock(&a->lock);
    sink->listens = false;
}

/* Adapters ---------------------------------------------------------------------- */

/* Call with the lock held. A device that comes back after a removal is another struct
 * ibv_device. */
static struct verbs_adapter *find(const struct ibv_device *device)
{
    struct verbs_adapter *a;

    LIST_FOREACH(a, &adapters, entry)
    if (a->device == device && !a->error && !a->failed && a->uid == geteuid() &&
        a->gid == getegid())
        return a;
    return NULL;
}

static struct verbs_adapter *make(const struct trib_verbs_api *api,
                                  struct ibv_device *device)
{
    struct verbs_adapter *a = calloc(1, sizeof(*a));

    if (!a)
        return NULL;
    a->api = *api;
    a->device = device;
    a->uid = geteuid();
    a->gid = getegid();
    a->is_opening = true;
    a->stop = -1;
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->handled, NULL);
    return a;
}

/* Call with the lock held; it is released while the device opens. Others wait for the
 * result. */
static void open_device(struct verbs_adapter *a)
{
    give_lock();
    struct ibv_context *ibv = a->api.ibv_open_device(a->device);
    int error = ibv ? 0 : errno;
    if (ibv && fcntl(ibv->async_fd, F_SETFL, O_NONBLOCK) != 0) {
        error = errno;
        (void)a->api.ibv_close_device(ibv);
        ibv = NULL;
    }
    take_lock();
    a->ibv = ibv;
    a->error = ibv || error ? error : EIO; /* some providers do not set errno */
    a->is_opening = false;
    pthread_cond_broadcast(&opened);
}

struct verbs_adapter *trib_verbs_adapter_open(const struct trib_verbs_api *api,
                                              struct ibv_device *device)
{
    pthread_once(&once, survive_fork);
    take_lock();
    struct verbs_adapter *a = find(device);
    bool is_new = false;
    if (!a) {
        a = make(api, device);
        is_new = a != NULL;
    }
    if (a)
        a->users++;
    if (is_new) {
        LIST_INSERT_HEAD(&adapters, a, entry);
        open_device(a);
    }
    while (a && a->is_opening)
        pthread_cond_wait(&opened, &lock);
    const int error = a ? a->error : ENOMEM;
    give_lock();
    if (!error)
        return a;
    if (a)
        trib_verbs_adapter_close(a);
    errno = error;
    return NULL;
}

static void close_device(struct verbs_adapter *a)
{
    assert(LIST_EMPTY(&a->domains) && LIST_EMPTY(&a->sinks));
    if (a->has_reader)
        stop_reader(a);
    if (a->ibv)
        (void)a->api.ibv_close_device(a->ibv);
    pthread_cond_destroy(&a->handled);
    pthread_mutex_destroy(&a->lock);
}

/* In a child other threads may have held the adapter's lock. */
static void forget_domains(struct verbs_adapter *a)
{
    struct verbs_domain *d;

    while ((d = LIST_FIRST(&a->domains))) {
        LIST_REMOVE(d, entry);
        free(d);
    }
}

void trib_verbs_adapter_close(struct verbs_adapter *a)
{
    take_lock();
    assert(a->users > 0);
    const bool is_last = --a->users == 0, is_parents = a->is_parents;
    if (is_last && !is_parents)
        LIST_REMOVE(a, entry);
    give_lock();
    if (!is_last)
        return;
    if (is_parents)
        forget_domains(a);
    else
        close_device(a);
    free(a);
}

/* Protection domains --------------------------------------------------------------- */

/* Call with the adapter's lock held. */
static struct verbs_domain *find_domain(const struct verbs_adapter *a,
                                        const struct verbs_trust *trust)
{
    struct verbs_domain *d;

    LIST_FOREACH(d, &a->domains, entry)
    if (d->trust.guard == trust->guard &&
        memcmp(d->trust.secret, trust->secret, sizeof(trust->secret)) == 0)
        return d;
    return NULL;
}

/* Call with the adapter's lock held. */
static struct verbs_domain *make_domain(struct verbs_adapter *a,
                                        const struct verbs_trust *trust)
{
    struct verbs_domain *d = calloc(1, sizeof(*d));

    if (!d)
        return NULL;
    d->pd = a->api.ibv_alloc_pd(a->ibv);
    if (!d->pd) {
        free(d);
        return NULL;
    }
    d->trust = *trust;
    LIST_INSERT_HEAD(&a->domains, d, entry);
    return d;
}

struct verbs_domain *trib_verbs_domain_open(struct verbs_adapter *a,
                                            const struct verbs_trust *trust)
{
    pthread_mutex_lock(&a->lock);
    struct verbs_domain *d = find_domain(a, trust);
    if (!d)
        d = make_domain(a, trust);
    if (d)
        d->users++;
    pthread_mutex_unlock(&a->lock);
    return d;
}

void trib_verbs_domain_close(struct verbs_adapter *a, struct verbs_domain *d)
{
    pthread_mutex_lock(&a->lock);
    const bool is_last = --d->users == 0;
    if (is_last)
        LIST_REMOVE(d, entry);
    pthread_mutex_unlock(&a->lock);
    if (!is_last)
        return;
    trib_verbs_cache_forget(&a->api, d);
    (void)a->api.ibv_dealloc_pd(d->pd);
    free(d);
}
