/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of codecs. The parser, trib-info, the tests, the fuzzer and trib-perf know
 * codecs by their rows only.
 */
#include "compress/stages.h"

/* Texts for tests and the fuzzer. The first is the example of trib-info. */
#define TEXTS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* transform, select, quantise, pack, then fields of struct trib_codec_row */
/* clang-format off */
#define ROWS(X) \
    X(none, all, f32, raw, \
      .name = "none", \
      .grammar = "none", \
      .detail = "unchanged elements, any dtype", \
      .flags = TRIB_CODEC_IDENTITY | TRIB_CODEC_LINEAR | \
               TRIB_CODEC_UNBIASED | TRIB_CODEC_ANY_OP, \
      .texts = TEXTS("none")) \
    X(none, all, f16, raw, \
      .name = "f16", \
      .grammar = "f16[:round=nearest|random][,ef=0|1]", \
      .detail = "IEEE half precision", \
      .paper = "IEEE 754-2008, binary16", \
      .flags = TRIB_CODEC_ANY_OP, \
      .texts = TEXTS("f16:round=random", "f16")) \
    X(none, all, bf16, raw, \
      .name = "bf16", \
      .grammar = "bf16[:round=nearest|random][,ef=0|1]", \
      .detail = "upper half of float32", \
      .paper = "Kalamkar et al. 2019, arXiv 1905.12322", \
      .flags = TRIB_CODEC_ANY_OP, \
      .texts = TEXTS("bf16:ef=1", "bf16", "bf16:round=random")) \
    X(none, all, f8, bits, \
      .name = "f8", \
      .grammar = \
          "f8[:format=e4m3|e5m2][,bucket=N][,round=nearest|random]" \
          "[,pack=P][,ef=0|1]", \
      .detail = "8-bit floats, a power of two per bucket", \
      .paper = "Micikevicius et al. 2022, arXiv 2209.05433", \
      .texts = TEXTS("f8:format=e5m2,bucket=32", "f8", "f8:bucket=8,round=random", \
          "f8:format=e5m2,bucket=65536,round=random", "f8:bucket=64,pack=entropy", \
          "f8:bucket=16", "f8:format=e5m2,bucket=8,round=random")) \
    X(none, topk, f32, index_gaps, \
      .name = "topk", \
      .grammar = "topk[:ratio=R|k=N][,result=R][,ef=0|1][+VALUES]", \
      .detail = "the k largest magnitudes", \
      .paper = \
          "Aji & Heafield 2017, arXiv 1704.05021; Stich et al. 2018, " \
          "arXiv 1809.07599", \
      .flags = TRIB_CODEC_SPARSE | TRIB_CODEC_FEEDBACK, \
      .texts = TEXTS("topk:ratio=0.001+natural", "topk:ratio=0.1+f8:round=random", \
          "topk:ratio=0.001", "topk:ratio=0.1", "topk:ratio=0.9", "topk:ratio=1", \
          "topk:k=3", "topk:ratio=0.05+f16", "topk:ratio=0.05+bf16", \
          "topk:k=100000+bf16", "topk:ratio=0.05+natural", \
          "topk:ratio=0.3+qsgd:bits=5,bucket=64", \
          "topk:ratio=0.02+dither:bits=3,bucket=8", \
          "topk:ratio=0.1+dither:base=1.5,bits=5", "topk:ratio=0.2+efsign", \
          "topk:ratio=0.2+int8:bucket=64", "topk:k=5", "topk:ratio=0.3+f16", \
          "topk:ratio=0.02+bf16", "topk:ratio=0.3+natural:bucket=8", \
          "topk:ratio=0.3+qsgd:bits=5,bucket=16", "topk:ratio=0.3+bf16:round=random", \
          "topk:ratio=0.3+int8:bucket=8", \
          "topk:ratio=0.02,result=selected", \
          "topk:ratio=0.05,result=requantised+natural")) \
    X(none, dgc, f32, index_gaps, \
      .name = "dgc", \
      .grammar = "dgc[:ratio=R|k=N][,result=R][,ef=0|1][+VALUES]", \
      .detail = "0.8 k to k of the largest, by sampling", \
      .paper = "Lin et al. 2017, arXiv 1712.01887", \
      .flags = TRIB_CODEC_SPARSE | TRIB_CODEC_FEEDBACK, \
      .texts = TEXTS("dgc:ratio=0.001+f16", "dgc", "dgc:ratio=0.1", "dgc:ratio=0.7", \
          "dgc:ratio=1", "dgc:k=3", "dgc:ratio=0.02+natural")) \
    X(none, threshold, f32, index_gaps, \
      .name = "threshold", \
      .grammar = "threshold[:at=T][,result=R][,ef=0|1][+VALUES]", \
      .detail = "all magnitudes of at least T", \
      .paper = "Strom 2015, Interspeech", \
      .flags = TRIB_CODEC_SPARSE | TRIB_CODEC_FEEDBACK, \
      .texts = TEXTS("threshold:at=1e-3", "threshold:at=0.5", "threshold:at=0+bf16", \
          "threshold:at=2+dither:bits=3,bucket=8")) \
    X(none, randomk, f32, stratified, \
      .name = "randomk", \
      .grammar = "randomk[:ratio=R|k=N][,unbiased=0|1][,result=R][,ef=0|1][+VALUES]", \
      .detail = "k random elements, the same on all ranks", \
      .paper = \
          "Stich et al. 2018, arXiv 1809.07599; Konečný et al. 2016, " \
          "arXiv 1610.05492", \
      .shared = "seed of the selection", \
      .flags = TRIB_CODEC_SPARSE | TRIB_CODEC_FEEDBACK, \
      .texts = TEXTS("randomk:ratio=0.01+bf16", "randomk", \
          "randomk:ratio=0.3,unbiased=1", "randomk:ratio=0.9", \
          "randomk:k=100000,ef=0", "randomk:ratio=0.2,unbiased=1+natural:bucket=8", \
          "randomk:ratio=0.05+efsign:bucket=8", "randomk:ratio=0.1", \
          "randomk:k=3,unbiased=1+natural:bucket=8")) \
    X(none, blocks, f32, index_gaps, \
      .name = "blocks", \
      .grammar = "blocks[:ratio=R][,block=N][,result=R][,ef=0|1][+VALUES]", \
      .detail = "non-zero blocks, or the largest of these", \
      .paper = "Fei et al. 2021 (OmniReduce), SIGCOMM", \
      .flags = TRIB_CODEC_SPARSE | TRIB_CODEC_UNBIASED, \
      .texts = TEXTS("blocks:ratio=0.1,block=64", "blocks", "blocks:block=8", \
          "blocks:block=64,ratio=0.1", "blocks:block=1000,ratio=0.4+f16", \
          "blocks:block=16+qsgd:bits=3,bucket=8", "blocks:block=24,ratio=0.2+natural", \
          "blocks:block=16,ratio=0.3+qsgd:bits=3,bucket=8")) \
    X(none, adacomp, magnitude, index_gaps, \
      .name = "adacomp", \
      .grammar = "adacomp[:bin=N][,factor=F][,result=R][,ef=0|1]", \
      .detail = "sign of elements near the bin maximum", \
      .paper = "Chen et al. 2017, arXiv 1712.02679", \
      .flags = TRIB_CODEC_SPARSE | TRIB_CODEC_FEEDBACK, \
      .texts = TEXTS("adacomp:bin=500", "adacomp", "adacomp:bin=500,factor=1.5", \
          "adacomp:bin=7,ef=0", "adacomp:bin=10", \
          "adacomp:result=requantised")) \
    X(none, all, qsgd, bits, \
      .name = "qsgd", \
      .grammar = \
          "qsgd[:bits=2..8][,bucket=N][,norm=max|l2][,shared=0|1]" \
          "[,pack=P][,ef=0|1]", \
      .detail = "random rounding to levels of a norm", \
      .paper = "Alistarh et al. 2017, arXiv 1610.02132", \
      .shared = "norms of the buckets", \
      .flags = TRIB_CODEC_UNBIASED, \
      .texts = TEXTS("qsgd:bits=2,pack=entropy", "qsgd", "qsgd:bits=2,bucket=64", \
          "qsgd:bits=3,bucket=8,norm=max", "qsgd:bits=5,bucket=1000", \
          "qsgd:bits=8,norm=max", "qsgd:bits=8,bucket=65536", "qsgd:pack=omega", \
          "qsgd:bits=3,bucket=8,norm=l2,pack=omega", "qsgd:bits=8,pack=entropy", \
          "qsgd:bits=3,bucket=64,shared=1", "qsgd:bits=2,bucket=64,pack=omega", \
          "qsgd:bits=6,bucket=64,norm=l2,pack=omega", \
          "qsgd:shared=1,bits=5,bucket=8")) \
    X(none, all, natural, bits, \
      .name = "natural", \
      .grammar = "natural[:bucket=N][,round=random|nearest][,pack=P][,ef=0|1]", \
      .detail = "rounding to powers of two, 8 bits", \
      .paper = "Horváth et al. 2019, arXiv 1905.10988", \
      .flags = TRIB_CODEC_UNBIASED, \
      .texts = TEXTS("natural:pack=entropy", "natural", \
          "natural:bucket=8,round=nearest", "natural:bucket=65536", \
          "natural:bucket=64", "natural:bucket=8,pack=entropy")) \
    X(none, all, dither, bits, \
      .name = "dither", \
      .grammar = \
          "dither[:base=B][,bits=2..8][,bucket=N][,norm=max|l2]" \
          "[,pack=P][,ef=0|1]", \
      .detail = "random rounding to 1, 1/base … of a norm", \
      .paper = \
          "Horváth et al. 2019, arXiv 1905.10988; Beznosikov et al. " \
          "2020, arXiv 2002.12410", \
      .flags = TRIB_CODEC_UNBIASED, \
      .texts = TEXTS("dither:bits=3,norm=l2", "dither", "dither:bits=2,bucket=64", \
          "dither:bits=5,norm=l2", "dither:bits=8,bucket=4096", "dither:base=1.5", \
          "dither:base=4,bits=3,bucket=64", "dither:base=1.25,bits=6,norm=l2", \
          "dither:base=1.5,pack=entropy", "dither:bits=3,bucket=8", \
          "dither:base=1.5,bits=7,bucket=8")) \
    X(none, all, ternary, bits, \
      .name = "terngrad", \
      .grammar = "terngrad[:bucket=N][,clip=C][,shared=0|1][,pack=P][,ef=0]", \
      .detail = "random rounding to 0 or +- the norm", \
      .paper = "Wen et al. 2017, arXiv 1705.07878", \
      .shared = "norms of the buckets", \
      .texts = TEXTS("terngrad:shared=1", "terngrad:bucket=64,pack=omega", \
          "terngrad:pack=entropy", "terngrad", "terngrad:bucket=64,clip=1000", \
          "terngrad:bucket=64,shared=1", "terngrad:bucket=16", \
          "terngrad:bucket=256,pack=entropy", "terngrad:shared=1,bucket=8")) \
    X(none, all, means, bits, \
      .name = "onebit", \
      .grammar = "onebit[:bucket=N][,ef=0|1]", \
      .detail = "sign, and the means above and below 0", \
      .paper = "Seide et al. 2014, Interspeech", \
      .flags = TRIB_CODEC_FEEDBACK, \
      .texts = TEXTS("onebit:bucket=4096", "onebit", "onebit:bucket=65536", \
          "onebit:bucket=8")) \
    X(none, all, sign, bits, \
      .name = "efsign", \
      .grammar = "efsign[:bucket=N][,ef=0|1]", \
      .detail = "sign, and the bucket's mean magnitude", \
      .paper = "Karimireddy et al. 2019, arXiv 1901.09847", \
      .flags = TRIB_CODEC_FEEDBACK, \
      .texts = TEXTS("efsign:bucket=4096", "efsign", "efsign:bucket=8", \
          "efsign:bucket=16")) \
    X(none, all, vote, bits, \
      .name = "signsgd", \
      .grammar = "signsgd[:ef=0]", \
      .detail = "majority sign of the ranks, 0 for a tie", \
      .paper = "Bernstein et al. 2018, arXiv 1802.04434", \
      .flags = TRIB_CODEC_LINEAR | TRIB_CODEC_VOTE, \
      .texts = TEXTS("signsgd")) \
    X(none, all, int4, bits, \
      .name = "int4", \
      .grammar = \
          "int4[:bucket=N][,round=random|nearest]" \
          "[,result=sums|requantised][,ef=0|1]", \
      .detail = "integers up to 7; summed as integers", \
      .paper = "Alistarh et al. 2017, arXiv 1610.02132", \
      .shared = "norms of the buckets", \
      .flags = TRIB_CODEC_LINEAR | TRIB_CODEC_AGREES | TRIB_CODEC_UNBIASED, \
      .texts = TEXTS("int4:round=nearest,ef=1", "int4:bucket=64", "int4:bucket=8")) \
    X(none, all, int8, bits, \
      .name = "int8", \
      .grammar = \
          "int8[:bucket=N][,round=random|nearest]" \
          "[,result=sums|requantised][,ef=0|1]", \
      .detail = "integers up to 127; summed as integers", \
      .paper = "Li et al. 2018 (Pipe-SGD), arXiv 1811.03619", \
      .shared = "norms of the buckets", \
      .flags = TRIB_CODEC_LINEAR | TRIB_CODEC_AGREES | TRIB_CODEC_UNBIASED, \
      .texts = TEXTS("int8:bucket=128", "int8", "int8:bucket=8,round=nearest", \
          "int8:bucket=64")) \
    X(none, all, int16, raw, \
      .name = "int16", \
      .grammar = \
          "int16[:bucket=N][,round=random|nearest]" \
          "[,result=sums|requantised][,ef=0|1]", \
      .detail = "integers up to 32767; summed as integers", \
      .paper = "Alistarh et al. 2017, arXiv 1610.02132", \
      .shared = "norms of the buckets", \
      .flags = TRIB_CODEC_LINEAR | TRIB_CODEC_AGREES | TRIB_CODEC_UNBIASED, \
      .texts = TEXTS("int16", "int16:bucket=256", "int16:bucket=16")) \
    X(none, all, range, bits, \
      .name = "uniform-thc", \
      .grammar = "uniform-thc[:bits=2..8][,bucket=N][,round=random|nearest][,ef=0|1]", \
      .detail = "integers from minimum to maximum", \
      .paper = "Li et al. 2023 (THC), arXiv 2302.08545", \
      .shared = "ranges of the buckets", \
      .flags = TRIB_CODEC_LINEAR | TRIB_CODEC_AGREES | TRIB_CODEC_UNBIASED, \
      .texts = TEXTS("uniform-thc:bits=8", "uniform-thc", \
          "uniform-thc:bits=8,bucket=1000,round=nearest", \
          "uniform-thc:bits=3,bucket=16")) \
    X(hadamard, all, range, bits, \
      .name = "hadamard", \
      .grammar = "hadamard[:block=N][,ef=0|1][+VALUES]", \
      .detail = "rotated blocks; by default uniform-thc", \
      .paper = "Suresh et al. 2017, arXiv 1611.00429", \
      .shared = "scales of the rotated buckets", \
      .flags = TRIB_CODEC_LINEAR | TRIB_CODEC_AGREES | TRIB_CODEC_UNBIASED, \
      .texts = TEXTS("hadamard:block=4096+int8", "hadamard", "hadamard+bf16", \
          "hadamard:block=64+bf16:round=random", "hadamard:block=128+f8:round=random", \
          "hadamard:block=64+qsgd:bits=3,bucket=64", \
          "hadamard:block=64+qsgd:bits=3,bucket=64,shared=1", "hadamard+qsgd:bits=8", \
          "hadamard:block=256+natural:bucket=8", \
          "hadamard:block=64+dither:base=1.5,bits=5,bucket=192", \
          "hadamard:block=128+terngrad", "hadamard+onebit", \
          "hadamard:block=4096+efsign:bucket=64", "hadamard+int4:bucket=64", \
          "hadamard:block=64+int8:round=nearest", \
          "hadamard:block=256+int16:bucket=1024", \
          "hadamard:block=64+uniform-thc:bits=3,bucket=16", \
          "hadamard:block=128+qsgd:bits=5,bucket=8", \
          "hadamard:block=64+int16:bucket=256", "hadamard:block=1024+f16")) \
    X(hadamard, all, table, bits, \
      .name = "thc", \
      .grammar = "thc[:block=N][,p=1/16|1/32|1/64|1/128|1/256|1/512][,ef=0|1]", \
      .detail = "rotated blocks, 16 points of a bell curve", \
      .paper = "Li et al. 2023 (THC), arXiv 2302.08545", \
      .shared = "norms of the rotated blocks", \
      .flags = TRIB_CODEC_LINEAR | TRIB_CODEC_AGREES | TRIB_CODEC_FEEDBACK, \
      .texts = TEXTS("thc:block=4096,p=1/512", "thc", "thc:block=64,p=1/512", \
          "thc:block=64")) \
    X(none, all, wide, raw, \
      .name = "exact", \
      .grammar = "exact[:ef=0]", \
      .detail = "sums without rounding, in any order", \
      .paper = "Kulisch & Miranker 1981, Computer Arithmetic in Theory and Practice", \
      .flags = TRIB_CODEC_LINEAR | TRIB_CODEC_UNBIASED, \
      .texts = TEXTS("exact")) \
    X(none, all, bounded, bits, \
      .name = "bound", \
      .grammar = "bound[:abs=E|rel=R][,bucket=N][,ef=0|1]", \
      .detail = "absolute or relative bound per element", \
      .paper = \
          "Di & Cappello 2016, IPDPS; Huang et al. 2024 (hZCCL), SC", \
      .shared = "largest magnitudes of the buckets", \
      .flags = TRIB_CODEC_LINEAR | TRIB_CODEC_AGREES, \
      .texts = TEXTS("bound:abs=1e-4", "bound", "bound:rel=0.01,bucket=64", \
          "bound:abs=0.5,bucket=8", "bound:rel=1e-5,ef=1", \
          "bound:abs=1e-3,bucket=2048")) \
    X(powersgd, all, f32, raw, \
      .name = "powersgd", \
      .grammar = "powersgd[:rank=N][,columns=N][,ef=0|1]", \
      .detail = "low-rank factors of matrices, iterated", \
      .paper = "Vogels et al. 2019, arXiv 1905.13727", \
      .shared = "factors of the matrices", \
      .flags = TRIB_CODEC_LINEAR | TRIB_CODEC_AGREES | \
               TRIB_CODEC_MODEL | TRIB_CODEC_FEEDBACK, \
      .texts = TEXTS("powersgd", "powersgd:rank=2")) \
    X(gradiveq, all, f32, raw, \
      .name = "gradiveq", \
      .grammar = \
          "gradiveq[:slice=N][,kept=N][,train=N][,coded=N][,centre=0|1]" \
          "[,memory=W][,ef=0|1][+VALUES]", \
      .detail = "principal components of slices, learned", \
      .paper = "Yu et al. 2018, arXiv 1811.03617", \
      .shared = "basis of the slices", \
      .flags = TRIB_CODEC_LINEAR | TRIB_CODEC_MODEL | TRIB_CODEC_FEEDBACK, \
      .texts = TEXTS("gradiveq", "gradiveq:slice=16,kept=3", \
          "gradiveq:slice=16,kept=3+int8:bucket=8")) \
    X(lgc, all, f32, raw, \
      .name = "lgc", \
      .grammar = \
          "lgc[:ratio=R][,dense=N][,train=N][,rate=R][,pick=one|all]" \
          "[,decoder=linear|leaky][,every=N][,sample=N][,ef=0|1]", \
      .detail = "learned code of one rank's top k", \
      .paper = "Abrahamyan et al. 2021, arXiv 2103.08870", \
      .shared = "weights and positions", \
      .flags = TRIB_CODEC_LINEAR | TRIB_CODEC_AGREES | \
               TRIB_CODEC_MODEL | TRIB_CODEC_FEEDBACK, \
      .texts = TEXTS("lgc", "lgc:ratio=0.1")) \
    X(lgc_ps, all, f32, raw, \
      .name = "lgc-ps", \
      .grammar = \
          "lgc-ps[:ratio=R][,dense=N][,train=N][,rate=R][,innovation=R]" \
          "[,pick=one|all][,decoder=linear|leaky][,every=N][,sample=N][,ef=0|1]", \
      .detail = "lgc with a decoder for each rank", \
      .paper = "Abrahamyan et al. 2021, arXiv 2103.08870", \
      .shared = "weights and positions", \
      .flags = TRIB_CODEC_LINEAR | TRIB_CODEC_AGREES | \
               TRIB_CODEC_MODEL | TRIB_CODEC_FEEDBACK, \
      .texts = TEXTS("lgc-ps", "lgc-ps:ratio=0.1"))
/* clang-format on */

#define STAGES_DECLARE(t, s, q, p, ...) \
    extern const struct trib_transform trib_transform_##t; \
    extern const struct trib_select trib_select_##s; \
    extern const struct trib_quantise trib_quantise_##q; \
    extern const struct trib_pack trib_pack_##p;
ROWS(STAGES_DECLARE)

#define ROW(t, s, q, p, ...) \
    {.stages = {&trib_transform_##t, &trib_select_##s, &trib_quantise_##q, \
                &trib_pack_##p}, \
     __VA_ARGS__},
const struct trib_codec_row trib_codecs[] = {ROWS(ROW)};
const size_t trib_codecs_count = sizeof trib_codecs / sizeof *trib_codecs;
