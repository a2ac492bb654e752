/* SPDX-License-Identifier: BSD-3-Clause */
/* Compares the settings of all ranks in MPI_Init. */
#ifndef BINDINGS_MPI_SETTINGS_AGREEMENT_H
#define BINDINGS_MPI_SETTINGS_AGREEMENT_H

#include <stdbool.h>

/** tmpi_settings_agree - return true if all ranks have the same settings and none is
 * off; collective. */
bool tmpi_settings_agree(void);

#endif
