/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Declarations that the parts of trib-perf share.
 *
 *     options.[ch] tables of options, setters
 *     arguments.c  command line -> struct perf_args
 *     setters.[ch] what command lines share
 *     setting_values.c  settings by name
 *     perf_interrupt.[ch] Ctrl-C
 *     sizes.c      "8,64K,1M:64M:4"
 *     launch.[ch]  ranks on this host by fork
 *     operation.c  buffers and the call
 *     pairs.c      the call of a sparse vector
 *     measure.c    warm-up, samples -> struct perf_result
 *     samples.c    percentiles
 *     progress.c   how far it has come
 *     loss.[ch]    what a codec may lose of it
 *     oracle.[ch]  inputs, and what must come out
 *     output.[ch]  where table, csv and json go
 *     overlap.[ch] stages alone, and beside a computation
 *     writer.c     rows of the collectives
 *
 * A sample is the time of one call, or of a batch of calls where one call is too short
 * for the clock, taken from the rank that needed longest.
 */
#ifndef PERF_PERF_H
#define PERF_PERF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <tributary.h>

#include "tools/launch.h"
#include "tools/options.h"
#include "perf/perf_oracle.h"

struct perf_operation;
struct perf_result;

enum perf_memory { PERF_MEMORY_ALLOC, PERF_MEMORY_MALLOC, PERF_MEMORY_REGISTER };
enum perf_input { PERF_INPUT_NORMAL, PERF_INPUT_SMOOTH };
enum perf_call { PERF_CALL_AUTO, PERF_CALL_BLOCKING, PERF_CALL_PLAN, PERF_CALL_PAIRS };

struct perf_sizes {
    size_t *bytes;
    size_t n;
};

/* The finished command line. Texts point into argv. */
struct perf_args {
    int argc;
    char **argv;
    trib_coll_t coll;
    trib_dtype_t dtype;
    trib_op_t op;
    double parameter; /* of op; 0: it has none */
    bool named; /* a collective was given */
    bool op_named;
    bool dtype_named;
    struct perf_sizes sizes;
    double density; /* part of the blocks of an input that is not zeros */
    bool same_blocks; /* of all ranks */
    enum perf_input input; /* what floats are like */
    long iters; /* samples a size; 0: as many as fit half a second */
    long warmup; /* calls; -1: by size */
    double sample_s; /* a sample lasts at least so long */
    const char *codec; /* NULL: the configuration's */
    const char *feedback; /* NULL: the configuration's */
    const char *algorithm; /* NULL: the configuration's */
    char configured_codec[128];
    char configured_feedback[128];
    char configured_quorum[128];
    char configured_algorithm[64];
    const char *quorum; /* NULL: the configuration's */
    size_t chunk; /* bytes; 0: the configuration's */
    int root;
    int ranks; /* started here; 0: a launcher has started this one */
    enum perf_memory memory;
    enum perf_call call;
    enum tool_bind bind;
    bool in_place;
    bool sync;
    bool rewrite;
    bool check;
    bool explain;
    bool overlap; /* measure the stages alone, too, and beside a computation: by the
                   * function below, of overlap.h, which trib-perf alone has */
    trib_status_t (*overlap_fn)(struct perf_operation *op, struct perf_result *out);
    const char *trace; /* file for a trace of all ranks; NULL: none */
    const char *csv; /* file or "-" */
    const char *json;
    const char *compare; /* file of results, to stand beside these; NULL: none */
    const char *peers; /* folder of their programs; "": where they are installed; NULL:
                        * they are not run */
    const char *html; /* file of a page; NULL: none */
    double fail_above; /* exit code 1 if a row is slower by this; 0: no limit */
    bool plot; /* bars below the table */
    double link_gbps; /* rate of a host's link, for the page; 0: nothing is said */
};

/* The command line of the collectives. */
extern const struct tool_command perf_collective;

/**
 * perf_args_parse - read the command line.
 *
 * err      receives a sentence where an argument is wrong, and only then
 * returns  -1: go on with *args_out; else the exit code (0 after --help, 2: wrong)
 */
int perf_args_parse(int argc, char **argv, FILE *err, struct perf_args *args_out);
void perf_args_free(struct perf_args *args);

/** perf_args_init - what holds where nothing is said; the configuration's texts. */
void perf_args_init(struct perf_args *args, int argc, char **argv);

/** perf_codec_text, _feedback_text, _algorithm_text - as asked for, else the
 * configuration's, where that is for such operations. _of: of vectors of so many
 * elements. */
const char *perf_codec_text_of(const struct perf_args *args, size_t count);
const char *perf_feedback_text(const struct perf_args *args);
const char *perf_codec_text(const struct perf_args *args);
const char *perf_algorithm_text(const struct perf_args *args);

/* --- setting_values.c --- */

/** perf_setting - copy the value of "TRIB_CODEC"; false: none such, or its default. */
bool perf_setting(const char *name, char *value, size_t bytes);

/* --- sizes.c --- */

/** perf_size_parse - bytes of "64", "64K", "2GiB" (powers of 1024); false: no size. */
bool perf_size_parse(const char *text, size_t *bytes_out);

/**
 * perf_sizes_parse - a list of sizes and of ranges from:to:factor.
 *
 * owner    the caller frees *sizes_out with perf_sizes_free()
 * errors   false: why[] has the sentence, *sizes_out is as it was
 */
bool perf_sizes_parse(const char *text, struct perf_sizes *sizes_out, char *why,
                      size_t why_bytes);
void perf_sizes_free(struct perf_sizes *sizes);

/** perf_time_parse - seconds of "10us", "50ms", "1s". */
bool perf_time_parse(const char *text, double *seconds_out);

/** perf_size_text - "64 KiB" or "25 MB" where it is whole, else "1000 B"; returns
 * text. */
char *perf_size_text(size_t bytes, char *text, size_t text_bytes);

/* --- samples.c --- */

struct perf_summary {
    size_t n;
    double p25, p50, p75, p95, p99, p999, min, max, mean;
};

/**
 * perf_summarise - sort the values and take percentiles by nearest rank.
 *
 * Below 100 samples p99 is the maximum, below 1000 p99.9 is; n == 0 gives zeros.
 */
void perf_summarise(double *values, size_t n, struct perf_summary *out);

/**
 * perf_bus_factor - bus bandwidth over algorithm bandwidth, as nccl-tests define it.
 *
 * The bytes of all-gather and reduce-scatter are those of the whole vector.
 */
double perf_bus_factor(trib_coll_t coll, int ranks);

/* --- operation.c --- */

/* One collective of one size with its buffers. */
struct perf_operation {
    trib_comm_t *comm;
    const struct perf_args *args;
    struct perf_oracle oracle;
    trib_desc_t desc;
    trib_plan_t *plan; /* NULL: blocking calls */
    trib_plan_t *send_plan; /* of sendrecv as plans; else NULL */
    void *input; /* where inputs are written: send, or inside recv */
    void *output; /* where the result appears */
    void *pristine; /* a copy of the input; NULL: not kept */
    size_t bytes; /* of the whole vector, as reported */
    void *blocks[2]; /* what perf_operation_close gives back */
    size_t block_bytes[2];
    trib_status_t (*run)(struct perf_operation *op);
    struct perf_pairs *pairs; /* NULL: the vector is dense */
};

/**
 * perf_operation_open - allocate the buffers of `bytes` and make the plan.
 *
 * errors   those of trib_alloc, trib_register, trib_plan_create; nothing to close then
 */
trib_status_t perf_operation_open(trib_comm_t *comm, const struct perf_args *args,
                                  size_t bytes, struct perf_operation *op);
void perf_operation_close(struct perf_operation *op);

/**
 * perf_memory_fits - has this host the memory for the largest of the sizes?
 *
 * Of all ranks that are started here; of those that a launcher started, one each.
 * errors   false after a sentence on err; true where /proc does not tell
 */
bool perf_memory_fits(const struct perf_args *args, FILE *err);

/** perf_operation_dense - after a call, for its check: write what came out as pairs to
 * op->output. */
trib_status_t perf_operation_dense(struct perf_operation *op);

/** perf_operation_fill, _zero - write this rank's inputs, or zeros. */
void perf_operation_fill(struct perf_operation *op);
void perf_operation_zero(struct perf_operation *op);

/** perf_operation_judge_later - results hold what earlier operations kept back. */
void perf_operation_judge_later(struct perf_operation *op);

/** perf_operation_judge_absent - so is the newest result, if a quorum has left a rank
 * out. */
trib_status_t perf_operation_judge_absent(struct perf_operation *op);

/** perf_operation_keep - copy the input away. */
trib_status_t perf_operation_keep(struct perf_operation *op);

/** perf_operation_rewrite - write the input anew: what was kept, else zeros. */
void perf_operation_rewrite(struct perf_operation *op);

/** perf_pairs_open - make the memory of a sparse vector; perf_pairs_close follows in
 * any case. */
trib_status_t perf_pairs_open(struct perf_operation *op);
void perf_pairs_close(struct perf_operation *op);

/** perf_pairs_take - take the elements of the input that are not zeros;
 * perf_pairs_given is their number. */
void perf_pairs_take(struct perf_operation *op);
size_t perf_pairs_given(const struct perf_operation *op);

/** perf_pairs_plan - make the plan, for up to `most` pairs of each rank. */
trib_status_t perf_pairs_plan(struct perf_operation *op, size_t most);

/** perf_operation_guards - damaged bytes behind the buffers; 0 is right. */
size_t perf_operation_guards(const struct perf_operation *op);

/** perf_combine - values[i] over all ranks, exact whatever codec is configured. */
trib_status_t perf_combine(trib_comm_t *comm, trib_op_t op, double *values, size_t n);

/* --- wrong.c --- */

/** perf_say_wrong - on standard error, what a check has found of this rank's own
 * result. */
void perf_say_wrong(const struct perf_operation *op, const struct perf_verdict *verdict,
                    bool guards_damaged, bool input_changed);

/**
 * perf_say_different - all ranks have results, and these differ: say where. Collective.
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
    size_t at; /* of sizes */
    size_t sizes;
    size_t begun; /* the size that the next two belong to, from 1 on */
    double size_start;
    long size_done; /* samples that were through then */
};

/** perf_progress_start - a line on standard error, if that is a terminal and speaks. */
void perf_progress_start(struct perf_progress *p, size_t sizes, bool speaks);

/**
 * perf_progress_show - a perf_progress_fn; arg is the struct perf_progress.
 *
 * Nothing for runs below two seconds, then five lines a second at most.
 */
void perf_progress_show(void *arg, size_t bytes, long done, long samples);
void perf_progress_clear(struct perf_progress *p);

/* --- measure.c --- */

enum { PERF_LAYERS = 32 }; /* parts in which a plan is fed, the last one first */

/* The timeline of rank 0 in the median round of those with both. */
struct perf_timeline {
    double from_us[PERF_LAYERS], to_us[PERF_LAYERS]; /* computing each layer */
    double took_us;
};

/* A sum whose vector is fed layer by layer beside a computation. */
struct perf_hidden {
    double comm_us, compute_us, both_us; /* alone, alone, together */
    double part; /* of the sum's time that is hidden */
    struct perf_timeline timeline;
};

/* See overlap.h. Rates are in GB/s of the vector; 0: the stage has no work. */
struct perf_overlap {
    bool measured;
    double stage_GBps[4]; /* enum perf_stage, alone */
    int narrowest; /* the stage that is the bound */
    double bound_GBps, reached_GBps, part;
    double core_GBps, core_part; /* the bound where one core does all stages */
    struct perf_hidden here, elsewhere; /* computed by this thread; or it sleeps */
};

struct perf_result {
    size_t bytes;
    size_t count;
    long batch; /* calls in a sample */
    struct perf_summary us;
    double algbw_GBps;
    double busbw_GBps;
    double wire_bytes; /* sent by a rank in one operation, mean over ranks */
    double ratio; /* dense over coded payload; 1 without a codec */
    double cpu_us; /* processor time of a rank in one operation, mean over ranks */
    double nmse; /* greatest of all ranks; NAN: not checked */
    double wrong; /* elements, over all ranks; NAN: not checked */
    double nmse_limit; /* of a rank where nmse is above it; 0: nowhere */
    double lost; /* ranks whose inputs are not in a result; the most of all results */
    char explain[1024];
    struct perf_overlap overlap;
};

/** perf_measure - all of one size; collective; *out is whole on rank 0 only. */
trib_status_t perf_measure(trib_comm_t *comm, const struct perf_args *args,
                           size_t bytes, perf_progress_fn progress, void *arg,
                           struct perf_result *out);

/* --- writer.c --- */

struct perf_writer;

/**
 * perf_writer_open - the outputs that args asks for.
 *
 * Files are written beside their place and renamed when whole.
 * errors   NULL: why[] has the sentence
 */
struct perf_writer *perf_writer_open(const struct perf_args *args, int ranks, char *why,
                                     size_t why_bytes);
void perf_writer_add(struct perf_writer *w, const struct perf_result *result);
/** perf_writer_interrupted - say that only `sizes` of them were measured. */
void perf_writer_interrupted(struct perf_writer *w, size_t sizes);
/** perf_writer_finish - memory line, files in place; false: why[] has the sentence. */
bool perf_writer_finish(struct perf_writer *w, const trib_stats_t *stats, char *why,
                        size_t why_bytes);
/** perf_writer_keep - before the first row: the document is made, json or not. */
bool perf_writer_keep(struct perf_writer *w);
/** perf_writer_document - what json says, once finished; NULL: it was not made. */
struct json_t *perf_writer_document(const struct perf_writer *w);
/** perf_writer_free - NULL is allowed; unfinished files leave nothing behind. */
void perf_writer_free(struct perf_writer *w);

/* --- clocks, in measure.c --- */

/** perf_now - seconds of the monotonic clock. */
double perf_now(void);

/** perf_cpu_seconds - processor time of this process, all threads. */
double perf_cpu_seconds(void);

#endif
