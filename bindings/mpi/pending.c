/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/mpi/pending.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#include "bindings/mpi/failure_class.h"
#include "bindings/mpi/idle_progress.h"
#include "bindings/mpi/next.h"
#include "bindings/mpi/request_error.h"

static struct {
    pthread_mutex_t lock;
    struct tmpi_pending *first, **end; /* ordered by start */
    bool hooked; /* MPI's progress completes requests */
} under_way = {.lock = PTHREAD_MUTEX_INITIALIZER, .end = &under_way.first};

static void let_go(struct tmpi_pending *p)
{
    if (__atomic_sub_fetch(&p->holders, 1, __ATOMIC_ACQ_REL))
        return;
    tmpi_attached_drop(p->a);
    free(p);
}

/* Copy the datatype: the program may free it while the operation is in flight.
 * MPI_Type_dup would call the program's attribute copy functions, which may fail. */
static void keep_type(struct tmpi_pending *p)
{
    const int one = 1;
    const MPI_Aint here = 0;
    MPI_Datatype own;

    if (!p->unpack || !p->packed.owned ||
        tmpi_next.Type_create_hindexed(1, &one, &here, p->packed.type, &own) !=
            MPI_SUCCESS)
        return;
    tmpi_next.Type_commit(&own);
    p->owns_type = true;
    p->packed.type = own;
}

/* Complete the request if its operation is done. The program may have freed its
 * communicator, so MPI unpacks with MPI_COMM_WORLD. */
static bool ends(struct tmpi_pending *p)
{
    const trib_status_t st = trib_request_test(p->request);

    if (st == TRIB_INPROGRESS)
        return false;
    if (st == TRIB_OK && p->unpack)
        p->code = tmpi_unpack(&p->packed, MPI_COMM_WORLD);
    else if (st != TRIB_OK)
        p->code = tmpi_failure_code(p->a, st);
    trib_request_free(p->request);
    tmpi_idle_put_off();
    tmpi_attached_release(p->a);
    if (p->owns_type)
        tmpi_next.Type_free(&p->packed.type);
    tmpi_packed_close(&p->packed);
    if (p->mpi != MPI_REQUEST_NULL)
        tmpi_next.Grequest_complete(p->mpi);
    let_go(p);
    return true;
}

/* Complete all requests that are done, or only those before the first one in flight;
 * return the number. Does nothing inside a wait of the library, which cannot be called
 * there. */
static int complete(bool all)
{
    int ended = 0;

    if (tmpi_inside || !__atomic_load_n(&under_way.first, __ATOMIC_RELAXED) ||
        pthread_mutex_trylock(&under_way.lock))
        return 0;
    tmpi_inside++;
    for (struct tmpi_pending **at = &under_way.first; *at;) {
        struct tmpi_pending *p = *at, *next = p->next;
        if (ends(p)) {
            __atomic_store_n(at, next, __ATOMIC_RELAXED);
            ended++;
        } else if (all) {
            at = &p->next;
        } else {
            break;
        }
    }
    if (ended)
        under_way.end = &under_way.first;
    while (*under_way.end)
        under_way.end = &(*under_way.end)->next;
    tmpi_inside--;
    pthread_mutex_unlock(&under_way.lock);
    return ended;
}

static int on_progress(void)
{
    return complete(true);
}

void tmpi_pending_complete(void)
{
    complete(true);
}

bool tmpi_pending_poll(void)
{
    if (under_way.hooked || tmpi_inside)
        return false;
    if (complete(true))
        tmpi_idle(NULL); /* MPI makes no progress in a wait for a completed request */
    return __atomic_load_n(&under_way.first, __ATOMIC_RELAXED);
}

static int on_query(void *arg, MPI_Status *status)
{
    const struct tmpi_pending *p = arg;

    tmpi_next.Status_set_elements(status, MPI_BYTE, 0);
    tmpi_next.Status_set_cancelled(status, 0);
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    return p->code == MPI_SUCCESS
               ? MPI_SUCCESS
               : tmpi_completion_fails(p->a->handle, p->code, status);
}

/* MPICH calls this in MPI_Request_free, even if the operation is in flight. */
static int on_free(void *arg)
{
    let_go(arg);
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

    under_way.hooked = register_progress && register_progress(on_progress) == 0;
}

void tmpi_pending_end(void)
{
    int (*unregister)(int (*)(void)) =
        (int (*)(int (*)(void)))dlsym(RTLD_DEFAULT, "opal_progress_unregister");

    if (under_way.hooked && unregister)
        unregister(on_progress);
}

static int give(struct tmpi_pending *p, MPI_Request *request)
{
    const int result =
        tmpi_next.Grequest_start(on_query, on_free, on_cancel, p, request);

    p->mpi = result == MPI_SUCCESS ? *request : MPI_REQUEST_NULL;
    p->holders = result == MPI_SUCCESS ? 2 : 1;
    pthread_mutex_lock(&under_way.lock);
    __atomic_store_n(under_way.end, p, __ATOMIC_RELAXED);
    under_way.end = &p->next;
    pthread_mutex_unlock(&under_way.lock);
    return result;
}

int tmpi_pending_start(struct tmpi_call *call, const struct tmpi_pending *p,
                       trib_status_t status, MPI_Request *request)
{
    struct tmpi_pending *kept = status == TRIB_OK ? malloc(sizeof(*kept)) : NULL;

    if (status == TRIB_OK && !kept)
        status = TRIB_ERR_NO_MEMORY;
    const int result = tmpi_done_by_library(call, status);
    if (result != MPI_SUCCESS)
        return result;
    *kept = *p;
    kept->a = call->a;
    kept->code = MPI_SUCCESS;
    keep_type(kept);
    tmpi_attached_hold(call->a);
    tmpi_attached_keep(call->a);
    complete(false); /* also requests that the program has freed */
    return give(kept, request);
}
