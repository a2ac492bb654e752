/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-perf codec: speed and error of codecs, without ranks.
 *
 *     codec_perf.c   codecs x sizes x inputs
 *     codecargs.c    command line -> struct codec_args
 *     classes.c      --classes: alpha, beta, gamma and delta, measured and proved
 *     inputs.c       vectors to encode
 *     work.c         buffers of one codec; passes over a vector by one or more threads
 *     stages_alone.c seconds of one codec's stages, for trib-perf allreduce --overlap
 *     rates.c        rates of passes and of memcpy; errors -> struct codec_result
 *     codecreport.c  table, csv, json
 *
 * A vector is encoded in chunks, as in plans. Rates are GB/s (1e9 bytes) of the float32
 * vector, 4 bytes per element, however many bytes move. The ratio is to memcpy of the
 * same vector by as many threads, measured in turns with it.
 */
#ifndef PERF_CODEC_CODEC_PERF_H
#define PERF_CODEC_CODEC_PERF_H

#include "base/error.h"
#include "compress/codec.h"
#include "perf/common/sizes.h"
#include "tools/common/options.h"

enum { CODEC_TEXTS_MAX = 64, CODEC_THREADS_MAX = 64 };

enum codec_input {
    INPUT_NORMAL,
    INPUT_LAPLACE,
    INPUT_STUDENT,
    INPUT_SMOOTH,
    INPUT_FILE
};

struct codec_args {
    int argc;
    char **argv;
    const char *texts[CODEC_TEXTS_MAX];
    size_t n_texts; /* 0: one codec per row of the codec table */
    struct perf_sizes sizes; /* bytes of float32 */
    size_t chunk; /* bytes of float32 */
    int threads;
    enum codec_input input;
    const char *file; /* float32, little-endian; repeated to fill a size */
    long iters; /* passes; 0: as many as fit 0.2 s, at least 5 */
    bool classes; /* measure the classes of biased compression instead of times */
    const char *csv;
    const char *json;
};

/* --- codecargs.c --- */

/** codec_args_parse - as perf_args_parse; argv[1] is "codec". */
int codec_args_parse(int argc, char **argv, FILE *err, struct codec_args *args);
void codec_args_free(struct codec_args *args);
const char *codec_input_name(enum codec_input input);

/* --- inputs.c --- */

/**
 * codec_input_new - return n floats.
 *
 * owner    the caller frees it
 * errors   NULL after a message on err
 */
float *codec_input_new(const struct codec_args *args, size_t n, FILE *err);

/* --- work.c --- */

enum codec_pass {
    PASS_MEMCPY,
    PASS_ADD, /* y += x: moves 12 bytes per element, the minimum of error feedback */
    PASS_ENCODE,
    PASS_ENCODE_EF,
    PASS_DECODE,
    PASS_DECODE_ADD,
    PASS_MERGE,
    PASSES,
};

struct codec_work;

/**
 * codec_work_new - allocate buffers for a vector, touch them, and start the threads.
 *
 * x        n floats, kept by the caller
 * errors   NULL and a message in err: no memory, no thread, or this codec has no model
 *          for the vector
 */
struct codec_work *codec_work_new(const struct codec_args *args,
                                  struct trib_codec *codec, const float *x, size_t n,
                                  struct trib_error *err);
void codec_work_free(struct codec_work *w);

/** codec_work_pass - return the seconds of a pass over the vector, averaged over
 * `times`. */
double codec_work_pass(struct codec_work *w, enum codec_pass pass, long times);

/** codec_work_can - return true if the codec has such a pass. */
bool codec_work_can(const struct codec_work *w, enum codec_pass pass);

/** codec_work_bytes - return the size of the encoded vector. */
size_t codec_work_bytes(const struct codec_work *w);

/** codec_work_decoded - return the vector decoded by the last PASS_DECODE. */
const float *codec_work_decoded(const struct codec_work *w);

/* --- rates.c --- */

struct codec_rate {
    double GBps; /* median; 0: no such pass */
    double ratio; /* to memcpy; ratio of the medians */
};

struct codec_result {
    const char *text;
    const char *input;
    size_t bytes; /* of float32 */
    int threads;
    long passes;
    struct codec_rate rate[PASSES];
    double bytes_per_element;
    double nmse;
    double cosine;
};

/* A vector to encode. */
struct codec_vector {
    const float *x;
    size_t n;
};

/** codec_measure - measure one codec and vector; false: as codec_work_new. */
bool codec_measure(const struct codec_args *args, struct trib_codec *codec,
                   const struct codec_vector *v, struct codec_result *out,
                   struct trib_error *err);

/* --- stages_alone.c --- */

/* Seconds per vector on one thread; 0: no such stage. */
struct codec_stages {
    double encode_s;
    double sum_s; /* per contribution: decode and add, merge, or add */
    double decode_s;
};

struct codec_staged {
    const char *text;
    bool feedback; /* use error feedback, as plans do */
    size_t n; /* elements */
    int ranks; /* number of contributions summed */
};

/** codec_stages_alone - measure the stages of a codec, minimum of several passes.
 * false: why[] has the message. */
bool codec_stages_alone(const struct codec_staged *what, struct codec_stages *out,
                        char *why, size_t why_bytes);

/* --- codecreport.c --- */

struct perf_output;

/** codec_report_open - open the outputs of args and write their heads. false: why[] has
 * the message. The caller frees o with perf_output_free. */
bool codec_report_open(struct perf_output *o, const struct codec_args *args, char *why,
                       size_t why_bytes);
void codec_report_add(struct perf_output *o, const struct codec_result *result);
bool codec_report_finish(struct perf_output *o, const struct codec_args *args,
                         char *why, size_t why_bytes);

/* --- codec_perf.c --- */

extern const struct tool_command codec_command;

/** codec_main - run `trib-perf codec …`. Return the exit code. */
int codec_main(int argc, char **argv);

#endif
