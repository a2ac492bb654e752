/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Output rows of trib-sim: table, csv, json.
 */
#include "perf/common/output.h"

#include <tributary.h>
#include "perf/sim/sim.h"

static void table_open(struct tool_table *t, const struct sim_args *args)
{
    char size[32];

    printf(
        "simulated allreduce f32 sum of %s, codec %s, algorithm %s, %s at %g Gbit/s, "
        "%zu rank%s per host, tributary %s\n",
        perf_size_text(args->bytes, size, sizeof(size)), args->codec, args->algorithm,
        args->topology, args->rate * 8e-9, args->per_host,
        args->per_host == 1 ? "" : "s", trib_version());
    tool_table_add(t, "ranks", "", 6, 0);
    tool_table_add(t, "algorithm", "", -17, 0);
    tool_table_add(t, "time", "ms", 13, 0);
    tool_table_add(t, "cpu", "ms", 11, 2);
    tool_table_add(t, "host", "MB", 11, 1);
    tool_table_add(t, "host most", "MB", 11, 4);
    tool_table_add(t, "fabric", "MB", 11, 3);
    tool_table_add(t, "peers", "", 7, 3);
    tool_table_add(t, "memory", "MiB", 10, 1);
    tool_table_add(t, "messages", "", 10, 5);
    tool_table_add(t, "replayed", "%", 9, 1);
    tool_table_head(t);
}

static void table_row(struct tool_table *t, const struct sim_result *r)
{
    if (r->why[0])
        return;
    tool_table_cell(t, "%d", r->ranks);
    tool_table_cell(t, "%s", r->algorithm);
    tool_table_cell(t, "%.3f", r->time_s * 1e3);
    tool_table_cell(t, "%.3f", r->cpu_s * 1e3);
    tool_table_cell(t, "%.3f", r->host_mean * 1e-6);
    tool_table_cell(t, "%.3f", r->host_most * 1e-6);
    tool_table_cell(t, "%.3f", r->fabric * 1e-6);
    tool_table_cell(t, "%d", r->peers_most);
    tool_table_cell(t, "%.2f", r->memory_most / (1 << 20));
    tool_table_cell(t, "%.0f", r->messages);
    tool_table_cell(t, "%.3g", r->replayed * 100);
    tool_table_row_end(t);
    if (r->agg_peers)
        printf("%6s an aggregator has up to %d peers and %.2f MiB of slots\n", "",
               r->agg_peers, r->agg_memory / (1 << 20));
    if (r->frames > 1)
        printf("%6s %u of the library's rounds per round of the replay\n", "",
               r->frames);
    if (r->replayed < 1)
        printf("%6s the rest is extrapolated from the second half of the replay\n", "");
}

static void csv_row(FILE *f, const struct sim_args *args, const struct sim_result *r)
{
    if (r->why[0])
        return;
    fprintf(f,
            "%d,%d,%s,\"%s\",%zu,%.9g,%.9g,%.9g,%u,%u,%zu,%u,%.6g,%.0f,%.0f,%.0f,%.0f,"
            "%.0f,%.0f,%.0f,%d,%.6g,%.0f,%.0f,%d,%.0f,%s\n",
            r->ranks, r->hosts, r->algorithm, args->codec, args->bytes, r->time_s,
            r->first_s, r->cpu_s, r->chunks, r->rounds, r->piece, r->frames,
            r->replayed, r->messages, r->payload, r->far_payload, r->host_mean,
            r->host_most, r->fabric, r->fabric_most, r->peers_most, r->peers_mean,
            r->memory_most, r->memory_mean, r->agg_peers, r->agg_memory, r->automatic);
}

static json_t *json_row(const struct sim_result *r)
{
    if (r->why[0])
        return json_pack("{s:i,s:s}", "ranks", r->ranks, "failed", r->why);
    json_t *o = json_pack(
        "{s:i,s:i,s:s,s:f,s:f,s:f,s:i,s:i,s:I,s:i,s:f,s:f,s:f,s:f}", "ranks", r->ranks,
        "hosts", r->hosts, "algorithm", r->algorithm, "time_s", r->time_s, "first_s",
        r->first_s, "cpu_s", r->cpu_s, "chunks", (int)r->chunks, "rounds",
        (int)r->rounds, "piece", (json_int_t)r->piece, "frames", (int)r->frames,
        "replayed", r->replayed, "messages", r->messages, "payload_bytes", r->payload,
        "far_payload_bytes", r->far_payload);
    json_t *more = json_pack(
        "{s:f,s:f,s:f,s:f,s:i,s:f,s:f,s:f,s:i,s:f,s:s,s:s}", "host_bytes_mean",
        r->host_mean, "host_bytes_most", r->host_most, "fabric_bytes", r->fabric,
        "fabric_bytes_most", r->fabric_most, "peers_most", r->peers_most, "peers_mean",
        r->peers_mean, "memory_most", r->memory_most, "memory_mean", r->memory_mean,
        "aggregator_peers", r->agg_peers, "aggregator_memory", r->agg_memory, "choice",
        r->automatic, "estimates", r->estimates);

    json_object_update(o, more);
    json_decref(more);
    return o;
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
    perf_output_flush(o);
}

static void write_rows(struct perf_output *o, const struct sim_args *args,
                       const struct sim_result *results, size_t n)
{
    if (o->table)
        table_open(&o->rows, args);
    if (o->csv)
        fputs("ranks,hosts,algorithm,codec,bytes,time_s,first_s,cpu_s,chunks,rounds,"
              "piece,frames,replayed,messages,payload_bytes,far_payload_bytes,"
              "host_bytes_mean,host_bytes_most,fabric_bytes,fabric_bytes_most,"
              "peers_most,peers_mean,memory_most,memory_mean,aggregator_peers,"
              "aggregator_memory,auto\n",
              o->csv);
    for (size_t i = 0; i < n; i++) {
        if (o->table)
            table_row(&o->rows, &results[i]);
        if (o->csv)
            csv_row(o->csv, args, &results[i]);
        if (o->results)
            json_array_append_new(o->results, json_row(&results[i]));
    }
    perf_output_flush(o);
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
