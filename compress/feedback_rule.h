/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The error feedback rule of a plan, as text and as numbers: how it corrects the
 * codec's losses and adjusts its contribution before encoding. feedback_ops.h and
 * feedback/ implement the rules; pipeline/payload/error_feedback.h keeps their state.
 *
 *     NAME[:KEYS]      a rule of feedback_rules.def
 *     KEYS             clip=T,warmup=STEPS,stages=E for all rules, and a rule's own
 *
 *     clip      gradient g becomes g T / (sqrt(ranks) |g|) if |g| > T / sqrt(ranks)
 *     warmup    see trib_feedback_ratio
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
    TRIB_FEEDBACK_PARAMS = 4, /* most parameters of one rule */
};

struct trib_feedback_rule {
    /* Table of the rule. NULL, in the library's internal plans, means "codec". */
    const struct trib_feedback_ops *ops;
    double param[TRIB_FEEDBACK_PARAMS]; /* in the order of ops->params; 0: none */
    double clip; /* T; 0: none */
    uint32_t warmup; /* steps; 0: none */
    uint32_t stages; /* stages of equal ratio in the warm-up */
    uint32_t given; /* bit mask of the parameters in the text, those of param first */
    uint32_t digest; /* of the canonical text */
    char text[TRIB_FEEDBACK_TEXT_MAX];
};

/**
 * trib_feedback_parse - parse a rule; its text is not yet canonical.
 *
 * errors   TRIB_ERR_INVALID with a message in err: fault, position, nearest name, range
 */
trib_status_t trib_feedback_parse(const char *text, struct trib_error *err,
                                  struct trib_feedback_rule *rule_out);

/**
 * trib_feedback_fit - resolve the rule for this codec and write its canonical text.
 *
 * codec    NULL: none, raw elements
 * errors   TRIB_ERR_UNSUPPORTED with a message in err: the codec does not allow the
 *          rule
 */
trib_status_t trib_feedback_fit(struct trib_feedback_rule *rule,
                                const struct trib_codec *codec, struct trib_error *err);

/** trib_feedback_for - return the rule in effect with this codec (NULL: raw
 * elements). */
const struct trib_feedback_ops *trib_feedback_for(const struct trib_feedback_rule *rule,
                                                  const struct trib_codec *codec);

/** trib_feedback_keeps - return true if a rank keeps ops->states[i] under this rule. */
bool trib_feedback_keeps(const struct trib_feedback_rule *rule, unsigned i);

/** trib_feedback_states - return the number of states that a rank keeps under this
 * rule. */
unsigned trib_feedback_states(const struct trib_feedback_rule *rule);

/** trib_feedback_residual - return the rule that keeps only the encoder's residual by
 * default. */
const struct trib_feedback_ops *trib_feedback_residual(void);

/**
 * trib_feedback_by_caller - return true if the residual stays in the caller's vector.
 *
 * Sent elements are subtracted from that vector, and the rank keeps no residual itself.
 */
bool trib_feedback_by_caller(const struct trib_feedback_rule *rule);

/** trib_feedback_plain - return true if the rule only keeps a residual and changes no
 * contribution. */
bool trib_feedback_plain(const struct trib_feedback_rule *rule);

/**
 * trib_feedback_ratio - return the ratio to select in a step (from 0), for a codec of
 * this ratio.
 *
 * max(ratio^((e + 1) / (stages + 1)), ratio) in stage e of the warm-up (DGC), then
 * ratio.
 */
double trib_feedback_ratio(const struct trib_feedback_rule *rule, double ratio,
                           uint32_t step);

#endif
