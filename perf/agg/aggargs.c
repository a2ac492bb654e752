/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The command line of trib-perf agg.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "perf/agg/agg.h"
#include "perf/options.h"

/* --- setters --- */

static bool add_codec(const struct perf_option *option, void *to, const char *value,
                      FILE *err)
{
    struct agg_args *args = to;

    if (args->n_codecs == AGG_CODECS_MAX) {
        fprintf(err, "trib-perf: %s: more than %d codecs.\n", option->name,
                AGG_CODECS_MAX);
        return false;
    }
    args->codecs[args->n_codecs++] = value;
    return perf_set_codec(option, &args->each, value, err);
}

static bool set_weights(const struct perf_option *option, void *to, const char *value,
                        FILE *err)
{
    struct agg_args *args = to;
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
    fprintf(
        err,
        "trib-perf: %s '%s' is not a list of at most %d whole numbers from 1 to 100, "
        "such as 1,1,4.\n",
        option->name, value, AGG_WEIGHTS_MAX);
    return false;
}

static bool set_seconds(const struct perf_option *option, void *to, const char *value,
                        FILE *err)
{
    struct agg_args *args = to;
    char *end;

    args->seconds = strtod(value, &end);
    if (end != value && *end == '\0' && args->seconds > 0 && args->seconds <= 1e6)
        return true;
    fprintf(err, "trib-perf: %s '%s' is not a number of seconds above 0, such as 10.\n",
            option->name, value);
    return false;
}

static bool set_pid(const struct perf_option *option, void *to, const char *value,
                    FILE *err)
{
    struct agg_args *args = to;
    char *end;
    long pid = strtol(value, &end, 10);

    args->tribd_pid = (int)pid;
    if (end != value && *end == '\0' && pid > 0 && pid <= INT32_MAX &&
        !isnan(agg_cpu_seconds((pid_t)pid)))
        return true;
    fprintf(err, "trib-perf: %s '%s' is not the id of a process of this host.\n",
            option->name, value);
    return false;
}

static bool take_word(void *to, const char *value, FILE *err)
{
    (void)to;
    fprintf(
        err,
        "trib-perf: agg takes options alone, not '%s'; trib-perf agg --help lists "
        "them.\n",
        value);
    return false;
}

#define AT(field) offsetof(struct agg_args, field)

static const struct perf_option options[] = {
    {"--jobs", "J", perf_set_int, AT(jobs), 1, "at once [4]"},
    {"--workers", "N", perf_set_int, AT(workers), 1, "of each job [2]"},
    {"--sizes", "LIST", perf_set_sizes, AT(each.sizes), 0,
     "bytes of float32: a round of all jobs for each [1M]"},
    {"--codec", "TEXT", add_codec, 0, 0,
     "of a job; given several times, jobs take them in turn"},
    {"--weights", "LIST", set_weights, 0, 0,
     "of jobs at the service, which take them in turn, 1 to 100 [1]"},
    {"--chunk", "SIZE", perf_set_chunk, 0, 0, "bytes of a chunk"},
    {"--density", "D[,same]", perf_set_density, 0, 0,
     "part of the inputs' blocks (256 elements) that is not zeros; same: in all ranks "
     "[1]"},
    {"--memory", "KIND", perf_set_memory, AT(each.memory), 0,
     "alloc (trib_alloc), malloc, register [alloc]"},
    {"--seconds", "S", set_seconds, 0, 0, "of a round [3]"},
    {"--iters", "N", perf_set_long, AT(each.iters), 1,
     "operations of each job in a round, instead of --seconds"},
    {"--warmup", "N", perf_set_long, AT(each.warmup), 0,
     "operations before each round [2]"},
    {"--service", "LIST", perf_set_text, AT(service), 0,
     "host:port,… of tribd [TRIB_SERVICE, else a tribd of its own]"},
    {"--tribd", "FILE", perf_set_text, AT(tribd), 0,
     "its program [beside trib-perf, else as built with it, else in PATH]"},
    {"--tribd-pid", "PID", set_pid, 0, 0,
     "of a service on this host, whose processor time counts"},
    {"--check", NULL, perf_set_switch, AT(each.check), 0,
     "new inputs for each operation, and each result against an oracle"},
    {"--rewrite", NULL, perf_set_switch, AT(each.rewrite), 0,
     "write the input before each operation, outside its time"},
    {"--bind", "HOW", perf_set_bind, AT(each.bind), 0,
     "core: one core a worker of a job, in turn; none [none]"},
    {"--csv", "FILE", perf_set_text, AT(each.csv), 0,
     "one row a size; - is standard output"},
    {"--json", "FILE", perf_set_text, AT(each.json), 0,
     "results, of each job too, with a description of the machine; - likewise"},
};

static const struct perf_command command = {
    .name = "trib-perf agg",
    .usage =
        "usage: trib-perf agg [OPTION]…\n"
        "\n"
        "Loads an aggregation service: J jobs of N workers each, all at once, sum "
        "vectors\n"
        "one after the other. Without --service it starts a tribd of its own on "
        "loopback\n"
        "(TRIBD_* variables hold for it) and ends it. GB/s (1e9 bytes) are of what "
        "all\n"
        "workers of all jobs put in, and so are processor seconds per GB; jain is the\n"
        "fairness of the jobs' GB/s, each by its weight: 1 where all have the same. "
        "An\n"
        "operation that the service has not summed has fallen back to the ranks, and "
        "its\n"
        "job is named.\n",
    .ending =
        "example: trib-perf agg --jobs 8 --workers 2 --codec none --codec int8 "
        "--check\n"
        "exit code: 0 done; 1 wrong result, failed, or a job lost its service; 2 "
        "wrong\n"
        "arguments",
    .options = options,
    .n_options = sizeof(options) / sizeof(options[0]),
    .word = take_word,
};

/* --- the whole --- */

static bool check_service(struct agg_args *args, FILE *err)
{
    if (args->service == NULL && args->configured_service[0] != '\0')
        args->service = args->configured_service;
    if (args->service != NULL && args->tribd != NULL) {
        fprintf(
            err,
            "trib-perf: --tribd is of a service of its own, and there is one at %s: "
            "leave out --tribd, or %s.\n",
            args->service,
            args->service == args->configured_service ? "unset TRIB_SERVICE"
                                                      : "--service");
        return false;
    }
    if (args->service == NULL && args->tribd_pid > 0) {
        fputs(
            "trib-perf: --tribd-pid is of a service that runs: name it with "
            "--service.\n",
            err);
        return false;
    }
    return true;
}

/* Checks that need all options. */
static bool check_together(struct agg_args *args, FILE *err)
{
    if (args->seconds > 0 && args->each.iters > 0) {
        fputs("trib-perf: a round has --seconds or --iters: leave one out.\n", err);
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

/* Fills in the arguments of perf_operation; the memory that all of them need follows
 * from these. */
static void describe_each(struct agg_args *args)
{
    struct perf_args *each = &args->each;

    each->coll = TRIB_ALLREDUCE;
    each->root = 0;
    each->call = PERF_CALL_PLAN;
    each->ranks = args->jobs * args->workers;
    if (each->warmup < 0)
        each->warmup = 2;
    if (!perf_setting("TRIB_SERVICE_JOB", args->prefix, sizeof(args->prefix)))
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

int agg_args_parse(int argc, char **argv, FILE *err, struct agg_args *args_out)
{
    struct agg_args *args = args_out;

    memset(args, 0, sizeof(*args));
    args->jobs = 4;
    args->workers = 2;
    perf_args_init(&args->each, argc, argv);
    perf_setting("TRIB_SERVICE", args->configured_service,
                 sizeof(args->configured_service));
    int code = perf_command_parse(&command, argc - 1, argv + 1, args, err);
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
