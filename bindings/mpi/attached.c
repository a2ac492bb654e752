/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/mpi/attached.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bindings/mpi/call_report.h"
#include "bindings/mpi/codec_plans.h"
#include "bindings/mpi/library_comm.h"
#include "bindings/mpi/next.h"

/* Creating a communicator takes each rank about 8 ms: 2 % of MIN_WAIT_S, which bounds
 * the loss of a program. The one for MPI_COMM_WORLD is created early, because it also
 * detects stopped ranks. */
#define MIN_WAIT_S 0.4

enum {
    CALLS_LEAST = 8, /* calls before the first comparison of times; doubled each time */
    TIMED_ALL = 64, /* time all of the first 64 calls, then about one in TIMED_EVERY */
    TIMED_EVERY = 8,
};

static struct {
    pthread_mutex_t lock;
    struct tmpi_attached *newest;
    struct tmpi_attached *retired; /* freed by the program, but not yet on all ranks */
    atomic_uint freed; /* number of freed communicators: validates `newest` */
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Cache: the communicator of this thread's newest call. */
static _Thread_local struct {
    MPI_Comm handle;
    struct tmpi_attached *attached; /* NULL: empty */
    unsigned freed;
} newest;

/* The communicators that this thread is freeing, innermost first. MPI then calls the
 * program's attribute delete functions, which may call collectives on the
 * communicator. */
struct freeing {
    MPI_Comm comm;
    const struct freeing *outer;
};

static _Thread_local const struct freeing *innermost_freeing;

static void link_in(struct tmpi_attached *a)
{
    pthread_mutex_lock(&all.lock);
    a->next = all.newest;
    if (a->next)
        a->next->previous = a;
    all.newest = a;
    pthread_mutex_unlock(&all.lock);
}

static void link_out(struct tmpi_attached *a)
{
    pthread_mutex_lock(&all.lock);
    *(a->previous ? &a->previous->next : &all.newest) = a->next;
    if (a->next)
        a->next->previous = a->previous;
    pthread_mutex_unlock(&all.lock);
}

void tmpi_attached_hold(struct tmpi_attached *a)
{
    __atomic_add_fetch(&a->holds, 1, __ATOMIC_RELAXED);
}

void tmpi_attached_release(struct tmpi_attached *a)
{
    __atomic_sub_fetch(&a->holds, 1, __ATOMIC_RELEASE);
}

void tmpi_attached_keep(struct tmpi_attached *a)
{
    __atomic_add_fetch(&a->owners, 1, __ATOMIC_RELAXED);
}

void tmpi_attached_drop(struct tmpi_attached *a)
{
    if (__atomic_sub_fetch(&a->owners, 1, __ATOMIC_ACQ_REL) == 0)
        free(a);
}

/* Free the library communicator, without blocking. Return false if it remains, because
 * operations are in flight or other ranks have not freed theirs yet. */
static bool try_free(struct tmpi_attached *a, trib_status_t *st_out)
{
    if (!a->comm)
        return true;
    if (__atomic_load_n(&a->holds, __ATOMIC_ACQUIRE))
        return false;
    tmpi_inside++;
    tmpi_plans_free(a);
    const trib_status_t st = trib_try_free_comm(a->comm);
    tmpi_inside--;
    if (st == TRIB_INPROGRESS)
        return false;
    if (st != TRIB_OK && *st_out == TRIB_OK)
        *st_out = st;
    a->comm = NULL;
    a->never = true;
    return true;
}

/* Free as many retired communicators as possible; return the remaining ones. Each call
 * takes the whole list, so no two threads handle the same communicator. */
static struct tmpi_attached *reap(void)
{
    trib_status_t st = TRIB_OK;

    pthread_mutex_lock(&all.lock);
    struct tmpi_attached *list = all.retired, *left;
    all.retired = NULL;
    pthread_mutex_unlock(&all.lock);
    for (struct tmpi_attached **at = &list; *at;) {
        struct tmpi_attached *a = *at;
        if (!try_free(a, &st)) {
            at = &a->next;
            continue;
        }
        *at = a->next;
        tmpi_attached_drop(a);
    }
    pthread_mutex_lock(&all.lock);
    struct tmpi_attached **end = &all.retired;
    while (*end)
        end = &(*end)->next;
    *end = list;
    left = all.retired;
    pthread_mutex_unlock(&all.lock);
    return left;
}

/* Called by MPI when the program frees the communicator. Must not wait for other ranks,
 * which may free theirs much later. */
static int on_delete(MPI_Comm comm, int keyval, void *value, void *extra)
{
    struct tmpi_attached *a = value;

    (void)comm, (void)keyval, (void)extra;
    link_out(a);
    tmpi_report_add(a);
    for (int k = 0; k < TMPI_KINDS; k++)
        free(a->choices[k]);
    memset(a->choices, 0, sizeof(a->choices));
    a->handle = MPI_COMM_WORLD;
    atomic_fetch_add(&all.freed, 1);
    pthread_mutex_lock(&all.lock);
    a->next = all.retired;
    all.retired = a;
    pthread_mutex_unlock(&all.lock);
    reap();
    return MPI_SUCCESS;
}

int tmpi_attached_freeing(int (*call)(MPI_Comm *), MPI_Comm *comm)
{
    const struct freeing mine = {comm ? *comm : MPI_COMM_NULL, innermost_freeing};

    innermost_freeing = &mine;
    const int result = call(comm);
    innermost_freeing = mine.outer;
    return result;
}

static bool is_being_freed(MPI_Comm comm)
{
    const struct freeing *f = innermost_freeing;

    while (f && f->comm != comm)
        f = f->outer;
    return f;
}

static struct tmpi_attached *create(MPI_Comm comm)
{
    struct tmpi_attached *a = calloc(1, sizeof(*a));
    char name[MPI_MAX_OBJECT_NAME] = "";
    int inter = 0, len;

    if (!a)
        return NULL;
    reap();
    a->handle = comm;
    tmpi_next.Comm_test_inter(comm, &inter);
    tmpi_next.Comm_size(comm, &a->ranks);
    tmpi_next.Comm_rank(comm, &a->rank);
    tmpi_next.Comm_get_name(comm, name, &len);
    snprintf(a->name, sizeof(a->name), "%.*s", (int)sizeof(a->name) - 1,
             *name ? name : "(unnamed)");
    a->inter = inter;
    a->never = inter || a->ranks < 2;
    a->ask_at = CALLS_LEAST;
    a->owners = 1;
    link_in(a);
    tmpi_next.Comm_set_attr(comm, tmpi_module.keyval, a);
    return a;
}

/* Find or create the state attached to a communicator. Return MPI's error if the handle
 * is invalid. */
static int look_up(MPI_Comm comm, struct tmpi_attached **out)
{
    int found = 0;

    *out = newest.attached;
    if (newest.attached && newest.handle == comm &&
        newest.freed == atomic_load_explicit(&all.freed, memory_order_relaxed))
        return MPI_SUCCESS;
    *out = NULL;
    tmpi_inside++;
    const int result = tmpi_next.Comm_get_attr(comm, tmpi_module.keyval, out, &found);
    if (result == MPI_SUCCESS && !found)
        *out = create(comm);
    tmpi_inside--;
    newest.handle = comm;
    newest.attached = *out;
    newest.freed = atomic_load_explicit(&all.freed, memory_order_relaxed);
    return result;
}

/* Return false if MPI must do the calls on it, and no attribute may be attached. */
static bool is_attachable(MPI_Comm comm)
{
    return comm != MPI_COMM_NULL && !is_being_freed(comm);
}

int tmpi_attached_error(MPI_Comm comm)
{
    struct tmpi_attached *a;

    return is_attachable(comm) ? look_up(comm, &a) : MPI_SUCCESS;
}

bool tmpi_attached_is_inter(MPI_Comm comm, enum tmpi_kind kind)
{
    struct tmpi_attached *a = NULL;
    int inter = 0;

    if (is_attachable(comm) && look_up(comm, &a) == MPI_SUCCESS)
        inter = a && a->inter;
    else if (comm != MPI_COMM_NULL)
        tmpi_next.Comm_test_inter(comm, &inter);
    if (inter)
        tmpi_report_passed(kind, TMPI_NEVER);
    return inter;
}

static bool needs_wait(const struct tmpi_attached *a)
{
    return tmpi_module.settings.pays && a->handle != MPI_COMM_WORLD;
}

unsigned tmpi_attached_weight(const struct tmpi_attached *a)
{
    if (a->comm || a->never || !needs_wait(a))
        return 0;
    if (a->calls <= TIMED_ALL)
        return 1;
    /* Multiples of the golden ratio sample any repeating pattern of calls evenly. A
     * fixed stride of 8 could always time the same call of the pattern. */
    const uint32_t spread = (uint32_t)a->calls * 2654435769u;
    return spread < UINT32_MAX / TIMED_EVERY ? TIMED_EVERY : 0;
}

/* Return true if the library communicator must be created now. The ranks compare the
 * minimum of their times. A rank that arrives last does not wait, so its time is the
 * cost of the calls themselves. */
static bool is_due(struct tmpi_attached *a)
{
    double least = 0;

    a->calls++;
    if (needs_wait(a) ? a->calls < a->ask_at : a->calls <= tmpi_module.settings.after)
        return false;
    a->never = tmpi_has_outsiders(a);
    if (a->never || !needs_wait(a))
        return !a->never;
    a->ask_at *= 2;
    return tmpi_next.Allreduce(&a->seconds, &least, 1, MPI_DOUBLE, MPI_MIN,
                               a->handle) == MPI_SUCCESS &&
           least >= MIN_WAIT_S;
}

struct tmpi_attached *tmpi_attached_for(MPI_Comm comm, enum tmpi_kind kind)
{
    struct tmpi_attached *a = NULL;

    if (!tmpi_intercepts(kind) || !is_attachable(comm) ||
        look_up(comm, &a) != MPI_SUCCESS)
        return NULL;
    if (!a || a->never || a->comm || !tmpi_kinds[kind].timed)
        return a;
    tmpi_inside++;
    if (is_due(a))
        tmpi_library_comm_make(a);
    tmpi_inside--;
    return a;
}

void tmpi_attached_begin(void)
{
    int level = MPI_THREAD_SINGLE;

    tmpi_next.Query_thread(&level);
    tmpi_module.threads = level == MPI_THREAD_MULTIPLE;
    tmpi_next.Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &tmpi_module.keyval,
                                 NULL);
    /* Attach to MPI_COMM_SELF before the program does: while MPI deletes attributes,
     * none can be added. */
    (void)tmpi_attached_error(MPI_COMM_SELF);
}

bool tmpi_attached_try_free_all(trib_status_t *st_out)
{
    bool any = reap();

    for (struct tmpi_attached *a = all.newest; a; a = a->next)
        any |= !try_free(a, st_out);
    return !any;
}

void tmpi_attached_report(void)
{
    for (const struct tmpi_attached *a = all.newest; a; a = a->next)
        tmpi_report_add(a);
}
