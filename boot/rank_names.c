/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/rank_names.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void trib_who_self(int rank, struct trib_who *out)
{
    *out = (struct trib_who){.rank = rank, .pid = (int)getpid()};
    (void)trib_host_name(out->host);
}

char *trib_who_format(const struct trib_who *who, char text[TRIB_WHO_BYTES])
{
    int n = snprintf(text, TRIB_WHO_BYTES, "rank %d", who->rank);

    if (who->pid && who->host[0])
        snprintf(text + n, TRIB_WHO_BYTES - (size_t)n, " (process %d on %s)", who->pid,
                 who->host);
    else if (who->pid)
        snprintf(text + n, TRIB_WHO_BYTES - (size_t)n, " (process %d)", who->pid);
    else if (who->host[0])
        snprintf(text + n, TRIB_WHO_BYTES - (size_t)n, " (on %s)", who->host);
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
