/* SPDX-License-Identifier: BSD-3-Clause */
#include "compress/quantise/thc_table.h"

#include <assert.h>
#include <string.h>

enum { HIGHEST = 30 };

#define EVEN {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30}
#define WIDE {0, 3, 5, 7, 9, 11, 13, 14, 16, 17, 19, 21, 23, 25, 27, 30}
#define NARROW {0, 4, 6, 8, 10, 12, 13, 14, 16, 17, 18, 20, 22, 24, 26, 30}
#define NARROWEST {0, 4, 7, 9, 11, 12, 13, 14, 16, 17, 18, 19, 21, 23, 26, 30}

static const struct trib_thc_table tables[] = {
    {1.8627318674216515f, 0.024f, HIGHEST, EVEN},
    {2.1538746940614564f, 0.027f, HIGHEST, WIDE},
    {2.4175590162365047f, 0.029f, HIGHEST, WIDE},
    {2.6600674686174596f, 0.036f, HIGHEST, NARROW},
    {2.8856349124267573f, 0.041f, HIGHEST, NARROW},
    {3.0972690781987846f, 0.053f, HIGHEST, NARROWEST},
};
_Static_assert(sizeof tables / sizeof *tables ==
                   TRIB_THC_LOG2_P_MAX - TRIB_THC_LOG2_P_MIN + 1,
               "a row for each p");

const struct trib_thc_table *trib_thc_table(int log2_p)
{
    if (log2_p < TRIB_THC_LOG2_P_MIN || log2_p > TRIB_THC_LOG2_P_MAX)
        return NULL;
    return &tables[log2_p - TRIB_THC_LOG2_P_MIN];
}

void trib_thc_grid(const struct trib_thc_table *t, float deviation,
                   const uint32_t key[2], struct trib_grid *g)
{
    assert(deviation > 0);
    *g = (struct trib_grid){.scale = 1.0f / trib_thc_step(t, deviation),
                            .middle = 0.5f * t->highest,
                            .highest = t->highest,
                            .key = {key[0], key[1]}};
    memcpy(g->value, t->value, sizeof g->value);
    for (uint32_t symbol = 0, point = 0; symbol < TRIB_GRID_SYMBOLS; symbol++) {
        const bool last = symbol + 1 == TRIB_GRID_SYMBOLS;
        const uint32_t below = t->value[symbol],
                       above = last ? below : t->value[symbol + 1];
        const uint32_t end = last ? TRIB_GRID_POINTS_MAX + 1 : above;
        for (; point < end; point++)
            g->cell[point] = symbol | below << 8 | (above - below) << 16;
    }
}

float trib_thc_step(const struct trib_thc_table *t, float deviation)
{
    return 2.0f * t->bound / t->highest * deviation;
}
