/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The checksum of chunks: against its definition, bit by bit, in every instruction set,
 * for all lengths up to where the fast ways begin and around their ends, at any
 * address.
 *
 *     test_crc --bench         GB/s of each instruction set
 */
#include "tests/compress/kernels/isas.h"

#define POLYNOMIAL 0x82f63b78u /* of Castagnoli, reflected */

enum { LONGEST = 20000 };

static uint32_t by_definition(uint32_t crc, const uint8_t *p, size_t n)
{
    uint32_t r = ~crc;
    for (size_t i = 0; i < n; i++) {
        r ^= p[i];
        for (int bit = 0; bit < 8; bit++)
            r = r >> 1 ^ (r & 1 ? POLYNOMIAL : 0);
    }
    return ~r;
}

static void fill(uint8_t *p, size_t n, uint64_t seed)
{
    const struct trib_rng rng = {.seed = seed, .stream = 3};
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)draw_u32(rng, i);
}

TEST(test_known)
{
    const struct trib_kernels *isas[4];
    uint8_t ones[32], zeros[32] = {0};

    memset(ones, 0xff, sizeof ones);
    for (int k = isas_of_cpu(isas); k-- > 0;) { /* RFC 3720, B.4 */
        assert_int_equal(isas[k]->crc32c(0, "123456789", 9), 0xe3069283u);
        assert_int_equal(isas[k]->crc32c(0, zeros, sizeof zeros), 0x8a9136aau);
        assert_int_equal(isas[k]->crc32c(0, ones, sizeof ones), 0x62a8ab43u);
        assert_int_equal(isas[k]->crc32c(7, NULL, 0), 7);
    }
}

/* The end of the input is the end of what may be read; its begin is at any address. */
static void check(const struct trib_kernels *k, size_t n, uint32_t before)
{
    struct guarded g = guarded_new(n);

    fill(g.p, n, n);
    const uint32_t all = by_definition(before, g.p, n);
    assert_int_equal(k->crc32c(before, g.p, n), all);
    const size_t cut = n ? n / 3 : 0;
    const uint32_t first = k->crc32c(before, g.p, cut);
    assert_int_equal(k->crc32c(first, (uint8_t *)g.p + cut, n - cut), all);
    guarded_free(&g);
}

TEST(test_lengths)
{
    static const size_t lengths[] = {3071, 3072, 3073, 3080,   6143,
                                     6144, 6151, 9216, LONGEST};
    const struct trib_kernels *isas[4];

    for (int k = isas_of_cpu(isas); k-- > 0;) {
        for (size_t n = 0; n < 300; n++)
            check(isas[k], n, (uint32_t)(n * 0x9e3779b9u));
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
            check(isas[k], lengths[i], (uint32_t)i);
    }
}

/* A CRC of 32 bits finds every burst of at most 32 bits, wherever it is. */
TEST(test_bursts)
{
    const struct trib_kernels *isas[4];
    uint8_t *p = malloc(LONGEST);

    for (int k = isas_of_cpu(isas); k-- > 0;) {
        fill(p, LONGEST, 5);
        const uint32_t right = isas[k]->crc32c(0, p, LONGEST);
        for (size_t i = 0; i + 4 <= LONGEST; i += 97) {
            const uint32_t burst = (uint32_t)(i * 0x9e3779b9u) | 1;
            for (int b = 0; b < 4; b++)
                p[i + (size_t)b] ^= (uint8_t)(burst >> 8 * b);
            assert_true(isas[k]->crc32c(0, p, LONGEST) != right);
            for (int b = 0; b < 4; b++)
                p[i + (size_t)b] ^= (uint8_t)(burst >> 8 * b);
        }
    }
    free(p);
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void bench(void)
{
    static const size_t sizes[] = {64, 1024, 65536, 4 << 20};
    const struct trib_kernels *isas[4];
    uint8_t *p = malloc(4 << 20);
    uint32_t sum = 0;

    fill(p, 4 << 20, 1);
    for (int k = 0, n = isas_of_cpu(isas); k < n; k++) {
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            double best = 1e9;
            const int calls = (int)((8 << 20) / sizes[s]);
            for (int trial = 0; trial < 5; trial++) {
                const double begin = now_s();
                for (int i = 0; i < calls; i++)
                    sum = isas[k]->crc32c(sum, p, sizes[s]);
                const double t = (now_s() - begin) / calls;
                best = t < best ? t : best;
            }
            printf("%s %zu bytes: %.1f GB/s\n", isas[k]->isa, sizes[s],
                   (double)sizes[s] / best * 1e-9);
        }
    }
    printf("(%08x)\n", sum);
    free(p);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--bench") == 0) {
        bench();
        return 0;
    }
    return tribtest_run();
}
