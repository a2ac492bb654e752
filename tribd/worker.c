/* SPDX-License-Identifier: BSD-3-Clause */
#include "tribd/worker.h"

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
    /* What else takes time, as bytes: who moves little at each step, or makes plans,
     * would else have a turn as long as it likes. Of the order of what is summed
     * meanwhile. */
    STEP_BYTES = 4096,
    PLAN_BYTES = TURN_BYTES,
    /* It looks for something to do for so long before it sleeps: longer where that is
     * hard. */
    SPIN_NS = 20000,
    SPIN_BLIND_NS = 200000,
    SLEEP_MS = 1, /* of transports that cannot wake it: shared memory */
    NODES_POLLED = 256,
};

struct lane {
    pthread_t thread;
    int event_fd;
    struct node *nodes;
    struct trib_turns share;
    int load; /* of the server's thread, and the next two */
    uint64_t seen_passes, seen_ns; /* at the last look at which it had come round */
    _Atomic uint64_t busy_ns; /* of its thread alone, as the next two */
    _Atomic uint64_t passes;
    _Atomic bool vacant; /* it waits for a node */
    _Atomic bool stop;
    pthread_mutex_t mutex;
    struct node *added; /* under mutex */
};

static void take_added(struct lane *lane)
{
    pthread_mutex_lock(&lane->mutex);
    while (lane->added) {
        struct node *n = lane->added;
        lane->added = n->next;
        n->next = lane->nodes;
        lane->nodes = n;
    }
    pthread_mutex_unlock(&lane->mutex);
}

/* Those that end or have failed, and those that drain and have nothing under way. */
static bool is_over(const struct node *n)
{
    const bool busy = n->channel->engine.head && !n->channel->engine.failed;

    return atomic_load(&n->ending) || atomic_load(&n->state) == NODE_FAILED ||
           (atomic_load(&n->draining) && !busy);
}

static void *dispose(void *arg)
{
    trib_thread_give_way();
    node_dispose(arg); /* the node is the server's now */
    return NULL;
}

/* The node's peers have some time to take its goodbye, which is no time of the lane's:
 * other jobs are at work here. Without a thread to spare they wait for that long,
 * once. */
static void dispose_aside(struct node *n)
{
    pthread_t thread;

    if (trib_thread_start(&thread, dispose, n) == 0)
        pthread_detach(thread);
    else
        node_dispose(n);
}

static void dispose_ended(struct lane *lane)
{
    for (struct node **at = &lane->nodes; *at;) {
        struct node *n = *at;
        if (!is_over(n)) {
            at = &n->next;
            continue;
        }
        *at = n->next;
        trib_turns_leave(&lane->share, &n->share);
        dispose_aside(n);
    }
}

static struct node *node_of(struct trib_turns_member *member)
{
    return (struct node *)(void *)((char *)member - offsetof(struct node, share));
}

/* What it has used so far, its steps apart. */
static uint64_t used_by(const struct node *n)
{
    return n->channel->engine.stats.wire_bytes + n->plans_taken * PLAN_BYTES;
}

static void note_moved(struct node *n, uint64_t begin_ns, uint64_t end_ns)
{
    if (end_ns != begin_ns)
        atomic_store_explicit(&n->moved_ns, end_ns, memory_order_relaxed);
}

/* A node that has no budget left in this pass goes on in its next turn. */
static bool serve(struct lane *lane)
{
    struct trib_turns_member *member;
    bool moved = false;
    uint64_t budget;
    int turns = 0;

    for (struct node *n = lane->nodes; n; n = n->next, turns++) {
        trib_turns_weigh(&n->share,
                         atomic_load_explicit(&n->weight, memory_order_relaxed));
        trib_turns_want(&lane->share, &n->share);
    }
    while (turns-- > 0 && (member = trib_turns_next(&lane->share, &budget))) {
        struct node *n = node_of(member);
        const uint64_t before = used_by(n), begin = trib_now_ns();
        uint64_t used = 0, steps = 0, end = begin;
        bool more = true;
        while (more && used < budget) {
            more = node_step(n);
            if (more) {
                end = trib_now_ns();
                watch_step(n->watch, &n->channel->engine, end);
            }
            used = used_by(n) - before + steps++ * STEP_BYTES;
        }
        watch_turn(n->watch, &n->channel->engine, begin, end);
        note_moved(n, begin, end);
        trib_metrics_raise(&lane->busy_ns, end - begin);
        moved |= end != begin;
        trib_turns_used(&lane->share, used, more);
    }
    return moved;
}

/* Until a transport, or the server, has something. */
static void sleep_for_work(struct lane *lane)
{
    struct pollfd fds[NODES_POLLED + 1] = {{.fd = lane->event_fd, .events = POLLIN}};
    nfds_t n_fds = 1;

    for (struct node *n = lane->nodes; n && n_fds <= NODES_POLLED; n = n->next) {
        struct trib_transport *t = n->channel->engine.transport;
        if (n->descriptor < 0)
            continue;
        t->ops->arm(t);
        fds[n_fds++] = (struct pollfd){.fd = n->descriptor, .events = POLLIN};
    }
    bool moved = false;
    for (struct node *n = lane->nodes; n; n = n->next) {
        const uint64_t begin = trib_now_ns();
        const bool moved_it = node_step(n);
        const uint64_t end = moved_it ? trib_now_ns() : begin;
        if (moved_it)
            watch_step(n->watch, &n->channel->engine, end);
        watch_turn(n->watch, &n->channel->engine, begin, end);
        note_moved(n, begin, end);
        moved |= moved_it;
    }
    (void)trib_poll(fds, n_fds, moved ? 0 : SLEEP_MS); /* a failure is a longer sleep */
    if (fds[0].revents) {
        uint64_t count;
        (void)!read(lane->event_fd, &count, sizeof(count));
    }
    for (struct node *n = lane->nodes; n; n = n->next) {
        struct trib_transport *t = n->channel->engine.transport;
        if (n->descriptor >= 0)
            t->ops->wait(t, 0);
    }
}

/* How long to look for work: can all transports wake it? */
static uint64_t spin_ns(const struct lane *lane)
{
    for (const struct node *n = lane->nodes; n; n = n->next)
        if (n->descriptor < 0)
            return SPIN_BLIND_NS;
    return SPIN_NS;
}

static void wait_for_node(struct lane *lane)
{
    struct pollfd fd = {.fd = lane->event_fd, .events = POLLIN};
    uint64_t count;

    (void)trib_poll(&fd, 1, -1); /* a failure is a look at what was added */
    (void)!read(lane->event_fd, &count, sizeof(count));
}

static void *run(void *arg)
{
    struct lane *lane = arg;
    uint64_t moved = trib_now_ns();

    while (!atomic_load(&lane->stop)) {
        trib_metrics_raise(&lane->passes, 1);
        take_added(lane);
        dispose_ended(lane);
        if (!lane->nodes) {
            atomic_store_explicit(&lane->vacant, true, memory_order_relaxed);
            wait_for_node(lane);
            atomic_store_explicit(&lane->vacant, false, memory_order_relaxed);
            continue;
        }
        if (serve(lane))
            moved = trib_now_ns();
        else if (trib_now_ns() - moved > spin_ns(lane))
            sleep_for_work(lane);
        else
            sched_yield();
    }
    return NULL;
}

trib_status_t lane_start(struct trib_error *err, struct lane **out)
{
    struct lane *lane = calloc(1, sizeof(*lane));

    *out = NULL;
    if (!lane)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "no memory for a thread that sums");
    trib_turns_init(&lane->share, TURN_BYTES);
    pthread_mutex_init(&lane->mutex, NULL);
    lane->event_fd = trib_fd_keep(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    errno = lane->event_fd < 0 ? errno : trib_thread_start(&lane->thread, run, lane);
    if (errno) {
        (void)trib_fail(err, TRIB_ERR_SYSTEM, "cannot start a thread that sums: %m");
        free(lane);
        return TRIB_ERR_SYSTEM;
    }
    *out = lane;
    return TRIB_OK;
}

bool lane_goes_on(struct lane *lane, uint64_t now_ns, uint64_t limit_ns)
{
    const uint64_t passes = atomic_load_explicit(&lane->passes, memory_order_relaxed);
    const bool vacant = atomic_load_explicit(&lane->vacant, memory_order_relaxed);

    if (vacant || passes != lane->seen_passes || !lane->seen_ns)
        lane->seen_ns = now_ns;
    lane->seen_passes = passes;
    return now_ns - lane->seen_ns < limit_ns;
}

void lane_stop(struct lane *lane)
{
    atomic_store(&lane->stop, true);
    lane_wake(lane);
    pthread_join(lane->thread, NULL);
    pthread_mutex_destroy(&lane->mutex);
    close(lane->event_fd);
    free(lane);
}

void lane_add(struct lane *lane, struct node *n)
{
    pthread_mutex_lock(&lane->mutex);
    n->next = lane->added;
    lane->added = n;
    pthread_mutex_unlock(&lane->mutex);
    lane_wake(lane);
}

void lane_wake(struct lane *lane)
{
    const uint64_t one = 1;

    (void)!write(lane->event_fd, &one, sizeof(one));
}

void lane_view_mt(const struct lane *lane, struct trib_thread_view *out)
{
    out->busy_ns = atomic_load_explicit(&lane->busy_ns, memory_order_relaxed);
    out->passes = atomic_load_explicit(&lane->passes, memory_order_relaxed);
}

struct lane *lane_idlest(struct lane *const *lanes, int n)
{
    struct lane *best = lanes[0];

    for (int i = 1; i < n; i++)
        if (lanes[i]->load < best->load)
            best = lanes[i];
    return best;
}

void lane_expect(struct lane *lane)
{
    lane->load++;
}

void lane_forget(struct lane *lane)
{
    assert(lane->load > 0);
    lane->load--;
}
