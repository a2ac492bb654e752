/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Settings of the MPI module, from TRIB_MPI_*.
 */
#ifndef MPI_MPI_SETTINGS_H
#define MPI_MPI_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mpi/call_kinds.h"

enum {
#define X(name, type, value, what) TMPI_SETTING_##name,
#include "mpi/settings.def"
#undef X
    TMPI_SETTINGS
};

struct tmpi_settings {
    bool off; /* TRIB_MPI=off, or no call is to be taken */
    uint32_t calls; /* a bit for each enum tmpi_kind that the library may have */
    uint32_t counted; /* of those that stay with MPI, and make a communicator all the
                       * same */
    size_t min;
    bool pays; /* after=auto: a communicator of the library is made when it may pay */
    unsigned long after; /* else, and for MPI_COMM_WORLD, at this number of calls */
    bool always; /* prefer=tributary */
    const char *codec; /* NULL: none */
    bool waits_for_stopped; /* nobody has set TRIB_STOP_TIMEOUT_MS */
    int boot_ms; /* TRIB_BOOT_TIMEOUT_MS; 0: no limit */
    const char *report; /* NULL: none; "1": a table on standard error; else a file */
    uint64_t digest[TMPI_SETTINGS]; /* of each value, for the agreement of the ranks */
};

/** tmpi_settings_read - from the environment. A wrong value is told on standard error,
 * and the module is off. */
void tmpi_settings_read(struct tmpi_settings *s);

/** tmpi_setting_variable - such as "TRIB_MPI_MIN". */
const char *tmpi_setting_variable(int at);

/** tmpi_environment - a variable that is no setting; NULL: it is not set. */
char *tmpi_environment(const char *variable);

#endif
