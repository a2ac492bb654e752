/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * This table says what a rule of error feedback does. Each row of feedback_rules.def
 * has one. The parser, plans, their state, tests and the fuzzer know no more of a
 * rule.
 */
#ifndef COMPRESS_FEEDBACK_OPS_H
#define COMPRESS_FEEDBACK_OPS_H

#include "compress/feedback_rule.h"

struct trib_kernels;

enum {
    TRIB_FEEDBACK_STATES = 4, /* vectors that a rule keeps at most */
    TRIB_FEEDBACK_EXAMPLES = 8,
};

/* A parameter of one rule; clip, warmup and stages belong to all rules. */
struct trib_feedback_param {
    const char *name; /* NULL ends the list */
    double lowest, highest;
    double off; /* the value that says the same as no parameter */
    bool whole;
    const char *must; /* be */
    /* name of the parameter without which this one has no meaning, or NULL; the text
     * then has both or neither */
    const char *about;
};

/* A vector of float32 that a rank keeps from one operation to the next. */
struct trib_feedback_state {
    const char *name; /* section of a plan's state; NULL ends the list */
    bool optional; /* kept only if parameter `param` is not 0 */
    bool cleared; /* 0 where an element was sent, if parameter `clears` is not 0 */
    bool shared; /* the same on all ranks; of other states the sum over the ranks
                  * counts */
    uint8_t param, clears;
    uint8_t sums; /* of a shared one: the state whose sum, or mean, over the ranks it
                   * is */
};

/* A rule sees a rank's contribution chunk by chunk, with the states of the vector. */
struct trib_feedback_chunk {
    const struct trib_feedback_rule *rule;
    const struct trib_kernels *kernels;
    const struct trib_codec *codec;
    float *const *state; /* [TRIB_FEEDBACK_STATES] of the whole vector; NULL: not
                          * kept */
    size_t first, n; /* elements */
    float scale; /* by which clipping multiplies the contribution */
    uint32_t step; /* from 1 */
};

/* A code word, or the n elements that it stands for. */
struct trib_feedback_word {
    const uint8_t *bytes; /* NULL: there are elements */
    size_t len;
    const float *elements;
};

struct trib_feedback_ops {
    const char *name;
    struct trib_feedback_param params[TRIB_FEEDBACK_PARAMS + 1];
    struct trib_feedback_state states[TRIB_FEEDBACK_STATES + 1];
    /* texts that tests and the fuzzer try, each with a codec that it goes with */
    const char *examples[TRIB_FEEDBACK_EXAMPLES + 1][2];
    bool takes_none; /* it has no parameters, not even those of all rules */
    bool corrects; /* what one operation leaves out is made up for by later ones */
    bool residual; /* the encoder adds to x what the last word left out (codec.h) */
    /* The result is the sum of what the ranks keep, so each has to see every word. */
    bool sums_state;
    /* The parameter by which the caller keeps the residual in the vector that it
     * gives; 0: there is none. */
    uint8_t caller;

    /** chosen_for - the rule that this one is with a codec; NULL: the rule itself. */
    const struct trib_feedback_ops *(*chosen_for)(const struct trib_codec *codec);

    /** misfit - why the rule does not go with this codec, or NULL. May be NULL. */
    const char *(*misfit)(const struct trib_feedback_rule *rule,
                          const struct trib_codec *codec);

    /** complete - give parameters that the text leaves out their value. May be NULL. */
    void (*complete)(struct trib_feedback_rule *rule, const struct trib_codec *codec);

    /**
     * before - what the encoder gets in the place of x, the contribution before
     * clipping. Called only if the rule keeps a state.
     *
     * stage    n floats for the result; x may be there
     * returns  x, stage or a state
     */
    const float *(*before)(const struct trib_feedback_chunk *c, const float *x,
                           float *stage);

    /** after - the rank has encoded its contribution as this valid word. May be
     * NULL. */
    void (*after)(const struct trib_feedback_chunk *c,
                  const struct trib_feedback_word *word);

    /**
     * result - the words of all ranks sum to this; what is the operation's result?
     * NULL: the sum itself.
     *
     * out      n floats, one of the states
     * errors   TRIB_ERR_CODEC as trib_codec_decode_add
     */
    trib_status_t (*result)(const struct trib_feedback_chunk *c,
                            const struct trib_feedback_word *sum, const float **out);

    /** restart - the result has a NaN or Inf, which all ranks see: keep none of it.
     * Goes with result. */
    void (*restart)(const struct trib_feedback_chunk *c);
};

/** trib_feedback_rules - the tables in the order of the rows, with NULL at the end. */
extern const struct trib_feedback_ops *const trib_feedback_rules[];

#endif
