/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Init, MPI_Init_thread, the start of MPI_Finalize, and the freeing of
 * communicators. */
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "bindings/mpi/attached.h"
#include "bindings/mpi/call_report.h"
#include "bindings/mpi/element.h"
#include "bindings/mpi/entry.h"
#include "bindings/mpi/idle_progress.h"
#include "bindings/mpi/next.h"
#include "bindings/mpi/pending.h"
#include "bindings/mpi/preload_list.h"
#include "bindings/mpi/settings_agreement.h"
#include "bindings/mpi/type_layout.h"

/* Free the library communicators, in whatever order the ranks reach them. */
static void free_communicators(void)
{
    enum { EAGER = 1000, NAP_US = 50 };
    trib_status_t st = TRIB_OK;

    for (int turn = 0; !tmpi_attached_try_free_all(&st); turn++) {
        tmpi_pending_complete();
        tmpi_inside++;
        tmpi_idle(NULL);
        tmpi_inside--;
        if (turn < EAGER)
            sched_yield();
        else
            usleep(NAP_US);
    }
    if (st != TRIB_OK)
        fprintf(stderr, "tributary: mpi: MPI_Finalize: %s\n", trib_last_error(NULL));
}

static void end(void)
{
    tmpi_module.runs = false;
    tmpi_module.intercepted = 0;
    tmpi_pending_end();
    free_communicators();
    tmpi_attached_report();
    tmpi_inside++;
    tmpi_report_write();
    tmpi_layouts_end();
    tmpi_idle_end();
    tmpi_inside--;
}

/* Called by MPI_Finalize, which first deletes the attributes of MPI_COMM_SELF, the
 * newest first. The program's delete functions run before this one. Their collectives
 * can match collectives that other ranks call before MPI_Finalize, so the library must
 * be available for both. */
static int on_end(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)comm, (void)keyval, (void)value, (void)extra;
    if (tmpi_module.runs)
        end();
    return MPI_SUCCESS;
}

/* Set the first attribute of MPI_COMM_SELF, which MPI_Finalize deletes last. */
static bool watch_for_end(void)
{
    int key;

    return tmpi_next.Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_end, &key, NULL) ==
               MPI_SUCCESS &&
           tmpi_next.Comm_set_attr(MPI_COMM_SELF, key, NULL) == MPI_SUCCESS;
}

static int begin(int result)
{
    if (result != MPI_SUCCESS || tmpi_inside || tmpi_module.runs)
        return result;
    tmpi_preload_drop();
    tmpi_settings_read(&tmpi_module.settings);
    tmpi_inside++;
    tmpi_module.settings.off |= !watch_for_end();
    const bool well = tmpi_settings_agree();
    tmpi_inside--;
    if (!well)
        return result;
    tmpi_inside++;
    tmpi_elements_begin();
    tmpi_layouts_begin();
    tmpi_attached_begin();
    tmpi_idle_begin();
    tmpi_pending_begin();
    tmpi_inside--;
    tmpi_module.runs = true;
    tmpi_module.intercepted = tmpi_module.settings.calls | tmpi_module.settings.counted;
    return result;
}

#define CALLER __builtin_return_address(0)

static int init(const void *caller, int *argc, char ***argv)
{
    tmpi_check_caller(caller);
    return begin(tmpi_next.Init(argc, argv));
}

static int init_thread(const void *caller, int *argc, char ***argv, int wanted,
                       int *provided)
{
    tmpi_check_caller(caller);
    return begin(tmpi_next.Init_thread(argc, argv, wanted, provided));
}

TMPI_ENTRY(Init, (int *argc, char ***argv), (argc, argv), init(CALLER, argc, argv))
TMPI_ENTRY(Init_thread, (int *argc, char ***argv, int wanted, int *provided),
           (argc, argv, wanted, provided),
           init_thread(CALLER, argc, argv, wanted, provided))
TMPI_ENTRY(Comm_free, (MPI_Comm * comm), (comm),
           tmpi_attached_freeing(tmpi_next.Comm_free, comm))
TMPI_ENTRY(Comm_disconnect, (MPI_Comm * comm), (comm),
           tmpi_attached_freeing(tmpi_next.Comm_disconnect, comm))
