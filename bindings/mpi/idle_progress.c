/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/mpi/idle_progress.h"

#include <dlfcn.h>
#include <stdatomic.h>

#include "bindings/mpi/module.h"
#include "bindings/mpi/next.h"

/* NULL: not Open MPI. */
static void (*open_mpi_progress)(void);

void tmpi_idle_begin(void)
{
    open_mpi_progress = (void (*)(void))dlsym(RTLD_DEFAULT, "opal_progress");
    tmpi_module.progress_comm = MPI_COMM_NULL;
    if (!open_mpi_progress)
        tmpi_next.Comm_dup(MPI_COMM_WORLD, &tmpi_module.progress_comm);
}

/* MPICH makes progress in an MPI_Iprobe that finds no message, as on this
 * communicator. */
int tmpi_idle(void *arg)
{
    int found;

    (void)arg;
    if (open_mpi_progress)
        open_mpi_progress();
    else if (tmpi_module.progress_comm != MPI_COMM_NULL)
        tmpi_next.Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, tmpi_module.progress_comm, &found,
                         MPI_STATUS_IGNORE);
    return 0;
}

void tmpi_idle_put_off(void)
{
    atomic_store_explicit(&tmpi_module.owes_progress, true, memory_order_relaxed);
}

bool tmpi_idle_catch_up(int *turns)
{
    enum { ENOUGH = 8 }; /* MPI may take one message at a time, and not each time */

    if (!atomic_load_explicit(&tmpi_module.owes_progress, memory_order_relaxed))
        return false;
    *turns = *turns ? 2 * *turns : 1;
    if (*turns > ENOUGH) {
        atomic_store_explicit(&tmpi_module.owes_progress, false, memory_order_relaxed);
        return false;
    }
    for (int i = 0; i < *turns; i++)
        tmpi_idle(NULL);
    return true;
}

void tmpi_idle_settle(void)
{
    int turns = 0;

    while (tmpi_idle_catch_up(&turns)) {
    }
}

void tmpi_idle_end(void)
{
    if (tmpi_module.progress_comm != MPI_COMM_NULL)
        tmpi_next.Comm_free(&tmpi_module.progress_comm);
}
