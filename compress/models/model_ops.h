/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions of a kind of model. Private to compress/.
 *
 * A model maps a chunk of n elements to coefficients, and back:
 *
 *     x --forward--> y of trib_model_ops.length floats --sum over ranks--> y
 *     --inverse--> x
 *
 * model.c has what they share: words, their sums, and the copy of elements in epoch 0,
 * in which neither is called.
 */
#ifndef COMPRESS_MODELS_MODEL_OPS_H
#define COMPRESS_MODELS_MODEL_OPS_H

#include "compress/models/model.h"
#include "compress/stages.h"

struct trib_model {
    const struct trib_model_ops *kind;
    const struct trib_codec *codec;
    struct trib_model_opts opts;
    float *y;    /* coefficients of a chunk */
    float *x;    /* elements of a chunk */
    float *agreed; /* of a chunk of a rank that is alone */
};

/* Elements at … at + n - 1 of a chunk. */
struct trib_model_part {
    const struct trib_model_chunk *chunk;
    size_t at, n;
};

struct trib_model_ops {
    uint64_t params; /* TRIB_PARAM_BITs it reads */
    double ratio, train; /* defaults of these parameters; 0: those of codec_text.c */
    bool sparse; /* y has few that are not 0: words are pairs */
    bool quantised; /* coefficients may be written by another codec, whose words add:
                     * then it shares nothing itself, and a chunk of n has most(n) */
    bool projects; /* what comes out is a projection of the sum */
    bool undivided; /* a chunk takes all of the vector that it can, whatever the
                     * ranks */
    bool coded_always; /* in a plan: no start is of plain elements, words of which are
                        * larger */
    /* Elements that chunks should have: 0: as many as a slot takes. */
    size_t (*piece)(const struct trib_codec *c);
    /* Elements of which chunks hold whole numbers, but for the last. */
    size_t (*unit)(const struct trib_codec *c);
    /* a reason why these parameters do not go together; NULL: they do */
    const char *(*refusal)(const struct trib_codec *c);
    /* The most coefficients of a chunk where pieces have n elements; of sparse ones
     * those of all ranks together. */
    size_t (*most)(const struct trib_codec *c, size_t n);
    /* Those of one rank, when it is not learning any more. */
    size_t (*trained)(const struct trib_codec *c, size_t n);
    /* Floats that ranks sum before such a chunk is encoded. */
    size_t (*agreed_floats)(const struct trib_codec *c, size_t n);

    trib_status_t (*create)(const struct trib_codec *c,
                            const struct trib_model_opts *opts, struct trib_error *err,
                            struct trib_model **out);
    void (*destroy)(struct trib_model *m); /* all but what model.c made */
    /* opts.seed is new; NULL: nothing was drawn by the one before */
    void (*seed)(struct trib_model *m);
    void (*begin)(struct trib_model *m, uint32_t step);
    uint32_t (*epoch)(const struct trib_model *m);
    bool (*learning)(const struct trib_model *m);
    size_t (*exchange_floats)(const struct trib_model *m);
    bool (*exchange)(struct trib_model *m, uint32_t step, float *own_out);
    trib_status_t (*exchanged)(struct trib_model *m, const float *sum,
                               struct trib_error *err);

    void (*propose)(struct trib_model *m, const struct trib_model_chunk *c,
                  const float *x, float *proposal_out); /* proposal_out is 0 before */
    void (*settle)(struct trib_model *m, const struct trib_model_chunk *c,
                   float *share);
    /* coefficients of a chunk of n in this epoch; if sparse: numbers of positions */
    size_t (*length)(const struct trib_model *m, size_t n);
    void (*forward)(struct trib_model *m, const struct trib_model_chunk *c,
                    const float *x, float *y_out);
    /* own: y is what forward gave here; else the sum, or mean, of all ranks'. May
     * change y. */
    void (*inverse)(struct trib_model *m, const struct trib_model_chunk *c, float *y,
                    bool own, float *x_out);
    /* NULL, or elements of a part of a chunk, a number of rows, of which the next two
     * are. propose adds x to the residual, and what that proposes to proposal_out; take
     * does x -= inverse (own), and what is not finite then becomes 0. Both are called
     * for the parts of a chunk in rising order, one behind the other. */
    size_t (*part)(const struct trib_model *m, size_t n);
    void (*propose_part)(struct trib_model *m, const struct trib_model_part *part,
                         const float *x, float *residual, float *proposal_out);
    void (*take_part)(struct trib_model *m, const struct trib_model_part *part,
                      const float *y, float *x);
    /* the result of a chunk; in epoch 0 y is NULL */
    void (*learn)(struct trib_model *m, const struct trib_model_chunk *c,
                  const float *y, const float *x);

    /* Writes what the model has learned, for trib_plan_explain; returns the characters,
     * as snprintf. NULL: nothing is said. */
    size_t (*tell)(const struct trib_model *m, char *text, size_t bytes);
    /* Marks the elements of a chunk that forward sends; NULL: all of them. */
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
/* Coefficients of a word of this epoch, to m->y; false: it is not valid. */
bool trib_model_coefficients(struct trib_model *m, const uint8_t *src, size_t len,
                             size_t n);
/* If one rank is alone, its share is that of the chunk encoded last. */
struct trib_model_chunk trib_model_with_share(const struct trib_model *m,
                                              const struct trib_model_chunk *c);
/* of words of epoch 0: there is no model; overwrite: x is set, else x += weight * … */
trib_status_t trib_model_plain_decode(const struct trib_codec *c, const uint8_t *src,
                                      size_t len, float weight, bool overwrite,
                                      float *x, size_t n);
trib_status_t trib_model_merge(const struct trib_codec *c, const struct trib_merge *m,
                               uint8_t *dst, size_t *len_out);

/* model_parts.c: x -= what the word of this rank's own contribution says; what is not
 * finite then becomes 0 */
void trib_model_take_own(const struct trib_codec *c, const struct trib_encode *in,
                         const uint8_t *src, size_t len, float *x);

/* model_slots.c: of kinds that have nothing to do there */
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
