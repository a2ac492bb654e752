/* SPDX-License-Identifier: BSD-3-Clause */
/* The kind whose codes take as many bytes as they need. */
#include "compress/codec_ops.h"
#include "compress/pack/varlen.h"

const struct trib_codec_ops trib_codec_varlen = {
    .together = trib_quantise_bucket,
    .scratch = trib_variable_scratch,
    .bound = trib_variable_bound,
    .own_bound = trib_codec_same_bound,
    .star_bound = trib_codec_same_bound,
    .sum_bound = trib_codec_same_sum_bound,
    .share_floats = trib_codec_no_share,
    .share = trib_codec_nothing_shared,
    .share_added = trib_codec_only_added,
    .merge = trib_codec_no_merge,
    .encode = trib_variable_encode,
    .encode_kept = trib_codec_kept_by_decode,
    .encode_ef = trib_codec_ef_by_sum,
    .decode = trib_variable_decode,
};
