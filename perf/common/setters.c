/* SPDX-License-Identifier: BSD-3-Clause */
#include "perf/common/setters.h"

#include <stdlib.h>
#include <string.h>

#include "perf/common/sizes.h"
#include "tools/common/launch.h"
#include "tools/common/options.h"


bool perf_set_sizes(const struct tool_given *given, const char *value)
{
    struct perf_sizes *sizes = tool_target(given);
    char why[256];

    perf_sizes_free(sizes);
    if (perf_sizes_parse(value, sizes, why, sizeof(why)))
        return true;
    return tool_say(given, "--%s %s", given->option->name, why);
}

bool perf_set_gbps(const struct tool_given *given, const char *value)
{
    double *gbps = tool_target(given);
    char *end;
    const double rate = strtod(value, &end);
    const bool giga = strcmp(end, "gbit") == 0, mega = strcmp(end, "mbit") == 0;

    *gbps = giga ? rate : rate / 1e3;
    if (end != value && (giga || mega) && *gbps > 0 && *gbps < 1e6)
        return true;
    return tool_refuse(given, value, "is not a rate such as 10gbit or 100mbit");
}

bool perf_launched_twice(int ranks, enum tool_bind bind, FILE *err)
{
    char by[96];

    if (ranks == 0 && bind != TOOL_BIND_AUTO) {
        fputs("trib-perf: --bind places the ranks that -n starts: add -n, or bind with "
              "the launcher, such as trib-run --bind.\n",
              err);
        return true;
    }
    if (ranks == 0 || !tool_launched(by, sizeof(by)))
        return false;
    fprintf(err,
            "trib-perf: -n cannot start ranks under a launcher (this is %s): leave "
            "out -n, or unset that variable.\n",
            by);
    return true;
}

bool perf_float_sizes(struct perf_sizes *sizes, const char *preset, FILE *err)
{
    char why[256];

    if (preset != NULL && sizes->n == 0 &&
        !perf_sizes_parse(preset, sizes, why, sizeof(why))) {
        fprintf(err, "trib-perf: --sizes %s.\n", why);
        return false;
    }
    for (size_t i = 0; i < sizes->n; i++) {
        const size_t bytes = sizes->bytes[i];
        if (bytes >= sizeof(float) && bytes % sizeof(float) == 0)
            continue;
        fprintf(err,
                "trib-perf: --sizes: %zu bytes are not a whole number of "
                "float32.\n",
                bytes);
        return false;
    }
    return true;
}

bool perf_outputs_differ(const char *csv, const char *json, FILE *err)
{
    if (csv == NULL || json == NULL || strcmp(csv, json) != 0)
        return true;
    fprintf(err, "trib-perf: --csv and --json cannot both write to %s.\n",
            strcmp(csv, "-") == 0 ? "standard output" : csv);
    return false;
}
