/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of trib-run. */
#include "tools/common/options.h"
#include "tools/run/run_parts.h"

#include <stdio.h>
#include <stdlib.h>

#define AT(field) offsetof(struct run_options, field)

/* Reject a timeout of 0: it would end all ranks at once. A grace of 0 is valid. */
static bool set_seconds(const struct tool_given *given, const char *value)
{
    const bool may_be_0 = given->option->at == AT(grace_s);
    char *end;
    const double seconds = strtod(value, &end);

    *(double *)tool_target(given) = seconds;
    if (end != value && *end == '\0' && seconds <= 1e9 &&
        (seconds > 0 || (may_be_0 && seconds >= 0)))
        return true;
    return tool_refuse(given, value, "must be a number of seconds %s",
                       may_be_0 ? "of at least 0" : "greater than 0");
}

static bool set_tag(const struct tool_given *given, const char *value)
{
    struct run_options *options = given->args;

    options->tagged = true;
    return value ? tool_set_second(given, value) : tool_set_switch(given, value);
}

static const struct tool_option options[] = {
    {"ranks", "N", tool_set_int, AT(ranks), .help = "number of ranks", .letter = 'n',
     .least = 1, .most = RUN_RANKS_MAX},
    {"prefix", NULL, set_tag, AT(prefix),
     .help = "prefix each line with its rank, \"[2] \" (the default)"},
    {"tag", "HOW", set_tag, AT(prefix),
     .help = "prefix each line with its rank, or none; lines are never interleaved",
     .words = "none prefix"},
    {"output", "DIR", tool_set_text, AT(output_dir),
     .help = "write output to DIR/rank-N.out and DIR/rank-N.err", .letter = 'o'},
    {"bind", "HOW", tool_set_choice, AT(bind), .help = TOOL_BIND_HELP,
     .words = TOOL_BIND_WORDS},
    {"timeout", "S", set_seconds, AT(timeout_s),
     .help = "terminate all ranks after S seconds; exit code 124"},
    {"grace", "S", set_seconds, AT(grace_s),
     .help = "after a rank fails, give the other ranks S seconds to exit [10]"},
    {"root", "HOST:PORT", tool_set_text, AT(root),
     .help = "rendezvous over TCP at this address, not in shared memory"},
    {"trace", "FILE", tool_set_text, AT(trace),
     .help =
         "write a Perfetto trace of all ranks, one track per stage; each rank keeps "
         "TRIB_TRACE events (default 262144)"},
};

static const struct tool_command run_command = {
    .name = "trib-run",
    .usage = "trib-run - start ranks of a program on this host\n"
             "\n"
             "    trib-run -n RANKS [OPTION]… [--] PROGRAM [ARGUMENT]…\n",
    .ending =
        "trib-run sets TRIB_RANK, TRIB_SIZE, TRIB_ROOT and TRIB_KEY for each rank.\n"
        "TRIB_KEY is the job's secret, generated unless already set. Rank 0 reads\n"
        "standard input. Signals are forwarded; a second SIGINT or SIGTERM kills.\n"
        "SIGUSR1 prints a table of the ranks' states and is forwarded to ranks that\n"
        "handle it. The exit code is that of the first rank to fail, or 128 + N if\n"
        "signal N killed it. Exit codes of trib-run itself:\n"
        "2: wrong arguments; 124: timeout; 125: cannot start ranks or write their\n"
        "output; 126: cannot execute the program; 127: program not found;\n"
        "141: standard output was closed by its reader.",
    .options = options,
    .n_options = sizeof(options) / sizeof(*options),
    .words = "FILE",
    .stops = true,
    .rest = AT(program),
};

int run_parse_options(int argc, char **argv, struct run_options *o)
{
    const int code = tool_parse_program(&run_command, argc, argv, o, stderr);

    if (code >= 0)
        return code;
    if (!o->ranks) {
        run_say("number of ranks missing: trib-run -n 4 -- program");
        return RUN_EXIT_USAGE;
    }
    if (o->tagged && o->output_dir) {
        run_say("--prefix and --tag apply to terminal output, but --output writes one "
                "file per rank: omit one of them");
        return RUN_EXIT_USAGE;
    }
    if (!*o->program) {
        run_say("program missing: trib-run -n %d -- program", o->ranks);
        return RUN_EXIT_USAGE;
    }
    return -1;
}
