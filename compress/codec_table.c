/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of codecs. */
#include "compress/stages.h"

/* name, grammar, detail, transform, select, quantise, pack, flags */
/* clang-format off */
#define ROWS(X) \
    X("none", "none", "elements as they are, any dtype", \
      none, all, f32, raw, \
      TRIB_CODEC_IDENTITY | TRIB_CODEC_LINEAR | TRIB_CODEC_UNBIASED | \
      TRIB_CODEC_ANY_OP) \
    X("f16", "f16[:round=nearest|random][,ef=0|1]", "IEEE half precision", \
      none, all, f16, raw, TRIB_CODEC_ANY_OP) \
    X("bf16", "bf16[:round=nearest|random][,ef=0|1]", "upper half of float32", \
      none, all, bf16, raw, TRIB_CODEC_ANY_OP) \
    X("f8", \
      "f8[:format=e4m3|e5m2][,bucket=N][,round=nearest|random][,pack=P][,ef=0|1]", \
      "8-bit floats, a power of two per bucket", \
      none, all, f8, bits, 0) \
    X("topk", "topk[:ratio=R|k=N][,ef=0|1][+VALUES]", \
      "the k largest magnitudes", \
      none, topk, f32, index_gaps, TRIB_CODEC_SPARSE | TRIB_CODEC_FEEDBACK) \
    X("dgc", "dgc[:ratio=R|k=N][,ef=0|1][+VALUES]", \
      "0.8 k to k of the largest, by a sample", \
      none, dgc, f32, index_gaps, TRIB_CODEC_SPARSE | TRIB_CODEC_FEEDBACK) \
    X("threshold", "threshold[:at=T][,ef=0|1][+VALUES]", "all magnitudes from T on", \
      none, threshold, f32, index_gaps, TRIB_CODEC_SPARSE | TRIB_CODEC_FEEDBACK) \
    X("randomk", "randomk[:ratio=R|k=N][,unbiased=0|1][,ef=0|1][+VALUES]", \
      "k random elements, the same on all ranks", \
      none, randomk, f32, stratified, TRIB_CODEC_SPARSE | TRIB_CODEC_FEEDBACK) \
    X("blocks", "blocks[:ratio=R][,block=N][,ef=0|1][+VALUES]", \
      "blocks that are not zero, or the largest", \
      none, blocks, f32, index_gaps, TRIB_CODEC_SPARSE | TRIB_CODEC_UNBIASED) \
    X("adacomp", "adacomp[:bin=N][,factor=F][,ef=0|1]", \
      "what nears the largest of a bin, as a sign", \
      none, adacomp, magnitude, index_gaps, TRIB_CODEC_SPARSE | TRIB_CODEC_FEEDBACK) \
    X("qsgd", \
      "qsgd[:bits=2..8][,bucket=N][,norm=max|l2][,shared=0|1][,pack=P][,ef=0|1]", \
      "random rounding to levels of a norm", \
      none, all, qsgd, bits, TRIB_CODEC_UNBIASED) \
    X("natural", "natural[:bucket=N][,round=random|nearest][,pack=P][,ef=0|1]", \
      "rounding to powers of two, 8 bits", \
      none, all, natural, bits, TRIB_CODEC_UNBIASED) \
    X("dither", \
      "dither[:base=B][,bits=2..8][,bucket=N][,norm=max|l2][,pack=P][,ef=0|1]", \
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
    X("int4", \
      "int4[:bucket=N][,round=random|nearest][,result=sums|requantised][,ef=0|1]", \
      "integers up to 7; summed as integers", \
      none, all, int4, bits, \
      TRIB_CODEC_LINEAR | TRIB_CODEC_AGREES | TRIB_CODEC_UNBIASED) \
    X("int8", \
      "int8[:bucket=N][,round=random|nearest][,result=sums|requantised][,ef=0|1]", \
      "integers up to 127; summed as integers", \
      none, all, int8, bits, \
      TRIB_CODEC_LINEAR | TRIB_CODEC_AGREES | TRIB_CODEC_UNBIASED) \
    X("int16", \
      "int16[:bucket=N][,round=random|nearest][,result=sums|requantised][,ef=0|1]", \
      "integers up to 32767; summed as integers", \
      none, all, int16, raw, \
      TRIB_CODEC_LINEAR | TRIB_CODEC_AGREES | TRIB_CODEC_UNBIASED) \
    X("uniform-thc", \
      "uniform-thc[:bits=2..8][,bucket=N][,round=random|nearest][,ef=0|1]", \
      "integers from the least to the largest", \
      none, all, range, bits, \
      TRIB_CODEC_LINEAR | TRIB_CODEC_AGREES | TRIB_CODEC_UNBIASED) \
    X("hadamard", "hadamard[:block=N][,ef=0|1][+VALUES]", \
      "rotates blocks; alone with uniform-thc", \
      hadamard, all, range, bits, \
      TRIB_CODEC_LINEAR | TRIB_CODEC_AGREES | TRIB_CODEC_UNBIASED) \
    X("thc", "thc[:block=N][,p=1/16|1/32|1/64|1/128|1/256|1/512][,ef=0|1]", \
      "rotated blocks, 16 points of a bell curve", \
      hadamard, all, table, bits, \
      TRIB_CODEC_LINEAR | TRIB_CODEC_AGREES | TRIB_CODEC_FEEDBACK) \
    X("exact", "exact[:ef=0]", "sums without rounding, in any order", \
      none, all, wide, raw, TRIB_CODEC_LINEAR | TRIB_CODEC_UNBIASED) \
    X("powersgd", "powersgd[:rank=N][,columns=N][,ef=0|1]", \
      "low-rank factors of matrices, iterated", \
      powersgd, all, f32, raw, \
      TRIB_CODEC_LINEAR | TRIB_CODEC_AGREES | TRIB_CODEC_MODEL | TRIB_CODEC_FEEDBACK) \
    X("gradiveq", \
      "gradiveq[:slice=N][,kept=N][,train=N][,coded=N][,centre=0|1]" \
      "[,ef=0|1][+VALUES]", \
      "principal components of slices, learned", \
      gradiveq, all, f32, raw, TRIB_CODEC_LINEAR | TRIB_CODEC_MODEL | \
      TRIB_CODEC_FEEDBACK) \
    X("lgc", "lgc[:ratio=R][,dense=N][,train=N][,rate=R][,ef=0|1]", \
      "a learned code of one rank's top k", \
      lgc, all, f32, raw, \
      TRIB_CODEC_LINEAR | TRIB_CODEC_AGREES | TRIB_CODEC_MODEL | TRIB_CODEC_FEEDBACK) \
    X("lgc-ps", \
      "lgc-ps[:ratio=R][,dense=N][,train=N][,rate=R][,innovation=R][,ef=0|1]", \
      "as lgc, with a decoder for each rank", \
      lgc_ps, all, f32, raw, \
      TRIB_CODEC_LINEAR | TRIB_CODEC_AGREES | TRIB_CODEC_MODEL | TRIB_CODEC_FEEDBACK)
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

size_t trib_codec_rows(const struct trib_codec_row_info **rows_out)
{
    *rows_out = row_infos;
    return trib_codecs_count;
}
