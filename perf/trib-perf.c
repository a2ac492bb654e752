/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-perf - measure latency and bandwidth of collectives, transports and codecs.
 */
#include <stdlib.h>
#include <string.h>

#include "perf/agg/agg.h"
#include "perf/versus/versus.h"
#include "perf/codec/codec_perf.h"
#include "perf/coll/arguments.h"
#include "perf/coll/calibrate.h"
#include "perf/coll/measure.h"
#include "perf/coll/operation.h"
#include "perf/coll/overlap.h"
#include "perf/coll/perf_ranks.h"
#include "perf/coll/writer.h"
#include "perf/common/machine_json.h"
#include "perf/common/perf_interrupt.h"
#include "perf/common/progress.h"
#include "perf/common/setters.h"
#include "perf/common/sizes.h"
#include "perf/put/put.h"
#include "perf/report/peers_launch.h"
#include "perf/report/perf_report.h"
#include "tools/common/options.h"
#include "tools/common/tool.h"

/* --- one rank --- */

struct run {
    const struct perf_args *args;
    trib_comm_t *comm;
    struct perf_writer *writer; /* on rank 0 only */
    double wrong;
    bool interrupted;
    struct report_file old; /* --compare, on rank 0 */
};

/* Open the outputs on rank 0, which prints the error; the other ranks end silently. */
static trib_status_t open_writer(struct run *run, double *failed_out)
{
    char why[4352] = "out of memory";
    *failed_out = 0;
    if (trib_rank(run->comm) == 0) {
        if (report_prepare(run->args, &run->old, why, sizeof(why)))
            run->writer =
                perf_writer_open(run->args, trib_size(run->comm), why, sizeof(why));
        if (run->writer == NULL ||
            (report_wanted(run->args) && !perf_writer_keep(run->writer))) {
            fprintf(stderr, "trib-perf: %s.\n", why);
            *failed_out = 1;
        }
    }
    return perf_combine(run->comm, TRIB_MAX, failed_out, 1);
}

/* Print how a codec exceeded its bounds, in addition to the number of wrong
 * elements. */
static void say_loss(const struct perf_args *args, const struct perf_result *result)
{
    char size[32];
    const char *codec = perf_codec_text(args);
    perf_size_text(result->bytes, size, sizeof(size));
    if (result->nmse_limit > 0)
        fprintf(stderr,
                "trib-perf: %s: the error exceeds its limit: codec %s allows an nmse "
                "of %.2g.\n",
                size, codec, result->nmse_limit);
    if (result->lost > 0)
        fprintf(stderr,
                "trib-perf: %s: a result lacks the input of %.0f rank%s, or has it "
                "more than once.\n",
                size, result->lost, result->lost > 1 ? "s" : "");
}

/* Set run->interrupted if any rank was interrupted, so that all ranks end after the
 * same size. */
static trib_status_t ask_interrupted(struct run *run)
{
    double interrupted = perf_interrupted();
    const trib_status_t status = perf_combine(run->comm, TRIB_MAX, &interrupted, 1);

    run->interrupted = interrupted > 0;
    return status;
}

static trib_status_t sweep(struct run *run)
{
    const struct perf_args *args = run->args;
    struct perf_progress progress;
    perf_progress_start(&progress, args->sizes.n, trib_rank(run->comm) == 0);
    trib_status_t status = TRIB_OK;
    perf_interrupt_watch();
    for (size_t i = 0; i < args->sizes.n && status == TRIB_OK; i++) {
        struct perf_result result;
        progress.at = i;
        status = perf_measure(run->comm, args, args->sizes.bytes[i], perf_progress_show,
                              &progress, &result);
        perf_progress_clear(&progress);
        if (status != TRIB_OK)
            break;
        if (args->check)
            run->wrong += result.wrong;
        if (run->writer != NULL) {
            perf_writer_add(run->writer, &result);
            say_loss(args, &result);
        }
        status = ask_interrupted(run);
        if (!run->interrupted)
            continue;
        if (run->writer != NULL)
            perf_writer_interrupted(run->writer, i + 1);
        break;
    }
    perf_interrupt_end();
    return status;
}

static int finish(struct run *run)
{
    char why[4352];
    trib_stats_t stats = {.size = sizeof(stats)};
    trib_stats(run->comm, &stats);
    if (run->writer != NULL &&
        !perf_writer_finish(run->writer, &stats, why, sizeof(why))) {
        fprintf(stderr, "trib-perf: %s.\n", why);
        return 1;
    }
    if (run->wrong > 0 && trib_rank(run->comm) == 0)
        fprintf(stderr, "trib-perf: the check found %.0f error%s, listed above.\n",
                run->wrong, run->wrong > 1 ? "s" : "");
    int code = 0;
    if (run->writer != NULL && report_wanted(run->args))
        code = report_measured(run->args, perf_writer_document(run->writer), &run->old);
    return run->wrong > 0                   ? 1
           : code != 0 || !run->interrupted ? code
                                            : EXIT_INTERRUPTED;
}

static int run_all(struct run *run)
{
    double failed;
    trib_status_t status = open_writer(run, &failed);
    if (status == TRIB_OK && failed > 0)
        return 2;
    if (status == TRIB_OK)
        status = sweep(run);
    if (status == TRIB_OK)
        return finish(run);
    fprintf(stderr, "trib-perf: rank %d: %s\n", trib_rank(run->comm),
            trib_last_error(run->comm));
    return 1;
}

static int run_rank(const void *arg, trib_comm_t *comm)
{
    const struct perf_args *args = arg;
    struct run run = {.args = args, .comm = comm};
    int code = 2;

    if (args->root < trib_size(comm))
        code = run_all(&run);
    else if (trib_rank(comm) == 0)
        fprintf(stderr, "trib-perf: --root %d: the ranks are 0 to %d.\n", args->root,
                trib_size(comm) - 1);
    perf_writer_free(run.writer);
    report_file_close(&run.old);
    return code;
}

static int measure(const struct perf_args *args)
{
    return perf_ranks_run(args, run_rank, args);
}

static int collective_main(int argc, char **argv)
{
    struct perf_args args;
    /* Every rank reports wrong arguments. With a launcher's variables left over in a
     * shell, this may be the only rank. */
    int code = perf_args_parse(argc, argv, stderr, &args);
    if (code < 0)
        args.overlap_fn = perf_overlap_measure;
    if (code < 0 && perf_launched_twice(args.ranks, args.bind, stderr)) {
        perf_args_free(&args);
        code = 2;
    }
    if (code < 0 && !perf_memory_fits(&args, stderr)) {
        perf_args_free(&args);
        code = 2;
    }
    if (code >= 0)
        return code;
    code = args.peers != NULL ? peers_measure(&args, measure) : measure(&args);
    perf_args_free(&args);
    return code;
}

static const struct command {
    const char *name;
    int (*main)(int argc, char **argv);
} commands[] = {
    {"agg", agg_main},       {"calibrate", calibrate_main},
    {"codec", codec_main},   {"compare", compare_main},
    {"groups", versus_main}, {"neighbors", versus_main},
    {"put", put_main},       {"report", report_main},
    {"store", versus_main},
};

/* Run the command that the first word names, if any. */
static int obey(int argc, char **argv)
{
    static const struct tool_command *const tables[] = {&perf_collective,
                                                        &agg_command,
                                                        &calibrate_command,
                                                        &codec_command,
                                                        &compare_command,
                                                        &versus_groups.command,
                                                        &versus_neighbors.command,
                                                        &put_command,
                                                        &report_command,
                                                        &versus_store.command,
                                                        NULL};
    const char *word = argc > 1 ? argv[1] : "";
    const int code = tool_completion(argc, argv, tables);

    if (code >= 0)
        return code;
    for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
        if (strcmp(word, commands[i].name) == 0)
            return commands[i].main(argc, argv);
    return collective_main(argc, argv);
}

int main(int argc, char **argv)
{
    tool_begin();
    tool_signals();
    tool_open_files(NULL);
    perf_machine_note();
    return tool_end("trib-perf", obey(argc, argv));
}
