/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Part of kernels_vec.h: stochastic rounding to the points of a table.
 */

struct grid_vecs {
    vec scale, middle, highest, byte, unit, key1;
    struct vec_table32 cells;
};

/* h is i * 0x9e3779b9 + key[0] */
KERNEL vec v_grid_symbol(vec x, vec h, const struct grid_vecs *g)
{
    const vec u = v_mul_f32(v_to_f32(v_shr_i32(v_hash(h, g->key1), 8)), g->unit);
    const vec p = v_clamp_f32(v_add_f32(v_mul_f32(x, g->scale), g->middle), v_zero(),
                              g->highest);
    const vec cell = v_look_up32(&g->cells, v_truncate(p));
    const vec below = v_to_f32(v_and(v_shr_i32(cell, 8), g->byte));
    const vec gap = v_to_f32(v_shr_i32(cell, 16));
    return v_count_less_f32(v_and(cell, g->byte), v_mul_f32(u, gap),
                            v_sub_f32(p, below));
}

static void grid_encode(uint8_t *symbols, const float *x, size_t n,
                        const struct trib_grid *g)
{
    enum { L = VEC_LANES };
    const struct grid_vecs v = {
        .scale = v_set_f32(g->scale),
        .middle = v_set_f32(g->middle),
        .highest = v_set_f32(g->highest),
        .byte = v_set_i32(0xff),
        .unit = v_set_f32(0x1p-24f),
        .key1 = v_set_i32(g->key[1]),
        .cells = v_table32(g->cell),
    };
    const vec step = v_set_i32(L * 0x9e3779b9u);
    vec h = v_counters(g->key[0]);
    size_t i = 0;
    for (; i + L <= n; i += L, h = v_add_i32(h, step))
        v_store_u8(symbols + i, v_grid_symbol(v_load(x + i), h, &v));
    grid_encode_scalar_from(symbols, x, n, i, g);
}

static void grid_points(uint8_t *points, const uint8_t *symbols, size_t n,
                        const uint8_t value[TRIB_GRID_SYMBOLS])
{
    const vec table = v_table16(value), low = v_set_i32(0x0f0f0f0fu);
    size_t i = 0;
    for (; i + VEC_BYTES <= n; i += VEC_BYTES)
        v_store(points + i, v_look_up16(table, v_and(v_load(symbols + i), low)));
    grid_points_scalar(points + i, symbols + i, n - i, value);
}
