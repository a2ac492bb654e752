/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "perf/common/setters.h"
#include "perf/report/html_page.h"
#include "perf/report/perf_report.h"

/* --- compare --- */

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
        "Shows which rows of two --json files became slower or faster beyond the "
        "spread\n"
        "of the samples. ratio is the new median over the old one. spread is half of "
        "the\n"
        "interquartile range over the median, the wider of the two. A row is slower "
        "or\n"
        "faster if each median is outside the middle half of the other's samples.\n",
    .ending = "example: trib-perf compare before.json after.json --fail-above 1.1\n"
              "exit code: 0 compared; 1 a row is slower than --fail-above; 2 cannot "
              "compare",
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

/* --- report --- */

struct report_args {
    const char **path; /* [number of words] */
    size_t n;
    const char *out;
};

static bool take_path(const struct tool_given *given, const char *value)
{
    struct report_args *args = given->args;

    args->path[args->n++] = value;
    return true;
}

static const struct tool_option report_options[] = {
    {"output", "FILE", tool_set_text, offsetof(struct report_args, out),
     .help = "page to write; -: standard output", .letter = 'o'},
};

const struct tool_command report_command = {
    .name = "trib-perf report",
    .usage = "usage: trib-perf report RESULTS.json… -o report.html\n"
             "\n"
             "Makes one page from --json files: time and bandwidth over the size, the "
             "other\n"
             "files compared with the first, errors of codecs over their bytes, the "
             "machine,\n"
             "settings and commands. The page needs no scripts and no network.\n",
    .ending = "example: trib-perf report none.json int8.json -o report.html\n"
              "exit code: 0 written; 1 cannot write; 2 cannot read a file",
    .options = report_options,
    .n_options = sizeof(report_options) / sizeof(report_options[0]),
    .word = take_path,
    .words = "FILE",
};

static int make_report(const struct report_args *args, struct report_file *files)
{
    char why[8448];
    int code = 0;
    size_t n = 0;

    while (n < args->n && report_file_open(args->path[n], &files[n], why, sizeof(why)))
        n++;
    if (n < args->n)
        code = 2;
    else if (!html_page_write(args->out, files, n, why, sizeof(why)))
        code = 1;
    if (code != 0)
        fprintf(stderr, "trib-perf: report: %s.\n", why);
    while (n > 0)
        report_file_close(&files[--n]);
    return code;
}

static int report_with(struct report_args *args, int argc, char **argv)
{
    const int code = tool_parse(&report_command, argc - 1, argv + 1, args, stderr);

    if (code >= 0)
        return code;
    if (args->n == 0 || args->out == NULL) {
        fputs("trib-perf: report takes --json files, and -o FILE: trib-perf report "
              "RESULTS.json -o report.html.\n",
              stderr);
        return 2;
    }
    struct report_file *files = calloc(args->n, sizeof(*files));
    if (files == NULL)
        return 1;
    const int made = make_report(args, files);
    free(files);
    return made;
}

int report_main(int argc, char **argv)
{
    struct report_args args = {.path = calloc((size_t)argc, sizeof(*args.path))};

    if (args.path == NULL)
        return 1;
    const int code = report_with(&args, argc, argv);
    free(args.path);
    return code;
}
