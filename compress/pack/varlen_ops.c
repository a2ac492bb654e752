/* SPDX-License-Identifier: BSD-3-Clause */
/* The kind with codes of variable length. */
#include "compress/codec_ops.h"
#include "compress/pack/varlen.h"

const struct trib_codec_ops trib_codec_varlen = {
    .together = trib_quantise_bucket,
    .scratch = trib_varlen_scratch,
    .bound = trib_varlen_bound,
    TRIB_CODEC_ONE_BOUND,
    TRIB_CODEC_NEVER_ADDS,
    .encode = trib_varlen_encode,
    .encode_kept = trib_codec_kept_by_decode,
    .encode_ef = trib_codec_ef_by_sum,
    .decode = trib_varlen_decode,
};
