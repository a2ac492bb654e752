/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * EF14 keeps e: p = x + e; send C(p); e = p - C(p). The encoders implement this
 * (trib_codec_encode_ef).
 *
 *     momentum  u = M u + g; x = u
 *     nesterov  u = M (u + g); x = u + g
 *     masking   u becomes 0 where an element was sent
 *     caller    the caller's vector holds p: C(p) is subtracted from it, leaving e, and
 *               the caller adds the next g
 *
 *     papers    Seide et al., Interspeech 2014;
 *               Stich, Cordonnier, Jaggi, NeurIPS 2018
 *               momentum correction, masking: Lin et al. (DGC), ICLR 2018
 */
#include "compress/codec.h"
#include "compress/feedback_ops.h"
#include "compress/kernels/kernels.h"

enum { MOMENTUM, NESTEROV, MASKING, CALLER };
enum { U };

static const char *misfit(const struct trib_feedback_rule *rule,
                          const struct trib_codec *codec)
{
    if (trib_codec_feedback_grows(codec))
        return "the error would grow without bound; use other codec "
               "parameters, or feedback none";
    if (rule->param[MASKING] > 0 && !trib_codec_selects(codec))
        return "masking clears the momentum of selected elements, and this codec "
               "sends all; use masking=0, or a codec such as topk";
    if (rule->param[CALLER] > 0 && !trib_codec_selects_sums(codec))
        return "caller=1 subtracts selected elements from the caller's vector, and "
               "this codec sends all elements or also selects by the gradient; use "
               "caller=0, or a codec such as topk";
    if (rule->param[CALLER] > 0 && (rule->param[MOMENTUM] > 0 || rule->clip > 0))
        return "caller=1 only gets the gradient plus the residual, but momentum and "
               "clip need the gradient alone; omit them, or caller=1";
    return NULL;
}

static void complete(struct trib_feedback_rule *rule, const struct trib_codec *codec)
{
    if (rule->param[MOMENTUM] > 0 && !(rule->given & 1u << MASKING))
        rule->param[MASKING] = trib_codec_selects(codec) ? 1 : 0;
}

static const float *before(const struct trib_feedback_chunk *c, const float *x,
                           float *stage)
{
    const float m = (float)c->rule->param[MOMENTUM];
    float *u = c->state[U] + c->first;

    if (c->rule->param[NESTEROV] > 0) {
        c->kernels->average(u, x, c->n, m, m * c->scale);
        const struct trib_combine sum = {u, x, 1.0f, c->scale};
        c->kernels->combine(stage, &sum, c->n);
        return stage;
    }
    c->kernels->average(u, x, c->n, m, c->scale);
    return u;
}

const struct trib_feedback_ops trib_feedback_ef14 = {
    .name = "ef14",
    .params =
        {
            [MOMENTUM] = {"momentum", 1e-6, 0x1.fffffffffffffp-1,
                          .must = "a number above 0, below 1"},
            [NESTEROV] = {"nesterov", 0, 1, .whole = true, .must = "0 or 1",
                          .about = "momentum"},
            [MASKING] = {"masking", 0, 1, .whole = true, .must = "0 or 1",
                         .about = "momentum"},
            [CALLER] = {"caller", 0, 1, .whole = true, .must = "0 or 1"},
        },
    .caller = CALLER,
    .states = {[U] = {"momentum", .optional = true, .param = MOMENTUM, .cleared = true,
                      .clears = MASKING}},
    .examples = {{"ef14", "topk:ratio=0.1"},
                 {"ef14", "qsgd:bits=4"},
                 {"ef14:momentum=0.9", "topk:ratio=0.1"},
                 {"ef14:momentum=0.9", "efsign"},
                 {"ef14:caller=1", "topk:ratio=0.01"},
                 {"ef14:momentum=0.9,nesterov=1", "int8"},
                 {"ef14:momentum=0.5,nesterov=1,masking=0", "randomk:ratio=0.05"},
                 {"ef14:momentum=0.9,nesterov=1,clip=2,warmup=6,stages=3",
                  "topk:ratio=0.01"}},
    .corrects = true,
    .residual = true,
    .misfit = misfit,
    .complete = complete,
    .before = before,
};
