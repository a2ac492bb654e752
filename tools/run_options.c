/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of trib-run. */
#include "tools/options.h"
#include "tools/run_parts.h"

#include <stdio.h>
#include <stdlib.h>

#define AT(field) offsetof(struct run_options, field)

/* A time-out of 0 would end all ranks at once; a grace of 0 does so when one has
 * failed. */
static bool set_seconds(const struct tool_given *given, const char *value)
{
    const bool may_be_0 = given->option->at == AT(grace_s);
    char *end;
    const double seconds = strtod(value, &end);

    *(double *)tool_target(given) = seconds;
    if (end != value && *end == '\0' && seconds <= 1e9 &&
        (seconds > 0 || (may_be_0 && seconds >= 0)))
        return true;
    return tool_refuse(given, value, "is not a number of seconds %s",
                       may_be_0 ? "from 0" : "above 0");
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
     .help = "begin each line with its rank, \"[2] \" (the default)"},
    {"tag", "HOW", set_tag, AT(prefix),
     .help = "prefix, or none: lines as they are; whole lines stay whole",
     .words = "none prefix"},
    {"output", "DIR", tool_set_text, AT(output_dir),
     .help = "write DIR/rank-N.out and DIR/rank-N.err instead", .letter = 'o'},
    {"bind", "HOW", tool_set_choice, AT(bind), .help = TOOL_BIND_HELP,
     .words = TOOL_BIND_WORDS},
    {"timeout", "S", set_seconds, AT(timeout_s),
     .help = "end all ranks after S seconds; exit code 124"},
    {"grace", "S", set_seconds, AT(grace_s),
     .help = "once a rank has failed, the others have S seconds [10]"},
    {"root", "HOST:PORT", tool_set_text, AT(root),
     .help = "meet over TCP there, not in shared memory"},
    {"trace", "FILE", tool_set_text, AT(trace),
     .help =
         "write what ranks did when, for Perfetto: a lane a stage; TRIB_TRACE events "
         "of each rank, by default 262144"},
};

static const struct tool_command run_command = {
    .name = "trib-run",
    .usage = "trib-run - start ranks of a program on this host\n"
             "\n"
             "    trib-run -n RANKS [OPTION]… [--] PROGRAM [ARGUMENT]…\n",
    .ending =
        "Each rank finds TRIB_RANK, TRIB_SIZE, TRIB_ROOT and TRIB_KEY, a secret made "
        "for\n"
        "this job unless it is set, in its environment. Rank 0 reads standard input.\n"
        "Signals are passed on; a second SIGINT or SIGTERM kills. At SIGUSR1 a table\n"
        "says what each rank does; ranks that have a handler for it get it, too. The\n"
        "exit code is that of the rank that failed first, 128 + N if signal N ended "
        "it;\n"
        "of trib-run itself\n"
        "2: wrong arguments; 124: the time is up; 125: ranks could not be started, or\n"
        "their output not be written; 126: the program cannot be executed; 127: there "
        "is\n"
        "no such program; 141: nobody reads the output any more.",
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
        run_say("say how many ranks to start: trib-run -n 4 -- program");
        return RUN_EXIT_USAGE;
    }
    if (o->tagged && o->output_dir) {
        run_say("--prefix and --tag are of lines on the terminal: with --output each "
                "rank has files of its own, so leave out one");
        return RUN_EXIT_USAGE;
    }
    if (!*o->program) {
        run_say("say which program to run: trib-run -n %d -- program", o->ranks);
        return RUN_EXIT_USAGE;
    }
    return -1;
}
