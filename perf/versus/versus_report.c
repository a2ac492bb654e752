/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Output rows of groups, neighbors and store.
 */
#include <stddef.h>

#include "perf/versus/versus.h"
#include "perf/common/columns.h"

struct row {
    struct versus_row r;
    const char *command, *memory, *version;
    int ranks;
    double each_second, GBps; /* over all ranks */
};

/* clang-format off */
#define AT(member) offsetof(struct row, member)
static const struct perf_column all_columns[] = {
    {NULL, "size", "", 10, 0, PERF_BYTES, 0, 0, 0, AT(r.bytes)},
    {"command", PERF_UNSHOWN, PERF_TEXT, 0, 0, PERF_NO_JSON, AT(command)},
    {"way", "way", "", -19, 0, PERF_TEXT, 0, 0, 0, AT(r.way)},
    {"ranks", PERF_UNSHOWN, PERF_INT, 0, 0, PERF_NO_JSON, AT(ranks)},
    {"bytes", PERF_UNSHOWN, PERF_SIZE, 0, 0, 0, AT(r.bytes)},
    {"rounds", PERF_UNSHOWN, PERF_SIZE, 0, 0, 0, AT(r.us.n)},
    {"p50_us", "p50", "µs ", 11, 0, PERF_US, 3, 0, 0, AT(r.us.p50)},
    {"min_us", "min", "µs ", 11, 4, PERF_US, 3, 0, 0, AT(r.us.min)},
    {"max_us", "max", "µs ", 11, 5, PERF_US, 3, 0, 0, AT(r.us.max)},
    {"each_second", "all ranks", "1/s", 11, 3, PERF_FIXED, 1, 0, 0, AT(each_second)},
    {"GBps", "all ranks", "GB/s", 10, 2, PERF_FIXED, 6, 3, 0, AT(GBps)},
    {"ratio", "ratio", "", 8, 0, PERF_FIXED, 4, 3, 0, AT(r.ratio.p50)},
    {"min_ratio", "min", "", 8, 1, PERF_FIXED, 4, 3, 0, AT(r.ratio.min)},
    {"max_ratio", "max", "", 8, 1, PERF_FIXED, 4, 3, 0, AT(r.ratio.max)},
    {"memory", PERF_UNSHOWN, PERF_TEXT, 0, 0, PERF_NO_JSON, AT(memory)},
    {"version", PERF_UNSHOWN, PERF_TEXT, 0, 0, PERF_NO_JSON, AT(version)}};
/* clang-format on */

static const struct perf_columns columns = {
    all_columns, sizeof(all_columns) / sizeof(*all_columns), 0};

static const char *memory_text(const struct versus_args *args)
{
    static const char *const names[] = {"alloc", "malloc", "register"};

    return names[args->each.memory];
}

static void table_open(const struct versus_args *args, int ranks)
{
    printf("%s and an all-reduce of the same bytes, float32, memory %s, %d rank%s, "
           "%ld rounds, tributary %s\n",
           args->kind->name, memory_text(args), ranks, ranks == 1 ? "" : "s",
           args->rounds, trib_version());
}

bool versus_report_open(struct versus_report *r, char *why, size_t why_bytes)
{
    const struct perf_args *each = &r->args->each;

    if (!perf_output_open(&r->out, each->csv, each->json, why, why_bytes))
        return false;
    if (r->out.table)
        table_open(r->args, r->ranks);
    perf_columns_head(&r->out, &columns);
    return true;
}

void versus_report_add(struct versus_report *r, const struct versus_row *row)
{
    double each_second = row->us.p50 > 0 ? 1e6 * r->ranks / row->us.p50 : 0;
    const struct row all = {.r = *row,
                            .command = r->args->kind->name,
                            .memory = memory_text(r->args),
                            .version = trib_version(),
                            .ranks = r->ranks,
                            .each_second = each_second,
                            .GBps = 1e-9 * (double)row->bytes * each_second};

    perf_columns_row(&r->out, &columns, &all);
}

bool versus_report_finish(struct versus_report *r, const char *tell, char *why,
                          size_t why_bytes)
{
    json_t *all = NULL;

    if (r->out.table && tell[0] != '\0')
        puts(tell);
    if (r->out.results != NULL)
        all = perf_output_document(&r->out, r->args->each.argc, r->args->each.argv,
                                   json_pack("{s:s, s:i, s:I, s:s}", "command",
                                             r->args->kind->name, "ranks", r->ranks,
                                             "rounds", (json_int_t)r->args->rounds,
                                             "memory", memory_text(r->args)));
    return perf_output_finish(&r->out, all, why, why_bytes);
}
