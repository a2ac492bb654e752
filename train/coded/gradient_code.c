/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gradient coding (Tandon, Lei, Dimakis, Karampatziakis, ICML 2017): each of n ranks
 * has spare + 1 uncoded partitions and sends one linear combination of their gradients.
 * Any n - spare of these give the whole gradient.
 */
#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "train/coded/code_table.h"
#include "train/coded/pivoted_qr.h"

enum { SPARE, FORM };
enum { GROUPS, CYCLIC, TRIES = 30 };

static const char *const form_words[] = {"groups", "cyclic", NULL};

static const struct trib_keyed_key keys[] = {
    {"spare", 0, TRIB_CODE_RANKS_MAX - 1, true, "a whole number of ranks", NULL},
    {"form", 0, 0, true, "groups or cyclic", form_words},
};
static const double defaults[] = {1, GROUPS};

/* The factors of n ranks for n shares of the partitions. */
struct factors {
    int n, spare;
    double *b; /* [n * n] */
};

/* All ranks of a group have the same shares and send the same sum. */
static void set_groups(struct factors *f)
{
    const int size = f->spare + 1;

    for (int i = 0; i < f->n; i++)
        for (int k = 0; k < size; k++)
            f->b[i * f->n + i / size * size + k] = 1;
}

static double normal(struct trib_rng rng, uint64_t at)
{
    const struct trib_rng_block draw = trib_rng_draw4(rng, at);
    const double u = (draw.word[0] + 0.5) / 4294967296.0;

    return sqrt(-2 * log(u)) * cos(6.283185307179586 * draw.word[1] / 4294967296.0);
}

/* Choose rows in the null space of a random H whose columns add up to 0. The row of
 * ones is then a combination of any n - spare rows. */
static bool set_cyclic(struct factors *f, struct trib_rng rng)
{
    const int n = f->n, s = f->spare;
    double *h = calloc((size_t)(n * s) + 1, sizeof(*h));
    double *a = calloc((size_t)(s * s) + 1, sizeof(*a));
    double *b = calloc((size_t)s + 1, sizeof(*b)),
           *x = calloc((size_t)s + 1, sizeof(*x));
    double *scale = calloc((size_t)s + 1, sizeof(*scale));
    int *pivot = calloc((size_t)s + 1, sizeof(*pivot));
    const bool well = h && a && b && x && scale && pivot;

    for (int k = 0; k < s && well; k++)
        for (int i = 0; i < n - 1; i++) {
            h[k * n + i] = normal(rng, (uint64_t)(k * n + i));
            h[k * n + n - 1] -= h[k * n + i];
        }
    for (int i = 0; i < n && well; i++) {
        struct trib_pivoted_qr qr = {s, s, a, scale, pivot, 0};
        for (int k = 0; k < s; k++) {
            b[k] = -h[k * n + i];
            for (int j = 0; j < s; j++)
                a[k * s + j] = h[k * n + (i + 1 + j) % n];
        }
        trib_pivoted_qr_factor(&qr);
        trib_pivoted_qr_solve(&qr, b, 1, x);
        f->b[i * n + i] = 1;
        for (int j = 0; j < s; j++)
            f->b[i * n + (i + 1 + j) % n] = x[j];
    }
    free(h);
    free(a);
    free(b);
    free(x);
    free(scale);
    free(pivot);
    return well;
}

/* Assign factors to ranks and partitions modulo n. */
static void spread(const struct factors *f, struct trib_code_layout *out)
{
    const int parts = out->parts;

    out->n_blocks = 0;
    for (int r = 0; r < out->ranks; r++)
        for (int p = 0; p < parts; p++) {
            const double factor = f->b[r % f->n * f->n + p % f->n];
            out->mix[r * parts + p] = factor;
            if (factor != 0)
                trib_code_layout_add_part(out, r, p);
        }
}

/* Redraw random factors until the loss of any one rank is tolerated, and of any two
 * with two or more spares; at most TRIES draws. */
static bool draw_factors(struct factors *f, bool groups, uint64_t seed,
                         struct trib_code_layout *out)
{
    for (int i = 0; i < TRIES; i++) {
        struct trib_code_quality q;

        for (int k = 0; k < f->n * f->n; k++)
            f->b[k] = 0;
        if (groups)
            set_groups(f);
        else if (!set_cyclic(f, (struct trib_rng){seed, (uint32_t)f->n, (uint32_t)i}))
            return false;
        spread(f, out);
        if (!trib_code_layout_judge(out, &q))
            return false;
        if ((f->spare < 1 || q.any_one == 1) && (f->spare < 2 || q.any_two == 1))
            break;
    }
    return true;
}

static trib_status_t gradient_draw(const struct trib_code_choice *c,
                                   const struct trib_code_layout *had,
                                   struct trib_code_layout *out, struct trib_error *err)
{
    struct factors f = {.n = had->ranks < had->parts ? had->ranks : had->parts};

    f.spare = c->number[SPARE] < f.n ? (int)c->number[SPARE] : f.n - 1;
    const bool divides = f.n % (f.spare + 1) == 0, given = c->given & 1u << FORM;
    const bool groups = given ? c->number[FORM] == GROUPS : divides;
    if (groups && !divides)
        return trib_fail(
            err, TRIB_ERR_UNSUPPORTED,
            "gradient:form=groups: %d ranks do not divide into groups of %d: remove "
            "form=, or choose another number of spare ranks",
            f.n, f.spare + 1);
    f.b = calloc((size_t)(f.n * f.n), sizeof(*f.b));
    const bool well = f.b &&
                      trib_code_layout_create(out, had->parts, had->ranks,
                                              had->ranks * had->parts, true) &&
                      draw_factors(&f, groups, c->seed, out);
    free(f.b);
    if (well)
        return TRIB_OK;
    return trib_fail(err, TRIB_ERR_NO_MEMORY, "no memory for a code of %d ranks",
                     had->ranks);
}

const struct trib_code_ops trib_code_gradient = {keys, defaults, 2, true,
                                                 gradient_draw};
