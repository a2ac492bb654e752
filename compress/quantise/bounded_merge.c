/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums of encodings with an error bound: integers are added as integers and packed
 * again. */
#include <string.h>

#include "compress/quantise/bounded_parts.h"

enum { SUMMED_MOST = TRIB_BOUNDED_BUCKET_MAX };

/* The sum of a bucket: of integers, or of float64 once integers do not suffice. */
struct sum {
    const struct trib_codec *c;
    size_t length;
    struct trib_bounded_grid grid;
    bool has_grid;
    bool part; /* a partial sum, which may use float64 */
    double divisor; /* of a finished sum */
    bool integers; /* q is in use */
    bool doubles; /* only acc is in use */
    int32_t q[SUMMED_MOST];
    double acc[SUMMED_MOST];
};

static void add_values(struct sum *s, const int32_t *q)
{
    for (size_t i = 0; i < s->length; i++)
        s->acc[i] += (double)q[i] * s->grid.step;
}

static void leave_integers(struct sum *s)
{
    if (s->doubles)
        return;
    memset(s->acc, 0, s->length * sizeof *s->acc);
    if (s->integers)
        add_values(s, s->q);
    s->doubles = true;
}

static void add_floats(struct sum *s, const uint8_t *src)
{
    float x;
    leave_integers(s);
    for (size_t i = 0; i < s->length; i++) {
        memcpy(&x, src + i * sizeof x, sizeof x);
        s->acc[i] += (double)x;
    }
}

static void add_doubles(struct sum *s, const uint8_t *src)
{
    double x;
    leave_integers(s);
    for (size_t i = 0; i < s->length; i++) {
        memcpy(&x, src + i * sizeof x, sizeof x);
        s->acc[i] += x;
    }
}

static void add_integers(struct sum *s, const struct trib_bounded_bucket *b)
{
    int32_t q[SUMMED_MOST], sum[SUMMED_MOST];
    const size_t bytes = s->length * sizeof *sum;
    if (!s->integers && !s->doubles) {
        trib_bounded_integers(s->c, b, s->length, s->q);
        s->integers = true;
        return;
    }
    trib_bounded_integers(s->c, b, s->length, q);
    if (!s->doubles) {
        memcpy(sum, s->q, bytes);
        if (s->c->kernels->bounded_sum(sum, q, s->length)) {
            memcpy(s->q, sum, bytes);
            return;
        }
    }
    leave_integers(s);
    add_values(s, q);
}

/* Return false if the bucket has integers but its scale has no grid. */
static bool add_bucket(struct sum *s, const struct trib_bounded_bucket *b)
{
    switch (b->form) {
    case TRIB_BOUNDED_NOTHING:
        break;
    case TRIB_BOUNDED_FLOATS:
        add_floats(s, b->content);
        break;
    case TRIB_BOUNDED_DOUBLES:
        add_doubles(s, b->content);
        break;
    case TRIB_BOUNDED_INTEGERS:
        if (!s->has_grid)
            return false;
        add_integers(s, b);
        break;
    }
    return true;
}

static uint8_t *write_doubles(struct sum *s, uint8_t *dst)
{
    float x[SUMMED_MOST];
    if (s->part) {
        *dst++ = TRIB_BOUNDED_DOUBLES;
        memcpy(dst, s->acc, s->length * sizeof *s->acc);
        return dst + s->length * sizeof *s->acc;
    }
    for (size_t i = 0; i < s->length; i++)
        x[i] = (float)(s->acc[i] / s->divisor);
    return trib_bounded_floats_write(x, s->length, dst);
}

static uint8_t *write_sum(struct sum *s, uint8_t *dst)
{
    if (s->doubles)
        return write_doubles(s, dst);
    if (!s->integers)
        memset(s->q, 0, s->length * sizeof *s->q);
    return trib_bounded_integers_write(s->c, s->q, s->length, dst);
}

/* Merge the fronts of all inputs; afterwards each input starts at its first bucket. */
static bool merge_fronts(struct sum *s, const struct trib_merge *m, uint8_t *dst,
                         size_t *len_out)
{
    const struct trib_codec *c = s->c;
    const size_t scales = trib_codec_agreed_floats(c, m->n) * sizeof(float);
    struct trib_bounded_header header = {0};
    uint64_t contributions = 0;
    for (size_t i = 0; i < m->n_words; i++) {
        struct trib_encoded *w = &m->words[i];
        struct trib_bounded_reader r;
        if (!trib_bounded_open(c, w, m->n, &r) || r.header.divisor)
            return false;
        contributions += r.header.contributions;
        if (scales && i == 0)
            memcpy(dst + sizeof header, r.scales, scales);
        else if (scales && memcmp(dst + sizeof header, r.scales, scales) != 0)
            return false;
        w->src = r.at;
        w->len = (size_t)(r.end - r.at);
    }
    header.contributions = (uint32_t)contributions;
    if (m->final)
        header.divisor = m->ranks ? m->ranks : 1;
    memcpy(dst, &header, sizeof header);
    *len_out = sizeof header + scales;
    s->part = !m->final && trib_bounded_is_part(c, contributions);
    s->divisor = header.divisor ? header.divisor : 1;
    return contributions <= c->ranks;
}

/* Sum the next bucket of all inputs. */
static bool sum_bucket(struct sum *s, const struct trib_merge *m)
{
    struct trib_bounded_bucket b;
    s->integers = s->doubles = false;
    for (size_t i = 0; i < m->n_words; i++) {
        struct trib_encoded *w = &m->words[i];
        struct trib_bounded_reader r = {
            .at = w->src, .end = w->src + w->len, .part = s->c->ranks > 2};
        if (!trib_bounded_next(&r, s->length, &b) || !add_bucket(s, &b))
            return false;
        w->src = r.at;
        w->len = (size_t)(r.end - r.at);
    }
    return true;
}

static trib_status_t merge(const struct trib_codec *c, const struct trib_merge *m,
                           uint8_t *dst, size_t *len_out)
{
    struct sum s = {.c = c};
    size_t len;
    *len_out = 0;
    if (m->n == 0)
        return TRIB_OK;
    if (!merge_fronts(&s, m, dst, &len))
        return TRIB_ERR_CODEC;
    const uint8_t *scales =
        trib_codec_agreed_floats(c, m->n) ? dst + sizeof(struct trib_bounded_header)
                                          : NULL;
    uint8_t *end = dst + len;
    for (size_t at = 0, b = 0; at < m->n; at += s.length, b++) {
        s.length = trib_bounded_bucket_length(c, m->n, at);
        s.has_grid = trib_bounded_grid_of(c, scales, b, &s.grid);
        if (!sum_bucket(&s, m))
            return TRIB_ERR_CODEC;
        end = write_sum(&s, end);
    }
    for (size_t i = 0; i < m->n_words; i++)
        if (m->words[i].len)
            return TRIB_ERR_CODEC;
    *len_out = (size_t)(end - dst);
    return TRIB_OK;
}

const struct trib_codec_ops trib_codec_bounded = {
    .together = trib_quantise_bucket,
    .bound = trib_bounded_bound,
    .own_bound = trib_bounded_whole_bound,
    .star_bound = trib_bounded_whole_bound,
    .agreed_floats = trib_bounded_agreed_floats,
    .propose = trib_bounded_propose,
    .merge = merge,
    .encode = trib_bounded_encode,
    .decode = trib_bounded_decode,
};
