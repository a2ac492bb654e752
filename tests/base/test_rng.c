/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include "tests/harness/rng_draw.h"

/* Known answers of the reference implementation (Random123). */
TEST(test_known_answers)
{
    static const struct {
        struct trib_rng_block counter;
        uint32_t key[2];
        uint32_t answer[4];
    } cases[] = {
        {{{0, 0, 0, 0}}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct trib_rng_block b =
            trib_rng_philox(cases[i].counter, cases[i].key[0], cases[i].key[1]);
        assert_memory_equal(b.word, cases[i].answer, sizeof(b.word));
    }
}

static void draw(struct trib_rng rng, uint64_t index, uint32_t *dst, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = draw_u32(rng, index + i);
}

TEST(test_coordinates_matter)
{
    const struct trib_rng base = {.seed = 1, .stream = 2, .step = 3};
    struct trib_rng other[] = {base, base, base, base};
    uint32_t a[64];
    uint32_t b[64];

    other[0].seed = 2;
    other[1].seed = 1 + ((uint64_t)1 << 32);
    other[2].stream = 3;
    other[3].step = 2;
    draw(base, 0, a, 64);
    for (int i = 0; i < 4; i++) {
        draw(other[i], 0, b, 64);
        assert_memory_not_equal(a, b, sizeof(a));
    }
    draw(base, (uint64_t)1 << 40, b, 64);
    assert_memory_not_equal(a, b, sizeof(a));
}

/* A million draws: mean and variance of a uniform, ten bins by chi square. */
TEST(test_uniform)
{
    enum { N = 1000000, BINS = 10 };
    struct trib_rng rng = {.seed = 42};
    float *x = malloc(N * sizeof(*x));
    double sum = 0;
    double squares = 0;
    double chi = 0;
    int bins[BINS] = {0};

    assert_non_null(x);
    for (int i = 0; i < N; i++) {
        x[i] = draw_float(rng, (uint64_t)i);
        assert_true(x[i] >= 0 && x[i] < 1);
        sum += (double)x[i];
        squares += (double)x[i] * (double)x[i];
        bins[(int)(x[i] * BINS)]++;
    }
    for (int i = 0; i < BINS; i++)
        chi += (bins[i] - N / 10.0) * (bins[i] - N / 10.0) / (N / 10.0);
    free(x);
    assert_true(sum / N > 0.499 && sum / N < 0.501);
    assert_true(squares / N > 0.3323 && squares / N < 0.3343);
    assert_true(chi < 27.9); /* 9 degrees of freedom, p = 0.001 */
}
