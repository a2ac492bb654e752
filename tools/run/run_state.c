/* SPDX-License-Identifier: BSD-3-Clause */
/* trib-run's response to SIGUSR1. */
#include "tools/common/rank_table.h"
#include "tools/run/run_parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

/* Return true if the process has a handler for a signal. */
static bool catches(pid_t pid, int signal)
{
    char path[64], line[256];
    uint64_t mask = 0;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "SigCgt: %" SCNx64, &mask) == 1)
            break;
    if (f)
        fclose(f);
    return mask >> (signal - 1) & 1;
}

void run_pass_caught(const struct run_job *job, int signal)
{
    for (int rank = 0; rank < job->started; rank++)
        if (!job->ranks[rank].ended && catches(job->ranks[rank].pid, signal))
            kill(-job->ranks[rank].pid, signal);
}

void run_show_state(const struct run_job *job)
{
    const int ranks = job->options->ranks;
    char *text = NULL;
    size_t bytes = 0;
    bool *seen = calloc((size_t)ranks, sizeof(*seen));
    FILE *out =
        open_memstream(&text, &bytes); /* written at once, between lines of ranks */
    struct tool_rank_table table = {.out = out,
                                    .width = tool_terminal_width(STDERR_FILENO),
                                    .seen = seen,
                                    .ranks = ranks};

    if (out && seen && tool_rank_table_print(&table, (int)getpid())) {
        for (int rank = 0; rank < job->started; rank++) {
            const struct run_rank *r = &job->ranks[rank];
            if (!seen[rank])
                tool_rank_table_row(
                    &table, rank, (int)r->pid,
                    r->ended ? "has exited"
                             : "has no communicator: before trib_init or after "
                               "trib_free_comm");
        }
    } else {
        run_say("cannot read the state of the ranks: %s", trib_last_error(NULL));
    }
    if (out)
        fclose(out);
    if (text)
        fputs(text, stderr);
    free(text);
    free(seen);
}
