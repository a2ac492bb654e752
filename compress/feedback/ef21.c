/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * EF21 keeps h: c = C(x - h); send c; h += c; the result is the sum or mean of h.
 *
 *     momentum  v = (1 - ETA) v + ETA g, initially v = g; x = v
 *
 *     papers    Richtarik, Sokolov, Fatkhullin, NeurIPS 2021 (Algorithm 1)
 *               with momentum (SGDM): Fatkhullin, Tyurin, Richtarik, NeurIPS 2023
 */
#include <math.h>

#include "compress/codec.h"
#include "compress/feedback_ops.h"
#include "compress/kernels/kernels.h"

enum { MOMENTUM };
enum { V, OWN, SUM }; /* v; h of this rank; the sum of h, the same on all ranks */

static const char *misfit(const struct trib_feedback_rule *rule,
                          const struct trib_codec *codec)
{
    (void)rule;
    return trib_codec_info(codec)->delta > 0
               ? NULL
               : "ef21 requires a contraction, |C(x)-x|^2 <= (1-1/delta)|x|^2, and "
                 "this codec guarantees no delta; use another, such as topk, or ef14";
}

static const float *before(const struct trib_feedback_chunk *c, const float *x,
                           float *stage)
{
    float scale = c->scale;

    if (c->state[V]) {
        float *v = c->state[V] + c->first;
        const float eta = c->step == 1 ? 1.0f : (float)c->rule->param[MOMENTUM];
        c->kernels->average(v, x, c->n, 1.0f - eta, eta * scale);
        x = v;
        scale = 1.0f;
    }
    const struct trib_combine difference = {x, c->state[OWN] + c->first, scale,
                                             -1.0f};
    c->kernels->combine(stage, &difference, c->n);
    return stage;
}

static void after(const struct trib_feedback_chunk *c,
                  const struct trib_feedback_word *word)
{
    /* Cannot fail: this rank has encoded the chunk itself. */
    (void)trib_codec_decode_add(c->codec, word->bytes, word->len, 1.0f,
                                c->state[OWN] + c->first, c->n);
}

static trib_status_t result(const struct trib_feedback_chunk *c,
                            const struct trib_feedback_word *sum, const float **out)
{
    float *h = c->state[SUM] + c->first;

    *out = h;
    if (sum->bytes)
        return trib_codec_decode_add(c->codec, sum->bytes, sum->len, 1.0f, h, c->n);
    c->kernels->axpy_f32(h, sum->elements, 1.0f, c->n);
    return TRIB_OK;
}

static void restart(const struct trib_feedback_chunk *c)
{
    float *own = c->state[OWN] + c->first, *sum = c->state[SUM] + c->first;

    for (size_t i = 0; i < c->n; i++)
        if (!isfinite(sum[i]))
            own[i] = sum[i] = 0.0f;
}

const struct trib_feedback_ops trib_feedback_ef21 = {
    .name = "ef21",
    .params = {[MOMENTUM] = {"momentum", 1e-6, 1, .off = 1,
                             .must = "a number above 0, at most 1"}},
    .states =
        {
            [V] = {"momentum", .optional = true, .param = MOMENTUM},
            [OWN] = {"own"},
            [SUM] = {"sum", .shared = true, .sums = OWN},
        },
    .examples = {{"ef21", "topk:ratio=0.1"},
                 {"ef21:momentum=0.1", "topk:ratio=0.05+natural"},
                 {"ef21:momentum=0.1,clip=3", "dgc:ratio=0.1"},
                 {"ef21", "blocks:ratio=0.1,block=16"}},
    .corrects = true,
    .sums_state = true,
    .misfit = misfit,
    .before = before,
    .after = after,
    .result = result,
    .restart = restart,
};
