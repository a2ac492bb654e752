/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Output rows of put.
 */
#include <stddef.h>

#include "base/text.h"
#include "perf/common/columns.h"
#include "perf/common/samples.h"
#include "perf/common/sizes.h"
#include "perf/put/put.h"
#include "transport/ops.h"

struct row {
    struct put_result r;
    const char *transport, *ways, *client, *server, *version;
    int depth;
    double millions; /* of messages per second */
};

enum { LATENCY = PERF_IF_A, BANDWIDTH = PERF_IF_B, CHECK = PERF_IF_C };

/* clang-format off */
#define AT(member) offsetof(struct row, member)
static const struct perf_column all_columns[] = {
    {"transport", PERF_UNSHOWN, PERF_QUOTED, 0, 0, PERF_NO_JSON, AT(transport)},
    {"depth", PERF_UNSHOWN, PERF_INT, 0, 0, PERF_NO_JSON, AT(depth)},
    {"ways", PERF_UNSHOWN, PERF_TEXT, 0, 0, PERF_NO_JSON, AT(ways)},
    {"bytes", "size", "", 10, 0, PERF_BYTES, 0, 0, 0, AT(r.bytes)},
    {"iters", "samples", "", 8, 5, PERF_SIZE, 0, 0, LATENCY, AT(r.us.n)},
    {"p50_us", "p50", "µs ", 11, 0, PERF_US, 4, 0, LATENCY, AT(r.us.p50)},
    {"p99_us", "p99", "µs ", 11, 1, PERF_US, 4, 0, LATENCY, AT(r.us.p99)},
    {"p999_us", "p99.9", "µs ", 11, 7, PERF_US, 4, 0, LATENCY, AT(r.us.p999)},
    {"min_us", "min", "µs ", 11, 3, PERF_US, 4, 0, LATENCY, AT(r.us.min)},
    {"max_us", "max", "µs ", 11, 4, PERF_US, 4, 0, LATENCY, AT(r.us.max)},
    {"mean_us", PERF_UNSHOWN, PERF_FIXED, 4, 0, LATENCY, AT(r.us.mean)},
    {"writes", "writes", "", 9, 6, PERF_UINT64, 0, 0, BANDWIDTH, AT(r.writes)},
    {"GBps", "bandwidth", "GB/s", 10, 0, PERF_FIXED, 6, 4, BANDWIDTH, AT(r.GBps)},
    {"messages_per_s", PERF_UNSHOWN, PERF_FIXED, 1, 0, BANDWIDTH, AT(r.messages_per_s)},
    {NULL, "messages", "million/s", 10, 1, PERF_FIXED, 0, 4, BANDWIDTH, AT(millions)},
    {"cpu_s_per_GB", "CPU", "s/GB", 10, 2, PERF_FIXED, 6, 3,
     BANDWIDTH | PERF_OPTIONAL, AT(r.cpu_s_per_GB)},
    {"wrong", "wrong", "bytes", 11, 0, PERF_COUNT, 0, 0, CHECK, AT(r.wrong)},
    {"client", PERF_UNSHOWN, PERF_TEXT, 0, 0, PERF_NO_JSON, AT(client)},
    {"server", PERF_UNSHOWN, PERF_TEXT, 0, 0, PERF_NO_JSON, AT(server)},
    {"version", PERF_UNSHOWN, PERF_TEXT, 0, 0, PERF_NO_JSON, AT(version)}};
/* clang-format on */

/* Return the transport that "auto" chose. */
static const char *transport_text(const struct put_report *r)
{
    const char *text = r->endpoint->setup.transport;
    return trib_text_is_auto(text) ? r->route.name : text;
}

static const char *ways(const struct put_args *args)
{
    return args->bidirectional ? "both" : "one";
}

/* --- table --- */

static void table_open(const struct put_report *r)
{
    const struct put_args *args = r->args;
    printf("put over %s, depth %d, %s, %s to %s, tributary %s\n", transport_text(r),
           args->depth, args->bidirectional ? "both ways" : "one way",
           r->endpoint->me.host, r->endpoint->other.host, trib_version());
    if (args->latency)
        puts("times are one-way: half of a round trip");
}

/* --- json --- */

static json_t *json_all(const struct put_report *r)
{
    const struct put_args *args = r->args;
    json_t *about =
        json_pack("{s:s, s:s, s:i, s:s, s:b, s:s, s:s, s:s}", "command", "put",
                  "transport", transport_text(r), "depth", args->depth, "ways",
                  ways(args), "check", args->check, "client", r->endpoint->me.host,
                  "server", r->endpoint->other.host, "latency", "half of a round trip");
    return perf_output_document(&r->out, args->argc, args->argv, about);
}

/* --- all outputs --- */

bool put_report_open(struct put_report *r, char *why, size_t why_bytes)
{
    const struct put_args *args = r->args;
    struct trib_transport *t = r->endpoint->t;

    t->ops->route(t, !r->endpoint->server, &r->route);
    if (!perf_output_open(&r->out, args->csv, args->json, why, why_bytes))
        return false;
    if (r->out.table)
        table_open(r);
    r->columns = (struct perf_columns){
        all_columns, sizeof(all_columns) / sizeof(*all_columns),
        (args->latency ? LATENCY : 0u) | (args->bandwidth ? BANDWIDTH : 0u) |
            (args->check ? CHECK : 0u)};
    perf_columns_head(&r->out, &r->columns);
    return true;
}

void put_report_add(struct put_report *r, const struct put_result *result)
{
    const struct row row = {.r = *result,
                            .transport = transport_text(r),
                            .ways = ways(r->args),
                            .client = r->endpoint->me.host,
                            .server = r->endpoint->other.host,
                            .version = trib_version(),
                            .depth = r->args->depth,
                            .millions = 1e-6 * result->messages_per_s};

    perf_columns_row(&r->out, &r->columns, &row);
}

bool put_report_finish(struct put_report *r, char *why, size_t why_bytes)
{
    json_t *all = r->out.results == NULL ? NULL : json_all(r);
    return perf_output_finish(&r->out, all, why, why_bytes);
}
