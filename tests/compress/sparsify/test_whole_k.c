/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * k=N counts elements of the whole vector, for any partition into blocks: each start
 * sends exactly k, each block has its turn, and unbiased codecs stay unbiased.
 */
#include "tests/compress/vectors.h"

enum { TOTAL = 10000, STARTS = 200, SEEDS = 3 };

/* A vector in blocks, the last one shorter. */
struct cut {
    struct codec_buffers b;
    size_t block;
    size_t n_blocks;
    const float *x;
};

static struct cut cut_new(const char *name, size_t k, size_t block, const float *x)
{
    char text[64];
    snprintf(text, sizeof text, "%s%sk=%zu", name, strchr(name, ':') ? "," : ":", k);
    return (struct cut){.b = buffers_new(text, NULL, block),
                        .block = block,
                        .n_blocks = (TOTAL + block - 1) / block,
                        .x = x};
}

/* Encode block i in one start and decode it to y; return the number of sent elements.
 * residual: NULL, or that of the whole vector. */
static size_t start(struct cut *c, size_t i, struct trib_encode_key key,
                    float *residual, float *y)
{
    const size_t first = i * c->block, left = TOTAL - first;
    const size_t n = left < c->block ? left : c->block;
    uint8_t mask[TOTAL / 8 + 1] = {0};
    const struct trib_sent sent = {.mask = mask, .first = first};
    struct trib_encode in = {.x = c->x + first,
                             .n = n,
                             .total = TOTAL,
                             .key = key,
                             .scratch = c->b.scratch,
                             .sent = &sent};
    size_t count = 0;

    in.key.index = first;
    c->b.len = residual
                   ? trib_codec_encode_ef(c->b.codec, &in, residual + first, c->b.code)
                   : trib_codec_encode(c->b.codec, &in, c->b.code);
    assert_true(c->b.len <= trib_codec_bound(c->b.codec, n));
    assert_ok(trib_codec_decode(c->b.codec, c->b.code, c->b.len, y + first, n));
    for (size_t b = 0; b < sizeof mask; b++)
        count += (size_t)__builtin_popcount(mask[b]);
    return count;
}

static void check_counts(const char *name, size_t k, size_t block, const float *x)
{
    struct cut c = cut_new(name, k, block, x);
    const bool sampled = strcmp(name, "dgc") == 0; /* 0.8 k to k of each block */
    float *y = malloc(TOTAL * sizeof *y);
    size_t last[TOTAL] = {0};
    /* Steps of the golden section leave no gap above 3 of the mean distance. */
    const double longest = 3.0 * TOTAL / ((double)k * (double)block) + 2;

    for (uint32_t step = 1; step <= STARTS; step++) {
        size_t all = 0;
        for (size_t i = 0; i < c.n_blocks; i++) {
            const size_t m =
                start(&c, i, (struct trib_encode_key){7, step, 1, 0}, NULL, y);
            all += m;
            if (m)
                last[i] = step;
            if (i + 1 < c.n_blocks && (double)(step - last[i]) > longest)
                fail_msg("%s:k=%zu: block %zu of %zu waits for %zu starts", name, k, i,
                         block, step - last[i]);
        }
        const size_t most = k < TOTAL ? k : TOTAL;
        const bool dense = all == TOTAL && 2 * k > TOTAL; /* needs fewer bytes */
        if (!dense && (sampled ? all > most || 5 * all < 4 * most : all != most))
            fail_msg("%s:k=%zu: %zu sent of blocks of %zu in start %u", name, k, all,
                     block, step);
    }
    free(y);
    buffers_free(&c.b);
}

TEST(test_counts)
{
    static const char *const names[] = {"topk", "dgc", "randomk"};
    static const size_t ks[] = {1, 3, 10, 37, 1000, TOTAL, 4294967295u};
    static const size_t blocks[] = {64, 600, 4096, TOTAL};

    float *x = vector_new(VECTOR_NORMAL, 5, TOTAL);
    for (size_t i = 0; i < TOTAL; i++)
        x[i] = x[i] == 0 ? 1.0f : x[i];
    for (size_t t = 0; t < 3; t++)
        for (size_t k = 0; k < sizeof ks / sizeof *ks; k++)
            for (size_t b = 0; b < 4; b++)
                check_counts(names[t], ks[k], blocks[b], x);
    free(x);
}

/* Fewer elements than blocks: their mean over starts is x all the same. */
TEST(test_unbiased)
{
    enum { BLOCK = 500, FEW = 6, DRAWS = 40000 };
    float *x = malloc(TOTAL * sizeof *x), *y = malloc(TOTAL * sizeof *y);
    double sum = 0;
    for (size_t i = 0; i < TOTAL; i++)
        x[i] = i / BLOCK == 3 ? 2.0f : 0.0f;
    struct cut c = cut_new("randomk:unbiased=1,ef=0", FEW, BLOCK, x);
    for (uint32_t step = 1; step <= DRAWS; step++) {
        start(&c, 3, (struct trib_encode_key){11, step, 1, 0}, NULL, y);
        for (size_t i = 3 * BLOCK; i < 4 * BLOCK; i++)
            sum += (double)y[i] / DRAWS;
    }
    assert_true(fabs(sum / (2.0 * BLOCK) - 1) < 0.005);
    free(x), free(y);
    buffers_free(&c.b);
}

/* Nothing is lost from blocks that wait: sent plus kept equals the input. */
TEST(test_feedback)
{
    enum { BLOCK = 64, FEW = 5 };
    static const char *const names[] = {"topk", "dgc", "randomk"};
    float *x = malloc(TOTAL * sizeof *x), *y = malloc(TOTAL * sizeof *y);
    for (size_t i = 0; i < TOTAL; i++)
        x[i] = (float)(i % 17) - 8;
    for (size_t t = 0; t < 3; t++) {
        struct cut c = cut_new(names[t], FEW, BLOCK, x);
        float *residual = calloc(TOTAL, sizeof *residual),
              *sum = calloc(TOTAL, sizeof *sum);
        for (uint32_t step = 1; step <= STARTS; step++) {
            for (size_t i = 0; i < c.n_blocks; i++)
                start(&c, i, (struct trib_encode_key){7, step, 1, 0}, residual, y);
            for (size_t i = 0; i < TOTAL; i++)
                sum[i] += y[i];
        }
        for (size_t i = 0; i < TOTAL; i++)
            assert_true(sum[i] + residual[i] == STARTS * x[i]);
        free(residual), free(sum);
        buffers_free(&c.b);
    }
    free(x), free(y);
}

/* NaN or Inf in a block that sends nothing in this start is sent all the same, beyond
 * k. */
TEST(test_seen)
{
    static const char *const names[] = {"topk", "dgc"};
    float *x = vector_new(VECTOR_NORMAL, 5, TOTAL), *y = malloc(TOTAL * sizeof *y);
    for (size_t t = 0; t < 2; t++) {
        for (size_t bad = 10; bad < TOTAL; bad += 640) {
            struct cut c = cut_new(names[t], 1, 64, x);
            const float was = x[bad];
            size_t seen = 0, all = 0;
            x[bad] = t ? INFINITY : NAN;
            for (size_t i = 0; i < c.n_blocks; i++)
                all += start(&c, i, (struct trib_encode_key){7, 5, 1, 0}, NULL, y);
            for (size_t i = 0; i < TOTAL; i++)
                seen += !isfinite(y[i]);
            assert_int_equal(seen, 1);
            assert_true(!isfinite(y[bad]) && all <= 2);
            x[bad] = was;
            buffers_free(&c.b);
        }
    }
    free(x), free(y);
}
