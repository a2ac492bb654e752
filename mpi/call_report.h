/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The report of MPI_Finalize: which side did the calls, why, and how fast.
 */
#ifndef MPI_CALL_REPORT_H
#define MPI_CALL_REPORT_H

#include "mpi/attached.h"

/* Why MPI did a call that the module knows. */
enum tmpi_reason {
    TMPI_NOT_COUNTED, /* nothing to say: the choice counts it */
    TMPI_ALONE, /* a communicator of one rank */
    TMPI_EARLY, /* no communicator of the library's yet */
    TMPI_NEVER, /* and there will be none */
    TMPI_TYPE, /* a datatype or operator */
    TMPI_LONG, /* for the generic path */
    TMPI_WRONG, /* arguments that MPI refuses */
    TMPI_SMALL, /* below TRIB_MPI_MIN, or of no element */
    TMPI_REASONS
};

/** tmpi_report_passed - count a call that MPI does, and why. */
void tmpi_report_passed(enum tmpi_kind kind, enum tmpi_reason why);

/** tmpi_report_unattached - count a call on a communicator that has none of the
 * library's; a: NULL if nothing is known of it. */
void tmpi_report_unattached(enum tmpi_kind kind, const struct tmpi_attached *a);

/** tmpi_report_add - a communicator is done with. */
void tmpi_report_add(const struct tmpi_attached *a);

/** tmpi_report_write - as TRIB_MPI_REPORT says; on rank 0 of MPI_COMM_WORLD. */
void tmpi_report_write(void);

#endif
