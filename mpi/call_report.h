/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What MPI_Finalize says of the calls: who did them, why, and how fast.
 */
#ifndef MPI_CALL_REPORT_H
#define MPI_CALL_REPORT_H

#include "mpi/attached.h"

/* Why MPI did a call that the module knows. */
enum tmpi_reason {
    TMPI_NOT_COUNTED, /* nothing to say: the choice counts it */
    TMPI_EARLY, /* no communicator yet, or never one */
    TMPI_TYPE, /* a datatype or operator */
    TMPI_LONG, /* for the generic path */
    TMPI_SMALL, /* below TRIB_MPI_MIN, or of no element */
    TMPI_REASONS
};

/** tmpi_report_passed - MPI does a call, and why. Returns NULL, as there is no
 * communicator for it. */
struct tmpi_attached *tmpi_report_passed(enum tmpi_kind kind, enum tmpi_reason why);

/** tmpi_report_add - a communicator is done with. */
void tmpi_report_add(const struct tmpi_attached *a);

/** tmpi_report_write - as TRIB_MPI_REPORT says; on rank 0 of MPI_COMM_WORLD. */
void tmpi_report_write(void);

#endif
