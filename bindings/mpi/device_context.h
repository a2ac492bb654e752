/* SPDX-License-Identifier: BSD-3-Clause */
/* Detection of GPU memory, which the library cannot access: it reads and writes buffers
 * on the CPU. */
#ifndef BINDINGS_MPI_DEVICE_CONTEXT_H
#define BINDINGS_MPI_DEVICE_CONTEXT_H

#include <stdbool.h>

/** tmpi_has_device - return true if this process uses a GPU, so that buffers may be in
 * its memory. Queries only drivers that the program has loaded. */
bool tmpi_has_device(void);

#endif
