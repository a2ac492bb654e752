/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/host.h"

#include <string.h>
#include <unistd.h>

bool trib_host_name(char name[TRIB_HOST_BYTES])
{
    memset(name, 0, TRIB_HOST_BYTES);
    if (gethostname(name, TRIB_HOST_BYTES) == 0 && !name[TRIB_HOST_BYTES - 1])
        return true;
    name[0] = '\0';
    return false;
}
