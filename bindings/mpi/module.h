/* SPDX-License-Identifier: BSD-3-Clause */
/* State of the module between MPI_Init and MPI_Finalize. The bottom of this room. */
#ifndef BINDINGS_MPI_MODULE_H
#define BINDINGS_MPI_MODULE_H

#include <stdbool.h>
#include <stdint.h>

#include <mpi.h>

#include "bindings/mpi/mpi_settings.h"

struct tmpi_module {
    struct tmpi_settings settings;
    bool runs; /* between MPI_Init and MPI_Finalize */
    /* Bit per enum tmpi_kind: the module intercepts such calls; 0 unless it runs. */
    uint32_t intercepted;
    bool threads; /* MPI_THREAD_MULTIPLE */
    _Atomic bool owes_progress; /* to MPI: tmpi_idle_catch_up */
    int keyval;
    /* Drives MPI's progress: no message is ever sent on it. */
    MPI_Comm progress_comm;
};

extern struct tmpi_module tmpi_module;

/* Greater than 0 in calls by this module, which go straight to MPI. */
extern _Thread_local int tmpi_inside;

/** tmpi_is_listed - return true if the library may do calls of this kind. */
static inline bool tmpi_is_listed(enum tmpi_kind kind)
{
    return tmpi_module.settings.calls >> kind & 1;
}

/** tmpi_intercepts - return true if the module intercepts calls of this kind now. */
static inline bool tmpi_intercepts(enum tmpi_kind kind)
{
    return (tmpi_module.intercepted >> kind & 1) && !tmpi_inside;
}

#endif
