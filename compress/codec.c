/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of codecs, and the contract of codec.h on top of the stages.
 */
#include "compress/codec.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/error.h"
#include "compress/quantise/buckets.h"
#include "compress/quantise/exact.h"
#include "compress/quantise/packed_ints.h"
#include "compress/models/model_ops.h"
#include "compress/transform/rotated.h"
#include "compress/sparsify/selection.h"
#include "compress/pack/varlen.h"

/* Dense: what is encoded is x, and nobody asks for positions. */
static size_t choose_all(const struct trib_codec *c, struct trib_selection *s)
{
    (void)c;
    for (size_t i = 0; i < s->n; i++)
        s->positions[i] = (uint32_t)i;
    return s->n;
}

static double delta_all(const struct trib_codec *c)
{
    (void)c;
    return 1.0;
}

const struct trib_transform trib_transform_none = {.name = "none"};
const struct trib_transform trib_transform_powersgd = {.name = "powersgd",
                                                       .model = &trib_model_powersgd};
const struct trib_transform trib_transform_gradiveq = {.name = "gradiveq",
                                                       .model = &trib_model_gradiveq};
const struct trib_transform trib_transform_lgc = {.name = "lgc", .model = &trib_model_lgc};
const struct trib_transform trib_transform_lgc_ps = {.name = "lgc_ps",
                                                     .model = &trib_model_lgc_ps};
const struct trib_select trib_select_all = {.name = "all",
                                            .unit = trib_unit_one,
                                            .choose = choose_all,
                                            .adjust = trib_adjust_none,
                                            .unbiased = trib_unbiased_never,
                                            .delta = delta_all};
const struct trib_pack trib_pack_raw = {.name = "raw"};
const struct trib_pack trib_pack_bits = {.name = "bits"};
const struct trib_pack trib_pack_gaps = {.name = "gaps"};
const struct trib_pack trib_pack_strata = {.name = "strata"};
const struct trib_pack trib_pack_omega = {.name = "omega",
                                          .variable = &trib_variable_omega};
const struct trib_pack trib_pack_entropy = {.name = "entropy",
                                            .variable = &trib_variable_entropy};

/* name, grammar, detail, transform, select, quantise, pack, flags */
/* clang-format off */
#define ROWS(X) \
    X("none", "none", "elements as they are, any dtype", \
      none, all, f32, raw, \
      TRIB_CODEC_IDENTITY | TRIB_CODEC_LINEAR | TRIB_CODEC_UNBIASED | TRIB_CODEC_ANY_OP) \
    X("f16", "f16[:round=nearest|random][,ef=0|1]", "IEEE half precision", \
      none, all, f16, raw, TRIB_CODEC_ANY_OP) \
    X("bf16", "bf16[:round=nearest|random][,ef=0|1]", "upper half of float32", \
      none, all, bf16, raw, TRIB_CODEC_ANY_OP) \
    X("f8", "f8[:format=e4m3|e5m2][,bucket=N][,round=nearest|random][,pack=P][,ef=0|1]", \
      "8-bit floats, a power of two per bucket", \
      none, all, f8, bits, 0) \
    X("topk", "topk[:ratio=R|k=N][,ef=0|1][+VALUES]", \
      "the k largest magnitudes", \
      none, topk, f32, gaps, TRIB_CODEC_SPARSE | TRIB_CODEC_FEEDBACK) \
    X("dgc", "dgc[:ratio=R|k=N][,ef=0|1][+VALUES]", \
      "0.8 k to k of the largest, by a sample", \
      none, dgc, f32, gaps, TRIB_CODEC_SPARSE | TRIB_CODEC_FEEDBACK) \
    X("threshold", "threshold[:at=T][,ef=0|1][+VALUES]", "all magnitudes from T on", \
      none, threshold, f32, gaps, TRIB_CODEC_SPARSE | TRIB_CODEC_FEEDBACK) \
    X("randomk", "randomk[:ratio=R|k=N][,unbiased=0|1][,ef=0|1][+VALUES]", \
      "k random elements, the same on all ranks", \
      none, randomk, f32, strata, TRIB_CODEC_SPARSE | TRIB_CODEC_FEEDBACK) \
    X("blocks", "blocks[:ratio=R][,block=N][,ef=0|1][+VALUES]", \
      "blocks that are not zero, or the largest", \
      none, blocks, f32, gaps, TRIB_CODEC_SPARSE | TRIB_CODEC_UNBIASED) \
    X("adacomp", "adacomp[:bin=N][,factor=F][,ef=0|1]", \
      "what nears the largest of a bin, as a sign", \
      none, adacomp, magnitude, gaps, TRIB_CODEC_SPARSE | TRIB_CODEC_FEEDBACK) \
    X("qsgd", "qsgd[:bits=2..8][,bucket=N][,norm=max|l2][,shared=0|1][,pack=P][,ef=0|1]", \
      "random rounding to levels of a norm", \
      none, all, levels, bits, TRIB_CODEC_UNBIASED) \
    X("natural", "natural[:bucket=N][,round=random|nearest][,pack=P][,ef=0|1]", \
      "rounding to powers of two, 8 bits", \
      none, all, natural, bits, TRIB_CODEC_UNBIASED) \
    X("dither", "dither[:base=B][,bits=2..8][,bucket=N][,norm=max|l2][,pack=P][,ef=0|1]", \
      "random rounding to 1, 1/base … of a norm", \
      none, all, dither, bits, TRIB_CODEC_UNBIASED) \
    X("terngrad", "terngrad[:bucket=N][,clip=C][,shared=0|1][,pack=P][,ef=0]", \
      "random rounding to 0 or +- the norm", \
      none, all, ternary, bits, 0) \
    X("onebit", "onebit[:bucket=N][,ef=0|1]", \
      "a sign; the means above and below 0", \
      none, all, means, bits, TRIB_CODEC_FEEDBACK) \
    X("efsign", "efsign[:bucket=N][,ef=0|1]", \
      "a sign; the mean magnitude of a bucket", \
      none, all, sign, bits, TRIB_CODEC_FEEDBACK) \
    X("signsgd", "signsgd[:ef=0]", \
      "the sign that most ranks have, else 0", \
      none, all, vote, bits, TRIB_CODEC_LINEAR | TRIB_CODEC_VOTE) \
    X("int4", "int4[:bucket=N][,round=random|nearest][,result=sums|requantised][,ef=0|1]", \
      "integers up to 7; summed as integers", \
      none, all, int4, bits, \
      TRIB_CODEC_LINEAR | TRIB_CODEC_SHARED | TRIB_CODEC_UNBIASED) \
    X("int8", "int8[:bucket=N][,round=random|nearest][,result=sums|requantised][,ef=0|1]", \
      "integers up to 127; summed as integers", \
      none, all, int8, bits, \
      TRIB_CODEC_LINEAR | TRIB_CODEC_SHARED | TRIB_CODEC_UNBIASED) \
    X("int16", "int16[:bucket=N][,round=random|nearest][,result=sums|requantised][,ef=0|1]", \
      "integers up to 32767; summed as integers", \
      none, all, int16, raw, \
      TRIB_CODEC_LINEAR | TRIB_CODEC_SHARED | TRIB_CODEC_UNBIASED) \
    X("uniform-thc", "uniform-thc[:bits=2..8][,bucket=N][,round=random|nearest][,ef=0|1]", \
      "integers from the least to the largest", \
      none, all, range, bits, \
      TRIB_CODEC_LINEAR | TRIB_CODEC_SHARED | TRIB_CODEC_UNBIASED) \
    X("hadamard", "hadamard[:block=N][,ef=0|1][+VALUES]", \
      "rotates blocks; alone with uniform-thc", \
      hadamard, all, range, bits, \
      TRIB_CODEC_LINEAR | TRIB_CODEC_SHARED | TRIB_CODEC_UNBIASED) \
    X("thc", "thc[:block=N][,p=1/16|1/32|1/64|1/128|1/256|1/512][,ef=0|1]", \
      "rotated blocks, 16 points of a bell curve", \
      hadamard, all, table, bits, \
      TRIB_CODEC_LINEAR | TRIB_CODEC_SHARED | TRIB_CODEC_FEEDBACK) \
    X("exact", "exact[:ef=0]", "sums without rounding, in any order", \
      none, all, wide, raw, TRIB_CODEC_LINEAR | TRIB_CODEC_UNBIASED) \
    X("powersgd", "powersgd[:rank=N][,columns=N][,ef=0|1]", \
      "low-rank factors of matrices, iterated", \
      powersgd, all, f32, raw, \
      TRIB_CODEC_LINEAR | TRIB_CODEC_SHARED | TRIB_CODEC_MODEL | TRIB_CODEC_FEEDBACK) \
    X("gradiveq", "gradiveq[:slice=N][,kept=N][,train=N][,coded=N][,centre=0|1][,ef=0|1][+VALUES]", \
      "principal components of slices, learned", \
      gradiveq, all, f32, raw, TRIB_CODEC_LINEAR | TRIB_CODEC_MODEL | TRIB_CODEC_FEEDBACK) \
    X("lgc", "lgc[:ratio=R][,dense=N][,train=N][,rate=R][,ef=0|1]", \
      "a learned code of one rank's top k", \
      lgc, all, f32, raw, \
      TRIB_CODEC_LINEAR | TRIB_CODEC_SHARED | TRIB_CODEC_MODEL | TRIB_CODEC_FEEDBACK) \
    X("lgc-ps", "lgc-ps[:ratio=R][,dense=N][,train=N][,rate=R][,innovation=R][,ef=0|1]", \
      "as lgc, with a decoder for each rank", \
      lgc_ps, all, f32, raw, \
      TRIB_CODEC_LINEAR | TRIB_CODEC_SHARED | TRIB_CODEC_MODEL | TRIB_CODEC_FEEDBACK)
/* clang-format on */

#define ROW(name, grammar, detail, transform, select, quantise, pack, flags) \
    {name, \
     {&trib_transform_##transform, &trib_select_##select, &trib_quantise_##quantise, \
      &trib_pack_##pack}, \
     flags},
const struct trib_codec_row trib_codecs[] = {ROWS(ROW)};
const size_t trib_codecs_count = sizeof trib_codecs / sizeof *trib_codecs;

#define ROW_INFO(name, grammar, detail, transform, select, quantise, pack, flags) \
    {name, grammar, detail, {#transform, #select, #quantise, #pack}, flags},
static const struct trib_codec_row_info row_infos[] = {ROWS(ROW_INFO)};

/*
 * A selection of δ1 then a quantiser of δ2 leave |x|^2 - |y|^2, y being what was selected,
 * and (1 - 1/δ2) |y|^2 of it, at other elements: together |x|^2 - |y|^2 / δ2, and |y|^2 is
 * at least |x|^2 / δ1.
 */
static double delta_of(const struct trib_codec *c)
{
    if (c->stages.transform->model)
        return 0; /* it is as good as what was learned */
    return c->stages.select->delta(c) * c->stages.quantise->delta(c);
}

/* Feedback around what is no contraction grows without bound (Stich & Karimireddy 2020).
 * Norms of the largest magnitude are let through: they contract on what gradients are
 * like, if not in the worst case. */
bool trib_codec_feedback_grows(const struct trib_codec *c)
{
    const struct trib_quantise *q = c->stages.quantise;
    if (c->param[TRIB_PARAM_UNBIASED] > 0)
        return true;
    const bool of_largest =
        (q->params & TRIB_PARAM_BIT(NORM)) && c->param[TRIB_PARAM_NORM] == TRIB_NORM_MAX;
    return q->grows || (q->bucketing && q->delta(c) == 0 && !of_largest);
}

/* What is selected is scaled so that the mean is right, and the values' mean is right. */
static bool selects_unbiased(const struct trib_codec *c)
{
    return c->stages.select->unbiased(c) &&
           (!c->values || (c->values->flags & TRIB_CODEC_UNBIASED));
}

static bool has_model(const struct trib_codec *c)
{
    return c->stages.transform->model;
}

static bool rotates(const struct trib_codec *c)
{
    return c->stages.transform->rotates;
}

enum { SHARE_PROBE = 65536 }; /* elements: who shares anything does so of these */

static uint32_t flags_of(const struct trib_codec *c)
{
    const struct trib_codec_row *row = c->values && rotates(c) ? c->values : c->row;
    uint32_t flags = row->flags & ~(uint32_t)TRIB_CODEC_FEEDBACK;
    if (rotates(c)) /* the least of rotated values is that of no element */
        flags &= ~(uint32_t)TRIB_CODEC_ANY_OP;
    if (c->stages.select->sparse)
        flags &= ~(uint32_t)TRIB_CODEC_UNBIASED;
    if (selects_unbiased(c))
        flags |= TRIB_CODEC_UNBIASED;
    if (c->param[TRIB_PARAM_ROUND] == TRIB_ROUND_NEAREST)
        flags &= ~(uint32_t)TRIB_CODEC_UNBIASED;
    else if (c->stages.quantise->nearest && !c->stages.select->sparse && !has_model(c))
        flags |= TRIB_CODEC_UNBIASED;
    if (c->param[TRIB_PARAM_EF] > 0)
        flags |= TRIB_CODEC_FEEDBACK;
    if (c->stages.quantise->lanes && !c->stages.select->sparse)
        flags |= TRIB_CODEC_LINEAR;
    if (flags & TRIB_CODEC_LINEAR && trib_codec_share_floats(c, SHARE_PROBE))
        flags |= TRIB_CODEC_SHARED;
    return flags;
}

/* What the parameters make of the stages. */
static bool resolve(struct trib_codec *c, struct trib_error *err)
{
    static const struct trib_pack *const packs[] = {
        [TRIB_PACK_OMEGA] = &trib_pack_omega, [TRIB_PACK_ENTROPY] = &trib_pack_entropy};
    const int pack = (int)c->param[TRIB_PARAM_PACK];
    const char *refusal = NULL;
    if (has_model(c))
        refusal = c->stages.transform->model->refusal(c);
    if (c->stages.quantise->resolve)
        c->stages.quantise = c->stages.quantise->resolve(c, &refusal);
    if (c->stages.quantise->shared && c->param[TRIB_PARAM_SHARED] > 0)
        c->stages.quantise = c->stages.quantise->shared;
    if (!refusal && rotates(c))
        refusal = trib_rotated_refusal(c);
    if (pack != TRIB_PACK_BITS && c->stages.select->sparse)
        refusal = "values behind a selection have a fixed length; use pack=bits";
    else if (pack != TRIB_PACK_BITS && c->param[TRIB_PARAM_SHARED] > 0)
        refusal = "words that add have lanes of a fixed width; use pack=bits";
    else if (pack == TRIB_PACK_OMEGA && !c->stages.quantise->counts)
        refusal = "pack=omega is short for small levels, and here they are large; use "
                  "pack=entropy";
    else if (pack != TRIB_PACK_BITS)
        c->stages.pack = packs[pack];
    if (refusal)
        trib_fail(err, TRIB_ERR_CODEC, "codec \"%s\": %s", c->text, refusal);
    return !refusal;
}

trib_status_t trib_codec_create(const char *text, const struct trib_kernels *kernels,
                                struct trib_error *err, struct trib_codec **out)
{
    struct trib_codec *c = calloc(1, sizeof *c);
    if (!c)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "no memory for a codec");
    c->kernels = kernels ? kernels : trib_kernels_get(NULL);
    c->ranks = 1;
    const trib_status_t status = trib_codec_parse(c, text, err);
    if (status != TRIB_OK) {
        trib_codec_destroy(c);
        return status;
    }
    trib_codec_print(c);
    if (!resolve(c, err)) {
        trib_codec_destroy(c);
        return TRIB_ERR_CODEC;
    }
    c->info.text = c->text;
    c->info.flags = flags_of(c);
    c->info.delta = delta_of(c);
    if ((c->info.flags & TRIB_CODEC_FEEDBACK) && trib_codec_feedback_grows(c)) {
        trib_fail(err, TRIB_ERR_CODEC,
                  "codec \"%s\": ef=1 would let the error grow without bound; use %s", c->text,
                  c->param[TRIB_PARAM_UNBIASED] > 0 ? "unbiased=0 or ef=0"
                  : c->stages.quantise->params & TRIB_PARAM_BIT(NORM)
                      ? "norm=max, more bits or a smaller bucket"
                      : "ef=0 or other values");
        trib_codec_destroy(c);
        return TRIB_ERR_CODEC;
    }
    c->info.digest = trib_digest32(c->text, strlen(c->text));
    c->info.stages[0] = c->stages.transform->name;
    c->info.stages[1] = c->stages.select->name;
    c->info.stages[2] = c->stages.quantise->name;
    c->info.stages[3] = c->stages.pack->name;
    *out = c;
    return TRIB_OK;
}

void trib_codec_destroy(struct trib_codec *codec)
{
    if (codec)
        trib_codec_destroy(codec->coefficients);
    free(codec);
}

const struct trib_codec_info *trib_codec_info(const struct trib_codec *codec)
{
    return &codec->info;
}

double trib_codec_ratio(const struct trib_codec *codec)
{
    const bool selects = codec->stages.select->params & TRIB_PARAM_BIT(RATIO);
    return selects && codec->param[TRIB_PARAM_RATIO] > 0 ? codec->param[TRIB_PARAM_RATIO] : 0;
}

void trib_codec_set_ratio(struct trib_codec *codec, double ratio)
{
    assert(trib_codec_ratio(codec) > 0 && ratio > 0 && ratio <= 1);
    codec->param[TRIB_PARAM_RATIO] = ratio;
}

/* Are words of it those of exact.h? */
static bool is_exact(const struct trib_codec *c)
{
    return c->stages.quantise->exact;
}

/* Are words of it lanes? */
static bool has_lanes(const struct trib_codec *c)
{
    return c->stages.quantise->lanes && !c->stages.select->sparse;
}

trib_status_t trib_codec_for_ranks(struct trib_codec *codec, int ranks, struct trib_error *err)
{
    if (has_lanes(codec) && !trib_lanes_fit(codec, ranks))
        return trib_fail(err, TRIB_ERR_CODEC,
                         "codec \"%s\": the sum of %d ranks does not fit into 32 bits; use "
                         "fewer bits",
                         codec->text, ranks);
    codec->ranks = (uint32_t)ranks;
    if (codec->coefficients)
        return trib_codec_for_ranks(codec->coefficients, ranks, err);
    return TRIB_OK;
}

size_t trib_codec_share_floats(const struct trib_codec *codec, size_t n)
{
    if (codec->coefficients)
        return trib_codec_share_floats(codec->coefficients,
                                       codec->stages.transform->model->most(codec, n));
    if (has_model(codec))
        return codec->stages.transform->model->share_floats(codec, n);
    return has_lanes(codec) ? trib_lanes_share_floats(codec, n) : 0;
}

trib_op_t trib_codec_share_op(const struct trib_codec *codec)
{
    return has_model(codec) && !codec->coefficients ? TRIB_SUM : TRIB_MAX;
}

size_t trib_codec_piece(const struct trib_codec *codec)
{
    return has_model(codec) ? codec->stages.transform->model->piece(codec) : 0;
}

void trib_codec_share(const struct trib_codec *codec, const float *x, size_t n,
                      float *share_out)
{
    if (has_lanes(codec) && rotates(codec))
        trib_rotated_share(codec, x, n, share_out);
    else if (has_lanes(codec))
        trib_lanes_share(codec, x, n, share_out);
}

void trib_codec_share_added(const struct trib_codec *codec, const float *x, float *residual,
                            size_t n, float *share_out)
{
    if (!trib_codec_share_floats(codec, n))
        codec->kernels->axpy_f32(residual, x, 1.0f, n);
    else if (rotates(codec))
        trib_rotated_share_added(codec, x, residual, n, share_out);
    else
        trib_lanes_share_added(codec, x, residual, n, share_out);
}

trib_status_t trib_codec_merge(const struct trib_codec *codec, const struct trib_merge *m,
                               uint8_t *dst, size_t *len_out)
{
    if (has_model(codec))
        return trib_model_merge(codec, m, dst, len_out);
    if (is_exact(codec))
        return trib_exact_merge(codec, m, dst, len_out);
    return has_lanes(codec) ? trib_lanes_merge(codec, m, dst, len_out) : TRIB_ERR_CODEC;
}

size_t trib_codec_bound(const struct trib_codec *codec, size_t n)
{
    if (has_model(codec))
        return trib_model_word_bound(codec, n);
    if (has_lanes(codec))
        return trib_lanes_bound(codec, n);
    if (is_exact(codec))
        return trib_exact_bound(codec, n);
    if (codec->stages.select->sparse)
        return trib_sparse_bound(codec, n);
    if (codec->stages.pack->variable)
        return trib_variable_bound(codec, n);
    return codec->stages.quantise->bytes(codec, n);
}

size_t trib_codec_own_bound(const struct trib_codec *codec, size_t n)
{
    if (is_exact(codec))
        return trib_exact_own_bound(n);
    return has_lanes(codec) ? trib_lanes_bytes(codec, n) : trib_codec_sum_bound(codec, n);
}

size_t trib_codec_star_bound(const struct trib_codec *codec, size_t n)
{
    return is_exact(codec) ? trib_exact_own_bound(n) : trib_codec_sum_bound(codec, n);
}

size_t trib_codec_sum_bound(const struct trib_codec *codec, size_t n)
{
    return has_model(codec) ? trib_model_sum_bound(codec, n) : trib_codec_bound(codec, n);
}

bool trib_codec_undivided(const struct trib_codec *codec)
{
    return has_model(codec) && codec->stages.transform->model->undivided;
}

size_t trib_codec_cut(const struct trib_codec *codec, size_t count, size_t chunk,
                      size_t slot_bytes,
                      size_t (*bound)(const struct trib_codec *, size_t))
{
    const size_t wished = trib_codec_piece(codec);
    size_t unit = trib_codec_unit(codec), room = wished ? wished : chunk / sizeof(float);

    if (trib_codec_undivided(codec) && (count + unit - 1) / unit < room / unit)
        room = (count + unit - 1) / unit * unit; /* no longer than the vector */
    if (unit > room || bound(codec, unit) > slot_bytes)
        unit = 64;
    size_t n = room / unit * unit;
    if (n == 0)
        n = unit; /* a chunk smaller than that, in slots of 4 KiB or more */
    while (n / 2 > unit && bound(codec, n / 2 / unit * unit) > slot_bytes)
        n = n / 2 / unit * unit;
    while (n > unit && bound(codec, n) > slot_bytes)
        n -= unit;
    return n;
}

size_t trib_quantise_bucket(const struct trib_codec *c)
{
    const struct trib_quantise *q = c->stages.quantise;
    if (q->exact)
        return TRIB_EXACT_BLOCK;
    if (q->lanes) {
        const struct trib_lanes l = q->lanes->lanes(c);
        return l.heads ? l.bucket : 1;
    }
    return q->bucketing ? trib_buckets_layout(c).bucket : 1;
}

/* Elements that are handled together; 1: each on its own, or all of a chunk. */
static size_t together(const struct trib_codec *c)
{
    const struct trib_select *s = c->stages.select;
    if (has_model(c))
        return c->stages.transform->model->unit(c);
    if (s->sparse) /* buckets are of what is selected */
        return s->params & TRIB_PARAM_BIT(BIN) ? (size_t)c->param[TRIB_PARAM_BIN] : s->unit(c);
    return rotates(c) ? trib_rotated_unit(c) : trib_quantise_bucket(c);
}

size_t trib_codec_unit(const struct trib_codec *codec)
{
    enum { LINE = 64 };
    const size_t n = together(codec);
    size_t common = LINE; /* the largest power of two in both */
    while (n % common)
        common /= 2;
    return n / common * LINE;
}

size_t trib_codec_scratch(const struct trib_codec *codec, size_t n)
{
    if (codec->stages.select->sparse)
        return trib_sparse_scratch(codec, n);
    return codec->stages.pack->variable ? trib_variable_scratch(codec, n) : 0;
}

/* kept: NULL, or in->x if encode_keeps: it becomes what is left */
static size_t encode_dense(const struct trib_codec *c, const struct trib_encode *in, float *kept,
                           uint8_t *dst)
{
    const struct trib_values v = {.x = in->x,
                                  .n = in->n,
                                  .count = in->n,
                                  .key = in->key,
                                  .share = in->share,
                                  .kept = kept};
    if (rotates(c))
        trib_rotated_encode(c, in, kept, dst);
    else
        c->stages.quantise->encode(c, &v, dst);
    return c->stages.quantise->bytes(c, in->n);
}

static bool encode_keeps(const struct trib_codec *c)
{
    return has_lanes(c) && (rotates(c) || trib_lanes_keeps(c));
}

size_t trib_codec_encode(const struct trib_codec *codec, const struct trib_encode *in,
                         uint8_t *dst)
{
    if (has_model(codec))
        return trib_model_encode(codec, in, dst);
    if (codec->stages.select->sparse)
        return trib_sparse_encode(codec, in, NULL, dst);
    if (codec->stages.pack->variable)
        return trib_variable_encode(codec, in, dst);
    if (is_exact(codec))
        return trib_exact_encode(codec, in->x, in->n, dst);
    return encode_dense(codec, in, NULL, dst);
}

static bool dense_valid(const struct trib_codec *c, const uint8_t *src, size_t len, size_t n)
{
    if (has_lanes(c))
        return trib_lanes_valid(c, src, len, n);
    if (is_exact(c))
        return trib_exact_valid(c, src, len, n);
    return len == c->stages.quantise->bytes(c, n);
}

trib_status_t trib_codec_decode(const struct trib_codec *codec, const uint8_t *src,
                                size_t len, float *x, size_t n)
{
    if (has_model(codec))
        return trib_model_plain_decode(codec, src, len, 1.0f, true, x, n);
    if (codec->stages.select->sparse) {
        const struct trib_sparse_decode d = {src, len, x, n, 1.0f, true};
        return trib_sparse_decode(codec, &d);
    }
    if (codec->stages.pack->variable) {
        const struct trib_variable_decode d = {src, len, x, n, 1.0f, true};
        return trib_variable_decode(codec, &d);
    }
    if (!dense_valid(codec, src, len, n))
        return TRIB_ERR_CODEC;
    const struct trib_code code = {src, len, n, 0, n};
    if (rotates(codec))
        trib_rotated_decode(codec, &code, x);
    else
        codec->stages.quantise->decode(codec, &code, x);
    return TRIB_OK;
}

trib_status_t trib_codec_decode_add(const struct trib_codec *codec, const uint8_t *src,
                                    size_t len, float weight, float *acc, size_t n)
{
    if (has_model(codec))
        return trib_model_plain_decode(codec, src, len, weight, false, acc, n);
    if (codec->stages.select->sparse) {
        const struct trib_sparse_decode d = {src, len, acc, n, weight, false};
        return trib_sparse_decode(codec, &d);
    }
    if (codec->stages.pack->variable) {
        const struct trib_variable_decode d = {src, len, acc, n, weight, false};
        return trib_variable_decode(codec, &d);
    }
    if (!dense_valid(codec, src, len, n))
        return TRIB_ERR_CODEC;
    const struct trib_code code = {src, len, n, 0, n};
    if (rotates(codec))
        trib_rotated_add(codec, &code, weight, acc);
    else
        codec->stages.quantise->decode_add(codec, &code, weight, acc);
    return TRIB_OK;
}

size_t trib_codec_encode_kept(const struct trib_codec *codec, const struct trib_encode *in,
                              float *residual, uint8_t *dst)
{
    assert(in->x == residual && in->mode == TRIB_ENCODE_CONTRIBUTION);
    assert(!codec->stages.select->sparse);
    if (encode_keeps(codec))
        return encode_dense(codec, in, residual, dst);
    const size_t len = trib_codec_encode(codec, in, dst);
    if (in->model) {
        trib_model_add_own(codec, in, dst, len, -1.0f, residual);
    } else {
        const trib_status_t status =
            trib_codec_decode_add(codec, dst, len, -1.0f, residual, in->n);
        assert(status == TRIB_OK);
        (void)status;
    }
    codec->kernels->drop_not_finite(residual, in->n);
    return len;
}

size_t trib_codec_encode_ef(const struct trib_codec *codec,
                            const struct trib_encode *in, float *residual,
                            uint8_t *dst)
{
    assert(in->mode == TRIB_ENCODE_CONTRIBUTION);
    if (codec->stages.select->sparse)
        return trib_sparse_encode(codec, in, residual, dst);
    const struct trib_reduce sum = {.src = {residual, in->x},
                                    .dst = {residual},
                                    .n_src = 2,
                                    .n_dst = 1,
                                    .n = in->n};
    struct trib_encode p = *in;
    p.x = residual;
    codec->kernels->reduce[TRIB_F32][TRIB_SUM](&sum);
    return trib_codec_encode_kept(codec, &p, residual, dst);
}

size_t trib_codec_rows(const struct trib_codec_row_info **rows_out)
{
    *rows_out = row_infos;
    return trib_codecs_count;
}
