/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For LD_PRELOAD: one selected start of a plan fails, as if memory had run out. All
 * other starts are the library's.
 */
#include <dlfcn.h>
#include <stdlib.h>

#include <tributary.h>

static int left; /* starts until the one that fails; 0: none fails */

void fail_start(int which);

void fail_start(int which)
{
    left = which;
}

trib_status_t trib_plan_start_with(trib_plan_t *plan, const void *send, void *recv)
{
    trib_status_t (*start)(trib_plan_t *, const void *, void *) = NULL;
    void *const library = dlopen(getenv("TRIBUTARY_LIBRARY"), RTLD_NOW | RTLD_NOLOAD);

    if (left > 0 && --left == 0)
        return TRIB_ERR_NO_MEMORY;
    *(void **)&start = dlsym(library, "trib_plan_start_with");
    return start(plan, send, recv);
}
