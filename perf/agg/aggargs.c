/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The command line of trib-perf agg.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "perf/agg/agg.h"
#include "perf/coll/arguments.h"
#include "perf/coll/operation.h"
#include "perf/common/setters.h"
#include "tools/common/setting_values.h"

/* --- setters --- */

static bool add_codec(const struct tool_given *given, const char *value)
{
    struct agg_args *args = given->args;
    struct tool_given each = *given;

    if (args->n_codecs == AGG_CODECS_MAX)
        return tool_say(given, "--codec: more than %d codecs", AGG_CODECS_MAX);
    args->codecs[args->n_codecs++] = value;
    each.args = &args->each;
    return perf_set_codec(&each, value);
}

static bool set_weights(const struct tool_given *given, const char *value)
{
    struct agg_args *args = given->args;
    const char *at = value;
    char *end;

    args->n_weights = 0;
    for (;; at = end + 1) {
        long weight = strtol(at, &end, 10);
        if (end == at || weight < 1 || weight > 100 ||
            args->n_weights == AGG_WEIGHTS_MAX)
            break;
        args->weights[args->n_weights++] = (int)weight;
        if (*end == '\0')
            return true;
        if (*end != ',')
            break;
    }
    return tool_refuse(
        given, value,
        "is not a list of at most %d whole numbers from 1 to 100, such as "
        "1,1,4",
        AGG_WEIGHTS_MAX);
}

static bool set_seconds(const struct tool_given *given, const char *value)
{
    struct agg_args *args = given->args;
    char *end;

    args->seconds = strtod(value, &end);
    if (end != value && *end == '\0' && args->seconds > 0 && args->seconds <= 1e6)
        return true;
    return tool_refuse(given, value, "is not a number of seconds above 0, such as 10");
}

static bool set_pid(const struct tool_given *given, const char *value)
{
    struct agg_args *args = given->args;
    char *end;
    long pid = strtol(value, &end, 10);

    args->tribd_pid = (int)pid;
    if (end != value && *end == '\0' && pid > 0 && pid <= INT32_MAX &&
        !isnan(perf_cpu_seconds_of((pid_t)pid)))
        return true;
    return tool_refuse(given, value, "is not the id of a process on this host");
}

#define AT(field) offsetof(struct agg_args, field)

static const struct tool_option options[] = {
    {"jobs", "J", tool_set_int, AT(jobs), .help = "concurrent jobs [4]", .least = 1,
     .most = 4096},
    {"workers", "N", tool_set_int, AT(workers), .help = "workers per job [2]",
     .least = 1, .most = 4096},
    {"sizes", "LIST", perf_set_sizes, AT(each.sizes),
     .help = "bytes of float32; one round of all jobs per size [1M]"},
    {"codec", "TEXT", add_codec,
     .help = "codec of a job; if given several times, jobs use them in turn",
     .words = "@codecs"},
    {"weights", "LIST", set_weights,
     .help = "weights of jobs at the service, used in turn, 1 to 100 [1]"},
    PERF_CHUNK_ROW,
    PERF_DENSITY_ROW,
    PERF_MEMORY_ROW(AT(each.memory)),
    {"seconds", "S", set_seconds, .help = "duration of a round [3]"},
    {"iters", "N", tool_set_long, AT(each.iters),
     .help = "operations per job and round, instead of --seconds", .least = 1},
    {"warmup", "N", tool_set_long, AT(each.warmup),
     .help = "warm-up operations before each round [2]"},
    {"service", "LIST", tool_set_text, AT(service),
     .help = "host:port,… of tribd [TRIB_SERVICE, else starts a tribd]"},
    {"tribd", "FILE", tool_set_text, AT(tribd),
     .help = "path of tribd [installed or built with trib-perf, else in PATH]"},
    {"tribd-pid", "PID", set_pid,
     .help = "process id of a service on this host, to measure its processor time"},
    {"check", NULL, tool_set_switch, AT(each.check),
     .help = "use a new input for each operation, and compare each result with an "
             "oracle"},
    {"rewrite", NULL, tool_set_switch, AT(each.rewrite),
     .help = "write the input before each operation, not timed"},
    {"bind", "HOW", tool_set_choice, AT(each.bind),
     .help = "core: one core per worker of a job, in turn; none, since a tribd on "
             "this host needs cores, too [none]",
     .words = "none core"},
    TOOL_WIDE_ROW,
    PERF_CSV_ROW(AT(each.csv), "one row per size"),
    {"json", "FILE", tool_set_text, AT(each.json),
     .help = "results, including each job's, with a description of the machine; -: "
             "standard output"},
};

const struct tool_command agg_command = {
    .name = "trib-perf agg",
    .usage =
        "usage: trib-perf agg [OPTION]…\n"
        "\n"
        "Loads an aggregation service: J concurrent jobs of N workers each sum "
        "vectors\n"
        "one after the other. Without --service it starts and stops a tribd on "
        "loopback,\n"
        "which TRIBD_* variables configure. GB/s (1e9 bytes) and processor seconds "
        "per\n"
        "GB count the vectors of all workers of all jobs. jain is the fairness of "
        "GB/s\n"
        "over weight among the jobs: 1 if all are equal. Operations that the service "
        "did\n"
        "not sum have fallen back to the ranks; their jobs are listed.\n",
    .ending = "example: trib-perf agg --jobs 8 --workers 2 --codec none --codec int8 "
              "--check\n"
              "exit code: 0 done; 1 wrong result, failed, or a job lost its service; "
              "2 wrong\n"
              "arguments",
    .options = options,
    .n_options = sizeof(options) / sizeof(options[0]),
};

/* --- checks --- */

static bool check_service(struct agg_args *args, FILE *err)
{
    if (args->service == NULL && args->configured_service[0] != '\0')
        args->service = args->configured_service;
    if (args->service != NULL && args->tribd != NULL) {
        fprintf(
            err,
            "trib-perf: --tribd starts a tribd, but the service at %s is set: leave "
            "out --tribd, or %s.\n",
            args->service,
            args->service == args->configured_service ? "unset TRIB_SERVICE"
                                                      : "--service");
        return false;
    }
    if (args->service == NULL && args->tribd_pid > 0) {
        fputs("trib-perf: --tribd-pid requires a running service: name it with "
              "--service.\n",
              err);
        return false;
    }
    return true;
}

/* Check rules that involve several options. */
static bool check_together(struct agg_args *args, FILE *err)
{
    if (args->seconds > 0 && args->each.iters > 0) {
        fputs("trib-perf: a round has either --seconds or --iters: leave one out.\n",
              err);
        return false;
    }
    if (args->seconds <= 0 && args->each.iters == 0)
        args->seconds = 3;
    if ((long)args->jobs * args->workers > AGG_WORKERS_MAX) {
        fprintf(err, "trib-perf: %d jobs of %d workers are %ld workers; at most %d.\n",
                args->jobs, args->workers, (long)args->jobs * args->workers,
                AGG_WORKERS_MAX);
        return false;
    }
    if (!perf_outputs_differ(args->each.csv, args->each.json, err) ||
        !check_service(args, err))
        return false;
    return perf_float_sizes(&args->each.sizes, "1M", err);
}

/* Write the codecs that jobs use in turn: "none int8". */
static void join_codecs(const struct agg_args *args, char *text, size_t bytes)
{
    size_t at = 0;

    snprintf(text, bytes, "%s", args->each.configured_codec);
    for (int i = 0; i < args->n_codecs && at + 1 < bytes; i++)
        at += (size_t)snprintf(text + at, bytes - at, "%s%s", i > 0 ? " " : "",
                               args->codecs[i]);
}

/* Fill in the arguments of perf_operation; perf_memory_fits then counts all workers. */
static void describe_each(struct agg_args *args)
{
    struct perf_args *each = &args->each;

    each->coll = TRIB_ALLREDUCE;
    each->root = 0;
    each->call = PERF_CALL_PLAN;
    each->ranks = args->jobs * args->workers;
    if (each->warmup < 0)
        each->warmup = 2;
    join_codecs(args, args->codec_texts, sizeof(args->codec_texts));
    if (!tool_setting("TRIB_SERVICE_JOB", args->prefix, sizeof(args->prefix)))
        snprintf(args->prefix, sizeof(args->prefix), "agg.%d", (int)getpid());
}

const char *agg_codec_of(const struct agg_args *args, int job)
{
    return args->n_codecs > 0 ? args->codecs[job % args->n_codecs]
                              : args->each.configured_codec;
}

int agg_weight_of(const struct agg_args *args, int job)
{
    return args->n_weights > 0 ? args->weights[job % args->n_weights] : 1;
}

int agg_args_parse(int argc, char **argv, FILE *err, struct agg_args *args)
{
    memset(args, 0, sizeof(*args));
    args->jobs = 4;
    args->workers = 2;
    perf_args_init(&args->each, argc, argv);
    args->each.bind = TOOL_BIND_NONE;
    tool_setting("TRIB_SERVICE", args->configured_service,
                 sizeof(args->configured_service));
    int code = tool_parse(&agg_command, argc - 1, argv + 1, args, err);
    if (code < 0 && !check_together(args, err))
        code = 2;
    if (code < 0) {
        describe_each(args);
        code = perf_memory_fits(&args->each, err) ? -1 : 2;
    }
    if (code >= 0)
        agg_args_free(args);
    return code;
}

void agg_args_free(struct agg_args *args)
{
    perf_args_free(&args->each);
}
