/* SPDX-License-Identifier: BSD-3-Clause */
/* The kind of codecs that select. */
#include <assert.h>
#include <math.h>

#include "compress/codec_ops.h"

/* Buckets consist of selected elements, so they do not count here. */
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
    assert(in->x == residual && trib_codec_selects_sums(c));
    return trib_sparse_encode(c, in, residual, dst);
}

const struct trib_codec_ops trib_codec_sparse = {
    .together = together,
    .scratch = trib_sparse_scratch,
    .bound = trib_sparse_bound,
    .encode = encode,
    .encode_kept = encode_kept,
    .encode_ef = trib_sparse_encode,
    .decode = trib_sparse_decode,
};

/* ---- expected sizes ------------------------------------------------------------- */

/* selected elements per bin, as measured in the paper */
enum { PROBE = 65536, ADACOMP_OF_BIN = 5 };

/* Return the fraction of elements that a rank selects; 0: unknown. */
static double density_of(const struct trib_codec *c, size_t n)
{
    const uint64_t params = c->stages.select->params;
    if (params & TRIB_PARAM_BIT(BIN))
        return fmin(ADACOMP_OF_BIN / c->param[TRIB_PARAM_BIN], 1);
    if (!(params & TRIB_PARAM_BIT(RATIO)))
        return 0;
    if (c->param[TRIB_PARAM_RATIO] > 0)
        return c->param[TRIB_PARAM_RATIO];
    return n ? fmin(c->param[TRIB_PARAM_K] / (double)n, 1) : 0;
}

/* Return the bytes per element if a fraction d of the units is sent, at unpredictable
 * positions: the entropy of these, or one bit each. */
static double bytes_at(const struct trib_codec *c, const struct trib_quantise *q,
                       double d)
{
    const double value = (double)q->bytes(c, PROBE) / PROBE;
    const double entropy = d < 1 ? -d * log2(d) - (1 - d) * log2(1 - d) : 0;
    const double positions = c->stages.select->drawn
                                 ? 0
                                 : fmin(entropy, 1) / 8 / (double)c->ops->together(c);
    return fmin(d * value + positions, value);
}

bool trib_codec_expected(const struct trib_codec *codec, size_t n, int ranks,
                         struct trib_expected *out)
{
    if (!codec->stages.select->sparse)
        return false;
    const double d = density_of(codec, n);
    const int result = (int)codec->param[TRIB_PARAM_RESULT];
    const struct trib_quantise *own = codec->stages.quantise;
    if (d <= 0)
        return false;
    const double all = codec->stages.select->drawn ? d : 1 - pow(1 - d, ranks);
    out->contribution = bytes_at(codec, own, d);
    out->result = result == TRIB_RESULT_SELECTED ? out->contribution
                  : result == TRIB_RESULT_SUMS
                      ? bytes_at(codec, &trib_quantise_f32, all)
                      : bytes_at(codec, own, all);
    return true;
}
