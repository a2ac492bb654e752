/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpi/next.h"

#include <dlfcn.h>
#include <string.h>

struct tmpi_next tmpi_next;

__attribute__((constructor)) static void find_next(void)
{
    static const char *const names[] = {
#define X(name, parameters) "PMPI_" #name,
#include "mpi/next.def"
#undef X
    };
    void *found[sizeof(names) / sizeof(*names)];

    _Static_assert(sizeof(found) == sizeof(tmpi_next), "one pointer a row");
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        found[i] = dlsym(RTLD_NEXT, names[i]);
    memcpy(&tmpi_next, found, sizeof(found));
}
