/* SPDX-License-Identifier: BSD-3-Clause */
#include "perf/perf.h"
#include "perf/report/perf_report.h"

#include <string.h>

static bool is_stdout(const char *path)
{
    return path != NULL && strcmp(path, "-") == 0;
}

bool report_wanted(const struct perf_args *args)
{
    return args->plot || args->compare != NULL;
}

bool report_prepare(const struct perf_args *args, struct report_file *old, char *why,
                    size_t why_bytes)
{
    *old = (struct report_file){0};
    return args->compare == NULL ||
           report_file_open(args->compare, old, why, why_bytes);
}

/* The exit code, after a sentence where it is not 0. */
static int compare(const struct perf_args *args, const struct report_file *old,
                   const struct report_file *new, FILE *f)
{
    struct report_verdict verdict;
    char why[8448];

    fputc('\n', f);
    if (!report_against(old, new, args->fail_above, f, &verdict, why, sizeof(why))) {
        fprintf(stderr, "trib-perf: --compare: %s.\n", why);
        return 2;
    }
    report_say_above(&verdict, args->fail_above, old->path);
    return verdict.above > 0;
}

int report_measured(const struct perf_args *args, json_t *document,
                    const struct report_file *old)
{
    FILE *f = is_stdout(args->csv) || is_stdout(args->json) ? stderr : stdout;
    struct report_file new;
    char why[4352];
    int code = 0;

    if (!report_file_take(document, "this measurement", &new, why, sizeof(why))) {
        fprintf(stderr, "trib-perf: %s.\n", why);
        return 1;
    }
    if (args->plot)
        report_bars(new.rows, new.n, report_utf8(), f);
    if (args->compare != NULL)
        code = compare(args, old, &new, f);
    report_file_close(&new);
    return code;
}
