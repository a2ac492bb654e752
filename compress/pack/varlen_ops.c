/* SPDX-License-Identifier: BSD-3-Clause */
/* The kind with codes of variable length. */
#include "compress/codec_ops.h"
#include "compress/pack/varlen.h"

const struct trib_codec_ops trib_codec_varlen = {
    .together = trib_quantise_bucket,
    .scratch = trib_varlen_scratch,
    .bound = trib_varlen_bound,
    .encode = trib_varlen_encode,
    .decode = trib_varlen_decode,
};
