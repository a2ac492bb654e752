/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/daemon/worker.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/time.h"
#include "base/wait.h"

enum {
    TURN_BYTES = 1 << 20,
    /* Cost of a step and of a plan in bytes, comparable to the bytes summed in that
     * time. Without it, a job that moves few bytes per step, or makes plans, would have
     * an endless turn. */
    STEP_BYTES = 4096,
    PLAN_BYTES = TURN_BYTES,
    /* Spin time before sleeping; longer if a transport cannot wake the thread. */
    SPIN_NS = 20000,
    SPIN_BLIND_NS = 200000,
    SLEEP_MS = 1, /* sleep if a transport cannot wake the thread: shared memory */
    AGGREGATORS_POLLED = 256,
};

struct worker {
    pthread_t thread;
    int event_fd;
    struct aggregator *aggregators;
    struct trib_drr share;
    int load; /* number of assigned aggregators; this and the next two fields belong to
               * the server thread */
    uint64_t seen_passes, seen_ns; /* when worker_goes_on last saw progress */
    _Atomic uint64_t busy_ns; /* time with work; only the worker writes this and the
                               * next two fields */
    _Atomic uint64_t passes;
    _Atomic bool vacant; /* it waits for an aggregator */
    _Atomic bool stop;
    pthread_mutex_t mutex;
    struct aggregator *added; /* under mutex */
};

static void take_added(struct worker *worker)
{
    pthread_mutex_lock(&worker->mutex);
    while (worker->added) {
        struct aggregator *agg = worker->added;
        worker->added = agg->next;
        agg->next = worker->aggregators;
        worker->aggregators = agg;
    }
    pthread_mutex_unlock(&worker->mutex);
}

/* Return true for an aggregator that ends or has failed, or drains and is idle. */
static bool is_over(const struct aggregator *agg)
{
    const bool busy = agg->comm->engine.head && !agg->comm->engine.failed;

    return atomic_load(&agg->ending) || atomic_load(&agg->state) == AGGREGATOR_FAILED ||
           (atomic_load(&agg->draining) && !busy);
}

static void *dispose(void *arg)
{
    trib_thread_give_way();
    aggregator_dispose(arg); /* the server owns the aggregator now */
    return NULL;
}

/* Dispose of an aggregator on a separate thread: its peers get some time to receive the
 * notice, while the worker serves other jobs. If no thread can be started, the worker
 * waits once. */
static void dispose_aside(struct aggregator *agg)
{
    pthread_t thread;

    if (trib_thread_start(&thread, dispose, agg) == 0)
        pthread_detach(thread);
    else
        aggregator_dispose(agg);
}

static void dispose_ended(struct worker *worker)
{
    for (struct aggregator **at = &worker->aggregators; *at;) {
        struct aggregator *agg = *at;
        if (!is_over(agg)) {
            at = &agg->next;
            continue;
        }
        *at = agg->next;
        trib_drr_remove(&worker->share, &agg->share);
        dispose_aside(agg);
    }
}

static struct aggregator *member_aggregator(struct trib_drr_member *member)
{
    return (struct aggregator *)(void *)((char *)member -
                                         offsetof(struct aggregator, share));
}

/* Return the bytes used by an aggregator, without the cost of its steps. */
static uint64_t used_by(const struct aggregator *agg)
{
    return agg->comm->engine.stats.wire_bytes + agg->plans_taken * PLAN_BYTES;
}

/* Step an aggregator; *end_ns: when it made progress. False: there was no work. */
static bool step(struct aggregator *agg, uint64_t *end_ns)
{
    if (!aggregator_step(agg))
        return false;
    *end_ns = trib_now_ns();
    aggregator_metrics_moved(agg->metrics, &agg->comm->engine, *end_ns);
    return true;
}

static void end_turn(struct aggregator *agg, uint64_t begin_ns, uint64_t end_ns)
{
    aggregator_metrics_turn_ends(agg->metrics, &agg->comm->engine, begin_ns, end_ns);
    if (end_ns != begin_ns)
        atomic_store_explicit(&agg->moved_ns, end_ns, memory_order_relaxed);
}

/* Give each aggregator a turn; one that exhausts its budget continues in its next
 * turn. */
static bool serve(struct worker *worker)
{
    struct trib_drr_member *member;
    bool moved = false;
    uint64_t budget;
    int turns = 0;

    for (struct aggregator *agg = worker->aggregators; agg; agg = agg->next, turns++) {
        trib_drr_set_weight(&agg->share,
                            atomic_load_explicit(&agg->weight, memory_order_relaxed));
        trib_drr_activate(&worker->share, &agg->share);
    }
    while (turns-- > 0 && (member = trib_drr_next(&worker->share, &budget))) {
        struct aggregator *agg = member_aggregator(member);
        assert(budget > 0 && agg->comm);
        const uint64_t before = used_by(agg), begin = trib_now_ns();
        uint64_t used = 0, steps = 0, end = begin;
        bool more = true;
        while (more && used < budget) {
            more = step(agg, &end);
            used = used_by(agg) - before + steps++ * STEP_BYTES;
        }
        end_turn(agg, begin, end);
        trib_metrics_raise(&worker->busy_ns, end - begin);
        moved |= end != begin;
        trib_drr_charge(&worker->share, used, more);
    }
    return moved;
}

/* Sleep until a transport or the server has work. */
static void sleep_for_work(struct worker *worker)
{
    struct pollfd fds[AGGREGATORS_POLLED + 1] = {
        {.fd = worker->event_fd, .events = POLLIN}};
    nfds_t n_fds = 1;

    for (struct aggregator *agg = worker->aggregators;
         agg && n_fds <= AGGREGATORS_POLLED; agg = agg->next) {
        struct trib_transport *t = agg->comm->engine.transport;
        if (agg->descriptor < 0)
            continue;
        t->ops->arm(t);
        fds[n_fds++] = (struct pollfd){.fd = agg->descriptor, .events = POLLIN};
    }
    bool moved = false;
    for (struct aggregator *agg = worker->aggregators; agg; agg = agg->next) {
        const uint64_t begin = trib_now_ns();
        uint64_t end = begin;
        moved |= step(agg, &end);
        end_turn(agg, begin, end);
    }
    (void)trib_poll(fds, n_fds, moved ? 0 : SLEEP_MS); /* a failure is like a timeout */
    if (fds[0].revents) {
        uint64_t count;
        (void)!read(worker->event_fd, &count, sizeof(count));
    }
    for (struct aggregator *agg = worker->aggregators; agg; agg = agg->next) {
        struct trib_transport *t = agg->comm->engine.transport;
        if (agg->descriptor >= 0)
            t->ops->wait(t, 0);
    }
}

/* Return how long to spin before sleeping: longer if a transport cannot wake the
 * thread. */
static uint64_t spin_ns(const struct worker *worker)
{
    for (const struct aggregator *agg = worker->aggregators; agg; agg = agg->next)
        if (agg->descriptor < 0)
            return SPIN_BLIND_NS;
    return SPIN_NS;
}

static void wait_for_aggregator(struct worker *worker)
{
    struct pollfd fd = {.fd = worker->event_fd, .events = POLLIN};
    uint64_t count;

    (void)trib_poll(&fd, 1, -1); /* on failure, take_added checks again */
    (void)!read(worker->event_fd, &count, sizeof(count));
}

static void *run(void *arg)
{
    struct worker *worker = arg;
    uint64_t moved = trib_now_ns();

    while (!atomic_load(&worker->stop)) {
        trib_metrics_raise(&worker->passes, 1);
        take_added(worker);
        dispose_ended(worker);
        if (!worker->aggregators) {
            atomic_store_explicit(&worker->vacant, true, memory_order_relaxed);
            wait_for_aggregator(worker);
            atomic_store_explicit(&worker->vacant, false, memory_order_relaxed);
            continue;
        }
        if (serve(worker))
            moved = trib_now_ns();
        else if (trib_now_ns() - moved > spin_ns(worker))
            sleep_for_work(worker);
        else
            sched_yield();
    }
    return NULL;
}

trib_status_t worker_start(struct trib_error *err, struct worker **out)
{
    struct worker *worker = calloc(1, sizeof(*worker));

    *out = NULL;
    if (!worker)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "out of memory for a worker thread");
    trib_drr_init(&worker->share, TURN_BYTES);
    pthread_mutex_init(&worker->mutex, NULL);
    worker->event_fd = trib_fd_keep(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    errno =
        worker->event_fd < 0 ? errno : trib_thread_start(&worker->thread, run, worker);
    if (errno) {
        (void)trib_fail(err, TRIB_ERR_SYSTEM, "cannot start a worker thread: %m");
        free(worker);
        return TRIB_ERR_SYSTEM;
    }
    *out = worker;
    return TRIB_OK;
}

bool worker_goes_on(struct worker *worker, uint64_t now_ns, uint64_t limit_ns)
{
    const uint64_t passes = atomic_load_explicit(&worker->passes, memory_order_relaxed);
    const bool vacant = atomic_load_explicit(&worker->vacant, memory_order_relaxed);

    if (vacant || passes != worker->seen_passes || !worker->seen_ns)
        worker->seen_ns = now_ns;
    worker->seen_passes = passes;
    return now_ns - worker->seen_ns < limit_ns;
}

void worker_stop(struct worker *worker)
{
    atomic_store(&worker->stop, true);
    worker_wake(worker);
    pthread_join(worker->thread, NULL);
    assert(!worker->aggregators && !worker->added);
    pthread_mutex_destroy(&worker->mutex);
    close(worker->event_fd);
    free(worker);
}

void worker_add(struct worker *worker, struct aggregator *agg)
{
    assert(agg->comm && !agg->next);
    pthread_mutex_lock(&worker->mutex);
    agg->next = worker->added;
    worker->added = agg;
    pthread_mutex_unlock(&worker->mutex);
    worker_wake(worker);
}

void worker_wake(struct worker *worker)
{
    const uint64_t one = 1;

    (void)!write(worker->event_fd, &one, sizeof(one));
}

void worker_view_mt(const struct worker *worker, struct trib_thread_view *out)
{
    out->busy_ns = atomic_load_explicit(&worker->busy_ns, memory_order_relaxed);
    out->passes = atomic_load_explicit(&worker->passes, memory_order_relaxed);
}

struct worker *worker_least_loaded(struct worker *const *workers, int n)
{
    struct worker *best = workers[0];

    assert(n > 0);
    for (int i = 1; i < n; i++)
        if (workers[i]->load < best->load)
            best = workers[i];
    return best;
}

void worker_reserve(struct worker *worker)
{
    worker->load++;
}

void worker_release(struct worker *worker)
{
    assert(worker->load > 0);
    worker->load--;
}
