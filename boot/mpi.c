/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/mpi.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

/* Both functions have this type in every MPI, and may be called at any time. */
typedef int ask_fn(int *flag);

struct mpi {
    ask_fn *initialized;
    ask_fn *finalized;
};

static void find_in(void *handle, struct mpi *out)
{
    void *initialized = dlsym(handle, "MPI_Initialized");
    void *finalized = dlsym(handle, "MPI_Finalized");

    if (!initialized || !finalized)
        return;
    memcpy(&out->initialized, &initialized, sizeof(initialized));
    memcpy(&out->finalized, &finalized, sizeof(finalized));
}

/* Python modules load libmpi with local scope, so dlsym on the default scope does not
 * find it. */
static int find_loaded(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    struct mpi *mpi = arg;
    const char *slash = strrchr(info->dlpi_name, '/');

    (void)bytes;
    if (!slash || strncmp(slash + 1, "libmpi", strlen("libmpi")) != 0)
        return 0;
    void *handle = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle)
        return 0;
    find_in(handle, mpi);
    dlclose(handle);
    return mpi->initialized != NULL;
}

enum trib_mpi_state trib_mpi_query(void)
{
    struct mpi mpi = {NULL, NULL};
    int flag = 0;

    find_in(RTLD_DEFAULT, &mpi);
    if (!mpi.initialized)
        (void)dl_iterate_phdr(find_loaded, &mpi);
    if (!mpi.initialized)
        return TRIB_MPI_ABSENT;
    (void)mpi.finalized(&flag);
    if (flag)
        return TRIB_MPI_ENDED;
    (void)mpi.initialized(&flag);
    return flag ? TRIB_MPI_RUNS : TRIB_MPI_LOADED;
}
