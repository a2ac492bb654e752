/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "tools/common/trace_merge.h"
#include "tools/info/info_commands.h"

int info_merge_trace(const struct info_request *request)
{
    char why[8448];

    if (request->n_words == 0) {
        fputs("trib-info: --merge-trace needs an output file and the ranks' trace "
              "files: trib-info --merge-trace all.json tributary-trace.*.json\n",
              stderr);
        return 2;
    }
    if (tool_trace_merge(request->merged, (char *const *)request->words,
                         request->n_words, why, sizeof(why)))
        return 0;
    fprintf(stderr, "trib-info: %s\n", why);
    return 1;
}
