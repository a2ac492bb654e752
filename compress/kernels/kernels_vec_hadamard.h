/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Part of kernels_vec.h: the randomised Hadamard transform of one block. Each pass
 * loads data once for up to three levels of butterflies. The last pass, over
 * neighbouring vecs, also does the levels within a vec.
 */

enum { HADAMARD_LAST = 8 /* vecs */, HADAMARD_LAST_N = HADAMARD_LAST * VEC_LANES };

/* hadamard_signs of kernels_scalar_hadamard.h; writes whole vecs */
KERNEL void hadamard_signs_vec(const struct trib_hadamard *h, uint32_t *words_out)
{
    enum { L = VEC_LANES };
    const size_t count = ((size_t)1 << h->log2_n) / 32;
    const int shift = (int)(h->first % 32);
    const uint32_t first = (uint32_t)(h->first / 32) * 0x9e3779b9u + h->key[0];
    const vec key1 = v_set_i32(h->key[1]), step = v_set_i32(L * 0x9e3779b9u);
    uint32_t hashes[HADAMARD_WORDS + 2 * L];
    vec c = v_counters(first);
    for (size_t i = 0; i <= count; i += L, c = v_add_i32(c, step)) {
        const vec v = v_hash(c, key1);
        v_store(hashes + i, v_xor(v, v_shr_i32(v, 16)));
    }
    for (size_t i = 0; i < count; i += L)
        v_store(words_out + i, v_or(v_shr_any_i32(v_load(hashes + i), shift),
                                    v_shl_any_i32(v_load(hashes + i + 1), 32 - shift)));
}

KERNEL vec v_hadamard_signed(vec v, const uint32_t *words, size_t i)
{
    return v_flip_signs(v, words[i / 32] >> i % 32);
}

KERNEL void butterfly(vec *a, vec *b)
{
    const vec sum = v_add_f32(*a, *b);
    *b = v_sub_f32(*a, *b);
    *a = sum;
}

KERNEL void butterflies2(vec *v, int far)
{
    butterfly(&v[0], &v[2 * far]);
    butterfly(&v[far], &v[3 * far]);
    butterfly(&v[0], &v[far]);
    butterfly(&v[2 * far], &v[3 * far]);
}

KERNEL void butterflies3(vec v[8])
{
    butterfly(&v[0], &v[4]);
    butterfly(&v[1], &v[5]);
    butterfly(&v[2], &v[6]);
    butterfly(&v[3], &v[7]);
    butterflies2(v, 1);
    butterflies2(v + 4, 1);
}

/* One pass: the levels from distance ways * step / 2 down to step. words: signs of the
 * input, or NULL. */
KERNEL void hadamard_pass(float *z, const float *y, size_t n, size_t step, int ways,
                          const uint32_t *words)
{
    for (size_t base = 0; base < n; base += step * (size_t)ways) {
        for (size_t i = base; i < base + step; i += VEC_LANES) {
            vec v[8];
#pragma GCC unroll 8
            for (int w = 0; w < ways; w++) {
                const size_t at = i + (size_t)w * step;
                v[w] = v_load(y + at);
                v[w] = words ? v_hadamard_signed(v[w], words, at) : v[w];
            }
            if (ways == 8)
                butterflies3(v);
            else if (ways == 4)
                butterflies2(v, 1);
            else
                butterfly(&v[0], &v[1]);
#pragma GCC unroll 8
            for (int w = 0; w < ways; w++)
                v_store(z + i + (size_t)w * step, v[w]);
        }
    }
}

/* The levels below HADAMARD_LAST_N. before, after: signs of the input and of the
 * output, or NULL. */
KERNEL void hadamard_last(float *z, const float *y, size_t n, float scale,
                          const uint32_t *before, const uint32_t *after)
{
    const vec factor = v_set_f32(scale);
    for (size_t i = 0; i < n; i += HADAMARD_LAST_N) {
        vec v[HADAMARD_LAST];
#pragma GCC unroll 8
        for (int w = 0; w < HADAMARD_LAST; w++) {
            const size_t at = i + (size_t)w * VEC_LANES;
            v[w] = v_load(y + at);
            v[w] = before ? v_hadamard_signed(v[w], before, at) : v[w];
        }
        butterflies3(v);
#pragma GCC unroll 8
        for (int w = 0; w < HADAMARD_LAST; w++) {
            const size_t at = i + (size_t)w * VEC_LANES;
            const vec scaled = v_mul_f32(v_butterfly_lanes(v[w]), factor);
            v_store(z + at, after ? v_hadamard_signed(scaled, after, at) : scaled);
        }
    }
}

/* 2^some ways */
KERNEL void hadamard_levels(float *z, const float *y, size_t n, size_t step, int some,
                            const uint32_t *words)
{
    if (some == 3)
        hadamard_pass(z, y, n, step, 8, words);
    else if (some == 2)
        hadamard_pass(z, y, n, step, 4, words);
    else
        hadamard_pass(z, y, n, step, 2, words);
}

/* The first `levels` levels. before: signs of the input, or NULL. */
KERNEL void hadamard_passes(float *z, const float *y, size_t n, int levels,
                            const uint32_t *before)
{
    size_t step = n;
    for (int done = 0, some; done < levels; done += some) {
        const int left = levels - done;
        some = left == 4 || left == 2 ? 2 : left == 1 ? 1 : 3;
        step >>= some;
        if (!done && before)
            hadamard_levels(z, y, n, step, some, before);
        else
            hadamard_levels(z, done ? z : y, n, step, some, NULL);
    }
}

KERNEL void hadamard_block(float *z, const float *y, const struct trib_hadamard *h,
                           int log2_n, bool inverse)
{
    const size_t n = (size_t)1 << log2_n;
    const int levels = log2_n - __builtin_ctz(HADAMARD_LAST_N);
    uint32_t words[HADAMARD_WORDS + VEC_LANES];
    hadamard_signs_vec(h, words);
    hadamard_passes(z, y, n, levels, inverse ? NULL : words);
    if (inverse)
        hadamard_last(z, levels ? z : y, n, h->scale, NULL, words);
    else if (levels)
        hadamard_last(z, z, n, h->scale, NULL, NULL);
    else
        hadamard_last(z, y, n, h->scale, words, NULL);
}

static void hadamard(float *z, const float *y, const struct trib_hadamard *h)
{
    enum { USUAL = 10 }; /* a constant size is a quarter faster */
    if (HADAMARD_LAST_N >> h->log2_n > 1)
        hadamard_scalar(z, y, h);
    else if (h->log2_n == USUAL && h->inverse)
        hadamard_block(z, y, h, USUAL, true);
    else if (h->log2_n == USUAL)
        hadamard_block(z, y, h, USUAL, false);
    else
        hadamard_block(z, y, h, h->log2_n, h->inverse);
}
