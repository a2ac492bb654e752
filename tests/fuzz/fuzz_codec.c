/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Byte 0 chooses a codec, bytes 1-2 the length and the instruction set; the rest is
 * first decoded as it is (any bytes give a status), then taken as floats, encoded and
 * decoded (never fails). Of words that add, the bytes are merged with one that is
 * valid, and are scales that ranks agreed on.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "compress/codec.h"
#include "compress/kernels/kernels.h"
#include "tests/fuzz/reach.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

unsigned fuzz_reached; /* words that decode, or add to a valid one */

static const char *const texts[] = {
    "none",
    "f16",
    "bf16",
    "topk:k=5",
    "topk:ratio=0.3+f16",
    "topk:ratio=0.02+bf16",
    "qsgd",
    "qsgd:bits=3,bucket=8,norm=max",
    "natural:bucket=64",
    "dither:bits=3,bucket=8",
    "topk:ratio=0.3+natural:bucket=8",
    "topk:ratio=0.3+qsgd:bits=5,bucket=16",
    "terngrad:bucket=16",
    "onebit:bucket=8",
    "efsign:bucket=16",
    "threshold:at=0.5",
    "randomk:ratio=0.1",
    "randomk:k=3,unbiased=1+natural:bucket=8",
    "blocks:block=8",
    "blocks:block=16,ratio=0.3+qsgd:bits=3,bucket=8",
    "f8:bucket=16",
    "f8:format=e5m2,bucket=8,round=random",
    "f16:round=random",
    "topk:ratio=0.3+bf16:round=random",
    "dither:base=1.5,bits=7,bucket=8",
    "dgc:ratio=0.1",
    "adacomp:bin=10",
    "qsgd:bits=2,bucket=64,pack=omega",
    "qsgd:bits=6,bucket=64,norm=l2,pack=omega",
    "terngrad:bucket=256,pack=entropy",
    "natural:bucket=8,pack=entropy",
    "int8:bucket=64",
    "int4:bucket=8",
    "int16:bucket=16",
    "uniform-thc:bits=3,bucket=16",
    "qsgd:shared=1,bits=5,bucket=8",
    "terngrad:shared=1,bucket=8",
    "signsgd",
    "thc:block=64",
    "topk:ratio=0.3+int8:bucket=8",
    "powersgd:rank=2",
    "gradiveq:slice=16,kept=3",
    "gradiveq:slice=16,kept=3+int8:bucket=8",
    "lgc:ratio=0.1",
    "lgc-ps:ratio=0.1",
    "hadamard:block=64+uniform-thc:bits=3,bucket=16",
    "hadamard:block=128+qsgd:bits=5,bucket=8",
    "hadamard:block=64+int16:bucket=256",
    "hadamard:block=1024+f16",
    "exact",
};
static const char *const isas[] = {"auto", "c", "avx2",
                                   "neon"}; /* auto for those not here */
enum {
    TEXTS = sizeof texts / sizeof *texts,
    ISAS = sizeof isas / sizeof *isas,
    N_MAX = 4096, /* the bits above it choose the instruction set */
    RANKS = 300
};

/* Made once: a codec does not change, and tables take longer than a word to decode. */
static struct trib_codec *codecs[TEXTS][ISAS];

static const struct trib_codec *codec_get(size_t text, size_t isa)
{
    struct trib_codec **c = &codecs[text][isa];
    if (!*c && (trib_codec_create(texts[text], trib_kernels_get(isas[isa]), NULL, c) !=
                    TRIB_OK ||
                trib_codec_for_ranks(*c, RANKS, NULL) != TRIB_OK))
        abort();
    return *c;
}

/* exactly `bytes`, so that a sanitizer sees one byte more */
static void *copy_new(const void *src, size_t bytes)
{
    void *p = malloc(bytes ? bytes : 1);
    if (!p)
        abort();
    if (bytes)
        memcpy(p, src, bytes);
    return p;
}

static void check_decode(const struct trib_codec *c, const uint8_t *data, size_t size,
                         size_t n)
{
    uint8_t *src = copy_new(data, size);
    float *x = calloc(n ? n : 1, sizeof *x), *acc = calloc(n ? n : 1, sizeof *acc);
    if (!x || !acc)
        abort();
    const trib_status_t status = trib_codec_decode(c, src, size, x, n);
    if (trib_codec_decode_add(c, src, size, 1.0f, acc, n) != status)
        abort();
    if (status != TRIB_OK && status != TRIB_ERR_CODEC)
        abort();
    fuzz_reached += status == TRIB_OK;
    free(src);
    free(x);
    free(acc);
}

static void check_encode(const struct trib_codec *c, const uint8_t *data, size_t size,
                         enum trib_encode_mode mode)
{
    const size_t n = size / sizeof(float), scratch = trib_codec_scratch(c, n);
    float *x = copy_new(data, n * sizeof(float)), *y = malloc(n * sizeof *y + 1);
    uint8_t *code = malloc(trib_codec_bound(c, n) + 1);
    void *work = aligned_alloc(64, scratch + 64);
    if (!y || !code || !work)
        abort();
    const struct trib_encode in = {.x = x, .n = n, .mode = mode, .scratch = work};
    const size_t len = trib_codec_encode(c, &in, code);
    if (len > trib_codec_bound(c, n) ||
        trib_codec_decode(c, code, len, y, n) != TRIB_OK)
        abort();
    free(x);
    free(y);
    free(code);
    free(work);
}

static void check_merge(const struct trib_codec *c, const uint8_t *data, size_t size,
                        size_t n)
{
    const size_t floats = trib_codec_agreed_floats(c, n);
    float *x = calloc(n + 1, sizeof *x), *share = calloc(floats + 1, sizeof *share);
    uint8_t *own = malloc(trib_codec_bound(c, n) + 1), *theirs = copy_new(data, size);
    uint8_t *sum = malloc(trib_codec_bound(c, n) + 1);
    size_t len = size < n * sizeof *x ? size : n * sizeof *x;
    if (!x || !share || !own || !sum)
        abort();
    memcpy(x, data, len);
    len = size < floats * sizeof *share ? size : floats * sizeof *share;
    memcpy(share, data, len);
    const struct trib_encode in = {.x = x, .n = n, .agreed = share};
    struct trib_encoded words[] = {{own, trib_codec_encode(c, &in, own)},
                                   {theirs, size}};
    for (size_t count = 1; count <= 2; count++) {
        const struct trib_merge m = {.words = words + 2 - count,
                                     .piece = n,
                                     .n_words = count,
                                     .n = n,
                                     .final = count == 2,
                                     .ranks = size % 3};
        const trib_status_t status = trib_codec_merge(c, &m, sum, &len);
        /* words of a model say nothing without it */
        const bool learns = trib_codec_info(c)->flags & TRIB_CODEC_MODEL;
        if (status == TRIB_OK &&
            (len > trib_codec_bound(c, n) ||
             (!learns && trib_codec_decode(c, sum, len, x, n) != TRIB_OK)))
            abort();
        if (status != TRIB_OK && status != TRIB_ERR_CODEC)
            abort();
        fuzz_reached += status == TRIB_OK;
    }
    free(x);
    free(share);
    free(own);
    free(theirs);
    free(sum);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3)
        return 0;
    const size_t where = data[1] | (size_t)data[2] << 8, n = where % N_MAX;
    const struct trib_codec *c = codec_get(data[0] % TEXTS, where / N_MAX % ISAS);
    check_decode(c, data + 3, size - 3, n);
    if (trib_codec_info(c)->flags & TRIB_CODEC_LINEAR && size > 3)
        check_merge(c, data + 3, size - 3, n);
    check_encode(c, data + 3, size - 3, TRIB_ENCODE_CONTRIBUTION);
    if (trib_codec_info(c)->flags & TRIB_CODEC_SPARSE) /* else it is the same */
        check_encode(c, data + 3, size - 3, TRIB_ENCODE_EXACT);
    return 0;
}
