/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-sim - simulate the library's schedules on networks of any size.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "perf/sim/sim.h"
#include "tools/common/tool.h"

/* Run in a child process, since SimGrid allows one simulation per process. */
static void run_apart(const struct sim_args *args, int ranks, struct sim_result *out)
{
    int ends[2];

    *out = (struct sim_result){.ranks = ranks};
    snprintf(out->why, SIM_WHY, "its process exited without a result");
    fflush(NULL);
    if (pipe(ends) != 0) {
        snprintf(out->why, SIM_WHY, "cannot create a pipe: %s", strerror(errno));
        return;
    }
    const pid_t child = fork();
    if (child == 0) {
        struct sim_result *mine = calloc(1, sizeof(*mine));
        close(ends[0]);
        if (mine)
            sim_run(args, ranks, mine);
        const bool whole =
            mine && write(ends[1], mine, sizeof(*mine)) == (ssize_t)sizeof(*mine);
        _exit(whole ? 0 : 1);
    }
    close(ends[1]);
    struct sim_result got;
    if (child > 0 && read(ends[0], &got, sizeof(got)) == (ssize_t)sizeof(got))
        *out = got;
    close(ends[0]);
    if (child > 0)
        waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
    struct sim_args args;

    tool_begin();
    tool_signals();
    int code = sim_args_parse(argc, argv, stderr, &args);
    struct sim_result *results = calloc(args.ranks.n + 1, sizeof(*results));
    if (code >= 0 || !results) {
        perf_sizes_free(&args.ranks);
        free(results);
        return tool_end("trib-sim", code < 0 ? 1 : code);
    }
    code = 0;
    for (size_t i = 0; i < args.ranks.n; i++) {
        run_apart(&args, (int)args.ranks.bytes[i], &results[i]);
        if (results[i].why[0]) {
            fprintf(stderr, "trib-sim: %d ranks: %s\n", results[i].ranks,
                    results[i].why);
            code = 1;
        }
    }
    if (!sim_write(&args, results, args.ranks.n, argc, argv))
        code = 1;
    perf_sizes_free(&args.ranks);
    free(results);
    return tool_end("trib-sim", code);
}
