/* SPDX-License-Identifier: BSD-3-Clause */
#include "perf/coll/arguments.h"
#include "perf/common/output.h"
#include "perf/report/html_page.h"
#include "perf/report/perf_report.h"

#include <string.h>

static bool is_stdout(const char *path)
{
    return path != NULL && strcmp(path, "-") == 0;
}

bool report_wanted(const struct perf_args *args)
{
    return args->plot || args->compare != NULL || args->html != NULL;
}

bool report_prepare(const struct perf_args *args, struct report_file *old, char *why,
                    size_t why_bytes)
{
    *old = (struct report_file){0};
    if (args->html != NULL && !perf_output_try(args->html, why, why_bytes))
        return false;
    return args->compare == NULL ||
           report_file_open(args->compare, old, why, why_bytes);
}

/* Compare with old. Return the exit code, after a message if it is not 0. */
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

/* Write the page. The document that was compared with comes first. */
static int write_html(const struct perf_args *args, const struct report_file *old,
                      const struct report_file *new)
{
    struct report_file files[2];
    size_t n = 0;
    char why[8448];

    if (args->compare != NULL)
        files[n++] = *old;
    files[n++] = *new;
    if (html_page_write(args->html, files, n, why, sizeof(why)))
        return 0;
    fprintf(stderr, "trib-perf: %s.\n", why);
    return 1;
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
        report_bars(new.rows, new.own, report_utf8(), f);
    if (args->compare != NULL)
        code = compare(args, old, &new, f);
    if (args->html != NULL && write_html(args, old, &new) != 0)
        code = code > 0 ? code : 1;
    report_file_close(&new);
    return code;
}
