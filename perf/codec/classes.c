/* SPDX-License-Identifier: BSD-3-Clause */
#include "perf/codec/classes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <tributary/info.h>

#include "base/rng.h"
#include "compress/codec.h"
#include "perf/common/output.h"

enum { N = CLASSES_ELEMENTS, BUCKET = 512 };
#define DEVIATIONS 6
#define ROUNDING 1e-5 /* of float32, in the result */

bool codec_classes_have(const struct trib_codec *codec)
{
    return !(trib_codec_info(codec)->flags & (TRIB_CODEC_MODEL | TRIB_CODEC_VOTE));
}

/* --- proved --- */

struct facts {
    bool unbiased, sparse;
    double delta, error;
};

static void take_facts(void *arg, const trib_codec_sheet_t *sheet)
{
    *(struct facts *)arg = (struct facts){.unbiased = sheet->unbiased != 0,
                                          .sparse = sheet->sparse != 0,
                                          .delta = sheet->delta,
                                          .error = sheet->error};
}

static struct facts facts_of(const char *text)
{
    struct facts facts = {.error = -1};

    trib_codec_describe(text, take_facts, &facts);
    return facts;
}

/* Values with an error e of |e|^2 <= w |y|^2, w < 1. <y + e, y> and |y + e|^2 are
 * smallest, and their ratio largest, if e is parallel to y. */
static struct codec_classes of_errors(double w)
{
    const double r = sqrt(w);

    return (struct codec_classes){.alpha = (1 - r) * (1 - r),
                                  .beta = 1 + r,
                                  .gamma = 1 - r,
                                  .delta = 1 / (1 - w)};
}

/* E|C(x)|^2 = |x|^2 + E|C(x) - x|^2. */
static struct codec_classes of_unbiased(double w)
{
    return (struct codec_classes){
        .alpha = 1, .beta = 1 + w, .gamma = 1, .delta = w < 1 ? 1 / (1 - w) : 0};
}

static struct codec_classes of_values(const struct facts *values)
{
    if (values->unbiased && values->error >= 0)
        return of_unbiased(values->error);
    return values->delta > 0 ? of_errors(1 - 1 / values->delta)
                             : (struct codec_classes){0};
}

/*
 * A selection sends a fraction q of the elements. They have at least q |x|^2 (random
 * selections: on average), and C(x) encodes them. |E C(x)|^2 is at most E|C(x)|^2.
 */
static struct codec_classes of_selection(double q, const struct codec_classes *values,
                                         double delta)
{
    return (struct codec_classes){.alpha = q * values->alpha,
                                  .beta = values->beta,
                                  .gamma = q * values->gamma,
                                  .delta = delta};
}

struct codec_classes codec_classes_proved(const char *text)
{
    const struct facts facts = facts_of(text);
    const char *more = strchr(text, '+');
    struct facts values = {.unbiased = true}; /* float32 */

    if (!facts.sparse || facts.unbiased) {
        struct codec_classes dense = of_values(&facts);

        dense.delta = facts.delta > 0 ? facts.delta : dense.delta;
        return dense;
    }
    char *select = strndup(text, more ? (size_t)(more - text) : strlen(text));
    const double delta = select ? facts_of(select).delta : 0;

    free(select);
    if (more)
        values = facts_of(more + 1);
    const struct codec_classes of = of_values(&values);
    return delta > 0 && of.beta > 0 ? of_selection(1 / delta, &of, facts.delta)
                                    : (struct codec_classes){0};
}

/* --- vectors --- */

static double uniform(uint32_t bits)
{
    return ((double)bits + 0.5) * 0x1p-32;
}

static double normal_at(uint64_t i)
{
    const struct trib_rng rng = {.seed = 3};
    const struct trib_rng_block r = trib_rng_draw4(rng, i);

    return sqrt(-2 * log(uniform(r.word[0]))) *
           cos(6.283185307179586 * uniform(r.word[1]));
}

/* Hard vectors: a single nonzero element; all magnitudes equal; values halfway between
 * powers of two; small values next to one large element per bucket, halfway between
 * levels of few bits. */
static double element(int v, int i)
{
    const double normal = normal_at((uint64_t)i);

    switch (v) {
    case 0:
        return normal;
    case 1:
        return normal * normal * normal;
    case 2:
        return i == 0 ? -3.7 : 0;
    case 3:
        return 1;
    case 4:
        return i % 2 ? 1 : -1;
    case 5:
        return pow(0.99, i);
    case 6:
        return i % 2 ? 4 / 3.0 : -8 / 3.0;
    case 7:
        return i % BUCKET == 0 ? 1 : 1 / 14.0;
    default:
        return normal / (1 + i % 1009);
    }
}

/* --- measured --- */

struct sample {
    float x[N], y[N], agreed[N];
    uint8_t *word;
    void *scratch;
};

static void sample_free(struct sample *s)
{
    if (!s)
        return;
    free(s->word);
    free(s->scratch);
    free(s);
}

static struct sample *sample_new(const struct trib_codec *codec, int v)
{
    struct sample *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    for (int i = 0; i < N; i++)
        s->x[i] = (float)element(v, i);
    s->word = malloc(trib_codec_bound(codec, N) + 1);
    s->scratch = aligned_alloc(64, (trib_codec_scratch(codec, N) + 127) / 64 * 64);
    if (s->word && s->scratch && trib_codec_agreed_floats(codec, N) <= N)
        return s;
    sample_free(s);
    return NULL;
}

/* Encode and decode; false if the bytes are invalid. */
static bool draw(const struct trib_codec *codec, struct sample *s, int number)
{
    struct trib_encode in = {.x = s->x,
                             .n = N,
                             .key = {.seed = 5, .step = (uint32_t)number},
                             .scratch = s->scratch};

    if (trib_codec_info(codec)->flags & TRIB_CODEC_AGREES) {
        trib_codec_propose(codec, s->x, N, s->agreed);
        in.agreed = s->agreed;
    }
    const size_t len = trib_codec_encode(codec, &in, s->word);
    return trib_codec_decode(codec, s->word, len, s->y, N) == TRIB_OK;
}

struct mean {
    double sum, squares;
};

static void add(struct mean *m, double value)
{
    m->sum += value;
    m->squares += value * value;
}

static double take(const struct mean *m, int n, double *off_out)
{
    const double mean = m->sum / n;
    const double variance = fmax(m->squares / n - mean * mean, 0);

    *off_out = DEVIATIONS * sqrt(variance / n) + ROUNDING * fmax(fabs(mean), 1);
    return mean;
}

bool codec_moments_of(const struct trib_codec *codec, int v, int draws,
                      struct codec_moments *out)
{
    struct sample *s = sample_new(codec, v);
    struct mean square = {0}, product = {0}, error = {0};
    double x2 = 0;
    bool ok = s != NULL;

    for (int i = 0; ok && i < N; i++)
        x2 += (double)s->x[i] * (double)s->x[i];
    for (int d = 0; ok && d < draws; d++) {
        double c2 = 0, cx = 0, e2 = 0;

        ok = draw(codec, s, d);
        for (int i = 0; i < N; i++) {
            const double x = (double)s->x[i], y = (double)s->y[i];

            c2 += y * y;
            cx += x * y;
            e2 += (y - x) * (y - x);
        }
        add(&square, c2 / x2);
        add(&product, cx / x2);
        add(&error, e2 / x2);
    }
    sample_free(s);
    out->square = take(&square, draws, &out->square_off);
    out->product = take(&product, draws, &out->product_off);
    out->error = take(&error, draws, &out->error_off);
    return ok;
}

bool codec_classes_hold(const struct codec_classes *proved,
                        const struct codec_moments *m, const char **why_out)
{
    const struct codec_classes *p = proved;

    *why_out = NULL;
    if (p->beta > 0 && m->square + m->square_off < p->alpha)
        *why_out = "alpha |x|^2 <= E|C(x)|^2";
    else if (p->beta > 0 &&
             m->square - m->square_off > p->beta * (m->product + m->product_off))
        *why_out = "E|C(x)|^2 <= beta <E C(x), x>";
    else if (p->beta > 0 && m->product + m->product_off < p->gamma)
        *why_out = "gamma |x|^2 <= <E C(x), x>";
    else if (p->delta > 0 && m->error - m->error_off > 1 - 1 / p->delta)
        *why_out = "E|C(x) - x|^2 <= (1 - 1/delta) |x|^2";
    return *why_out == NULL;
}

bool codec_classes_measured(const struct trib_codec *codec, struct codec_classes *out)
{
    double error = 0;

    *out = (struct codec_classes){.alpha = INFINITY, .gamma = INFINITY};
    for (int v = 0; v < CLASSES_VECTORS; v++) {
        struct codec_moments m;

        if (!codec_moments_of(codec, v, CLASSES_DRAWS, &m))
            return false;
        out->alpha = fmin(out->alpha, m.square);
        out->beta = fmax(out->beta, m.product > 0 ? m.square / m.product : 0);
        out->gamma = fmin(out->gamma, m.product);
        error = fmax(error, m.error);
    }
    out->delta = error < 1 ? 1 / (1 - error) : 0;
    return true;
}

/* --- the table --- */

static void print_pair(FILE *f, double measured, double proved, bool last, bool csv)
{
    if (csv)
        fprintf(f, "%.4g;%.4g%s", measured, proved, last ? "\n" : ";");
    else if (proved > 0)
        fprintf(f, " %9.4g %9.4g", measured, proved);
    else
        fprintf(f, " %9.4g %9s", measured, "-");
}

enum { ROW_WIDEST = 140 }; /* columns; most codec texts need fewer */

bool codec_classes_print(struct trib_codec *const *codecs, const char *const *texts,
                         size_t n, FILE *csv)
{
    FILE *f = csv ? csv : stdout;
    const bool narrow = tool_narrow(ROW_WIDEST);

    if (csv)
        fputs("codec;alpha;proved;beta;proved;gamma;proved;delta;proved\n", csv);
    else
        printf("%9s %9s %9s %9s %9s %9s %9s %9s%s\n", "alpha", "proved", "beta",
               "proved", "gamma", "proved", "delta", "proved",
               narrow ? "" : "  codec");
    for (size_t i = 0; i < n; i++) {
        const struct codec_classes proved = codec_classes_proved(texts[i]);
        struct codec_classes measured;

        if (!codec_classes_have(codecs[i]))
            continue;
        if (!codec_classes_measured(codecs[i], &measured)) {
            fprintf(stderr, "trib-perf: %s: no memory.\n", texts[i]);
            return false;
        }
        if (csv)
            fprintf(csv, "%s;", texts[i]);
        else if (narrow)
            puts(texts[i]);
        print_pair(f, measured.alpha, proved.alpha, false, csv);
        print_pair(f, measured.beta, proved.beta, false, csv);
        print_pair(f, measured.gamma, proved.gamma, false, csv);
        print_pair(f, measured.delta, proved.delta, true, csv);
        if (!csv)
            printf(narrow ? "\n" : "  %s\n", texts[i]);
    }
    return true;
}
