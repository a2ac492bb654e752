/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A driver of CUDA for processes that have no GPU, for LD_PRELOAD: of two devices, the
 * second has a context in the rank that GPU_RANK names.
 */
#include <stdlib.h>
#include <string.h>

int cuCtxGetCurrent(void **context);
int cuDeviceGetCount(int *count);
int cuDeviceGet(int *device, int ordinal);
int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active);

int cuCtxGetCurrent(void **context)
{
    *context = NULL;
    return 0;
}

int cuDeviceGetCount(int *count)
{
    *count = 2;
    return 0;
}

int cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal + 10;
    return 0;
}

int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
    const char *of = getenv("GPU_RANK"), *me = getenv("OMPI_COMM_WORLD_RANK");

    me = me ? me : getenv("PMI_RANK");
    *flags = 0;
    *active = device == 11 && of && me && !strcmp(of, me);
    return 0;
}
