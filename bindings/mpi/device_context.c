/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/mpi/device_context.h"

#include <dlfcn.h>
#include <stddef.h>

enum { CUDA_SUCCESS = 0 };

/* Return the handle of a library, or NULL if the process has not loaded it. */
static void *loaded(const char *library)
{
    return dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
}

/* Return true if this process has a CUDA context. The driver alone proves nothing: an
 * MPI built with CUDA also loads it into CPU programs. */
static bool has_context(void *cuda)
{
    int (*current)(void **) = (int (*)(void **))dlsym(cuda, "cuCtxGetCurrent");
    int (*count)(int *) = (int (*)(int *))dlsym(cuda, "cuDeviceGetCount");
    int (*get)(int *, int) = (int (*)(int *, int))dlsym(cuda, "cuDeviceGet");
    int (*state)(int, unsigned *, int *) =
        (int (*)(int, unsigned *, int *))dlsym(cuda, "cuDevicePrimaryCtxGetState");
    void *context = NULL;
    int n = 0, active = 0;

    if (!current || !count || !get || !state)
        return true; /* unknown driver */
    if (current(&context) == CUDA_SUCCESS && context)
        return true;
    if (count(&n) != CUDA_SUCCESS)
        n = 0; /* driver not initialised */
    for (int i = 0; i < n && !active; i++) {
        unsigned flags;
        int device;
        if (get(&device, i) != CUDA_SUCCESS ||
            state(device, &flags, &active) != CUDA_SUCCESS)
            active = 0;
    }
    return active;
}

bool tmpi_has_device(void)
{
    void *cuda = loaded("libcuda.so.1");
    bool has = false;

    if (cuda) {
        has = has_context(cuda);
        dlclose(cuda);
    }
    return has || dlsym(RTLD_DEFAULT, "hipMalloc") || loaded("libamdhip64.so.6") ||
           loaded("libamdhip64.so.5");
}
