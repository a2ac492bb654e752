/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-perf codec: what codecs cost and what they lose, without ranks.
 *
 *     codec_perf.c   codecs x sizes x inputs
 *     codecargs.c    command line -> struct codec_args
 *     classes.c      --classes: alpha, beta, gamma and delta, measured and proved
 *     inputs.c       vectors to encode
 *     work.c         one codec's buffers, and a pass over a vector, by one or more
 *                  threads
 *     stages_alone.c seconds of one codec's stages, for trib-perf allreduce --overlap
 *     rates.c        seconds of passes, beside memcpy; errors -> struct codec_result
 *     codecreport.c  table, csv, json
 *
 * A vector is encoded in chunks, as plans do. A rate is in GB/s (1e9 bytes) of the
 * float32 vector, 4 bytes an element, whatever is moved besides; its ratio is to memcpy
 * of that vector by as many threads, taken in turns with it.
 */
#ifndef PERF_CODEC_CODEC_PERF_H
#define PERF_CODEC_CODEC_PERF_H

#include "base/error.h"
#include "compress/codec.h"
#include "perf/perf.h"

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
    size_t n_texts; /* 0: one of each row */
    struct perf_sizes sizes; /* bytes of float32 */
    size_t chunk; /* bytes of float32 */
    int threads;
    enum codec_input input;
    const char *file; /* float32, little-endian; repeated to fill a size */
    long iters; /* passes; 0: as many as fit 0.2 s, at least 5 */
    bool classes; /* instead of times: the classes of biased compression */
    const char *csv;
    const char *json;
};

/* --- codecargs.c --- */

/** codec_args_parse - as perf_args_parse; argv[1] is "codec". */
int codec_args_parse(int argc, char **argv, FILE *err, struct codec_args *args_out);
void codec_args_free(struct codec_args *args);
const char *codec_input_name(enum codec_input input);

/* --- inputs.c --- */

/**
 * codec_input_new - n floats.
 *
 * owner    the caller frees it
 * errors   NULL after a sentence on err
 */
float *codec_input_new(const struct codec_args *args, size_t n, FILE *err);

/* --- work.c --- */

enum codec_pass {
    PASS_MEMCPY,
    PASS_ADD, /* y += x: 12 bytes an element move, the least that error feedback
               * moves */
    PASS_ENCODE,
    PASS_ENCODE_EF,
    PASS_DECODE,
    PASS_DECODE_ADD,
    PASS_MERGE,
    PASSES,
};

struct codec_work;

/**
 * codec_work_new - buffers for a vector, touched, and threads that wait.
 *
 * x        n floats, kept by the caller
 * errors   NULL and a sentence in err: no memory, no thread, or a vector that this
 *          codec has no model of
 */
struct codec_work *codec_work_new(const struct codec_args *args,
                                  struct trib_codec *codec, const float *x, size_t n,
                                  struct trib_error *err);
void codec_work_free(struct codec_work *w);

/** codec_work_pass - seconds of one pass over the vector, as the mean of some. */
double codec_work_pass(struct codec_work *w, enum codec_pass pass, long times);

/** codec_work_can - has the codec such a pass? */
bool codec_work_can(const struct codec_work *w, enum codec_pass pass);

/** codec_work_bytes - of the encoded vector. */
size_t codec_work_bytes(const struct codec_work *w);

/** codec_work_decoded - the vector as PASS_DECODE left it. */
const float *codec_work_decoded(const struct codec_work *w);

/* --- rates.c --- */

struct codec_rate {
    double GBps; /* median; 0: the codec has no such pass */
    double ratio; /* to memcpy; median of both */
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

/** codec_measure - all of one codec and vector; false: as codec_work_new. */
bool codec_measure(const struct codec_args *args, struct trib_codec *codec,
                   const struct codec_vector *v, struct codec_result *out,
                   struct trib_error *err);

/* --- stages_alone.c --- */

/* Seconds of a vector by one thread; 0: there is no such stage. */
struct codec_stages {
    double encode_s;
    double sum_s; /* of one contribution: decoded and added, or merged, or added */
    double decode_s;
};

struct codec_staged {
    const char *text;
    bool feedback; /* error feedback, as a plan with it does */
    size_t n; /* elements */
    int ranks; /* whose words are summed */
};

/** codec_stages_alone - measure a codec's stages, the least of some passes; false:
 * why[] has the sentence. */
bool codec_stages_alone(const struct codec_staged *what, struct codec_stages *out,
                        char *why, size_t why_bytes);

/* --- codecreport.c --- */

struct codec_report;

struct codec_report *codec_report_open(const struct codec_args *args, char *why,
                                       size_t why_bytes);
void codec_report_add(struct codec_report *r, const struct codec_result *result);
bool codec_report_finish(struct codec_report *r, char *why, size_t why_bytes);
void codec_report_free(struct codec_report *r); /* NULL is allowed */

/* --- codec_perf.c --- */

extern const struct tool_command codec_command;

/** codec_main - `trib-perf codec …`: the exit code. */
int codec_main(int argc, char **argv);

#endif
