/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/mpi/library_comm.h"

#include <stdatomic.h>
#include <stdio.h>

#include "bindings/mpi/device_context.h"
#include "bindings/mpi/idle_progress.h"
#include "bindings/mpi/next.h"

static int gather(void *arg, const void *in, void *out, size_t bytes)
{
    return tmpi_next.Allgather(in, (int)bytes, MPI_BYTE, out, (int)bytes, MPI_BYTE,
                               *(MPI_Comm *)arg);
}

/* Return true if all ranks have created the communicator. */
static bool agreed(const struct tmpi_attached *a)
{
    int mine = a->comm != NULL, least = 0;

    return tmpi_next.Allreduce(&mine, &least, 1, MPI_INT, MPI_MIN, a->handle) ==
               MPI_SUCCESS &&
           least;
}

/* Free a communicator that other ranks could not create. */
static void drop(struct tmpi_attached *a)
{
    if (!a->comm)
        return;
    trib_comm_abort(a->comm, "another rank could not create its communicator");
    while (trib_try_free_comm(a->comm) == TRIB_INPROGRESS)
        tmpi_idle(NULL);
    a->comm = NULL;
}

bool tmpi_has_outsiders(const struct tmpi_attached *a)
{
    enum { PIECE = 256 };
    int from[PIECE], to[PIECE];
    MPI_Group members, world;
    bool found = false;

    if (a->handle == MPI_COMM_WORLD)
        return false;
    tmpi_next.Comm_group(a->handle, &members);
    tmpi_next.Comm_group(MPI_COMM_WORLD, &world);
    for (int first = 0; first < a->ranks && !found; first += PIECE) {
        const int n = a->ranks - first < PIECE ? a->ranks - first : PIECE;
        for (int i = 0; i < n; i++)
            from[i] = first + i;
        found = tmpi_next.Group_translate_ranks(members, n, from, world, to);
        for (int i = 0; i < n && !found; i++)
            found = to[i] == MPI_UNDEFINED;
    }
    tmpi_next.Group_free(&members);
    tmpi_next.Group_free(&world);
    return found;
}

/* Return true if any rank uses a GPU. Only that rank could tell whether a buffer is in
 * GPU memory, so MPI does the calls of all ranks. */
static bool has_device(const struct tmpi_attached *a)
{
    static atomic_bool warned;
    int mine = tmpi_has_device(), most = 1;

    if (tmpi_next.Allreduce(&mine, &most, 1, MPI_INT, MPI_MAX, a->handle) || !most)
        return most;
    if (a->rank == 0 && !atomic_exchange(&warned, true))
        fprintf(stderr,
                "tributary: mpi: communicator %s has ranks that use a GPU: MPI "
                "handles its calls, because buffers may be in GPU memory\n",
                a->name);
    return true;
}

#define CONFIG \
    "progress=thread;codec=none;feedback=codec;quorum=all;service=;timeout_ms=0"

/* Create the communicator on this rank. An MPI program may wait as long as its peers
 * live, even for one stopped by a debugger or a batch system. So timeout_ms is 0, and
 * stop_timeout_ms too unless the user has set it. The barrier opens the connections for
 * the barrier in trib_try_free_comm, which must not block. */
static void join(struct tmpi_attached *a)
{
    trib_opts_t opts = TRIB_OPTS_INIT;

    opts.rank_plus_1 = a->rank + 1;
    opts.ranks = a->ranks;
    opts.config =
        tmpi_module.settings.waits_for_stopped ? CONFIG ";stop_timeout_ms=0" : CONFIG;
    opts.allgather = gather;
    opts.allgather_arg = &a->handle;
    opts.idle = tmpi_idle;
    opts.threads = tmpi_module.threads ? TRIB_THREADS_MANY : TRIB_THREADS_ONE;
    if (trib_init(&opts, &a->comm) == TRIB_OK && trib_barrier(a->comm) == TRIB_OK)
        return;
    fprintf(stderr,
            "tributary: mpi: rank %d of communicator %s: %s; MPI handles its calls\n",
            a->rank, a->name, trib_last_error(a->comm));
    drop(a);
}

void tmpi_library_comm_make(struct tmpi_attached *a)
{
    a->never = has_device(a);
    if (a->never)
        return;
    join(a);
    if (!agreed(a))
        drop(a);
    a->never = !a->comm;
    a->made = a->comm;
}
