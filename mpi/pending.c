/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpi/pending.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "mpi/failure_class.h"
#include "mpi/idle_progress.h"
#include "mpi/next.h"

typedef int poll_function(void *arg, MPI_Status *status);
typedef int wait_function(int count, void **args, double timeout, MPI_Status *status);

/* MPICH's extension; NULL with another MPI. */
static int (*grequest_start)(MPI_Grequest_query_function *,
                             MPI_Grequest_free_function *,
                             MPI_Grequest_cancel_function *, poll_function *,
                             wait_function *, void *, MPI_Request *);

static struct {
    pthread_mutex_t lock;
    struct tmpi_pending *first;
} under_way = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Tells MPI if it is done. The library may not be called from a wait of its own. */
static bool ends(struct tmpi_pending *p)
{
    if (tmpi_inside)
        return false;
    tmpi_inside++;
    const trib_status_t st = trib_request_test(p->request);
    if (st != TRIB_INPROGRESS) {
        if (st == TRIB_OK && p->unpack)
            p->code = tmpi_packed_empty(&p->packed, p->a->handle);
        else if (st != TRIB_OK)
            p->code = tmpi_failed(p->a, st);
        trib_request_free(p->request);
        p->request = NULL;
        tmpi_packed_close(&p->packed);
        tmpi_next.Grequest_complete(p->mpi);
    }
    tmpi_inside--;
    return st != TRIB_INPROGRESS;
}

/* Open MPI calls it whenever it makes progress; returns how many have ended. */
static int look(void)
{
    int ended = 0;

    if (tmpi_inside || !__atomic_load_n(&under_way.first, __ATOMIC_RELAXED) ||
        pthread_mutex_trylock(&under_way.lock))
        return 0;
    for (struct tmpi_pending **at = &under_way.first; *at;) {
        struct tmpi_pending *p = *at, *next = p->next;
        if (!ends(p)) {
            at = &p->next;
            continue;
        }
        *at = next;
        ended++;
    }
    pthread_mutex_unlock(&under_way.lock);
    return ended;
}

/* MPICH calls it when this request is waited for or tested. */
static int poll_one(void *arg, MPI_Status *status)
{
    struct tmpi_pending *p = arg;

    (void)status;
    if (p->request)
        ends(p);
    return MPI_SUCCESS;
}

/* MPICH calls it in MPI_Wait, and makes no progress itself meanwhile. */
static int wait_all(int count, void **args, double timeout, MPI_Status *status)
{
    (void)timeout, (void)status;
    for (int i = 0; i < count; i++) {
        struct tmpi_pending *p = args[i];
        while (p->request && !ends(p)) {
            sched_yield();
            if (!tmpi_module.threads)
                tmpi_idle(NULL);
        }
    }
    return MPI_SUCCESS;
}

static int on_query(void *arg, MPI_Status *status)
{
    const struct tmpi_pending *p = arg;

    tmpi_next.Status_set_elements(status, MPI_BYTE, 0);
    tmpi_next.Status_set_cancelled(status, 0);
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    return p->code;
}

static int on_free(void *arg)
{
    free(arg);
    return MPI_SUCCESS;
}

static int on_cancel(void *arg, int complete)
{
    (void)arg, (void)complete;
    return MPI_SUCCESS;
}

void tmpi_pending_begin(void)
{
    int (*register_progress)(int (*)(void)) =
        (int (*)(int (*)(void)))dlsym(RTLD_DEFAULT, "opal_progress_register");

    *(void **)&grequest_start = dlsym(RTLD_DEFAULT, "PMPIX_Grequest_start");
    if (register_progress)
        register_progress(look);
    else if (!grequest_start) /* then nobody would ever look */
        tmpi_module.settings.calls &=
            ~(1u << TMPI_IALLREDUCE | 1u << TMPI_IBARRIER | 1u << TMPI_IBCAST);
}

void tmpi_pending_end(void)
{
    int (*unregister)(int (*)(void)) =
        (int (*)(int (*)(void)))dlsym(RTLD_DEFAULT, "opal_progress_unregister");

    if (unregister)
        unregister(look);
}

static int give(struct tmpi_pending *p, MPI_Request *request)
{
    const int result = grequest_start ? grequest_start(on_query, on_free, on_cancel,
                                                       poll_one, wait_all, p, request)
                                      : tmpi_next.Grequest_start(on_query, on_free,
                                                                 on_cancel, p, request);

    p->mpi = *request;
    if (result != MPI_SUCCESS || grequest_start)
        return result;
    pthread_mutex_lock(&under_way.lock);
    p->next = under_way.first;
    __atomic_store_n(&under_way.first, p, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&under_way.lock);
    return result;
}

int tmpi_pending_start(struct tmpi_turn *t, const struct tmpi_pending *p,
                       trib_status_t status, MPI_Request *request)
{
    struct tmpi_pending *kept = status == TRIB_OK ? malloc(sizeof(*kept)) : NULL;

    if (status == TRIB_OK && !kept)
        status = TRIB_ERR_NO_MEMORY;
    const int result = tmpi_done_by_library(t, status);
    if (result != MPI_SUCCESS)
        return result;
    *kept = *p;
    kept->a = t->a;
    kept->code = MPI_SUCCESS;
    return give(kept, request);
}
