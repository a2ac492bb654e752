/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "perf/report/perf_report.h"
#include "perf/setters.h"

/* compare -------------------------------------------------------------------------- */

struct compare_args {
    const char *file[2];
    int n;
    double fail_above;
};

static bool take_file(const struct tool_given *given, const char *value)
{
    struct compare_args *args = given->args;

    if (args->n == 2)
        return tool_say(given, "'%s': compare takes two files, OLD and NEW", value);
    args->file[args->n++] = value;
    return true;
}

static const struct tool_option compare_options[] = {
    PERF_FAIL_ABOVE_ROW(offsetof(struct compare_args, fail_above)),
};

const struct tool_command compare_command = {
    .name = "trib-perf compare",
    .usage =
        "usage: trib-perf compare OLD.json NEW.json [OPTION]…\n"
        "\n"
        "What became slower or faster beyond the spread of the samples, of two files\n"
        "that --json has written. ratio is the new median over the old one. spread is\n"
        "half of the middle half of the samples, over the median, of whichever is\n"
        "wider. A row is slower or faster if each median lies outside the middle half\n"
        "of the other's samples.\n",
    .ending = "example: trib-perf compare before.json after.json --fail-above 1.1\n"
              "exit code: 0 compared; 1 a row is slower than --fail-above; 2 cannot be "
              "compared",
    .options = compare_options,
    .n_options = sizeof(compare_options) / sizeof(compare_options[0]),
    .word = take_file,
    .words = "FILE",
};

void report_say_above(const struct report_verdict *verdict, double limit,
                      const char *old)
{
    if (verdict->above > 0)
        fprintf(stderr, "trib-perf: %zu row%s slower than %g times %s.\n",
                verdict->above, verdict->above == 1 ? " is" : "s are", limit, old);
}

static int compare_files(const struct compare_args *args)
{
    struct report_file file[2] = {{0}, {0}};
    struct report_verdict verdict = {0};
    char why[8448];
    const bool done = report_file_open(args->file[0], &file[0], why, sizeof(why)) &&
                      report_file_open(args->file[1], &file[1], why, sizeof(why)) &&
                      report_against(&file[0], &file[1], args->fail_above, stdout,
                                     &verdict, why, sizeof(why));

    report_file_close(&file[0]);
    report_file_close(&file[1]);
    if (!done) {
        fprintf(stderr, "trib-perf: compare: %s.\n", why);
        return 2;
    }
    report_say_above(&verdict, args->fail_above, args->file[0]);
    return verdict.above > 0;
}

int compare_main(int argc, char **argv)
{
    struct compare_args args = {.n = 0};
    const int code = tool_parse(&compare_command, argc - 1, argv + 1, &args, stderr);

    if (code >= 0)
        return code;
    if (args.n == 2)
        return compare_files(&args);
    fputs("trib-perf: compare takes two files: trib-perf compare OLD.json NEW.json.\n",
          stderr);
    return 2;
}
