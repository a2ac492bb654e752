/* SPDX-License-Identifier: BSD-3-Clause */
/* Kinds of calls that the library can do. */
#ifndef BINDINGS_MPI_CALL_KINDS_H
#define BINDINGS_MPI_CALL_KINDS_H

#include <stdbool.h>

enum tmpi_kind {
#define X(kind, name, classes, timed) TMPI_##kind,
#include "bindings/mpi/call_kinds.def"
#undef X
    TMPI_KINDS
};

struct tmpi_kind_row {
    const char *name;
    bool classes;
    bool timed;
};

extern const struct tmpi_kind_row tmpi_kinds[TMPI_KINDS];

#endif
