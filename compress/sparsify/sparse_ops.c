/* SPDX-License-Identifier: BSD-3-Clause */
/* The kind of codecs that select. */
#include <assert.h>

#include "compress/codec_ops.h"

/* Buckets are of what is selected. */
static size_t together(const struct trib_codec *c)
{
    const struct trib_select *s = c->stages.select;
    return s->params & TRIB_PARAM_BIT(BIN) ? (size_t)c->param[TRIB_PARAM_BIN]
                                           : s->unit(c);
}

static size_t encode(const struct trib_codec *c, const struct trib_encode *in,
                     uint8_t *dst)
{
    return trib_sparse_encode(c, in, NULL, dst);
}

static size_t encode_kept(const struct trib_codec *c, const struct trib_encode *in,
                          float *residual, uint8_t *dst)
{
    assert(!"encode_ef of a codec that selects keeps in one pass");
    return trib_codec_kept_by_decode(c, in, residual, dst);
}

const struct trib_codec_ops trib_codec_sparse = {
    .together = together,
    .scratch = trib_sparse_scratch,
    .bound = trib_sparse_bound,
    TRIB_CODEC_ONE_BOUND,
    TRIB_CODEC_NEVER_ADDS,
    .encode = encode,
    .encode_kept = encode_kept,
    .encode_ef = trib_sparse_encode,
    .decode = trib_sparse_decode,
};
