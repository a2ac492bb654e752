/* SPDX-License-Identifier: BSD-3-Clause */
#include "perf/coll/perf_ranks.h"

#include <stdio.h>

#include "tools/common/launch.h"
#include "tools/common/trace_merge.h"

struct ranks {
    const struct perf_args *args;
    perf_rank_fn fn;
    const void *arg;
};

static int rank_main(void *arg, int rank, const char *root)
{
    const struct ranks *r = arg;
    trib_opts_t opts = TRIB_OPTS_INIT;
    trib_comm_t *comm;

    if (root != NULL) {
        opts.rank_plus_1 = rank + 1;
        opts.ranks = r->args->ranks;
        opts.root = root;
    }
    if (trib_init(&opts, &comm) != TRIB_OK) {
        fprintf(stderr, "trib-perf: %s\n", trib_last_error(NULL));
        return 1;
    }
    const int code = r->fn(r->arg, comm);
    const int number = trib_rank(comm);
    if (trib_free_comm(comm) == TRIB_OK)
        return code;
    fprintf(stderr, "trib-perf: rank %d cannot disconnect: %s\n", number,
            trib_last_error(NULL));
    return code == 0 ? 1 : code;
}

/* trace    file for a trace of all ranks, or NULL */
static int launch_traced(const struct tool_job *job, const char *file)
{
    struct tool_trace trace = {.file = file};
    char why[8448];

    if (!tool_trace_begin(&trace, why, sizeof(why))) {
        fprintf(stderr, "trib-perf: %s.\n", why);
        return 2;
    }
    const int code = tool_launch(job);
    if (tool_trace_end(&trace, why, sizeof(why)))
        return code;
    fprintf(stderr, "trib-perf: %s.\n", why);
    return code == 0 ? 1 : code;
}

int perf_ranks_run(const struct perf_args *args, perf_rank_fn fn, const void *arg)
{
    struct ranks ranks = {args, fn, arg};
    const struct tool_job job = {
        .tool = "trib-perf",
        .ranks = args->ranks,
        .bind = args->bind,
        .fn = rank_main,
        .arg = &ranks,
    };

    return args->ranks > 0 ? launch_traced(&job, args->trace)
                           : rank_main(&ranks, 0, NULL);
}
