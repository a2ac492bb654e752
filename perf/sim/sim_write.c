/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Output rows of trib-sim: table, csv, json.
 */
#include <stddef.h>

#include <tributary.h>

#include "perf/common/columns.h"
#include "perf/sim/sim.h"

struct row {
    struct sim_result r;
    const char *algorithm, *codec, *automatic, *estimates;
    size_t bytes;
    double time_ms, cpu_ms, host_MB, host_most_MB, fabric_MB, backlog_MB, memory_MiB,
        percent;
};

/* clang-format off */
#define AT(member) offsetof(struct row, member)
static const struct perf_column all_columns[] = {
    {"ranks", "ranks", "", 6, 0, PERF_INT, 0, 0, 0, AT(r.ranks)},
    {"hosts", PERF_UNSHOWN, PERF_INT, 0, 0, 0, AT(r.hosts)},
    {"algorithm", "algorithm", "", -17, 0, PERF_TEXT, 0, 0, 0, AT(algorithm)},
    {"codec", PERF_UNSHOWN, PERF_QUOTED, 0, 0, PERF_NO_JSON, AT(codec)},
    {"bytes", PERF_UNSHOWN, PERF_SIZE, 0, 0, PERF_NO_JSON, AT(bytes)},
    {"time_s", PERF_UNSHOWN, PERF_GENERAL, 9, 0, 0, AT(r.time_s)},
    {"first_s", PERF_UNSHOWN, PERF_GENERAL, 9, 0, 0, AT(r.first_s)},
    {"cpu_s", PERF_UNSHOWN, PERF_GENERAL, 9, 0, 0, AT(r.cpu_s)},
    {"chunks", PERF_UNSHOWN, PERF_UINT32, 0, 0, 0, AT(r.chunks)},
    {"rounds", PERF_UNSHOWN, PERF_UINT32, 0, 0, 0, AT(r.rounds)},
    {"piece", PERF_UNSHOWN, PERF_SIZE, 0, 0, 0, AT(r.piece)},
    {"frames", PERF_UNSHOWN, PERF_UINT32, 0, 0, 0, AT(r.frames)},
    {"replayed", PERF_UNSHOWN, PERF_GENERAL, 6, 0, 0, AT(r.replayed)},
    {"messages", PERF_UNSHOWN, PERF_FIXED, 0, 0, 0, AT(r.messages)},
    {"payload_bytes", PERF_UNSHOWN, PERF_FIXED, 0, 0, 0, AT(r.payload)},
    {"far_payload_bytes", PERF_UNSHOWN, PERF_FIXED, 0, 0, 0, AT(r.far_payload)},
    {"host_bytes_mean", PERF_UNSHOWN, PERF_FIXED, 0, 0, 0, AT(r.host_mean)},
    {"host_bytes_most", PERF_UNSHOWN, PERF_FIXED, 0, 0, 0, AT(r.host_most)},
    {"fabric_bytes", PERF_UNSHOWN, PERF_FIXED, 0, 0, 0, AT(r.fabric)},
    {"fabric_bytes_most", PERF_UNSHOWN, PERF_FIXED, 0, 0, 0, AT(r.fabric_most)},
    {"backlog_bytes_most", PERF_UNSHOWN, PERF_FIXED, 0, 0, 0, AT(r.backlog_most)},
    {"held", PERF_UNSHOWN, PERF_FIXED, 0, 0, 0, AT(r.held)},
    {"peers_most", PERF_UNSHOWN, PERF_INT, 0, 0, 0, AT(r.peers_most)},
    {"peers_mean", PERF_UNSHOWN, PERF_GENERAL, 6, 0, 0, AT(r.peers_mean)},
    {"memory_most", PERF_UNSHOWN, PERF_FIXED, 0, 0, 0, AT(r.memory_most)},
    {"memory_mean", PERF_UNSHOWN, PERF_FIXED, 0, 0, 0, AT(r.memory_mean)},
    {"aggregator_peers", PERF_UNSHOWN, PERF_INT, 0, 0, 0, AT(r.agg_peers)},
    {"aggregator_memory", PERF_UNSHOWN, PERF_FIXED, 0, 0, 0, AT(r.agg_memory)},
    {"auto", PERF_UNSHOWN, PERF_TEXT, 0, 0, PERF_NO_JSON, AT(automatic)},
    {"choice", PERF_UNSHOWN, PERF_TEXT, 0, 0, PERF_NO_CSV, AT(automatic)},
    {"estimates", PERF_UNSHOWN, PERF_TEXT, 0, 0, PERF_NO_CSV, AT(estimates)},
    {NULL, "time", "ms", 13, 0, PERF_FIXED, 0, 3, 0, AT(time_ms)},
    {NULL, "cpu", "ms", 11, 2, PERF_FIXED, 0, 3, 0, AT(cpu_ms)},
    {NULL, "host", "MB", 11, 1, PERF_FIXED, 0, 3, 0, AT(host_MB)},
    {NULL, "host most", "MB", 11, 4, PERF_FIXED, 0, 3, 0, AT(host_most_MB)},
    {NULL, "fabric", "MB", 11, 3, PERF_FIXED, 0, 3, 0, AT(fabric_MB)},
    {NULL, "backlog", "MB", 10, 2, PERF_FIXED, 0, 3, 0, AT(backlog_MB)},
    {NULL, "peers", "", 7, 3, PERF_INT, 0, 0, 0, AT(r.peers_most)},
    {NULL, "memory", "MiB", 10, 1, PERF_FIXED, 0, 2, 0, AT(memory_MiB)},
    {NULL, "messages", "", 10, 5, PERF_FIXED, 0, 0, 0, AT(r.messages)},
    {NULL, "replayed", "%", 9, 1, PERF_GENERAL, 0, 3, 0, AT(percent)}};
/* clang-format on */

static const struct perf_columns columns = {
    all_columns, sizeof(all_columns) / sizeof(*all_columns), 0};

static void table_open(const struct sim_args *args)
{
    char size[32];

    printf(
        "simulated allreduce f32 sum of %s, codec %s, algorithm %s, %s at %g Gbit/s, "
        "%zu rank%s per host, tributary %s\n",
        perf_size_text(args->bytes, size, sizeof(size)), args->codec, args->algorithm,
        args->topology, args->rate * 8e-9, args->per_host,
        args->per_host == 1 ? "" : "s", trib_version());
}

/* Print the notes below a row of the table. */
static void table_notes(const struct sim_result *r)
{
    if (r->agg_peers)
        printf("%6s an aggregator has up to %d peers and %.2f MiB of slots\n", "",
               r->agg_peers, r->agg_memory / (1 << 20));
    if (r->frames > 1)
        printf("%6s %u of the library's rounds per round of the replay\n", "",
               r->frames);
    if (r->replayed < 1)
        printf("%6s the rest is extrapolated from the second half of the replay\n", "");
}

static void write_row(struct perf_output *o, const struct sim_args *args,
                      const struct sim_result *r)
{
    const struct row row = {.r = *r,
                            .algorithm = r->algorithm,
                            .codec = args->codec,
                            .automatic = r->automatic,
                            .estimates = r->estimates,
                            .bytes = args->bytes,
                            .time_ms = r->time_s * 1e3,
                            .cpu_ms = r->cpu_s * 1e3,
                            .host_MB = r->host_mean * 1e-6,
                            .host_most_MB = r->host_most * 1e-6,
                            .fabric_MB = r->fabric * 1e-6,
                            .backlog_MB = r->backlog_most * 1e-6,
                            .memory_MiB = r->memory_most / (1 << 20),
                            .percent = r->replayed * 100};

    if (!r->why[0])
        perf_columns_row(o, &columns, &row);
    else if (o->results)
        json_array_append_new(
            o->results, json_pack("{s:i,s:s}", "ranks", r->ranks, "failed", r->why));
    if (!r->why[0] && o->table)
        table_notes(r);
}

/* Write what auto would choose; nothing was replayed. */
static void write_choices(struct perf_output *o, const struct sim_args *args,
                          const struct sim_result *results, size_t n)
{
    if (o->csv)
        fputs("ranks,codec,bytes,rate_Bps,auto,estimates\n", o->csv);
    for (size_t i = 0; i < n; i++) {
        const struct sim_result *r = &results[i];
        if (r->why[0])
            continue;
        if (o->table)
            printf("%6d ranks: %s\n", r->ranks, r->estimates);
        if (o->csv)
            fprintf(o->csv, "%d,\"%s\",%zu,%.9g,%s,\"%s\"\n", r->ranks, args->codec,
                    args->bytes, args->rate, r->automatic, r->estimates);
        if (o->results)
            json_array_append_new(
                o->results, json_pack("{s:i,s:s,s:s}", "ranks", r->ranks, "choice",
                                      r->automatic, "estimates", r->estimates));
    }
}

static void write_rows(struct perf_output *o, const struct sim_args *args,
                       const struct sim_result *results, size_t n)
{
    if (o->table)
        table_open(args);
    perf_columns_head(o, &columns);
    for (size_t i = 0; i < n; i++)
        write_row(o, args, &results[i]);
}

bool sim_write(const struct sim_args *args, const struct sim_result *results, size_t n,
               int argc, char **argv)
{
    struct perf_output o;
    char why[SIM_WHY];
    json_t *run = NULL, *document = NULL;

    if (!perf_output_open(&o, args->csv, args->json, why, sizeof(why))) {
        fprintf(stderr, "trib-sim: %s\n", why);
        return false;
    }
    (args->choose ? write_choices : write_rows)(&o, args, results, n);
    if (o.results) {
        run = json_pack("{s:s,s:s,s:I,s:s,s:f,s:f}", "algorithm", args->algorithm,
                        "codec", args->codec, "bytes", (json_int_t)args->bytes,
                        "topology", args->topology, "rate_Bps", args->rate, "latency_s",
                        args->latency_s);
        document = perf_output_document(&o, argc, argv, run);
    }
    const bool well = perf_output_finish(&o, document, why, sizeof(why));
    if (!well)
        fprintf(stderr, "trib-sim: %s\n", why);
    perf_output_free(&o);
    return well;
}
