/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rule by which a plan corrects its codec's losses, and changes its contribution
 * before: as a text and as numbers. The state is in pipeline/payload/error_feedback.h.
 *
 *     codec            what the codec's ef= says
 *     none[:KEYS]      what is lost is lost
 *     ef14[:KEYS]      e: p = x + e; send C(p); e = p - C(p)
 *     ef21[:KEYS]      h: c = C(x - h); send c; h += c; the result is the sum, or mean,
 *                      of h
 *     KEYS             clip=T,warmup=STEPS,stages=E of all three,
 *                      momentum=M,nesterov=0|1,masking=0|1 of ef14, momentum=ETA of
 *                      ef21
 *
 * x is the gradient g of this rank, after, in this order,
 *
 *     clip      g T / (sqrt(ranks) |g|) where |g| > T / sqrt(ranks)
 *     momentum  ef14: u = M u + g; x = u; nesterov: u = M (u + g); x = u + g
 *               ef21: v = (1 - ETA) v + ETA g, at first v = g; x = v
 *
 *     papers    EF14: Seide et al., Interspeech 2014;
 *               Stich, Cordonnier, Jaggi, NeurIPS 2018
 *               momentum correction, masking, clipping, warm-up: Lin et al. (DGC),
 *               ICLR 2018
 *               EF21: Richtarik, Sokolov, Fatkhullin, NeurIPS 2021 (Algorithm 1)
 *               EF21 with momentum (SGDM): Fatkhullin, Tyurin, Richtarik, NeurIPS 2023
 */
#ifndef COMPRESS_FEEDBACK_RULE_H
#define COMPRESS_FEEDBACK_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/status.h>

struct trib_codec;
struct trib_error;

enum trib_feedback_kind {
    TRIB_FEEDBACK_CODEC, /* not resolved yet; in a plan of its own making: as the codec
                          * says */
    TRIB_FEEDBACK_NONE,
    TRIB_FEEDBACK_EF14,
    TRIB_FEEDBACK_EF21,
};

enum { TRIB_FEEDBACK_TEXT_MAX = 160 };

struct trib_feedback_rule {
    enum trib_feedback_kind kind;
    double momentum; /* EF14: M, EF21: ETA; 0: none */
    bool nesterov;
    bool masking;
    bool masking_given;
    double clip; /* T; 0: none */
    uint32_t warmup; /* steps; 0: none */
    uint32_t stages; /* of equal ratio, in these steps */
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

/** trib_feedback_plain - no more than error feedback, or not even that? */
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
