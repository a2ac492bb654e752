/* SPDX-License-Identifier: BSD-3-Clause */
/* Allocate memory of the kind that the command line names. */
#include <stdlib.h>
#include <string.h>

#include "perf/versus/versus.h"

trib_status_t versus_memory(struct versus *b, size_t bytes, void **out)
{
    const enum perf_memory memory = b->args->each.memory;
    trib_status_t status = TRIB_OK;

    *out = NULL;
    if (memory == PERF_MEMORY_ALLOC)
        status = trib_alloc(b->comm, bytes, out);
    else if (posix_memalign(out, 4096, bytes) != 0)
        status = TRIB_ERR_NO_MEMORY;
    if (status == TRIB_OK && memory == PERF_MEMORY_REGISTER)
        status = trib_register(b->comm, *out, bytes);
    if (status == TRIB_OK)
        memset(*out, 0, bytes);
    return status;
}

void versus_memory_free(struct versus *b, void *memory)
{
    if (memory == NULL)
        return;
    if (b->args->each.memory == PERF_MEMORY_ALLOC) {
        trib_free(b->comm, memory);
        return;
    }
    if (b->args->each.memory == PERF_MEMORY_REGISTER)
        trib_deregister(b->comm, memory);
    free(memory);
}
