/* SPDX-License-Identifier: BSD-3-Clause */
/* The report at MPI_Finalize: number of calls done by each side, their times, and the
 * reasons for calls left to MPI. */
#ifndef BINDINGS_MPI_CALL_REPORT_H
#define BINDINGS_MPI_CALL_REPORT_H

#include "bindings/mpi/attached.h"

/* Reasons for leaving a call to MPI. */
enum tmpi_reason {
    TMPI_NOT_COUNTED, /* none: counted by struct tmpi_side_choice */
    TMPI_ALONE, /* communicator of one rank */
    TMPI_EARLY, /* no library communicator yet */
    TMPI_NEVER, /* no library communicator is possible */
    TMPI_TYPE, /* unsupported datatype or operator */
    TMPI_LONG, /* too long for the generic reduction */
    TMPI_REFUSED, /* arguments that MPI refuses */
    TMPI_SMALL, /* below TRIB_MPI_MIN, or no elements */
    TMPI_REASONS
};

/** tmpi_report_passed - count a call left to MPI, with the reason. */
void tmpi_report_passed(enum tmpi_kind kind, enum tmpi_reason why);

/** tmpi_report_unattached - count a call on a communicator without a library
 * communicator; a: its state, or NULL. */
void tmpi_report_unattached(enum tmpi_kind kind, const struct tmpi_attached *a);

/** tmpi_report_add - add the counters of a communicator that is being freed. */
void tmpi_report_add(const struct tmpi_attached *a);

/** tmpi_report_write - on rank 0 of MPI_COMM_WORLD, write the report to the place that
 * TRIB_MPI_REPORT selects. */
void tmpi_report_write(void);

#endif
