/* SPDX-License-Identifier: BSD-3-Clause */
#include "perf/versus/versus.h"
#include "perf/coll/arguments.h"
#include "perf/common/setters.h"

#include <assert.h>

static bool set_sizes(const struct tool_given *given, const char *value)
{
    const struct versus_args *args = given->args;

    if (args->kind->sizes != NULL)
        return perf_set_sizes(given, value);
    return tool_say(given, "%s have their own size: leave out --sizes",
                    args->kind->name);
}

#define AT(field) offsetof(struct versus_args, field)

const struct tool_option versus_options[] = {
    PERF_RANKS_ROW(AT(each.ranks)),
    {"sizes", "LIST", set_sizes, AT(each.sizes),
     .help = "bytes: 64K,16M or from:to:factor; not with groups"},
    {"rounds", "N", tool_set_long, AT(rounds), .help = "rounds per size [21]",
     .least = 1, .most = VERSUS_ROUNDS_MAX},
    {"rule", "TEXT", tool_set_text, AT(rule),
     .help = "rule of the store's vector, such as sgd:rate=0.1 [sum]"},
    {"codec", "TEXT", perf_set_codec,
     .help = "codec of the store's coded pushes [topk:ratio=0.01]", .words = "@codecs"},
    PERF_MEMORY_ROW(AT(each.memory)),
    PERF_BIND_ROW(AT(each.bind)),
    TOOL_WIDE_ROW,
    PERF_CSV_ROW(AT(each.csv), "one row per size and way"),
    PERF_JSON_ROW(AT(each.json)),
};

static_assert(sizeof(versus_options) / sizeof(*versus_options) == VERSUS_OPTIONS,
              "the kinds' commands have all rows");
