/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The error claims of each row hold for every text, for vectors of all dtypes and odd
 * lengths. Claims are the error of the sent values (trib_codec_sheet_t: error), the
 * error of one value (rounding), and the least number of elements sent (least). A claim
 * that is never approached is useless: some vector has to reach a quarter of it.
 */
#include "tests/compress/vectors.h"

#include "compress/codec_info.h"
#include "compress/stages.h"

static const size_t lengths[] = {1, 3, 9, 65, 257, 1031, 4099};
enum { LENGTHS = sizeof lengths / sizeof *lengths, DTYPES = 4,
       MOST = 4100, PAIRS = VECTOR_KINDS + 20, KINDS };

struct claims {
    struct codec_buffers b;
    const trib_codec_sheet_t *sheet;
    bool whole; /* the error is of all elements, whether they are sent or not */
    double ratio; /* of the codec; 0: no ratio */
    double worst_error, worst_rounding; /* parts of the claims */
};

/* Return a vector of a kind in vectors.h, or one of two hard cases. In the first, each
 * bucket of sent values has one large element among equal ones, which maximises the
 * error of a quantiser. The second has two ends of a range and zeros. */
static float *input_new(const struct claims *c, int kind, trib_dtype_t dtype)
{
    const struct trib_kernels *k = trib_kernels_get("c");
    const bool peaks = kind >= VECTOR_KINDS;
    const size_t n = c->b.n, bucket = trib_quantise_bucket(c->b.codec),
                 apart = c->sheet->sparse && c->ratio > 0 ? (size_t)(1 / c->ratio) : 1;
    float *x = vector_new(peaks ? VECTOR_ZERO : (enum vector_kind)kind, 8, n);
    double raw[MOST];

    for (size_t i = 0; i < n && peaks; i += apart) {
        const size_t at = i / apart % bucket;
        if (kind == PAIRS)
            x[i] = at > 1 ? 0 : at ? -1.0f : 1.0f;
        else
            x[i] = at ? exp2f(-0.75f * (float)(kind - VECTOR_KINDS)) : 1.0f;
    }
    k->from_f32[dtype](raw, x, n);
    k->to_f32[dtype](x, raw, n);
    return x;
}

static bool in_mask(const uint8_t *mask, size_t i)
{
    return mask[i / 8] >> i % 8 & 1;
}

/* The last unit of a vector may be shorter than the others. */
static void check_least(const struct claims *c, size_t n_sent)
{
    const size_t unit = c->b.codec->stages.select->unit(c->b.codec);

    if ((double)(n_sent + unit) < c->sheet->least * c->ratio * (double)c->b.n)
        fail_msg("%s sends %zu of %zu", c->sheet->text, n_sent, c->b.n);
}

/* Add the errors of one draw to sums[0], and the squares that they refer to, to
 * sums[1]. */
static void add_draw(struct claims *c, const float *x, uint32_t draw, double sums[2])
{
    uint8_t mask[MOST / 8 + 2] = {0};
    float y[MOST];
    const struct trib_sent sent = {.mask = mask};
    const bool sparse = c->sheet->sparse;
    const struct trib_encode in = {.x = x,
                                   .n = c->b.n,
                                   .key = {42, draw, 1, 1000},
                                   .scratch = c->b.scratch,
                                   .sent = sparse ? &sent : NULL};

    c->b.len = trib_codec_encode(c->b.codec, &in, c->b.code);
    decode(&c->b, y);
    const double rounding =
        c->b.codec->stages.transform->rotates ? 0 : c->sheet->rounding;
    size_t n_sent = 0, n_set = 0;
    for (size_t i = 0; i < c->b.n; i++) {
        const double v = (double)x[i], size = fabs(v), off = fabs((double)y[i] - v);
        const bool is_sent = sparse && in_mask(mask, i);
        n_sent += is_sent;
        n_set += v != 0;
        if (sparse && !c->whole && !is_sent)
            continue;
        sums[0] += off * off;
        sums[1] += v * v;
        if (rounding > 0 && size > 0x1p-14 && size < 0x1p15 &&
            off > c->worst_rounding * rounding * size)
            c->worst_rounding = off / size / rounding;
    }
    if (sparse && c->sheet->least > 0 && c->ratio > 0 && n_set == c->b.n)
        check_least(c, n_sent);
}

static void try_vector(struct claims *c, int kind, trib_dtype_t dtype)
{
    float *x = input_new(c, kind, dtype);
    double sums[2] = {0};
    const uint32_t draws = c->b.n < 200 ? 300 : c->b.n < 2000 ? 40 : 10;

    for (uint32_t draw = 0; draw < draws; draw++)
        add_draw(c, x, draw, sums);
    if (c->sheet->error >= 0 && sums[1] > 0) {
        const double part = sums[0] / sums[1] / c->sheet->error;
        if (c->sheet->error == 0 && sums[0] > 1e-12 * sums[1])
            fail_msg("%s claims no error", c->sheet->text);
        c->worst_error = fmax(c->worst_error, c->sheet->error > 0 ? part : 0);
    }
    free(x);
}

/* Return false for claims that these vectors cannot approach. Rotated values are alike
 * for all vectors, unless the drawn signs are known. Some buckets are longer than the
 * vectors. The worst residuals of adacomp cancel its input. */
static bool is_reachable(const char *text)
{
    struct trib_codec *c = codec_new(text, NULL);
    const bool reachable = !c->stages.transform->rotates &&
                           trib_quantise_bucket(c) < MOST &&
                           strcmp(c->row->name, "adacomp") != 0;

    trib_codec_destroy(c);
    return reachable;
}

static void check_text(const char *text)
{
    static const trib_dtype_t dtypes[DTYPES] = {TRIB_F32, TRIB_F64, TRIB_F16,
                                                TRIB_BF16};
    struct trib_codec_description *d;
    struct claims c = {0};

    assert_status(trib_codec_description_create(text, 0, NULL, &d), TRIB_OK);
    c.sheet = trib_codec_description_get(d);
    for (int l = 0; l < LENGTHS; l++) {
        c.b = buffers_new(text, NULL, lengths[l]);
        c.ratio = trib_codec_ratio(c.b.codec);
        c.whole = c.sheet->sparse && c.sheet->unbiased;
        for (int kind = 0; kind < KINDS; kind++)
            for (int i = 0; i < DTYPES; i++)
                if (!i || kind < VECTOR_TINY)
                    try_vector(&c, kind, dtypes[i]);
        buffers_free(&c.b);
    }
    if (c.worst_error > 1.03 || c.worst_rounding > 1 + 1e-6)
        fail_msg("%s claims %g and %g: reached %.2f and %.2f of these", text,
                 c.sheet->error, c.sheet->rounding, c.worst_error, c.worst_rounding);
    if ((c.sheet->error > 0 && c.worst_error < 0.25 && is_reachable(text)) ||
        (c.sheet->rounding > 0 && c.worst_rounding < 0.25 && is_reachable(text)))
        fail_msg("%s claims %g and %g: only %.2f and %.2f of these is reached", text,
                 c.sheet->error, c.sheet->rounding, c.worst_error, c.worst_rounding);
    trib_codec_description_destroy(d);
}

TEST(test_rows)
{
    for (int t = 0; codec_text(t); t++)
        check_text(codec_text(t));
}
