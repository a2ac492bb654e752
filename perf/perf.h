/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Declarations shared by the files of trib-perf.
 *
 *     tools/options.[ch]     option tables and setters
 *     arguments.c            command line -> struct perf_args
 *     setters.[ch]           setters and rows shared by the commands
 *     setting_values.c       value of a setting by name
 *     perf_interrupt.[ch]    Ctrl-C
 *     sizes.c                "8,64K,1M:64M:4"
 *     tools/launch.[ch]      ranks on this host by fork
 *     operation.c            buffers, plan and call
 *     pairs.c                sparse vectors
 *     measure.c              warm-up, samples -> struct perf_result
 *     samples.c              percentiles
 *     progress.c             progress line
 *     loss.[ch]              error bounds of codecs
 *     perf_oracle.[ch]       inputs and expected results
 *     output.[ch]            table, csv and json files
 *     overlap.[ch]           stage rates, and overlap with computation
 *     writer.c               rows of the collectives
 *
 * A sample is the time of one call on the slowest rank. If one call is too short for
 * the clock, a sample is the time of a batch of calls.
 */
#ifndef PERF_PERF_H
#define PERF_PERF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <tributary.h>

#include "perf/coll/perf_oracle.h"
#include "tools/common/launch.h"
#include "tools/common/options.h"

struct perf_operation;
struct perf_result;

enum perf_memory { PERF_MEMORY_ALLOC, PERF_MEMORY_MALLOC, PERF_MEMORY_REGISTER };
enum perf_input { PERF_INPUT_NORMAL, PERF_INPUT_SMOOTH };
enum perf_call { PERF_CALL_AUTO, PERF_CALL_BLOCKING, PERF_CALL_PLAN, PERF_CALL_PAIRS };

struct perf_sizes {
    size_t *bytes;
    size_t n;
};

/* The parsed command line. Strings point into argv. */
struct perf_args {
    int argc;
    char **argv;
    trib_coll_t coll;
    trib_dtype_t dtype;
    trib_op_t op;
    double parameter; /* of op; 0: op has none */
    bool named; /* a collective was given */
    bool op_named;
    bool dtype_named;
    struct perf_sizes sizes;
    double density; /* fraction of the input blocks that are nonzero */
    bool same_blocks; /* all ranks have the same nonzero blocks */
    enum perf_input input; /* distribution of float inputs */
    long iters; /* samples per size; 0: as many as fit half a second */
    long warmup; /* calls; -1: depends on the size */
    double sample_s; /* minimum duration of a sample */
    const char *codec; /* NULL: from the configuration */
    const char *feedback; /* NULL: from the configuration */
    const char *algorithm; /* NULL: from the configuration */
    char configured_codec[128];
    char configured_feedback[128];
    char configured_quorum[128];
    char configured_algorithm[64];
    const char *quorum; /* NULL: from the configuration */
    size_t chunk; /* bytes; 0: from the configuration */
    int root;
    int ranks; /* to start here; 0: started by a launcher */
    enum perf_memory memory;
    enum perf_call call;
    enum tool_bind bind;
    bool in_place;
    bool sync;
    bool rewrite;
    bool check;
    bool explain;
    bool overlap; /* --overlap; only trib-perf sets overlap_fn, declared in overlap.h */
    trib_status_t (*overlap_fn)(struct perf_operation *op, struct perf_result *out);
    const char *trace; /* trace file of all ranks; NULL: none */
    const char *csv; /* file or "-" */
    const char *json;
    const char *compare; /* result file to compare with; NULL: none */
    const char *peers; /* folder of the peer programs; "": installed ones; NULL: none */
    const char *html; /* HTML file; NULL: none */
    double fail_above; /* exit code 1 if a row is slower by this factor; 0: no limit */
    bool plot; /* print bars below the table */
    double link_gbps; /* link rate per host, for the page; 0: not given */
};

/* Options of the collectives. */
extern const struct tool_command perf_collective;

/**
 * perf_args_parse - parse the command line.
 *
 * err      receives a message only if an argument is wrong
 * returns  -1: success, *args_out is filled; else the exit code (0 after --help, 2:
 *          wrong)
 */
int perf_args_parse(int argc, char **argv, FILE *err, struct perf_args *args_out);
void perf_args_free(struct perf_args *args);

/** perf_args_init - set the defaults, and read codec, feedback, quorum and algorithm
 * from the configuration. */
void perf_args_init(struct perf_args *args, int argc, char **argv);

/** perf_codec_text, _feedback_text, _algorithm_text - return the option's value, else
 * the configured one if it applies to this operation. _of: for vectors of `count`
 * elements. */
const char *perf_codec_text_of(const struct perf_args *args, size_t count);
const char *perf_feedback_text(const struct perf_args *args);
const char *perf_codec_text(const struct perf_args *args);
const char *perf_algorithm_text(const struct perf_args *args);

/* --- setting_values.c --- */

/** perf_setting - copy the value of a setting, such as "TRIB_CODEC". Return false if
 * there is no such setting or it has its default value. */
bool perf_setting(const char *name, char *value, size_t bytes);

/* --- sizes.c --- */

/** perf_size_parse - parse "64", "64K" or "2GiB" (powers of 1024). Return false if it
 * is not a size. */
bool perf_size_parse(const char *text, size_t *bytes_out);

/**
 * perf_sizes_parse - parse a list of sizes and of ranges from:to:factor.
 *
 * owner    the caller frees *sizes_out with perf_sizes_free()
 * errors   false: why[] has the message, *sizes_out is unchanged
 */
bool perf_sizes_parse(const char *text, struct perf_sizes *sizes_out, char *why,
                      size_t why_bytes);
void perf_sizes_free(struct perf_sizes *sizes);

/** perf_time_parse - parse "10us", "50ms" or "1s" to seconds. */
bool perf_time_parse(const char *text, double *seconds_out);

/** perf_size_text - write "64 KiB" or "25 MB" for round sizes, else "1000 B". Return
 * text. */
char *perf_size_text(size_t bytes, char *text, size_t text_bytes);

/* --- samples.c --- */

struct perf_summary {
    size_t n;
    double p25, p50, p75, p95, p99, p999, min, max, mean;
};

/**
 * perf_summarise - sort the values and compute percentiles by nearest rank.
 *
 * Below 100 samples p99 is the maximum; below 1000, p99.9 is. n == 0 gives zeros.
 */
void perf_summarise(double *values, size_t n, struct perf_summary *out);

/**
 * perf_bus_factor - return bus bandwidth over algorithm bandwidth, as in nccl-tests.
 *
 * For all-gather and reduce-scatter, bytes are the size of the whole vector.
 */
double perf_bus_factor(trib_coll_t coll, int ranks);

/* --- operation.c --- */

/* One collective of one size, with its buffers. */
struct perf_operation {
    trib_comm_t *comm;
    const struct perf_args *args;
    struct perf_oracle oracle;
    trib_desc_t desc;
    trib_plan_t *plan; /* NULL: blocking calls */
    trib_plan_t *send_plan; /* sends in sendrecv with plans; else NULL */
    void *input; /* points to send, or into recv */
    void *output; /* points to the result */
    void *pristine; /* a copy of the input; NULL: not kept */
    size_t bytes; /* size of the whole vector, as reported */
    void *blocks[2]; /* buffers that perf_operation_close frees */
    size_t block_bytes[2];
    trib_status_t (*run)(struct perf_operation *op);
    struct perf_pairs *pairs; /* NULL: the vector is dense */
};

/**
 * perf_operation_open - allocate buffers for `bytes` and create the plan.
 *
 * errors   as of trib_alloc, trib_register, trib_plan_create; nothing to close then
 */
trib_status_t perf_operation_open(trib_comm_t *comm, const struct perf_args *args,
                                  size_t bytes, struct perf_operation *op);
void perf_operation_close(struct perf_operation *op);

/**
 * perf_memory_fits - check that this host has the memory for the largest size.
 *
 * Counts all ranks started here; under a launcher, only this rank.
 * errors   false after a message on err; true if /proc does not say
 */
bool perf_memory_fits(const struct perf_args *args, FILE *err);

/** perf_operation_dense - expand a sparse result into op->output, for the check. */
trib_status_t perf_operation_dense(struct perf_operation *op);

/** perf_operation_fill, _zero - write this rank's input, or zeros. */
void perf_operation_fill(struct perf_operation *op);
void perf_operation_zero(struct perf_operation *op);

/** perf_operation_judge_later - with error feedback, stop checking error bounds:
 * results now contain residuals of earlier operations. */
void perf_operation_judge_later(struct perf_operation *op);

/** perf_operation_judge_absent - stop checking error bounds if the last result lacks a
 * rank because of a quorum. */
trib_status_t perf_operation_judge_absent(struct perf_operation *op);

/** perf_operation_keep - save a copy of the input. */
trib_status_t perf_operation_keep(struct perf_operation *op);

/** perf_operation_rewrite - restore the saved input, or write zeros if none was
 * saved. */
void perf_operation_rewrite(struct perf_operation *op);

/** perf_pairs_open - allocate a sparse vector. Call perf_pairs_close even if it
 * fails. */
trib_status_t perf_pairs_open(struct perf_operation *op);
void perf_pairs_close(struct perf_operation *op);

/** perf_pairs_take - collect the nonzero elements of the input. perf_pairs_given
 * returns their number. */
void perf_pairs_take(struct perf_operation *op);
size_t perf_pairs_given(const struct perf_operation *op);

/** perf_pairs_plan - create the plan for up to `most` pairs per rank. */
trib_status_t perf_pairs_plan(struct perf_operation *op, size_t most);

/** perf_operation_guards - return the number of overwritten guard bytes after the
 * buffers. */
size_t perf_operation_guards(const struct perf_operation *op);

/** perf_combine - reduce values[i] over all ranks, exactly, whatever the codec. */
trib_status_t perf_combine(trib_comm_t *comm, trib_op_t op, double *values, size_t n);

/* --- wrong.c --- */

/** perf_say_wrong - print on stderr the errors found in this rank's own result. */
void perf_say_wrong(const struct perf_operation *op, const struct perf_verdict *verdict,
                    bool guards_damaged, bool input_changed);

/**
 * perf_say_different - print where the ranks' results differ. Collective.
 *
 * Each rank compares its result with rank 0's.
 */
trib_status_t perf_say_different(struct perf_operation *op);

/* --- progress.c --- */

/* Called on rank 0 between groups of samples. */
typedef void (*perf_progress_fn)(void *arg, size_t bytes, long done, long samples);

struct perf_progress {
    bool on;
    bool shown;
    double start;
    double last;
    size_t at; /* index in the sizes */
    size_t sizes;
    size_t begun; /* index of the size that size_start and size_done describe, from 1 */
    double size_start;
    long size_done; /* samples done at size_start */
};

/** perf_progress_start - start a progress line on stderr if `speaks` and stderr is a
 * terminal. */
void perf_progress_start(struct perf_progress *p, size_t sizes, bool speaks);

/**
 * perf_progress_show - a perf_progress_fn; arg is the struct perf_progress.
 *
 * Prints nothing in the first two seconds, then at most five times a second.
 */
void perf_progress_show(void *arg, size_t bytes, long done, long samples);
void perf_progress_clear(struct perf_progress *p);

/* --- measure.c --- */

enum { PERF_LAYERS = 32 }; /* layers that are fed to a plan, the last one first */

/* Timeline of rank 0 in the median round of computing and summing together. */
struct perf_timeline {
    double from_us[PERF_LAYERS], to_us[PERF_LAYERS]; /* computation of each layer */
    double took_us;
};

/* A sum whose vector is fed layer by layer during a computation. */
struct perf_hidden {
    double comm_us, compute_us, both_us; /* sum alone, computation alone, together */
    double part; /* fraction of the sum's time that is hidden */
    struct perf_timeline timeline;
};

/* See overlap.h. Rates are GB/s of the vector; 0: the stage has no work. */
struct perf_overlap {
    bool measured;
    double stage_GBps[4]; /* enum perf_stage, each alone */
    int narrowest; /* slowest stage */
    double bound_GBps, reached_GBps, part;
    double core_GBps, core_part; /* bound if one core runs all stages */
    struct perf_hidden here, elsewhere; /* computation on this thread; or this thread
                                         * sleeps */
};

struct perf_result {
    size_t bytes;
    size_t count;
    long batch; /* calls per sample */
    struct perf_summary us;
    double algbw_GBps;
    double busbw_GBps;
    double wire_bytes; /* sent by a rank per operation, mean over ranks */
    double ratio; /* dense over encoded payload; 1 without a codec */
    double cpu_us; /* processor time of a rank per operation, mean over ranks */
    double nmse; /* maximum over ranks; NAN: not checked */
    double wrong; /* wrong elements of all ranks; NAN: not checked */
    double nmse_limit; /* limit that nmse exceeded on some rank; 0: none */
    double lost; /* ranks missing from a result; maximum over results */
    char explain[1024];
    struct perf_overlap overlap;
};

/** perf_measure - measure one size. Collective; only rank 0 gets all of *out. */
trib_status_t perf_measure(trib_comm_t *comm, const struct perf_args *args,
                           size_t bytes, perf_progress_fn progress, void *arg,
                           struct perf_result *out);

/* --- writer.c --- */

struct perf_writer;

/**
 * perf_writer_open - open the outputs that args asks for.
 *
 * Files are written to a temporary name and renamed when complete.
 * errors   NULL: why[] has the message
 */
struct perf_writer *perf_writer_open(const struct perf_args *args, int ranks, char *why,
                                     size_t why_bytes);
void perf_writer_add(struct perf_writer *w, const struct perf_result *result);
/** perf_writer_interrupted - record that only the first `sizes` sizes were measured. */
void perf_writer_interrupted(struct perf_writer *w, size_t sizes);
/** perf_writer_finish - print the memory line and put files in place. false: why[] has
 * the message. */
bool perf_writer_finish(struct perf_writer *w, const trib_stats_t *stats, char *why,
                        size_t why_bytes);
/** perf_writer_keep - make the json document even if --json is not given. Call it
 * before the first row. */
bool perf_writer_keep(struct perf_writer *w);
/** perf_writer_document - return the json document after perf_writer_finish; NULL: not
 * made. */
struct json_t *perf_writer_document(const struct perf_writer *w);
/** perf_writer_free - NULL is allowed. Removes unfinished files. */
void perf_writer_free(struct perf_writer *w);

/* --- clocks, in measure.c --- */

/** perf_now - return the seconds of the monotonic clock. */
double perf_now(void);

/** perf_cpu_seconds - return the processor time of all threads of this process. */
double perf_cpu_seconds(void);

#endif
