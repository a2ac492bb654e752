/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "tools/info_commands.h"
#include "tools/trace_merge.h"

int info_merge_trace(int n, char **words)
{
    char why[8448];

    if (n < 2) {
        fputs("trib-info: --merge-trace needs the file to write, and the files of the "
              "ranks: trib-info --merge-trace all.json tributary-trace.*.json\n",
              stderr);
        return 2;
    }
    if (tool_trace_merge(words[0], words + 1, (size_t)n - 1, why, sizeof(why)))
        return 0;
    fprintf(stderr, "trib-info: %s\n", why);
    return 1;
}
