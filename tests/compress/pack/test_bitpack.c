/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packing against its definition, one bit at a time: all widths, lengths 0-70.
 */
#include "tests/compress/vectors.h"

#include "compress/kernels/bitpack.h"

TEST(test_all)
{
    const struct trib_rng rng = {.seed = 1};
    for (int bits = 1; bits <= 8; bits++) {
        for (size_t n = 0; n <= 70; n++) {
            const size_t bytes = trib_bits_bytes(n, bits);
            uint8_t codes[80], kept[80], *packed = malloc(bytes);
            uint8_t *expected = calloc(bytes + 1, 1);
            assert_int_equal(bytes, (n * (size_t)bits + 7) / 8);
            for (size_t i = 0; i < n; i++) {
                codes[i] = (uint8_t)(draw_u32(rng, i) & ((1u << bits) - 1));
                for (int b = 0; b < bits; b++) {
                    const size_t bit = i * (size_t)bits + (size_t)b;
                    expected[bit / 8] |= (uint8_t)((codes[i] >> b & 1u) << bit % 8);
                }
            }
            memcpy(kept, codes, n);
            trib_bits_pack(packed, codes, n, bits, 0);
            assert_memory_equal(packed, expected, bytes);
            memset(codes, 0xff, sizeof codes);
            trib_bits_unpack(codes, packed, n, bits, 0);
            assert_memory_equal(codes, kept, n);
            free(packed), free(expected);
        }
    }
}
