/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Notify when a call on the group would make progress. Each plan notifies once a start
 * has ended and trib_plan_test returns its status: a caller woken earlier would find
 * nothing and go back to sleep. The group notifies the end of the step.
 */
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "comm/plan/plan_notify.h"
#include "comm/tensors/tensor_group.h"

struct trib_group_notify {
    trib_done_fn call; /* or NULL */
    void *arg;
    int fd; /* -1: no descriptor */
};

static void tell(const struct trib_group_notify *n, trib_status_t st)
{
    const uint64_t one = 1;

    if (n->fd >= 0)
        (void)!write(n->fd, &one, sizeof(one));
    if (n->call)
        n->call(n->arg, st);
}

/* Callback of each plan, on any thread, once a call on the group can handle its end. */
static void plan_ended(void *arg)
{
    tell(arg, TRIB_INPROGRESS);
}

trib_status_t trib_group_watch(struct trib_group *g, trib_plan_t *plan)
{
    return g->notify && plan ? trib_plan_notify_then(plan, plan_ended, g->notify)
                             : TRIB_OK;
}

void trib_group_rearm(const struct trib_group *g)
{
    uint64_t count;

    if (g->notify && g->notify->fd >= 0)
        (void)!read(g->notify->fd, &count, sizeof(count));
}

void trib_group_tell(struct trib_group *g, trib_status_t st)
{
    assert(st != TRIB_INPROGRESS);
    if (!g->notify || g->step.notified)
        return;
    g->step.notified = true;
    tell(g->notify, st);
}

void trib_group_notify_free(struct trib_group *g)
{
    if (!g->notify)
        return;
    if (g->notify->fd >= 0)
        close(g->notify->fd);
    free(g->notify);
    g->notify = NULL;
}

static trib_status_t watch_all(struct trib_group *g)
{
    trib_status_t st = trib_group_watch(g, g->agree);

    if (st == TRIB_OK)
        st = trib_group_watch(g, g->measure);
    for (uint32_t i = 0; i < g->buckets.n && st == TRIB_OK; i++)
        st = trib_group_watch(g, g->buckets.at[i].plan);
    return st;
}

/* Find or create the struct of a group that is not in a step. */
static trib_status_t notify_of(struct trib_group *g, const char *call)
{
    char text[80];

    trib_status_t st = trib_comm_ours(g->comm, call);
    if (st != TRIB_OK)
        return st;
    if (g->step.running && !g->step.failed)
        return trib_comm_fail(g->comm, TRIB_ERR_BUSY,
                              "%s is in a step: wait for it before %s",
                              trib_group_says(g, text), call);
    if (g->notify)
        return TRIB_OK;
    g->notify = calloc(1, sizeof(*g->notify));
    if (!g->notify)
        return trib_comm_fail(g->comm, TRIB_ERR_NO_MEMORY, "no memory for %s", call);
    g->notify->fd = -1;
    return watch_all(g);
}

trib_status_t trib_group_notify(trib_group_t *g, trib_done_fn fn, void *arg)
{
    if (!g)
        return TRIB_ERR_INVALID;
    const trib_status_t st = notify_of(g, "trib_group_notify");
    if (st != TRIB_OK)
        return st;
    g->notify->call = fn;
    g->notify->arg = arg;
    return TRIB_OK;
}

trib_status_t trib_group_fd(trib_group_t *g, int *fd_out)
{
    if (!g || !fd_out)
        return TRIB_ERR_INVALID;
    *fd_out = -1;
    const trib_status_t st = notify_of(g, "trib_group_fd");
    if (st != TRIB_OK)
        return st;
    if (g->notify->fd < 0)
        g->notify->fd = trib_fd_keep(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    if (g->notify->fd < 0)
        return trib_comm_fail(g->comm, TRIB_ERR_SYSTEM,
                              "no descriptor for the group: %m (raise ulimit -n)");
    *fd_out = g->notify->fd;
    return TRIB_OK;
}
