/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fake as a library with the functions of libibverbs and librdmacm, for LD_PRELOAD.
 * The processes that load it have the devices of host FAKE_HOST of the fabric
 * FAKE_FABRIC, a file made by the program fabric.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "tests/fabric/fabric_paths.h"
#include "tests/harness/fake_hub.h"

__attribute__((constructor)) static void join(void)
{
    const char *path = getenv("FAKE_FABRIC"), *host = getenv("FAKE_HOST");

    if (!path || !fake_hub_attach(path, host ? atoi(host) : 0)) {
        fprintf(stderr, "fake verbs: no fabric: FAKE_FABRIC or FAKE_HOST is wrong\n");
        fake_verbs_reset()->devices = 0;
        return;
    }
    (void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY); /* others read this memory */
    fake_lock();
    fake_verbs_begin();
    fake_unlock();
    fabric_paths_begin(path);
}
