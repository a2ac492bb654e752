/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-info stacks - show the current state of each rank of this host's jobs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <tributary.h>

#include "tools/common/rank_table.h"
#include "tools/info/info_commands.h"

struct stacks {
    int pid; /* 0: all */
    bool json;
};

bool info_take_pid(const struct tool_given *given, const char *value, int *pid)
{
    char *end;
    const long number = strtol(value, &end, 10);

    if (*pid)
        return tool_refuse_word(given, value);
    if (end == value || *end || number < 1 || number > 1L << 30)
        return tool_refuse(given, value, "is not a process ID");
    *pid = (int)number;
    return true;
}

static bool take_pid(const struct tool_given *given, const char *value)
{
    return info_take_pid(given, value, &((struct stacks *)given->args)->pid);
}

static const struct tool_option options[] = {
    {"json", NULL, tool_set_switch, offsetof(struct stacks, json),
     .help = "print JSON"},
};

const struct tool_command info_stacks_command = {
    .name = "trib-info stacks",
    .usage =
        "usage: trib-info stacks [PID] [--json]\n"
        "\n"
        "Shows the current state of each rank on this host, even if it is stopped or\n"
        "hangs: its operation, the rank it waits for and how long, or how long it has\n"
        "been outside the library, and the bytes moved. PID is a rank, trib-run or\n"
        "another launcher such as mpirun; if omitted, shows all jobs of this user.\n",
    .ending = "example: trib-info stacks $(pidof trib-run)\n"
              "exit code: 0 success; 1 no such rank; 2 wrong arguments",
    .options = options,
    .n_options = sizeof(options) / sizeof(*options),
    .word = take_pid,
};

static void add_rank(void *arg, const trib_rank_state_t *s)
{
    json_array_append_new(
        arg,
        json_pack("{s:i,s:i,s:i,s:i,s:s,s:s,s:s,s:s,s:b,s:b,s:b,s:s,s:s,s:s,s:s,s:s,"
                  "s:I,s:I,s:o,s:f,s:b,s:I,s:I,s:I,s:I}",
                  "rank", s->rank, "ranks", s->ranks, "pid", s->pid, "root_pid",
                  s->root_pid, "host", s->host, "root_host", s->root_host, "part",
                  s->part, "text", s->text, "stopped", s->stopped, "failed", s->failed,
                  "busy", s->busy, "operation", s->operation, "algorithm", s->algorithm,
                  "plan", s->plan, "phase", s->phase, "awaits", s->awaits, "number",
                  (json_int_t)s->number, "bytes", (json_int_t)s->bytes, "waits_for",
                  s->waits_for < 0 ? json_null() : json_integer(s->waits_for), "age_s",
                  s->age_s, "at_most", s->at_most, "operations",
                  (json_int_t)s->operations, "sent", (json_int_t)s->sent, "received",
                  (json_int_t)s->received, "user", (json_int_t)s->user));
}

static bool print_json(int pid, int *rows_out)
{
    json_t *list = json_array();
    const bool ok = trib_ranks_each(pid, add_rank, list) == TRIB_OK;

    *rows_out = (int)json_array_size(list);
    return info_print_json("ranks", list) && ok;
}

int info_stacks(int argc, char **argv)
{
    struct stacks s = {0};
    struct tool_rank_table table = {.out = stdout,
                                    .width = tool_terminal_width(STDOUT_FILENO)};
    int code = tool_parse(&info_stacks_command, argc, argv, &s, stderr);

    if (code >= 0)
        return code;
    if (!(s.json ? print_json(s.pid, &table.rows)
                 : tool_rank_table_print(&table, s.pid))) {
        fprintf(stderr, "trib-info stacks: %s\n", trib_last_error(NULL));
        return 1;
    }
    if (table.rows)
        return 0;
    if (s.pid)
        fprintf(
            stderr,
            "trib-info stacks: process %d is not a rank with a communicator, nor did "
            "it start one that this user may see\n",
            s.pid);
    else
        fputs(
            "trib-info stacks: no rank with a communicator on this host is visible to "
            "this user\n",
            stderr);
    return 1;
}
