/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/coded/gf_bytes.h"

#include <assert.h>
#include <errno.h>
#include <isa-l/erasure_code.h>
#include <stdlib.h>
#include <string.h>

enum { AT_ONCE = 1 << 30 }; /* bytes; ISA-L takes an int */

void trib_gf_bytes_add(uint8_t *to, uint8_t factor, const uint8_t *from, size_t n)
{
    uint8_t tables[32];

    ec_init_tables(1, 1, &factor, tables);
    for (size_t at = 0; at < n; at += AT_ONCE) {
        const size_t left = n - at;
        uint8_t *coded = to + at;
        ec_encode_data_update(left < AT_ONCE ? (int)left : AT_ONCE, 1, 1, 0, tables,
                              (uint8_t *)from + at, &coded);
    }
}

uint8_t trib_gf_bytes_inverse(uint8_t a)
{
    assert(a);
    return gf_inv(a);
}

/* A linear system with an equation per column and an unknown per row. */
struct combining {
    uint8_t *m; /* [columns * (n + 1)], right-hand side last */
    int *pivot; /* [columns] the unknown solved by each equation */
    int n, columns;
};

static uint8_t *equation(const struct combining *c, int i)
{
    return c->m + (size_t)i * (size_t)(c->n + 1);
}

/* Move an equation with the unknown to row k, and eliminate the unknown from all
 * others. */
static bool eliminate(struct combining *c, int k, int unknown)
{
    int at = k;

    while (at < c->columns && !equation(c, at)[unknown])
        at++;
    if (at == c->columns)
        return false;
    for (int i = 0; i <= c->n && at != k; i++) {
        const uint8_t swapped = equation(c, k)[i];
        equation(c, k)[i] = equation(c, at)[i];
        equation(c, at)[i] = swapped;
    }
    const uint8_t inverse = gf_inv(equation(c, k)[unknown]);
    for (int i = 0; i <= c->n; i++)
        equation(c, k)[i] = gf_mul(inverse, equation(c, k)[i]);
    for (int e = 0; e < c->columns; e++) {
        const uint8_t factor = equation(c, e)[unknown];
        for (int i = 0; i <= c->n && e != k && factor; i++)
            equation(c, e)[i] ^= gf_mul(factor, equation(c, k)[i]);
    }
    c->pivot[k] = unknown;
    return true;
}

static bool combine(struct combining *c, const uint8_t *rows, int wanted,
                    uint8_t *factors_out)
{
    int rank = 0;

    for (int i = 0; i < c->columns; i++) {
        for (int r = 0; r < c->n; r++)
            equation(c, i)[r] = rows[(size_t)r * (size_t)c->columns + (size_t)i];
        equation(c, i)[c->n] = i == wanted;
    }
    for (int r = 0; r < c->n && rank < c->columns; r++)
        rank += eliminate(c, rank, r);
    for (int i = rank; i < c->columns; i++)
        if (equation(c, i)[c->n])
            return false;
    memset(factors_out, 0, (size_t)c->n);
    for (int i = 0; i < rank; i++)
        factors_out[c->pivot[i]] = equation(c, i)[c->n];
    return true;
}

bool trib_gf_bytes_combine(const uint8_t *rows, int n, int columns, int wanted,
                           uint8_t *factors_out)
{
    struct combining c = {.n = n, .columns = columns};
    bool well = false;

    errno = 0;
    c.m = malloc((size_t)columns * (size_t)(n + 1));
    c.pivot = malloc((size_t)columns * sizeof(*c.pivot));
    if (c.m && c.pivot)
        well = combine(&c, rows, wanted, factors_out);
    free(c.m);
    free(c.pivot);
    return well;
}
