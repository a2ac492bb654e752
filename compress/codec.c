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
#include "compress/stages.h"
#include "compress/variable.h"

static const float *apply_none(const struct trib_codec *c, const float *x, size_t n,
                               void *scratch)
{
    (void)c, (void)n, (void)scratch;
    return x;
}

static size_t choose_all(const struct trib_codec *c, const float *x, size_t n,
                         uint32_t *positions_out, uint32_t *work)
{
    (void)c, (void)x, (void)work;
    for (size_t i = 0; i < n; i++)
        positions_out[i] = (uint32_t)i;
    return n;
}

static double delta_all(const struct trib_codec *c)
{
    (void)c;
    return 1.0;
}

const struct trib_transform trib_transform_none = {.name = "none", .apply = apply_none};
const struct trib_select trib_select_all = {
    .name = "all", .choose = choose_all, .delta = delta_all};
const struct trib_pack trib_pack_raw = {.name = "raw"};
const struct trib_pack trib_pack_bits = {.name = "bits"};
const struct trib_pack trib_pack_gaps = {.name = "gaps"};
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
      "8-bit floats with a power of two per bucket", \
      none, all, f8, bits, 0) \
    X("topk", "topk[:ratio=R|k=N][,ef=0|1][+VALUES]", \
      "the k largest magnitudes", \
      none, topk, f32, gaps, TRIB_CODEC_SPARSE | TRIB_CODEC_FEEDBACK) \
    X("qsgd", "qsgd[:bits=2..8][,bucket=N][,norm=max|l2][,pack=P][,ef=0|1]", \
      "random rounding to 2^(bits-1)-1 levels of a bucket's norm", \
      none, all, levels, bits, TRIB_CODEC_UNBIASED) \
    X("natural", "natural[:bucket=N][,round=random|nearest][,pack=P][,ef=0|1]", \
      "rounding to powers of two, 8 bits", \
      none, all, natural, bits, TRIB_CODEC_UNBIASED) \
    X("dither", "dither[:base=B][,bits=2..8][,bucket=N][,norm=max|l2][,pack=P][,ef=0|1]", \
      "random rounding to 1, 1/base, 1/base^2 … of a bucket's norm", \
      none, all, dither, bits, TRIB_CODEC_UNBIASED) \
    X("terngrad", "terngrad[:bucket=N][,clip=C][,pack=P][,ef=0]", \
      "random rounding to 0 or +- the largest, at most clip times the root mean square", \
      none, all, ternary, bits, 0) \
    X("onebit", "onebit[:bucket=N][,ef=0|1]", \
      "a sign; the means of a bucket's elements above and below 0", \
      none, all, means, bits, TRIB_CODEC_FEEDBACK) \
    X("efsign", "efsign[:bucket=N][,ef=0|1]", \
      "a sign; the mean magnitude of a bucket", \
      none, all, sign, bits, TRIB_CODEC_FEEDBACK)
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
    return c->stages.select->delta(c) * c->stages.quantise->delta(c);
}

/* Feedback around what is no contraction grows without bound (Stich & Karimireddy 2020).
 * Norms of the largest magnitude are let through: they contract on what gradients are
 * like, if not in the worst case. */
static bool feedback_grows(const struct trib_codec *c)
{
    const struct trib_quantise *q = c->stages.quantise;
    const bool of_largest =
        (q->params & TRIB_PARAM_BIT(NORM)) && c->param[TRIB_PARAM_NORM] == TRIB_NORM_MAX;
    return (c->info.flags & TRIB_CODEC_FEEDBACK) && q->bucketing && q->delta(c) == 0 &&
           !of_largest;
}

static uint32_t flags_of(const struct trib_codec *c)
{
    uint32_t flags = c->row->flags & ~(uint32_t)TRIB_CODEC_FEEDBACK;
    if (c->param[TRIB_PARAM_ROUND] == TRIB_ROUND_NEAREST)
        flags &= ~(uint32_t)TRIB_CODEC_UNBIASED;
    else if (c->stages.quantise->nearest && !c->stages.select->sparse)
        flags |= TRIB_CODEC_UNBIASED;
    if (c->param[TRIB_PARAM_EF] > 0)
        flags |= TRIB_CODEC_FEEDBACK;
    return flags;
}

/* What the parameters make of the stages. */
static bool resolve(struct trib_codec *c, struct trib_error *err)
{
    static const struct trib_pack *const packs[] = {
        [TRIB_PACK_OMEGA] = &trib_pack_omega, [TRIB_PACK_ENTROPY] = &trib_pack_entropy};
    const int pack = (int)c->param[TRIB_PARAM_PACK];
    const char *refusal = NULL;
    if (c->stages.quantise->resolve)
        c->stages.quantise = c->stages.quantise->resolve(c, &refusal);
    if (pack != TRIB_PACK_BITS && c->stages.select->sparse)
        refusal = "values behind a selection have a fixed length; use pack=bits";
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
    const trib_status_t status = trib_codec_parse(c, text, err);
    if (status != TRIB_OK) {
        free(c);
        return status;
    }
    trib_codec_print(c);
    if (!resolve(c, err)) {
        free(c);
        return TRIB_ERR_CODEC;
    }
    c->info.text = c->text;
    c->info.flags = flags_of(c);
    c->info.delta = delta_of(c);
    if (feedback_grows(c)) {
        trib_fail(err, TRIB_ERR_CODEC,
                  "codec \"%s\": ef=1 would let the error grow without bound; use %s", c->text,
                  c->stages.quantise->params & TRIB_PARAM_BIT(NORM)
                      ? "norm=max, more bits or a smaller bucket"
                      : "ef=0 or other values");
        free(c);
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
    free(codec);
}

const struct trib_codec_info *trib_codec_info(const struct trib_codec *codec)
{
    return &codec->info;
}

size_t trib_codec_bound(const struct trib_codec *codec, size_t n)
{
    if (codec->stages.select->sparse)
        return trib_sparse_bound(codec, n);
    if (codec->stages.pack->variable)
        return trib_variable_bound(codec, n);
    return codec->stages.quantise->bytes(codec, n);
}

size_t trib_codec_scratch(const struct trib_codec *codec, size_t n)
{
    if (codec->stages.select->sparse)
        return trib_sparse_scratch(codec, n);
    return codec->stages.pack->variable ? trib_variable_scratch(codec, n) : 0;
}

size_t trib_codec_encode(const struct trib_codec *codec, const struct trib_encode *in,
                         uint8_t *dst)
{
    if (codec->stages.select->sparse)
        return trib_sparse_encode(codec, in, dst);
    if (codec->stages.pack->variable)
        return trib_variable_encode(codec, in, dst);
    const float *x = codec->stages.transform->apply(codec, in->x, in->n, in->scratch);
    codec->stages.quantise->encode(codec, x, in->n, &in->key, dst);
    return codec->stages.quantise->bytes(codec, in->n);
}

trib_status_t trib_codec_decode(const struct trib_codec *codec, const uint8_t *src,
                                size_t len, float *x, size_t n)
{
    if (codec->stages.select->sparse) {
        const struct trib_sparse_decode d = {src, len, x, n, 1.0f, true, false};
        return trib_sparse_decode(codec, &d);
    }
    if (codec->stages.pack->variable) {
        const struct trib_variable_decode d = {src, len, x, n, 1.0f, true};
        return trib_variable_decode(codec, &d);
    }
    if (len != codec->stages.quantise->bytes(codec, n))
        return TRIB_ERR_CODEC;
    const struct trib_code code = {src, n, 0, n};
    codec->stages.quantise->decode(codec, &code, x);
    return TRIB_OK;
}

trib_status_t trib_codec_decode_add(const struct trib_codec *codec, const uint8_t *src,
                                    size_t len, float weight, float *acc, size_t n)
{
    if (codec->stages.select->sparse) {
        const struct trib_sparse_decode d = {src, len, acc, n, weight, false, false};
        return trib_sparse_decode(codec, &d);
    }
    if (codec->stages.pack->variable) {
        const struct trib_variable_decode d = {src, len, acc, n, weight, false};
        return trib_variable_decode(codec, &d);
    }
    if (len != codec->stages.quantise->bytes(codec, n))
        return TRIB_ERR_CODEC;
    const struct trib_code code = {src, n, 0, n};
    codec->stages.quantise->decode_add(codec, &code, weight, acc);
    return TRIB_OK;
}

/* residual -= decode(our own encoding of it). Of a sparse block only what was sent can
 * come out NaN or Inf: what was not, and is, goes first next time. */
static void subtract_sent(const struct trib_codec *c, const uint8_t *code, size_t len,
                          float *residual, size_t n)
{
    trib_status_t status;
    if (c->stages.select->sparse) {
        const struct trib_sparse_decode d = {code,  len,   residual, n,
                                             -1.0f, false, true};
        status = trib_sparse_decode(c, &d);
    } else {
        status = trib_codec_decode_add(c, code, len, -1.0f, residual, n);
        c->kernels->drop_not_finite(residual, n);
    }
    assert(status == TRIB_OK);
    (void)status;
}

size_t trib_codec_encode_ef(const struct trib_codec *codec,
                            const struct trib_encode *in, float *residual, float *work,
                            uint8_t *dst)
{
    assert(in->mode == TRIB_ENCODE_CONTRIBUTION);
    const struct trib_reduce sum = {.src = {residual, in->x},
                                    .dst = {residual, work},
                                    .n_src = 2,
                                    .n_dst = work ? 2 : 1,
                                    .n = in->n};
    struct trib_encode p = *in;
    p.x = residual;
    codec->kernels->reduce[TRIB_F32][TRIB_SUM](&sum);
    const size_t len = trib_codec_encode(codec, &p, dst);
    subtract_sent(codec, dst, len, residual, in->n);
    return len;
}

size_t trib_codec_rows(const struct trib_codec_row_info **rows_out)
{
    *rows_out = row_infos;
    return trib_codecs_count;
}
