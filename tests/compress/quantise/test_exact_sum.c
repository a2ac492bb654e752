/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sums without rounding: for all inputs in any order, the result equals that of a slow
 * oracle of long integers, bit for bit.
 */
#include "tests/compress/vectors.h"

#include "compress/quantise/exact_sum.h"

/* ---- the oracle: whole numbers of 2^-149, in digits of 32 bits ------------------- */

enum { DIGITS = 14, DIGIT_BITS = 32 };

struct integer {
    uint32_t digit[DIGITS]; /* two's complement */
};

static void add_shifted(struct integer *s, uint64_t value, unsigned shift,
                        bool negative)
{
    struct integer v = {{0}};
    uint64_t carry = 0;
    for (unsigned b = 0; b < 64; b++)
        if (value >> b & 1)
            v.digit[(shift + b) / DIGIT_BITS] |= 1u << (shift + b) % DIGIT_BITS;
    for (int k = 0; negative && k < DIGITS; k++)
        v.digit[k] = ~v.digit[k];
    carry = negative;
    for (int k = 0; k < DIGITS; k++) {
        carry += (uint64_t)s->digit[k] + v.digit[k];
        s->digit[k] = (uint32_t)carry;
        carry >>= DIGIT_BITS;
    }
}

static uint32_t bits_of_float(float x)
{
    uint32_t b;
    memcpy(&b, &x, sizeof b);
    return b;
}

static float float_of_bits(uint32_t b)
{
    float x;
    memcpy(&x, &b, sizeof x);
    return x;
}

/* x is finite; times a whole number below 2^20 */
static void add_float(struct integer *s, float x, uint32_t times, bool subtract)
{
    const uint32_t b = bits_of_float(x);
    const unsigned exponent = b >> 23 & 255;
    const uint64_t mantissa = exponent ? (b & 0x7fffff) | 0x800000 : b & 0x7fffff;
    add_shifted(s, mantissa * times, exponent ? exponent - 1 : 0, (b >> 31) ^ subtract);
}

static int sign_of(const struct integer *s)
{
    if (s->digit[DIGITS - 1] >> 31)
        return -1;
    for (int k = 0; k < DIGITS; k++)
        if (s->digit[k])
            return 1;
    return 0;
}

static void negate(struct integer *s)
{
    uint64_t carry = 1;
    for (int k = 0; k < DIGITS; k++) {
        carry += (uint32_t)~s->digit[k];
        s->digit[k] = (uint32_t)carry;
        carry >>= DIGIT_BITS;
    }
}

/* Compares s with `divisor` times the float of these bits, which may be 2^128. */
static int compare(const struct integer *s, uint32_t bits, uint32_t divisor)
{
    struct integer d = *s;
    if (bits == 0x7f800000)
        add_shifted(&d, divisor, 128 + 149, true);
    else
        add_float(&d, float_of_bits(bits), divisor, true);
    return sign_of(&d);
}

/* The float nearest to s / divisor, by trying: no rounding of the library's is in
 * it. */
static float nearest(struct integer s, uint32_t divisor)
{
    const bool negative = sign_of(&s) < 0;
    uint32_t low = 0, high = 0x7f800000;
    if (negative)
        negate(&s);
    if (sign_of(&s) == 0)
        return 0.0f;
    if (compare(&s, high, divisor) >= 0)
        return negative ? -INFINITY : INFINITY;
    while (high - low > 1) { /* low is at most the quotient, high above it */
        const uint32_t middle = low + (high - low) / 2;
        if (compare(&s, middle, divisor) >= 0)
            low = middle;
        else
            high = middle;
    }
    struct integer twice = s; /* 2 s against divisor * (low + high) */
    for (int k = DIGITS - 1; k >= 0; k--)
        twice.digit[k] = s.digit[k] << 1 | (k ? s.digit[k - 1] >> 31 : 0);
    add_float(&twice, float_of_bits(low), divisor, true);
    const int side = compare(&twice, high, divisor);
    const uint32_t bits = side > 0 || (side == 0 && low & 1) ? high : low;
    return float_of_bits(bits | (uint32_t)negative << 31);
}

static float oracle(float *const *x, size_t ranks, size_t i, uint32_t divisor)
{
    struct integer s = {{0}};
    bool nan = false, plus = false, minus = false;
    for (size_t r = 0; r < ranks; r++) {
        const float v = x[r][i];
        nan |= isnan(v) != 0;
        plus |= isinf(v) && v > 0;
        minus |= isinf(v) && v < 0;
        if (isfinite(v))
            add_float(&s, v, 1, false);
    }
    if (nan || (plus && minus))
        return float_of_bits(0x7fc00000);
    if (plus || minus)
        return plus ? INFINITY : -INFINITY;
    return nearest(s, divisor);
}

/* ---- contributions --------------------------------------------------------------- */

enum kind {
    NORMAL,     /* what float64 holds */
    HUGE_PAIRS, /* +-1e38, which cancel or overflow */
    DENORMAL,
    ANY_FINITE, /* any exponents */
    ANY_BITS,   /* NaN and Inf, too */
    CANCELLING, /* large numbers that leave little */
    SPARSE,     /* most blocks are zeros of either sign */
    MEANS,      /* quotients at the middle between two numbers */
    KINDS,
};

static struct trib_rng rng_of(uint64_t seed)
{
    return (struct trib_rng){.seed = seed, .stream = 3, .step = 9};
}

static float element(enum kind kind, uint64_t seed, size_t rank, size_t i)
{
    const uint64_t at = 4 * (rank * 65536 + i);
    const uint32_t b = draw_u32(rng_of(seed), at),
                   more = draw_u32(rng_of(seed), at + 1);
    switch (kind) {
    case NORMAL:
        return normal_at(seed + rank, i);
    case HUGE_PAIRS:
        return (b & 1 ? 1e38f : -1e38f) * (b & 6 ? 1.0f : 3.4f);
    case DENORMAL:
        return float_of_bits((b & 0x80000000) | (b & 0x1ffffff));
    case ANY_FINITE:
        return (b >> 23 & 255) == 255 ? 1.5f : float_of_bits(b);
    case ANY_BITS:
        return more % 4 ? float_of_bits(b) : float_of_bits(b | 0x7f800000);
    case CANCELLING:
        return rank % 2
                   ? -element(CANCELLING, seed, rank - 1, i) + (b % 8 ? 0.0f : 1e-20f)
                   : ldexpf(1.0f + (float)(b >> 9) * 0x1p-23f, (int)(more % 200) - 100);
    case SPARSE:
        return i / 256 % 3 || b % 7 ? (b & 1 ? 0.0f : -0.0f)
                                    : normal_at(seed + rank, i);
    default: /* few bits, so that many quotients are near the middle */
        return ldexpf((float)((int)(b % 2048) - 1024),
                      (int)(more % 24) - 12 - (b & 1 ? 120 : 0));
    }
}

struct job {
    struct trib_codec *codec;
    size_t n;
    size_t ranks;
    float **x;
    struct trib_encoded *words;
};

static struct job job_new(enum kind kind, uint64_t seed, size_t ranks, size_t n)
{
    static const char *const isas[] = {"c", "avx2", "avx512", "neon"};
    const char *isa = isas[seed % 4];
    struct trib_error err = {0};
    struct job j = {.codec = codec_new("exact", trib_kernels_get(isa) ? isa : NULL),
                    .n = n,
                    .ranks = ranks};
    assert_status(trib_codec_for_ranks(j.codec, (int)ranks, &err), TRIB_OK);
    j.x = calloc(ranks, sizeof *j.x);
    j.words = calloc(ranks, sizeof *j.words);
    for (size_t r = 0; r < ranks; r++) {
        j.x[r] = malloc(n * sizeof **j.x + 4);
        for (size_t i = 0; i < n; i++)
            j.x[r][i] = element(kind, seed, r, i);
        uint8_t *dst = malloc(trib_codec_own_bound(j.codec, n) + 1);
        const struct trib_encode in = {.x = j.x[r], .n = n};
        j.words[r] = (struct trib_encoded){dst, trib_codec_encode(j.codec, &in, dst)};
        assert_true(j.words[r].len <= trib_codec_own_bound(j.codec, n));
    }
    return j;
}

static void words_free(struct trib_encoded *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free((void *)(uintptr_t)words[i].src);
    free(words);
}

static void job_free(struct job *j)
{
    for (size_t r = 0; r < j->ranks; r++)
        free(j->x[r]);
    words_free(j->words, j->ranks);
    trib_codec_destroy(j->codec);
    free(j->x);
}

static struct trib_encoded merge(const struct trib_codec *c, struct trib_encoded *words,
                              size_t n_words, size_t n, bool final, uint32_t divisor)
{
    struct trib_encoded sum = {.src = NULL};
    uint8_t *dst = malloc(trib_codec_sum_bound(c, n) + 1);
    const struct trib_merge m = {
        .words = words, .n_words = n_words, .n = n, .final = final, .ranks = divisor};
    assert_status(trib_codec_merge(c, &m, dst, &sum.len), TRIB_OK);
    assert_true(sum.len <= trib_codec_sum_bound(c, n));
    sum.src = realloc(dst, sum.len + 1);
    return sum;
}

/* Words of random members are merged until one is left: any tree. */
static struct trib_encoded merge_as_tree(const struct job *j, uint64_t seed,
                                      uint32_t divisor)
{
    struct trib_encoded *left = calloc(j->ranks, sizeof *left);
    size_t n = j->ranks;
    for (size_t r = 0; r < n; r++) {
        uint8_t *copy = malloc(j->words[r].len + 1);
        memcpy(copy, j->words[r].src, j->words[r].len);
        left[r] = (struct trib_encoded){copy, j->words[r].len};
    }
    for (uint64_t at = 0; n > 1 || at == 0; at += 8) {
        struct trib_encoded members[5];
        size_t take = 1 + draw_u32(rng_of(seed), at) % 5;
        take = take < n ? take : n;
        for (size_t i = 0; i < take; i++) {
            const size_t k = draw_u32(rng_of(seed), at + 1 + i) % n;
            members[i] = left[k];
            left[k] = left[--n];
        }
        left[n] = merge(j->codec, members, take, j->n, false, 0);
        for (size_t i = 0; i < take; i++)
            free((void *)(uintptr_t)members[i].src);
        n++;
    }
    const struct trib_encoded whole = left[0];
    left[0] = merge(j->codec, left, 1, j->n, true, divisor);
    free((void *)(uintptr_t)whole.src);
    const struct trib_encoded result = left[0];
    free(left);
    return result;
}

static void check_result(const struct job *j, struct trib_encoded word,
                         const float *expected, int kind)
{
    float *y = malloc(j->n * sizeof *y);
    assert_status(trib_codec_decode(j->codec, word.src, word.len, y, j->n), TRIB_OK);
    for (size_t i = 0; i < j->n; i++)
        if (bits_of_float(y[i]) != bits_of_float(expected[i]))
            fail_msg("kind %d, %zu ranks, element %zu: %08x, not %08x", kind, j->ranks,
                     i, bits_of_float(y[i]), bits_of_float(expected[i]));
    free(y);
}

TEST(test_any_tree_against_the_oracle)
{
    static const size_t ranks[] = {1, 2, 3, 5, 8, 17};
    enum { N = 300 };
    float expected[N];
    for (int kind = 0; kind < KINDS; kind++) {
        for (size_t k = 0; k < sizeof ranks / sizeof *ranks; k++) {
            struct job j = job_new((enum kind)kind, 11 + k, ranks[k], N);
            for (int mean = 0; mean < 2; mean++) {
                const uint32_t divisor = mean ? (uint32_t)ranks[k] : 1;
                for (size_t i = 0; i < N; i++)
                    expected[i] = oracle(j.x, j.ranks, i, divisor);
                struct trib_encoded flat =
                    merge(j.codec, j.words, j.ranks, N, true, mean * divisor);
                check_result(&j, flat, expected, kind);
                for (uint64_t tree = 0; tree < 6; tree++) {
                    struct trib_encoded w = merge_as_tree(&j, tree, mean * divisor);
                    assert_int_equal(w.len, flat.len);
                    assert_memory_equal(w.src, flat.src, w.len);
                    free((void *)(uintptr_t)w.src);
                }
                free((void *)(uintptr_t)flat.src);
            }
            job_free(&j);
        }
    }
}

/* The same contributions on other ranks, and ranks that give zeros. */
TEST(test_ranks_of_zeros)
{
    enum { N = 700, RANKS = 4, MORE = 3 };
    for (int kind = 0; kind < KINDS; kind++) {
        struct job j = job_new((enum kind)kind, 5, RANKS, N);
        struct trib_error err = {0};
        struct trib_encoded words[RANKS + MORE];
        float zeros[N];
        uint8_t zero_word[5 * N];
        float *a = malloc(N * sizeof *a), *b = malloc(N * sizeof *b);
        for (size_t i = 0; i < N; i++)
            zeros[i] = i % 2 ? 0.0f : -0.0f;
        assert_status(trib_codec_for_ranks(j.codec, RANKS + MORE, &err), TRIB_OK);
        const struct trib_encode in = {.x = zeros, .n = N};
        const size_t len = trib_codec_encode(j.codec, &in, zero_word);
        for (int r = 0; r < RANKS + MORE; r++)
            words[r] = r % 2 && r / 2 < MORE ? (struct trib_encoded){zero_word, len}
                                             : j.words[r % 2 ? 3 : r / 2];
        struct trib_encoded few = merge(j.codec, j.words, RANKS, N, true, 0);
        struct trib_encoded many = merge(j.codec, words, RANKS + MORE, N, true, 0);
        assert_status(trib_codec_decode(j.codec, few.src, few.len, a, N), TRIB_OK);
        assert_status(trib_codec_decode(j.codec, many.src, many.len, b, N), TRIB_OK);
        assert_memory_equal(a, b, N * sizeof *a);
        free(a), free(b);
        free((void *)(uintptr_t)few.src), free((void *)(uintptr_t)many.src);
        job_free(&j);
    }
}

static void expect_sum(const float *x, size_t ranks, uint32_t divisor, uint32_t bits)
{
    struct job j = job_new(NORMAL, 1, ranks, 1);
    float y;
    for (size_t r = 0; r < ranks; r++) {
        const struct trib_encode in = {.x = x + r, .n = 1};
        j.words[r].len =
            trib_codec_encode(j.codec, &in, (uint8_t *)(uintptr_t)j.words[r].src);
    }
    struct trib_encoded w = merge(j.codec, j.words, ranks, 1, true, divisor);
    assert_status(trib_codec_decode(j.codec, w.src, w.len, &y, 1), TRIB_OK);
    assert_int_equal(bits_of_float(y), bits);
    free((void *)(uintptr_t)w.src);
    job_free(&j);
}

TEST(test_special_values)
{
    const float inf = INFINITY, nan = float_of_bits(0xffc12345), big = FLT_MAX;
    expect_sum((float[]){inf, -inf}, 2, 0, 0x7fc00000);
    expect_sum((float[]){inf, 1, inf}, 3, 0, 0x7f800000);
    expect_sum((float[]){-inf, big, big}, 3, 2, 0xff800000);
    expect_sum((float[]){nan, inf}, 2, 0, 0x7fc00000);
    expect_sum((float[]){nan}, 1, 0, 0x7fc00000);
    expect_sum((float[]){-0.0f, -0.0f}, 2, 0, 0);
    expect_sum((float[]){-0.0f}, 1, 0, 0);
    expect_sum((float[]){big, big, -big}, 3, 0, 0x7f7fffff); /* beyond it meanwhile */
    expect_sum((float[]){big, big}, 2, 0, 0x7f800000);
    expect_sum((float[]){big, big}, 2, 2, 0x7f7fffff);
    expect_sum((float[]){big, 0x1p103f}, 2, 0, 0x7f800000); /* a tie, to even */
    expect_sum((float[]){big, 0x1.fffffep102f}, 2, 0, 0x7f7fffff);
    expect_sum((float[]){1e30f, 1, -1e30f}, 3, 0, 0x3f800000);
    expect_sum((float[]){0x1p-149f, 0, 0}, 3, 3, 0); /* a third of the least */
    expect_sum((float[]){-0x1p-149f, 0, 0}, 3, 3, 0x80000000);
    expect_sum((float[]){0x1p-149f, 0x1p-149f, 0}, 3, 3, 1);
    expect_sum((float[]){0x1p-149f, 0}, 2, 2, 0); /* ties to even */
    expect_sum((float[]){0x1p-148f, 0x1p-149f}, 2, 2, 2);
}

/* A sum of the most contributions, all the largest, and a small one that shows at the
 * end. */
TEST(test_most_contributions)
{
    enum { RANKS = 65536 };
    struct trib_error err = {0};
    struct trib_codec *c = codec_new("exact", NULL);
    float x[2][4] = {{FLT_MAX, -FLT_MAX, 1e-45f, 1.0f},
                     {-FLT_MAX, FLT_MAX, 0x1p-149f, 0x1p-60f}};
    uint8_t *word[2], *sum = NULL;
    float y[4];
    assert_status(trib_codec_for_ranks(c, RANKS, &err), TRIB_OK);
    for (int k = 0; k < 2; k++) {
        word[k] = malloc(trib_codec_bound(c, 4));
        const struct trib_encode in = {.x = x[k], .n = 4};
        size_t len = trib_codec_encode(c, &in, word[k]);
        for (uint32_t made = 1; made < RANKS / 2; made *= 2) {
            struct trib_encoded pair[] = {{word[k], len}, {word[k], len}};
            struct trib_encoded w = merge(c, pair, 2, 4, false, 0);
            memcpy(word[k], w.src, len = w.len);
            free((void *)(uintptr_t)w.src);
        }
        const struct trib_encoded half = {word[k], len};
        if (k == 0) {
            sum = malloc(len);
            memcpy(sum, half.src, len);
            assert_status(trib_codec_decode(c, sum, len, y, 4), TRIB_OK);
            assert_true(isinf(y[0]) && y[0] > 0 && isinf(y[1]) && y[1] < 0);
            continue;
        }
        struct trib_encoded both[] = {half, {sum, half.len}},
                            again[] = {half, half, half};
        struct trib_encoded w = merge(c, both, 2, 4, true, 0);
        assert_status(trib_codec_decode(c, w.src, w.len, y, 4), TRIB_OK);
        assert_true(y[0] == 0 && y[1] == 0 && y[2] == 0x1p-133f && y[3] == 32768.0f);
        size_t ignored;
        const struct trib_merge m = {.words = again, .n_words = 3, .n = 4};
        uint8_t *dst = malloc(trib_codec_bound(c, 4));
        assert_status(trib_codec_merge(c, &m, dst, &ignored), TRIB_ERR_CODEC);
        const struct trib_merge done = {.words = &w, .n_words = 1, .n = 4};
        assert_status(trib_codec_merge(c, &done, dst, &ignored),
                      TRIB_ERR_CODEC); /* finished */
        free((void *)(uintptr_t)w.src), free(dst);
    }
    free(word[0]), free(word[1]), free(sum);
    trib_codec_destroy(c);
}

/* Return the bytes per element of partial sums: 8 for normal gradients, at most 16 for
 * recorded ones. */
static double bytes_an_element(const char *path, size_t ranks)
{
    enum { N = 21056 };
    struct job j = job_new(NORMAL, 4, ranks, N);
    for (size_t r = 0; path && r < ranks; r++) {
        FILE *f = fopen(path, "rb");
        float *x = j.x[r];
        assert_non_null(f);
        assert_int_equal(fread(x, sizeof *x, N, f), N);
        fclose(f);
        for (size_t i = 0; i < N; i++) /* of another batch */
            x[i] *= 1 + normal_at(r, i);
        const struct trib_encode in = {.x = x, .n = N};
        j.words[r].len =
            trib_codec_encode(j.codec, &in, (uint8_t *)(uintptr_t)j.words[r].src);
    }
    struct trib_encoded w = merge(j.codec, j.words, ranks, N, false, 0);
    const double bytes = (double)w.len / N;
    print_message("%s, %zu ranks: %.2f bytes an element\n", path ? path : "normal",
                  ranks, bytes);
    free((void *)(uintptr_t)w.src);
    job_free(&j);
    return bytes;
}

TEST(test_bytes_of_partial_sums)
{
    char path[4096];
    assert_true(bytes_an_element(NULL, 2) < 8.1);
    assert_true(bytes_an_element(NULL, 16) < 8.5);
    for (int k = 0; k < 2; k++) {
        const char *top = getenv("abs_top_srcdir");
        snprintf(path, sizeof path, "%s/tests/data/gradient-%s.f32", top ? top : ".",
                 k ? "late" : "early");
        assert_true(bytes_an_element(path, 2) < 16);
        assert_true(bytes_an_element(path, 16) < 16);
    }
}

/* For any bytes of an encoded chunk, a merge returns a status and stays within its
 * buffers. */
TEST(test_hostile_words)
{
    enum { N = 270, RANKS = 4 };
    for (int kind = 0; kind < KINDS; kind++) {
        struct job j = job_new((enum kind)kind, 3, RANKS, N);
        struct trib_encoded partial = merge(j.codec, j.words, 2, N, false, 0);
        uint8_t *dst = malloc(trib_codec_sum_bound(j.codec, N));
        for (uint64_t k = 0; k < 4000; k++) {
            const bool first = k % 2;
            const struct trib_encoded *from = first ? &partial : &j.words[2];
            uint8_t *bad = malloc(from->len);
            const uint32_t where = draw_u32(rng_of(k), 0);
            memcpy(bad, from->src, from->len);
            /* mostly in the heads */
            bad[where % (k % 3 ? 24 : from->len)] ^=
                (uint8_t)(1 + draw_u32(rng_of(k), 1) % 255);
            struct trib_encoded words[] = {{bad, from->len},
                                           first ? j.words[2] : partial};
            const struct trib_merge m = {
                .words = words, .n_words = 2, .n = N, .final = k % 5 == 0, .ranks = 3};
            size_t len = 0;
            if (trib_codec_merge(j.codec, &m, dst, &len) == TRIB_OK)
                assert_true(len <= trib_codec_sum_bound(j.codec, N));
            free(bad);
        }
        free(dst);
        free((void *)(uintptr_t)partial.src);
        job_free(&j);
    }
}
