/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Codes in which each additional rank holds one sum of partitions: none, rlnc, mds (Lee
 * et al., "Speeding up distributed machine learning using codes", IEEE Trans. Inf.
 * Theory 64, 2018; "Train where the data is", arXiv 1910.10283).
 */
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "train/coded/code_table.h"
#include "train/coded/gf_bytes.h"

enum { ROW, DENSITY, TRIES };

static const char *const row_words[] = {"half", NULL};

static const struct trib_keyed_key rlnc_keys[] = {
    {"row", 0, 0, true, "half", row_words},
    {"density", 0.01, 1, false, "a number from 0.01 to 1", NULL},
    {"tries", 1, 10000, true, "a whole number from 1 to 10000", NULL},
};
static const double rlnc_defaults[] = {0, 0.5, 30};

/* Random numbers for a set of rows, from one counter-based stream. */
struct drawing {
    struct trib_rng rng;
    uint64_t next;
};

static double uniform(struct drawing *d)
{
    const uint64_t at = d->next++;

    return (trib_rng_draw4(d->rng, at / 4).word[at % 4] + 0.5) / 4294967296.0;
}

static int below(struct drawing *d, int n)
{
    const int drawn = (int)(uniform(d) * n);

    return drawn < n ? drawn : n - 1;
}

/* Which partitions each row contains; rows from `first` on are to be drawn. */
struct support {
    const struct trib_code_layout *l;
    const int *rows; /* [n] blocks */
    int n, first;
    bool *has; /* [n * parts] */
};

static void draw_density(struct support *s, double density, struct drawing *d)
{
    const int parts = s->l->parts;

    for (int i = s->first * parts; i < s->n * parts; i++)
        s->has[i] = uniform(d) < density;
}

static int degree(const struct support *s, int part)
{
    int n = 0;

    for (int r = 0; r < s->n; r++)
        n += s->has[r * s->l->parts + part];
    return n;
}

/* Fill half of a row with the partitions that occur in the fewest rows; ties are
 * drawn. */
static void fill_half(struct support *s, int row, struct drawing *d)
{
    const int parts = s->l->parts;
    bool *has = s->has + row * parts;

    for (int k = 0; k < parts / 2 + (parts == 1); k++) {
        int best = -1, ties = 0;
        for (int p = 0; p < parts; p++) {
            if (has[p])
                continue;
            const int less = best < 0 ? -1 : degree(s, p) - degree(s, best);
            ties = less < 0 ? 1 : less == 0 ? ties + 1 : ties;
            if (less < 0 || (less == 0 && below(d, ties) == 0))
                best = p;
        }
        has[best] = true;
    }
}

/* Let two rows exchange two partitions; each row and partition keeps its count. */
static void exchange(struct support *s, struct drawing *d)
{
    const int parts = s->l->parts, drawn = s->n - s->first;
    bool *a = s->has + (s->first + below(d, drawn)) * parts;
    bool *b = s->has + (s->first + below(d, drawn)) * parts;
    const int i = below(d, parts), j = below(d, parts);

    if (a[i] && !b[i] && b[j] && !a[j]) {
        a[i] = b[j] = false;
        b[i] = a[j] = true;
    }
}

static void draw_half(struct support *s, double unused, struct drawing *d)
{
    (void)unused;
    for (int row = s->first; row < s->n; row++)
        fill_half(s, row, d);
    for (int k = 0; k < 20 * s->n * s->l->parts && s->first + 1 < s->n; k++)
        exchange(s, d);
}

static void draw_all(struct support *s, double unused, struct drawing *d)
{
    (void)unused;
    (void)d;
    for (int i = s->first * s->l->parts; i < s->n * s->l->parts; i++)
        s->has[i] = true;
}

typedef void (*draw_fn)(struct support *, double density, struct drawing *);

struct manner {
    draw_fn draw;
    double density;
    bool ones; /* real factors are 1, as in the paper; otherwise random */
    /* Cauchy factors over GF(2^8): all square submatrices are invertible */
    bool cauchy;
    /* take the first draw that tolerates the loss of any one rank */
    bool until_one_may_fail;
    int tries;
    uint64_t seed;
};

/* Draw factors with a random sign and no small magnitude, so that decoding loses few
 * digits. */
static void set_row(const struct manner *m, struct trib_code_layout *l, int block,
                    const bool *has, struct drawing *d)
{
    for (int p = 0; p < l->parts; p++) {
        const double size = 0.5 + uniform(d), sign = uniform(d) < 0.5 ? -1 : 1;
        const uint8_t byte = (uint8_t)(1 + below(d, 255));
        const int at = block * l->parts + p;

        l->real[at] = !has[p] ? 0 : m->ones ? 1 : sign * size;
        l->bytes[at] = !has[p]     ? 0
                       : m->cauchy ? trib_gf_bytes_inverse((uint8_t)(l->id[block] ^ p))
                                   : byte;
    }
}

static bool is_better(const struct trib_code_quality *a,
                      const struct trib_code_quality *b)
{
    if (a->any_one != b->any_one)
        return a->any_one > b->any_one;
    if (a->any_two != b->any_two)
        return a->any_two > b->any_two;
    return a->beyond < b->beyond;
}

static bool draw_best(const struct manner *m, struct trib_code_layout *l,
                      struct support *s, struct trib_code_quality *best)
{
    struct trib_code_layout trial;
    bool well = trib_code_layout_create(&trial, l->parts, l->ranks, l->room, false);

    for (int b = 0; b < l->n_blocks && well; b++)
        trib_code_layout_copy_row(
            &trial, trib_code_layout_add(&trial, l->holder[b], l->id[b]), l, b);
    for (int i = 0; i < m->tries && well; i++) {
        struct drawing d = {{m->seed, (uint32_t)s->first, (uint32_t)i}, 0};
        struct trib_code_quality q;

        memset(s->has + s->first * l->parts, 0, (size_t)((s->n - s->first) * l->parts));
        m->draw(s, m->density, &d);
        for (int r = s->first; r < s->n; r++)
            set_row(m, &trial, s->rows[r], s->has + r * l->parts, &d);
        well = trib_code_layout_judge(&trial, &q);
        if (!well || (i && !is_better(&q, best)))
            continue;
        *best = q;
        for (int r = s->first; r < s->n; r++)
            trib_code_layout_copy_row(l, s->rows[r], &trial, s->rows[r]);
        if (m->until_one_may_fail && q.any_one == 1)
            break;
    }
    trib_code_layout_destroy(&trial);
    return well;
}

/* Draw the new rows after the kept ones; redraw all rows if the loss of a rank is not
 * tolerated. */
static bool draw_rows(const struct manner *m, struct trib_code_layout *l, int *rows,
                      int n, int kept)
{
    struct support s = {.l = l, .rows = rows, .n = n, .first = kept};
    struct trib_code_quality q;

    if (n == 0)
        return true;
    s.has = calloc((size_t)(n * l->parts), sizeof(*s.has));
    bool well = s.has != NULL;
    for (int i = 0; i < kept * l->parts && well; i++)
        s.has[i] = l->bytes[rows[i / l->parts] * l->parts + i % l->parts] != 0;
    well = well && (kept < n ? draw_best(m, l, &s, &q) : trib_code_layout_judge(l, &q));
    if (well && kept && q.any_one < 1) {
        s.first = 0;
        well = draw_best(m, l, &s, &q);
    }
    free(s.has);
    return well;
}

static int free_id(const struct trib_code_layout *l, const struct trib_code_layout *had)
{
    int id = l->parts;

    for (int b = 0; b < l->n_blocks + had->n_blocks;) {
        const int old = b - l->n_blocks;
        const bool used =
            old < 0 ? l->id[b] == id : had->id[old] == id && had->holder[old] >= 0;
        b = used ? 0 : b + 1;
        id += used;
    }
    return id;
}

static int kept_block(const struct trib_code_layout *had, int rank)
{
    for (int b = 0; b < had->n_blocks; b++)
        if (had->holder[b] == rank && !trib_code_layout_is_part(had, b))
            return b;
    return -1;
}

/* Give each rank a block: its partition, its old sum, or a new sum. */
static trib_status_t draw_sums(const struct manner *m,
                               const struct trib_code_layout *had,
                               struct trib_code_layout *out, struct trib_error *err)
{
    int holder[TRIB_CODE_RANKS_MAX], rows[TRIB_CODE_RANKS_MAX],
        fresh[TRIB_CODE_RANKS_MAX];
    int n = 0, n_fresh = 0;

    const trib_status_t st = trib_code_place_parts(had, out->ranks, holder, err);
    if (st != TRIB_OK)
        return st;
    for (int r = 0; r < out->ranks; r++) {
        const int kept = kept_block(had, r);
        int part = 0;
        while (part < out->parts && holder[part] != r)
            part++;
        if (part < out->parts) {
            trib_code_layout_add_part(out, r, part);
        } else if (m && kept >= 0) {
            rows[n] = trib_code_layout_add(out, r, had->id[kept]);
            trib_code_layout_copy_row(out, rows[n++], had, kept);
        } else if (m) {
            fresh[n_fresh] = trib_code_layout_add(out, r, 0);
            out->id[fresh[n_fresh++]] = free_id(out, had);
        }
    }
    memcpy(rows + n, fresh, (size_t)n_fresh * sizeof(*fresh));
    if (!m || draw_rows(m, out, rows, n + n_fresh, n))
        return TRIB_OK;
    return trib_fail(err, TRIB_ERR_NO_MEMORY, "no memory to draw a code of %d ranks",
                     out->ranks);
}

static trib_status_t begin_sums(const struct trib_code_layout *had,
                                struct trib_code_layout *out, bool mixes,
                                struct trib_error *err)
{
    if (trib_code_layout_create(out, had->parts, had->ranks, had->ranks, mixes))
        return TRIB_OK;
    return trib_fail(err, TRIB_ERR_NO_MEMORY, "no memory for a code of %d ranks",
                     had->ranks);
}

static trib_status_t none_draw(const struct trib_code_choice *c,
                               const struct trib_code_layout *had,
                               struct trib_code_layout *out, struct trib_error *err)
{
    (void)c;
    trib_status_t st = begin_sums(had, out, true, err);
    st = st == TRIB_OK ? draw_sums(NULL, had, out, err) : st;
    for (int b = 0; b < out->n_blocks && st == TRIB_OK; b++)
        out->mix[out->holder[b] * out->parts + out->id[b]] = 1;
    return st;
}

static trib_status_t rlnc_draw(const struct trib_code_choice *c,
                               const struct trib_code_layout *had,
                               struct trib_code_layout *out, struct trib_error *err)
{
    const bool half = !(c->given & 1u << DENSITY);
    const struct manner m = {.draw = half ? draw_half : draw_density,
                             .density = c->number[DENSITY],
                             .ones = !half,
                             .until_one_may_fail = !half,
                             .tries = (int)c->number[TRIES],
                             .seed = c->seed};

    if (!half && c->given & 1u << ROW)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "rlnc takes row=half or a density, not both");
    const trib_status_t st = begin_sums(had, out, false, err);
    return st == TRIB_OK ? draw_sums(&m, had, out, err) : st;
}

static trib_status_t mds_draw(const struct trib_code_choice *c,
                              const struct trib_code_layout *had,
                              struct trib_code_layout *out, struct trib_error *err)
{
    const struct manner m = {.draw = draw_all,
                             .cauchy = true,
                             .until_one_may_fail = true,
                             .tries = 30,
                             .seed = c->seed};

    const trib_status_t st = begin_sums(had, out, false, err);
    return st == TRIB_OK ? draw_sums(&m, had, out, err) : st;
}

const struct trib_code_ops trib_code_none = {.mixes = true, .draw = none_draw};
const struct trib_code_ops trib_code_rlnc = {rlnc_keys, rlnc_defaults, 3, false,
                                             rlnc_draw};
const struct trib_code_ops trib_code_mds = {.draw = mds_draw};
