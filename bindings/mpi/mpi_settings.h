/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings of the MPI module, read from TRIB_MPI_*. */
#ifndef BINDINGS_MPI_MPI_SETTINGS_H
#define BINDINGS_MPI_MPI_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bindings/mpi/call_kinds.h"

enum {
#define X(name, type, value, what) TMPI_SETTING_##name,
#include "bindings/mpi/settings.def"
#undef X
    TMPI_SETTINGS
};

struct tmpi_settings {
    bool off; /* TRIB_MPI=off, no calls listed, or a wrong setting */
    uint32_t calls; /* bit per enum tmpi_kind: the library may do such calls */
    uint32_t counted; /* bit per enum tmpi_kind: calls count although MPI does them */
    size_t min;
    bool pays; /* after=auto: create library communicators when they may pay */
    unsigned long after; /* else, and for MPI_COMM_WORLD: after this number of calls */
    bool always; /* prefer=tributary */
    const char *codec; /* NULL: none */
    bool waits_for_stopped; /* TRIB_STOP_TIMEOUT_MS is not set */
    int boot_ms; /* TRIB_BOOT_TIMEOUT_MS; 0: no limit */
    const char *report; /* NULL: none; "1": table on standard error; else a file */
    uint64_t digest[TMPI_SETTINGS]; /* hash of each value, to compare ranks */
};

/** tmpi_settings_read - read the settings from the environment. An invalid value prints
 * an error message and turns the module off. */
void tmpi_settings_read(struct tmpi_settings *s);

/** tmpi_setting_variable - return the name of a variable, such as "TRIB_MPI_MIN". */
const char *tmpi_setting_variable(int at);

/** tmpi_environment - return the value of any other variable; NULL: not set. */
char *tmpi_environment(const char *variable);

#endif
