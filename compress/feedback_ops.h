/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations of a rule of error feedback. Each row of feedback_rules.def has one such
 * table. The parser, plans, their state, tests and the fuzzer depend on nothing else.
 */
#ifndef COMPRESS_FEEDBACK_OPS_H
#define COMPRESS_FEEDBACK_OPS_H

#include "compress/feedback_rule.h"

struct trib_kernels;

enum {
    TRIB_FEEDBACK_STATES = 4, /* most vectors that a rule keeps */
    TRIB_FEEDBACK_EXAMPLES = 8,
};

/* A parameter of one rule. All rules also accept clip, warmup and stages. */
struct trib_feedback_param {
    const char *name; /* NULL ends the list */
    double lowest, highest;
    double off; /* the value that equals omitting the parameter */
    bool whole;
    const char *must; /* completes "must be …" */
    /* Name of the parameter that this one requires, or NULL. The text has both or
     * neither. */
    const char *about;
};

/* A vector of float32 that a rank keeps from one operation to the next. */
struct trib_feedback_state {
    const char *name; /* section of a plan's state; NULL ends the list */
    bool optional; /* kept only if parameter `param` is not 0 */
    /* set to 0 where an element was sent, if parameter `clears` is not 0 */
    bool cleared;
    /* The same on all ranks. Of other states only the sum over the ranks matters. */
    bool shared;
    uint8_t param, clears;
    /* Shared states: index of the state whose sum or mean over the ranks this is. */
    uint8_t sums;
};

/* One chunk of a rank's contribution, and the states of the whole vector. */
struct trib_feedback_chunk {
    const struct trib_feedback_rule *rule;
    const struct trib_kernels *kernels;
    const struct trib_codec *codec;
    /* [TRIB_FEEDBACK_STATES], for the whole vector; NULL: not kept. */
    float *const *state;
    size_t first, n; /* elements */
    float scale; /* clipping factor of the contribution */
    uint32_t step; /* from 1 */
};

/* An encoded chunk, or its n decoded elements. */
struct trib_feedback_word {
    const uint8_t *bytes; /* NULL: see elements */
    size_t len;
    const float *elements;
};

struct trib_feedback_ops {
    const char *name;
    struct trib_feedback_param params[TRIB_FEEDBACK_PARAMS + 1];
    struct trib_feedback_state states[TRIB_FEEDBACK_STATES + 1];
    /* Texts for tests and the fuzzer, each with a compatible codec. */
    const char *examples[TRIB_FEEDBACK_EXAMPLES + 1][2];
    bool takes_none; /* accepts no parameters, not even those of all rules */
    bool corrects; /* later operations make up for what one operation leaves out */
    bool residual; /* the encoder adds the last residual to x (codec.h) */
    /* The result is the sum of the ranks' states, so each rank must see every encoded
     * chunk. */
    bool sums_state;
    /* Parameter that keeps the residual in the caller's vector; 0: none. */
    uint8_t caller;

    /** chosen_for - return the rule that this rule resolves to with a codec; NULL:
     * itself. */
    const struct trib_feedback_ops *(*chosen_for)(const struct trib_codec *codec);

    /** misfit - return why the rule cannot be used with this codec, or NULL. May be
     * NULL. */
    const char *(*misfit)(const struct trib_feedback_rule *rule,
                          const struct trib_codec *codec);

    /** complete - set the parameters that the text omits. May be NULL. */
    void (*complete)(struct trib_feedback_rule *rule, const struct trib_codec *codec);

    /**
     * before - return the encoder's input for the contribution x, before clipping.
     *
     * Called only if the rule keeps a state.
     *
     * stage    n floats for the result; may alias x
     * returns  x, stage or a state
     */
    const float *(*before)(const struct trib_feedback_chunk *c, const float *x,
                           float *stage);

    /** after - update the states after the contribution was encoded as `word`. May be
     * NULL. */
    void (*after)(const struct trib_feedback_chunk *c,
                  const struct trib_feedback_word *word);

    /**
     * result - compute the result from the sum of all ranks' chunks. NULL: the sum
     * itself.
     *
     * out      n floats, one of the states
     * errors   TRIB_ERR_CODEC as trib_codec_decode_add
     */
    trib_status_t (*result)(const struct trib_feedback_chunk *c,
                            const struct trib_feedback_word *sum, const float **out);

    /** restart - reset the states after a result with NaN or Inf, which all ranks see.
     * Required with result. */
    void (*restart)(const struct trib_feedback_chunk *c);
};

/** trib_feedback_rules - the tables in the order of the rows, NULL-terminated. */
extern const struct trib_feedback_ops *const trib_feedback_rules[];

#endif
