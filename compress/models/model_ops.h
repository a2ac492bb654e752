/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations of a kind of model. Private to compress/.
 *
 * A model maps a chunk of n elements to coefficients, and back:
 *
 *     x --forward--> y of trib_model_ops.length floats --sum over ranks--> y
 *     --inverse--> x
 *
 * model.c implements the common part: encoded chunks, their sums, and the copy of
 * elements in epoch 0, where neither forward nor inverse is called.
 */
#ifndef COMPRESS_MODELS_MODEL_OPS_H
#define COMPRESS_MODELS_MODEL_OPS_H

#include "compress/models/model.h"
#include "compress/stages.h"

struct trib_model {
    const struct trib_model_ops *kind;
    const struct trib_codec *codec;
    struct trib_model_opts opts;
    float *y; /* coefficients of a chunk */
    float *x; /* elements of a chunk */
    float *agreed; /* agreed floats of a chunk, with a single rank */
};

/* Elements at … at + n - 1 of a chunk. */
struct trib_model_part {
    const struct trib_model_chunk *chunk;
    size_t at, n;
};

struct trib_model_ops {
    uint64_t params; /* TRIB_PARAM_BITs that it reads */
    double ratio, train; /* defaults of these parameters; 0: as in codec_text.c */
    bool sparse; /* y has few non-zero floats: they are sent as pairs */
    /* Another codec, whose encodings add, may write the coefficients. The model then
     * shares nothing itself, and a chunk of n has most(n). */
    bool quantised;
    bool projects; /* the result is a projection of the sum */
    bool undivided; /* chunks are as large as possible, regardless of the ranks */
    /* In a plan: no start sends plain elements, whose encoding is larger. */
    bool coded_always;
    /* Preferred elements per chunk; 0: as many as fit into a slot. */
    size_t (*piece)(const struct trib_codec *c);
    /* Number of elements of which chunks are multiples, except the last. */
    size_t (*unit)(const struct trib_codec *c);
    /* Return why these parameters do not fit together; NULL: they do. */
    const char *(*refusal)(const struct trib_codec *c);
    /* Most coefficients of a chunk, if pieces have n elements; sparse: of all ranks
     * together. */
    size_t (*most)(const struct trib_codec *c, size_t n);
    /* Coefficients of one rank after learning. */
    size_t (*trained)(const struct trib_codec *c, size_t n);
    /* Floats that the ranks sum before such a chunk is encoded. */
    size_t (*agreed_floats)(const struct trib_codec *c, size_t n);

    trib_status_t (*create)(const struct trib_codec *c,
                            const struct trib_model_opts *opts, struct trib_error *err,
                            struct trib_model **out);
    void (*destroy)(struct trib_model *m); /* frees all but what model.c allocated */
    /* opts.seed has changed; NULL: nothing was drawn with the old seed */
    void (*seed)(struct trib_model *m);
    void (*begin)(struct trib_model *m, uint32_t step);
    uint32_t (*epoch)(const struct trib_model *m);
    bool (*learning)(const struct trib_model *m);
    size_t (*exchange_floats)(const struct trib_model *m);
    bool (*exchange)(struct trib_model *m, uint32_t step, float *own_out);
    trib_status_t (*exchanged)(struct trib_model *m, const float *sum,
                               struct trib_error *err);

    /* proposal_out is zero-filled */
    void (*propose)(struct trib_model *m, const struct trib_model_chunk *c,
                  const float *x, float *proposal_out);
    void (*settle)(struct trib_model *m, const struct trib_model_chunk *c,
                   float *share);
    /* coefficients of a chunk of n in this epoch; sparse: number of positions */
    size_t (*length)(const struct trib_model *m, size_t n);
    void (*forward)(struct trib_model *m, const struct trib_model_chunk *c,
                    const float *x, float *y_out);
    /* own: y is the output of forward on this rank; otherwise the sum or mean over all
     * ranks. May change y. */
    void (*inverse)(struct trib_model *m, const struct trib_model_chunk *c, float *y,
                    bool own, float *x_out);
    /* NULL, or return the elements of a part of a chunk (whole rows), on which the next
     * two operate. propose_part adds x to the residual, and the proposal of that to
     * proposal_out. take_part computes x -= inverse (own); non-finite results become 0.
     * Both are called for consecutive parts of a chunk in increasing order. */
    size_t (*part)(const struct trib_model *m, size_t n);
    void (*propose_part)(struct trib_model *m, const struct trib_model_part *part,
                         const float *x, float *residual, float *proposal_out);
    void (*take_part)(struct trib_model *m, const struct trib_model_part *part,
                      const float *y, float *x);
    /* learn from the result of a chunk; in epoch 0 y is NULL */
    void (*learn)(struct trib_model *m, const struct trib_model_chunk *c,
                  const float *y, const float *x);

    /* Describe the state of training for trib_plan_explain; return the characters, as
     * snprintf. NULL: no description. */
    size_t (*tell)(const struct trib_model *m, char *text, size_t bytes);
    /* Mark the elements of a chunk that forward sends; NULL: all of them. */
    void (*mark)(const struct trib_model *m, const struct trib_model_chunk *c,
                 const struct trib_sent *sent);

    size_t (*bytes)(const struct trib_model *m);
    void (*write)(const struct trib_model *m, uint8_t *out);
    trib_status_t (*read)(struct trib_model *m, const uint8_t *src,
                          struct trib_error *err);
};

/* model.c, for codec.c: as the functions of codec.h without "model" */
size_t trib_model_word_bound(const struct trib_codec *c, size_t n);
size_t trib_model_sum_bound(const struct trib_codec *c, size_t n);
size_t trib_model_encode(const struct trib_codec *c, const struct trib_encode *in,
                         uint8_t *dst);
/* Decode the coefficients of a chunk of this epoch to m->y; false: invalid. */
bool trib_model_coefficients(struct trib_model *m, const uint8_t *src, size_t len,
                             size_t n);
/* With a single rank, return c with the share of the chunk encoded last. */
struct trib_model_chunk trib_model_with_share(const struct trib_model *m,
                                              const struct trib_model_chunk *c);
/* encodings of epoch 0 (no model); overwrite: set x, else x += weight * … */
trib_status_t trib_model_plain_decode(const struct trib_codec *c, const uint8_t *src,
                                      size_t len, float weight, bool overwrite,
                                      float *x, size_t n);
trib_status_t trib_model_merge(const struct trib_codec *c, const struct trib_merge *m,
                               uint8_t *dst, size_t *len_out);

/* model_parts.c: subtract the decode of this rank's own contribution from x; non-finite
 * results become 0 */
void trib_model_take_own(const struct trib_codec *c, const struct trib_encode *in,
                         const uint8_t *src, size_t len, float *x);

/* model_slots.c: defaults for kinds with nothing to do */
const char *trib_model_no_refusal(const struct trib_codec *c);
size_t trib_model_none_wished(const struct trib_codec *c);
size_t trib_model_no_floats(const struct trib_codec *c, size_t n);
size_t trib_model_no_exchange_floats(const struct trib_model *m);
bool trib_model_not_learning(const struct trib_model *m);
bool trib_model_no_exchange(struct trib_model *m, uint32_t step, float *own_out);
trib_status_t trib_model_not_exchanged(struct trib_model *m, const float *sum,
                                       struct trib_error *err);
void trib_model_proposes_nothing(struct trib_model *m, const struct trib_model_chunk *c,
                         const float *x, float *proposal_out);
void trib_model_settled(struct trib_model *m, const struct trib_model_chunk *c,
                        float *share);

extern const struct trib_model_ops trib_model_powersgd;
extern const struct trib_model_ops trib_model_gradiveq;
extern const struct trib_model_ops trib_model_lgc;
extern const struct trib_model_ops trib_model_lgc_ps;

#endif
