/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpi/attached.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/call_report.h"
#include "mpi/codec_plans.h"
#include "mpi/device_context.h"
#include "mpi/idle_progress.h"
#include "mpi/next.h"

/* A communicator takes about 8 ms to make, of each rank: 2 % of PAYS_S, so that no
 * program loses more of its time by it. That of MPI_COMM_WORLD is made early: it also
 * finds out which rank has stopped. */
#define PAYS_S 0.4

enum {
    CALLS_LEAST = 8, /* before the ranks compare times; then at twice as many, and so
                      * on */
    TIMED_ALL = 64, /* calls; of the later ones about one in TIMED_EVERY is timed */
    TIMED_EVERY = 8,
};

struct tmpi_module tmpi_module = {.settings = {.off = true}};
_Thread_local int tmpi_inside;

static struct {
    pthread_mutex_t lock;
    struct tmpi_attached *newest;
    int64_t order; /* of the newest communicator of this process */
    atomic_uint freed; /* communicators so far: what threads remember may be stale */
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The communicator of the newest call of this thread. */
static _Thread_local struct {
    MPI_Comm handle;
    struct tmpi_attached *attached; /* NULL: nothing is remembered */
    unsigned freed;
} newest;

static void link_in(struct tmpi_attached *a)
{
    pthread_mutex_lock(&all.lock);
    a->next = all.newest;
    if (a->next)
        a->next->previous = a;
    all.newest = a;
    pthread_mutex_unlock(&all.lock);
}

static void leave(struct tmpi_attached *a)
{
    if (!a->comm)
        return;
    tmpi_inside++;
    tmpi_plans_free(a);
    if (trib_free_comm(a->comm) != TRIB_OK)
        fprintf(stderr, "tributary: mpi: %s\n", trib_last_error(NULL));
    tmpi_inside--;
    a->comm = NULL;
    a->never = true;
}

static void link_out(struct tmpi_attached *a)
{
    pthread_mutex_lock(&all.lock);
    *(a->previous ? &a->previous->next : &all.newest) = a->next;
    if (a->next)
        a->next->previous = a->previous;
    pthread_mutex_unlock(&all.lock);
}

/* MPI calls it on all ranks of the communicator when the program frees it. */
static int on_delete(MPI_Comm comm, int keyval, void *value, void *extra)
{
    struct tmpi_attached *a = value;

    (void)comm, (void)keyval, (void)extra;
    leave(a);
    link_out(a);
    tmpi_report_add(a);
    for (int k = 0; k < TMPI_KINDS; k++)
        free(a->choices[k]);
    free(a);
    atomic_fetch_add(&all.freed, 1);
    return MPI_SUCCESS;
}

static int gather(void *arg, const void *in, void *out, size_t bytes)
{
    return tmpi_next.Allgather(in, (int)bytes, MPI_BYTE, out, (int)bytes, MPI_BYTE,
                               *(MPI_Comm *)arg);
}

/* True if all ranks have made the communicator. Its order is the next one of all of
 * them. */
static bool agreed(struct tmpi_attached *a)
{
    int64_t mine[2] = {a->comm != NULL, 0}, least[2];

    pthread_mutex_lock(&all.lock);
    mine[1] = -(all.order + 1);
    pthread_mutex_unlock(&all.lock);
    if (tmpi_next.Allreduce(mine, least, 2, MPI_INT64_T, MPI_MIN, a->handle))
        return false;
    pthread_mutex_lock(&all.lock);
    a->order = -least[1];
    if (a->order > all.order)
        all.order = a->order;
    pthread_mutex_unlock(&all.lock);
    return least[0];
}

/* True if a rank of the communicator uses a GPU: only that rank could tell whether a
 * buffer lies there, and so MPI does the calls of all. */
static bool has_device(const struct tmpi_attached *a)
{
    static atomic_bool told;
    int mine = tmpi_has_device(), most = 1;

    if (tmpi_next.Allreduce(&mine, &most, 1, MPI_INT, MPI_MAX, a->handle) || !most)
        return most;
    if (a->rank == 0 && !atomic_exchange(&told, true))
        fprintf(stderr,
                "tributary: mpi: communicator %s has ranks that use a GPU: MPI does "
                "its calls, as buffers may lie there\n",
                a->name);
    return true;
}

static void make(struct tmpi_attached *a)
{
    trib_opts_t opts = TRIB_OPTS_INIT;

    a->never = has_device(a);
    if (a->never)
        return;
    opts.rank_plus_1 = a->rank + 1;
    opts.ranks = a->ranks;
    opts.config = "progress=thread;codec=none;feedback=codec;quorum=all;service=";
    opts.allgather = gather;
    opts.allgather_arg = &a->handle;
    opts.idle = tmpi_idle;
    opts.threads = tmpi_module.threads ? TRIB_THREADS_MANY : TRIB_THREADS_ONE;
    if (trib_init(&opts, &a->comm) != TRIB_OK)
        fprintf(stderr,
                "tributary: mpi: rank %d of communicator %s: %s; MPI does its "
                "calls\n",
                a->rank, a->name, trib_last_error(NULL));
    if (!agreed(a))
        leave(a);
    a->never = !a->comm;
}

static struct tmpi_attached *create(MPI_Comm comm)
{
    struct tmpi_attached *a = calloc(1, sizeof(*a));
    char name[MPI_MAX_OBJECT_NAME] = "";
    int inter = 0, len;

    if (!a)
        return NULL;
    a->handle = comm;
    tmpi_next.Comm_test_inter(comm, &inter);
    tmpi_next.Comm_size(comm, &a->ranks);
    tmpi_next.Comm_rank(comm, &a->rank);
    tmpi_next.Comm_get_name(comm, name, &len);
    snprintf(a->name, sizeof(a->name), "%s", *name ? name : "without a name");
    a->never = inter || a->ranks < 2;
    a->ask_at = CALLS_LEAST;
    link_in(a);
    tmpi_next.Comm_set_attr(comm, tmpi_module.keyval, a);
    return a;
}

static struct tmpi_attached *look_up(MPI_Comm comm)
{
    struct tmpi_attached *a = NULL;
    int found = 0;

    if (newest.attached && newest.handle == comm &&
        newest.freed == atomic_load_explicit(&all.freed, memory_order_relaxed))
        return newest.attached;
    tmpi_inside++;
    if (tmpi_next.Comm_get_attr(comm, tmpi_module.keyval, &a, &found) == MPI_SUCCESS &&
        !found)
        a = create(comm);
    tmpi_inside--;
    newest.handle = comm;
    newest.attached = a;
    newest.freed = atomic_load_explicit(&all.freed, memory_order_relaxed);
    return a;
}

static bool has_to_pay(const struct tmpi_attached *a)
{
    return tmpi_module.settings.pays && a->handle != MPI_COMM_WORLD;
}

unsigned tmpi_attached_weight(const struct tmpi_attached *a)
{
    if (a->comm || a->never || !has_to_pay(a))
        return 0;
    if (a->calls <= TIMED_ALL)
        return 1;
    /* Multiples of the golden ratio are spread evenly over each pattern of calls that a
     * program repeats; every eighth call may be the same one of it each time. */
    const uint32_t spread = (uint32_t)a->calls * 2654435769u;
    return spread < UINT32_MAX / TIMED_EVERY ? TIMED_EVERY : 0;
}

/* True if the communicator is to be made now. A rank that came late has waited least:
 * its time is what the calls themselves took. */
static bool is_due(struct tmpi_attached *a)
{
    double least = 0;

    a->calls++;
    if (!has_to_pay(a))
        return a->calls > tmpi_module.settings.after;
    if (a->calls < a->ask_at)
        return false;
    a->ask_at *= 2;
    return tmpi_next.Allreduce(&a->seconds, &least, 1, MPI_DOUBLE, MPI_MIN,
                               a->handle) == MPI_SUCCESS &&
           least >= PAYS_S;
}

struct tmpi_attached *tmpi_attached_for(MPI_Comm comm, enum tmpi_kind kind)
{
    if (!tmpi_takes(kind) || comm == MPI_COMM_NULL)
        return NULL;
    struct tmpi_attached *a = look_up(comm);
    if (!a || a->never || a->comm || !tmpi_kinds[kind].timed)
        return a;
    tmpi_inside++;
    if (is_due(a))
        make(a);
    tmpi_inside--;
    return a;
}

/* The settings that decide about calls must be the same on all ranks. A rank that is
 * off turns the others off, too. */
bool tmpi_settings_agree(void)
{
    enum { AGREED = 2 * TMPI_SETTINGS + 1 };
    int64_t mine[AGREED], least[AGREED];
    int rank = 0;

    for (int i = 0; i < TMPI_SETTINGS; i++) {
        mine[2 * i] = (int64_t)tmpi_module.settings.digest[i];
        mine[2 * i + 1] = -mine[2 * i];
    }
    mine[AGREED - 1] = !tmpi_module.settings.off;
    if (tmpi_next.Allreduce(mine, least, AGREED, MPI_INT64_T, MPI_MIN,
                            MPI_COMM_WORLD) ||
        !least[AGREED - 1])
        return false;
    tmpi_next.Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < TMPI_SETTINGS; i++) {
        if (least[2 * i] == -least[2 * i + 1])
            continue;
        if (rank == 0)
            fprintf(stderr,
                    "tributary: mpi: the ranks have different values of %s; MPI does "
                    "all calls\n",
                    tmpi_setting_variable(i));
        return false;
    }
    return true;
}

void tmpi_attached_begin(void)
{
    int level = MPI_THREAD_SINGLE;

    tmpi_next.Query_thread(&level);
    tmpi_module.threads = level == MPI_THREAD_MULTIPLE;
    tmpi_next.Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &tmpi_module.keyval,
                                 NULL);
}

/* The newest order first. Two processes that share two communicators free them in the
 * same order, so none waits for the other in another one. */
static struct tmpi_attached *next_to_leave(void)
{
    struct tmpi_attached *found = NULL;

    for (struct tmpi_attached *a = all.newest; a; a = a->next)
        if (a->comm && (!found || a->order > found->order))
            found = a;
    return found;
}

void tmpi_attached_end(void)
{
    for (struct tmpi_attached *a; (a = next_to_leave());)
        leave(a);
    for (const struct tmpi_attached *a = all.newest; a; a = a->next)
        tmpi_report_add(a);
}
