/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/rank_names.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void trib_rank_name_self(int rank, struct trib_rank_name *out)
{
    *out = (struct trib_rank_name){.rank = rank, .pid = (int)getpid()};
    (void)trib_host_name(out->host);
}

char *trib_rank_name_format(const struct trib_rank_name *name,
                            char text[TRIB_RANK_NAME_BYTES])
{
    int n = snprintf(text, TRIB_RANK_NAME_BYTES, "rank %d", name->rank);

    if (name->pid && name->host[0])
        snprintf(text + n, TRIB_RANK_NAME_BYTES - (size_t)n, " (process %d on %s)",
                 name->pid, name->host);
    else if (name->pid)
        snprintf(text + n, TRIB_RANK_NAME_BYTES - (size_t)n, " (process %d)",
                 name->pid);
    else if (name->host[0])
        snprintf(text + n, TRIB_RANK_NAME_BYTES - (size_t)n, " (on %s)", name->host);
    return text;
}

char *trib_ranks_format(const bool *missing, int size, char *text, int bytes)
{
    int count = 0;
    for (int i = 0; i < size; i++)
        count += missing[i];

    assert(bytes >= 32);
    int n = snprintf(text, (size_t)bytes, count == 1 ? "rank" : "ranks");
    const char *comma = "";
    for (int first = 0; first < size; first++) {
        if (!missing[first])
            continue;
        int last = first;
        while (last + 1 < size && missing[last + 1])
            last++;
        if (n > bytes - 32) {
            snprintf(text + n, (size_t)(bytes - n), "%s ...", comma);
            return text;
        }
        if (last == first)
            n += snprintf(text + n, (size_t)(bytes - n), "%s %d", comma, first);
        else
            n +=
                snprintf(text + n, (size_t)(bytes - n), "%s %d-%d", comma, first, last);
        comma = ",";
        first = last;
    }
    return text;
}
