/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Splitting a vector on each instruction set of this CPU: the same bits as plain C, and
 * parts and rest add up to the vector.
 */
#include "compress/vectors/vector_split.h"
#include "tests/compress/kernels/isas.h"

enum { LONGEST = 9001, PARTS_MOST = 17 };

struct split_case {
    size_t n;
    int parts;
    double x[LONGEST], was[LONGEST], taken[PARTS_MOST][LONGEST];
    float xf[LONGEST], wasf[LONGEST], takenf[PARTS_MOST][LONGEST];
    struct trib_vector_part part[PARTS_MOST], partf[PARTS_MOST];
};

static void fill(struct split_case *c, size_t n, int parts)
{
    c->n = n;
    c->parts = parts;
    for (size_t i = 0; i < n; i++) {
        c->x[i] = c->was[i] = (double)odd_float(n, i, false) + ldexp((double)i, -50);
        c->xf[i] = c->wasf[i] = (float)c->x[i];
    }
    for (int k = 0; k < parts; k++) {
        const double share = k == 0 ? 0.5 : 0.4 / parts;
        c->part[k] = (struct trib_vector_part){c->taken[k], share};
        c->partf[k] = (struct trib_vector_part){c->takenf[k], share};
    }
}

static void check_f64(const struct split_case *c)
{
    for (size_t i = 0; i < c->n; i++) {
        double left = c->was[i];
        for (int k = 0; k < c->parts; k++) {
            assert_true(c->taken[k][i] == c->part[k].share * c->was[i]);
            left -= c->taken[k][i];
        }
        assert_true(c->x[i] == left);
    }
}

static void check_f32(const struct split_case *c)
{
    for (size_t i = 0; i < c->n; i++) {
        float left = c->wasf[i];
        double all = (double)c->xf[i];
        for (int k = 0; k < c->parts; k++) {
            const float part = (float)c->partf[k].share * c->wasf[i];
            assert_true(c->takenf[k][i] == part);
            left -= part;
            all += (double)part;
        }
        assert_true(c->xf[i] == left);
        assert_true(fabs(all - (double)c->wasf[i]) <=
                    (1 + c->parts) * 0x1p-24 * fabs((double)c->wasf[i]));
    }
}

TEST(test_split)
{
    static const size_t sizes[] = {0, 1, 7, 16, 4095, 4096, 4097, LONGEST};
    static const int parts[] = {0, 1, 2, 3, 7, 8, PARTS_MOST};
    static struct split_case c;

    const struct trib_kernels *isas[4];
    const int n = isas_of_cpu(isas);

    for (int k = 0; k < n; k++) {
        const struct trib_kernels *kernels = isas[k];
        for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++)
            for (size_t p = 0; p < sizeof(parts) / sizeof(*parts); p++) {
                fill(&c, sizes[s], parts[p]);
                trib_vector_split(kernels, TRIB_F64, c.x, c.n, c.part, c.parts);
                check_f64(&c);
                trib_vector_split(kernels, TRIB_F32, c.xf, c.n, c.partf, c.parts);
                check_f32(&c);
                for (int q = 0; q < c.parts; q++)
                    trib_vector_add(kernels, TRIB_F64, c.x, c.taken[q], c.n);
                for (size_t i = 0; i < c.n; i++)
                    assert_true(fabs(c.x[i] - c.was[i]) <=
                                2 * (1 + c.parts) * 0x1p-53 * fabs(c.was[i]));
            }
    }
}
