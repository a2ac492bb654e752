/* SPDX-License-Identifier: BSD-3-Clause */
/* The kind whose codes take as many bytes as they need. */
#include "compress/codec_ops.h"
#include "compress/pack/varlen.h"

const struct trib_codec_ops trib_codec_varlen = {
    .together = trib_quantise_bucket,
    .scratch = trib_varlen_scratch,
    .bound = trib_varlen_bound,
    .own_bound = trib_codec_same_bound,
    .star_bound = trib_codec_same_bound,
    .sum_bound = trib_codec_same_sum_bound,
    .agreed_floats = trib_codec_agrees_on_nothing,
    .propose = trib_codec_proposes_nothing,
    .propose_added = trib_codec_only_added,
    .merge = trib_codec_no_merge,
    .encode = trib_varlen_encode,
    .encode_kept = trib_codec_kept_by_decode,
    .encode_ef = trib_codec_ef_by_sum,
    .decode = trib_varlen_decode,
};
