/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Create a codec from its text:
 *
 *     trib_codec_parse   row of the table, parameters, and for models an inner codec
 *     resolve            variants of the stages that the parameters select
 *     kind_of            the functions that encode and decode (codec_ops.h)
 *     flags_of, delta_of properties that plans read, such as TRIB_CODEC_UNBIASED and
 *                        the contraction
 */
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/error.h"
#include "compress/codec_ops.h"
#include "compress/models/model_ops.h"
#include "compress/transform/rotated.h"

/*
 * Return the contraction: encoding x leaves at most (1 - 1/delta) |x|^2 of it.
 *
 * Let y be the selected part. Selection (δ1) leaves |x|^2 - |y|^2, and quantisation
 * (δ2) leaves (1 - 1/δ2) |y|^2 at other elements. Together |x|^2 - |y|^2 / δ2 remains,
 * and |y|^2 >= |x|^2 / δ1.
 */
static double delta_of(const struct trib_codec *c)
{
    if (c->stages.transform->model)
        return 0; /* depends on the training */
    return c->stages.select->delta(c) * trib_quantise_delta(c);
}

/* True if the selection scales its values to be unbiased and the quantiser is
 * unbiased. */
static bool selects_unbiased(const struct trib_codec *c)
{
    return c->stages.select->unbiased(c) &&
           (!c->values || (c->values->flags & TRIB_CODEC_UNBIASED));
}

/* Elements of the vector for which flags_of asks whether the codec shares scales. */
enum { SHARE_PROBE = 65536 };

static bool has_model(const struct trib_codec *c)
{
    return c->stages.transform->model;
}

static bool rotates(const struct trib_codec *c)
{
    return c->stages.transform->rotates;
}

static uint32_t flags_of(const struct trib_codec *c)
{
    const struct trib_codec_row *row = c->values && rotates(c) ? c->values : c->row;
    const uint32_t found = TRIB_CODEC_FEEDBACK | TRIB_CODEC_AGREES;
    uint32_t flags = row->flags & ~found;
    if (rotates(c)) /* the minimum of rotated values is not one of the elements */
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
    if (c->stages.select->sparse && c->param[TRIB_PARAM_RESULT] > TRIB_RESULT_SUMS)
        flags |= TRIB_CODEC_RESULT_LOSES;
    if (c->stages.quantise->packed_ints && !c->stages.select->sparse)
        flags |= TRIB_CODEC_LINEAR;
    if (flags & TRIB_CODEC_LINEAR && trib_codec_agreed_floats(c, SHARE_PROBE))
        flags |= TRIB_CODEC_AGREES;
    if (flags & TRIB_CODEC_LINEAR &&
        (c->stages.quantise->packed_ints || c->stages.quantise->exact) && !has_model(c))
        flags |= TRIB_CODEC_ORDERLESS;
    if (c->stages.quantise->packed_ints &&
        c->param[TRIB_PARAM_RESULT] > TRIB_RESULT_SUMS)
        flags |= TRIB_CODEC_ROUNDS_SUM;
    return flags;
}

/* Return why the codec cannot encode results as requested, or NULL. */
static const char *result_refusal(const struct trib_codec *c)
{
    const struct trib_select *select = c->stages.select;
    const int result = (int)c->param[TRIB_PARAM_RESULT];
    if (!select->sparse || result == TRIB_RESULT_SUMS)
        return NULL;
    if (result == TRIB_RESULT_REQUANTISED)
        return c->stages.quantise == &trib_quantise_f32
                   ? "result=requantised has no effect on float32 values; add a codec "
                     "after \"+\", or use result=selected"
                   : NULL;
    if (select->drawn)
        return "all ranks draw the same elements, so result=selected omits none; "
               "use requantised or sums";
    return c->param[TRIB_PARAM_RATIO] >= 1
               ? "result=selected omits nothing with ratio=1; set a smaller ratio"
               : NULL;
}

/* Resolve the stages from the parameters. */
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
        refusal = "selected values have a fixed length; use pack=bits";
    else if (pack != TRIB_PACK_BITS && c->param[TRIB_PARAM_SHARED] > 0)
        refusal = "encodings that add have lanes of a fixed width; use pack=bits";
    else if (pack == TRIB_PACK_OMEGA && !c->stages.quantise->counts)
        refusal = "pack=omega suits small levels, and those here are large; use "
                  "pack=entropy";
    else if (pack != TRIB_PACK_BITS)
        c->stages.pack = packs[pack];
    if (!refusal)
        refusal = result_refusal(c);
    if (refusal)
        trib_fail(err, TRIB_ERR_CODEC, "codec \"%s\": %s", c->text, refusal);
    return !refusal;
}

static const struct trib_codec_ops *kind_of(const struct trib_codec *c)
{
    if (has_model(c))
        return &trib_codec_model;
    if (c->stages.select->sparse)
        return &trib_codec_sparse;
    if (c->stages.quantise->packed_ints)
        return rotates(c) ? &trib_codec_rotated_packed : &trib_codec_packed;
    if (c->stages.quantise->exact)
        return &trib_codec_exact;
    if (c->stages.quantise->bounds)
        return &trib_codec_bounded;
    if (c->stages.pack->varlen)
        return &trib_codec_varlen;
    return rotates(c) ? &trib_codec_rotated : &trib_codec_dense;
}

/* Create the codec of a model's coefficients. */
static trib_status_t make_coefficients(struct trib_codec *c, const char *inner,
                                       const char *text, struct trib_error *err)
{
    const trib_status_t status =
        trib_codec_create(inner, c->kernels, err, &c->coefficients);
    if (status != TRIB_OK)
        return status;
    const uint32_t flags = trib_codec_info(c->coefficients)->flags;
    if (flags & TRIB_CODEC_LINEAR && !(flags & TRIB_CODEC_FEEDBACK))
        return TRIB_OK;
    return trib_fail(err, TRIB_ERR_CODEC, "codec \"%s\": %s", text,
                     flags & TRIB_CODEC_LINEAR
                         ? "ef=1 must precede the \"+\""
                         : "the codec after \"+\" must add: use shared=1");
}

trib_status_t trib_codec_create(const char *text, const struct trib_kernels *kernels,
                                struct trib_error *err, struct trib_codec **out)
{
    struct trib_codec *c = calloc(1, sizeof *c);
    char inner[TRIB_CODEC_TEXT_MAX];
    if (!c)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "no memory for a codec");
    c->kernels = kernels ? kernels : trib_kernels_get(NULL);
    c->ranks = 1;
    trib_status_t status = trib_codec_parse(c, text, err, inner);
    if (status == TRIB_OK && inner[0])
        status = make_coefficients(c, inner, text, err);
    if (status != TRIB_OK) {
        trib_codec_destroy(c);
        return status;
    }
    trib_codec_print(c);
    if (!resolve(c, err)) {
        trib_codec_destroy(c);
        return TRIB_ERR_CODEC;
    }
    c->ops = kind_of(c);
    c->info.text = c->text;
    c->info.flags = flags_of(c);
    c->info.delta = delta_of(c);
    if ((c->info.flags & TRIB_CODEC_FEEDBACK) && trib_codec_feedback_grows(c)) {
        trib_fail(err, TRIB_ERR_CODEC,
                  "codec \"%s\": ef=1 would let the error grow without bound; use %s",
                  c->text,
                  c->param[TRIB_PARAM_UNBIASED] > 0 ? "unbiased=0 or ef=0"
                  : c->info.flags & TRIB_CODEC_RESULT_LOSES
                      ? "result=sums, more bits, a smaller bucket or other values"
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
