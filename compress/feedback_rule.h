/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rule by which a plan corrects its codec's losses, and changes its contribution
 * before: as a text and as numbers. What each rule does is in feedback_ops.h and
 * feedback/; the state of a plan is in pipeline/payload/error_feedback.h.
 *
 *     NAME[:KEYS]      a rule of feedback_rules.def
 *     KEYS             clip=T,warmup=STEPS,stages=E of all rules, and a rule's own
 *
 *     clip      the gradient g becomes g T / (sqrt(ranks) |g|) where |g| > T /
 *               sqrt(ranks)
 *     warmup    trib_feedback_ratio
 *
 *     paper     clipping, warm-up: Lin et al. (DGC), ICLR 2018
 */
#ifndef COMPRESS_FEEDBACK_RULE_H
#define COMPRESS_FEEDBACK_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/status.h>

struct trib_codec;
struct trib_error;

struct trib_feedback_ops;

enum {
    TRIB_FEEDBACK_TEXT_MAX = 160,
    TRIB_FEEDBACK_PARAMS = 4, /* that one rule alone has, at most */
};

struct trib_feedback_rule {
    /* The table of the rule. The library's own plans have NULL, which means "codec". */
    const struct trib_feedback_ops *ops;
    double param[TRIB_FEEDBACK_PARAMS]; /* in the order of ops->params; 0: none */
    double clip; /* T; 0: none */
    uint32_t warmup; /* steps; 0: none */
    uint32_t stages; /* of equal ratio, in these steps */
    uint32_t given; /* bits of the text's parameters, of param first */
    uint32_t digest; /* of the canonical text */
    char text[TRIB_FEEDBACK_TEXT_MAX];
};

/**
 * trib_feedback_parse - a rule from its text, still as it was written.
 *
 * errors   TRIB_ERR_INVALID with a sentence in err: what, where, the nearest name, the
 *          range
 */
trib_status_t trib_feedback_parse(const char *text, struct trib_error *err,
                                  struct trib_feedback_rule *rule_out);

/**
 * trib_feedback_fit - what the rule means with this codec, with its canonical text.
 *
 * codec    NULL: none, raw elements
 * errors   TRIB_ERR_UNSUPPORTED with a sentence: this codec does not allow it
 */
trib_status_t trib_feedback_fit(struct trib_feedback_rule *rule,
                                const struct trib_codec *codec, struct trib_error *err);

/** trib_feedback_for - what the rule does with this codec (NULL: raw elements). */
const struct trib_feedback_ops *trib_feedback_for(const struct trib_feedback_rule *rule,
                                                  const struct trib_codec *codec);

/** trib_feedback_keeps - true if a rank keeps ops->states[i] by this rule. */
bool trib_feedback_keeps(const struct trib_feedback_rule *rule, unsigned i);

/** trib_feedback_states - number of the states that a rank keeps by this rule. */
unsigned trib_feedback_states(const struct trib_feedback_rule *rule);

/** trib_feedback_residual - the rule that keeps the encoder's residual, and no more
 * unless its parameters say so. */
const struct trib_feedback_ops *trib_feedback_residual(void);

/** trib_feedback_by_caller - true if what is sent is taken from the vector that the
 * caller gives, and the rest stays there: the rank keeps no residual of its own. */
bool trib_feedback_by_caller(const struct trib_feedback_rule *rule);

/** trib_feedback_plain - true if the rule keeps nothing but a residual, by itself, and
 * changes no contribution. */
bool trib_feedback_plain(const struct trib_feedback_rule *rule);

/**
 * trib_feedback_ratio - what a codec of this ratio selects in a step, from 0 on.
 *
 * max(ratio^((e + 1) / (stages + 1)), ratio) in stage e of the warm-up (DGC), then
 * ratio.
 */
double trib_feedback_ratio(const struct trib_feedback_rule *rule, double ratio,
                           uint32_t step);

#endif
