/* SPDX-License-Identifier: BSD-3-Clause */
/* Host lookup in parsed racks. */
#include <stdlib.h>
#include <string.h>

#include "topo/racks/racks.h"

void trib_racks_free(struct trib_racks *racks)
{
    if (!racks)
        return;
    free(racks->switches);
    free(racks->hosts);
    free(racks);
}

static int host_compare(const void *name, const void *host)
{
    return strverscmp(name, ((const struct trib_racks_host *)host)->name);
}

static int find_name(const struct trib_racks *racks, const char *name)
{
    const struct trib_racks_host *found =
        bsearch(name, racks->hosts, (size_t)racks->n_hosts, sizeof(*racks->hosts),
                host_compare);

    return found ? (int)(found - racks->hosts) : -1;
}

int trib_racks_host(const struct trib_racks *racks, const char *host)
{
    char name[TRIB_HOSTNAME_BYTES];
    size_t n = strcspn(host, ".");
    int found = find_name(racks, host);

    if (found >= 0 || n == 0 || n >= sizeof(name))
        return found;
    if (host[n] == '.') {
        memcpy(name, host, n);
        name[n] = '\0';
        return find_name(racks, name);
    }
    for (int i = 0; i < racks->n_hosts; i++)
        if (strncmp(racks->hosts[i].name, host, n) == 0 &&
            racks->hosts[i].name[n] == '.')
            return i;
    return -1;
}

int trib_racks_find(const struct trib_racks *racks, const char *host)
{
    int i = trib_racks_host(racks, host);

    return i < 0 ? -1 : racks->hosts[i].rack;
}
