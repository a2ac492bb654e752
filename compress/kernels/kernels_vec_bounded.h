/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Part of kernels_vec.h: encodings with an error bound.
 */
KERNEL uint32_t v_bounded_plane(const uint32_t *codes, unsigned k)
{
    const vec below_zero = v_set_i32(UINT32_MAX);
    uint32_t bits = 0;
    for (unsigned i = 0; i < BOUNDED_BLOCK; i += VEC_LANES)
        bits |= v_at_least_i32(below_zero,
                               v_shl_any_i32(v_load(codes + i), 31 - (int)k))
                << i;
    return bits;
}

static size_t bounded_pack(uint8_t *codes, uint8_t *heads, const int32_t *d,
                           size_t blocks)
{
    return bounded_pack_by(codes, heads, d, blocks, v_bounded_plane);
}

static void bounded_unpack(int32_t *q, const uint8_t *heads, const uint8_t *codes,
                           size_t blocks, uint32_t before)
{
    uint32_t d[BOUNDED_BLOCK];
    vec last = v_set_i32(before);
    for (size_t b = 0; b < blocks; b++) {
        codes = bounded_block_unpack(d, heads[b], codes);
        for (size_t i = 0; i < BOUNDED_BLOCK; i += VEC_LANES) {
            const vec sums = v_add_i32(last, v_prefix_i32(v_load(d + i)));
            v_store(q + b * BOUNDED_BLOCK + i, sums);
            last = v_last_i32(sums);
        }
    }
}
