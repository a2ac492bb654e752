/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of GPUs. The library reads and writes buffers by the processor, which cannot
 * reach them.
 */
#ifndef MPI_DEVICE_CONTEXT_H
#define MPI_DEVICE_CONTEXT_H

#include <stdbool.h>

/** tmpi_has_device - true if this process uses a GPU, where its buffers may lie. Loads
 * nothing: asks the driver that the program has loaded. */
bool tmpi_has_device(void);

#endif
