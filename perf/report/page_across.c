/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Charts with one point per document; x is a number of its run.
 */
#include "perf/common/sizes.h"
#include "perf/report/page_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>


/* --- runs --- */

static json_t *run_of(const struct page_series *s)
{
    return json_object_get(s->file->document, "run");
}

static double run_number(const struct page_series *s, const char *key)
{
    const json_t *value = json_object_get(run_of(s), key);

    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

/* Return true if both belong to one line: their runs only differ in `key`. */
static bool one_line(const struct page_series *a, const struct page_series *b,
                     const char *key)
{
    const char *other;
    json_t *value;

    if (strcmp(a->name, b->name) != 0 ||
        json_object_size(run_of(a)) != json_object_size(run_of(b)))
        return false;
    json_object_foreach(run_of(a), other, value)
    {
        if (strcmp(other, key) != 0 && strcmp(other, "launches") != 0 &&
            !page_same_value(a->file, b->file, other))
            return false;
    }
    return true;
}

/* Return true if `base` is the dense sum over the same links as s. */
static bool is_base(const struct page_series *base, const struct page_series *s)
{
    return !base->peer && strcmp(page_codec_of(base), "none") == 0 &&
           page_same_place(base->file, s->file);
}

/* --- lines --- */

/* The series of one line, by ascending x. */
struct members {
    const struct page_series **of;
    size_t n;
    const char *key; /* of the run; its value is x */
};

static void add_member(struct members *m, const struct page_series *s)
{
    size_t to = m->n;

    for (size_t i = 0; i < m->n; i++)
        if (run_number(m->of[i], m->key) == run_number(s, m->key))
            return;
    for (; to > 0 && run_number(m->of[to - 1], m->key) > run_number(s, m->key); to--)
        m->of[to] = m->of[to - 1];
    m->of[to] = s;
    m->n++;
}

/* Collect the line that begins with series `at`. Return false if the line begins
 * earlier or has only one point. */
static bool find_members(const struct page *page, size_t at, struct members *m)
{
    const struct page_series *first = &page->series[at];

    m->n = 0;
    if (!(run_number(first, m->key) > 0))
        return false;
    for (size_t i = 0; i < page->n_timed; i++) {
        if (!one_line(first, &page->series[i], m->key))
            continue;
        if (i < at)
            return false;
        add_member(m, &page->series[i]);
    }
    return m->n > 1;
}

/* Return the smallest or largest size that all series have; 0: none. */
static double common_size(const struct members *m, bool greatest)
{
    double found = 0;

    for (size_t i = 0; i < m->of[0]->n; i++) {
        const double bytes = m->of[0]->rows[i].bytes;
        bool all = true;
        for (size_t j = 0; j < m->n; j++)
            all = all && page_row_of(m->of[j], bytes) != NULL;
        if (all && bytes > 0 && (found == 0 || greatest))
            found = bytes;
    }
    return found;
}

static void line_label(const struct page *page, const struct page_series *s,
                       const char *key, char *text, size_t bytes)
{
    const char *skip[] = {key, "codec", "feedback", "call", "launches", NULL};
    const char *name = page_codec_of(s);
    const bool plain =
        s->name[0] == '\0' && (*name == '\0' || strcmp(name, "none") == 0);

    if (s->name[0] != '\0' && strcmp(name, "none") == 0)
        name = "no codec";
    snprintf(text, bytes, "%s", plain ? "Tributary" : name);
    page_series_words(page, s->file, skip, text, bytes);
}

static void write_key(int ink, const char *label, FILE *f)
{
    fputs("<li>", f);
    svg_key_draw(ink, f);
    svg_text(label, f);
}

/* --- speed-up over link rate --- */

static const struct page_series *base_of(const struct page *page,
                                         const struct page_series *s)
{
    for (size_t i = 0; i < page->n_timed; i++)
        if (is_base(&page->series[i], s))
            return &page->series[i];
    return NULL;
}

/* Return the dense time over the time of the series, at the largest common size; NAN:
 * none. */
static double speed_up(const struct page *page, const struct page_series *s)
{
    const struct page_series *base = base_of(page, s);
    const struct page_series *both[] = {s, base};
    const struct members pair = {both, 2, ""};
    double bytes;

    if (base == NULL || base == s || s->peer)
        return (double)NAN;
    bytes = common_size(&pair, true);
    return bytes > 0 ? page_row_of(base, bytes)->p50 / page_row_of(s, bytes)->p50
                     : (double)NAN;
}

/* Return the x where the line between two points crosses 1, on logarithmic axes; NAN:
 * nowhere. */
static double crossing(const struct svg_point *a, const struct svg_point *b)
{
    if ((a->y > 1) == (b->y > 1))
        return (double)NAN;
    const double part = log(a->y) / (log(a->y) - log(b->y));

    return exp(log(a->x) + part * (log(b->x) - log(a->x)));
}

/* Add a labelled point at each crossing. */
static void write_crossings(struct page_drawing *d, const struct svg_line *line,
                            const char *unit, FILE *f)
{
    const struct svg_point *p = line->points;
    bool any = false;

    for (size_t i = 0; i + 1 < line->n; i++) {
        const double x = crossing(&p[i], &p[i + 1]);
        if (isnan(x))
            continue;
        char *label = d->labels[d->used];
        struct svg_point *mark = &d->points[d->used++];
        snprintf(label, sizeof(d->labels[0]), "%.3g", x);
        *mark = (struct svg_point){x, 1, (double)NAN, label, ""};
        snprintf(mark->about, sizeof(mark->about), "as fast as dense at %s %s", label,
                 unit);
        d->lines[d->n++] = (struct svg_line){mark, 1, line->ink, false};
        fprintf(f, "%s pays %s %s %s", any ? "," : ":", p[i].y > 1 ? "up to" : "from",
                label, unit);
        any = true;
    }
    if (!any)
        fputs(p[0].y > 1 ? ": pays at all rates" : ": pays at no rate", f);
}

/* Add the line of one series to the chart and to the legend. */
static void add_speed_up(const struct page *page, const struct members *m,
                         const char *unit, struct page_drawing *d, FILE *f)
{
    struct svg_line line = {&d->points[d->used], 0, 0, false};
    char label[160];

    line_label(page, m->of[0], m->key, label, sizeof(label));
    for (size_t i = 0; i < m->n; i++) {
        struct svg_point *p = &d->points[d->used];
        const double up = speed_up(page, m->of[i]);
        if (isnan(up))
            continue;
        *p =
            (struct svg_point){run_number(m->of[i], m->key), up, (double)NAN, NULL, ""};
        snprintf(p->about, sizeof(p->about), "%.90s, %g %s: %.3g times", label, p->x,
                 unit, up);
        d->used++;
        line.n++;
    }
    if (line.n < 2)
        return;
    for (size_t i = 0; i < d->n; i++)
        line.ink += d->lines[i].n > 1; /* lines only; crossings have one point */
    d->lines[d->n++] = line;
    write_key(line.ink, label, f);
    write_crossings(d, &line, unit, f);
    fputs("</li>\n", f);
}

struct axis {
    const char *key, *unit, *words;
};

static void draw_speed_up(const struct page *page, struct members *m,
                          const struct axis *axis, struct page_drawing *d, FILE *f)
{
    const struct svg_chart chart = {
        "Speed-up of codecs", SVG_NUMBER, SVG_NUMBER, 300, true, true};
    char *legend = NULL;
    size_t bytes;
    FILE *keys = open_memstream(&legend, &bytes);

    d->n = d->used = 0;
    m->key = axis->key;
    for (size_t i = 0; i < page->n_timed && keys != NULL; i++)
        if (find_members(page, i, m))
            add_speed_up(page, m, axis->unit, d, keys);
    if (keys != NULL)
        fclose(keys);
    if (d->n > 0) {
        fprintf(
            f,
            "<h2>Codecs by %s</h2>\n<div class=\"charts\"><figure><figcaption>"
            "<b>Speed-up</b>: time of the dense sum over the codec's time, by %s in "
            "%s, at the largest size. Above 1 the codec pays; a number at 1 says up to "
            "where, or from where.</figcaption>\n",
            axis->words, axis->words, axis->unit);
        svg_chart_draw(&chart, d->lines, d->n, f);
        fprintf(f, "</figure><ul class=\"legend down\">\n%s</ul></div>\n", legend);
    }
    free(legend);
}

/* --- over the number of ranks --- */

static void add_scaling(const struct page *page, const struct members *m, double bytes,
                        struct page_drawing *d, FILE *f)
{
    struct svg_line *line = &d->lines[d->n];
    char label[160], time[32];

    line_label(page, m->of[0], m->key, label, sizeof(label));
    *line = (struct svg_line){&d->points[d->used], m->n, (int)d->n, false};
    for (size_t i = 0; i < m->n; i++) {
        const struct report_row *r = page_row_of(m->of[i], bytes);
        struct svg_point *p = &d->points[d->used++];
        *p = (struct svg_point){run_number(m->of[i], m->key), r->p50, (double)NAN, NULL,
                                ""};
        snprintf(p->about, sizeof(p->about), "%.90s, %g ranks: %s", label, p->x,
                 svg_time_text(r->p50, time, sizeof(time)));
    }
    d->n++;
    write_key(line->ink, label, f);
    fputs("</li>\n", f);
}

/* Collect the lines whose smallest or largest size is `bytes`. Return their number. */
static size_t collect_scaling(const struct page *page, struct members *m, double bytes,
                              bool greatest, struct page_drawing *d, FILE *keys)
{
    d->n = d->used = 0;
    for (size_t i = 0; i < page->n_timed; i++)
        if (find_members(page, i, m) && common_size(m, greatest) == bytes)
            add_scaling(page, m, bytes, d, keys);
    return d->n;
}

static void draw_scaling(const struct page *page, struct members *m, double bytes,
                         bool greatest, struct page_drawing *d, FILE *f)
{
    const struct svg_chart chart = {
        "Time over the number of ranks", SVG_COUNT, SVG_TIME, 300, true, false};
    char *legend = NULL, size[32];
    size_t used;
    FILE *keys = open_memstream(&legend, &used);

    if (keys == NULL)
        return;
    const size_t n = collect_scaling(page, m, bytes, greatest, d, keys);
    fclose(keys);
    if (n > 0) {
        fprintf(f,
                "<div><figure><figcaption><b>%s</b>: median time over the number of "
                "ranks.</figcaption>\n",
                perf_size_text((size_t)bytes, size, sizeof(size)));
        svg_chart_draw(&chart, d->lines, d->n, f);
        fprintf(f, "</figure><ul class=\"legend\">\n%s</ul></div>\n", legend);
    }
    free(legend);
}

/* Return the smallest or largest size of the first line; 0: there is no line. */
static double size_at(const struct page *page, struct members *m, bool greatest)
{
    double found = 0;

    for (size_t i = 0; i < page->n_timed && found == 0; i++)
        if (find_members(page, i, m))
            found = common_size(m, greatest);
    return found;
}

static void draw_ranks(const struct page *page, struct members *m,
                       struct page_drawing *d, FILE *f)
{
    m->key = "ranks";
    const double least = size_at(page, m, false), most = size_at(page, m, true);

    if (most == 0)
        return;
    fputs("<h2>Scaling</h2>\n<div class=\"charts\">\n", f);
    if (least != most)
        draw_scaling(page, m, least, false, d, f);
    draw_scaling(page, m, most, true, d, f);
    fputs("</div>\n", f);
}

bool page_across(const struct page *page, FILE *f)
{
    static const struct axis axes[] = {
        {"link_gbps", "Gbit/s", "the link rate"},
        {"round_trip_ms", "ms", "the round trip"},
    };
    struct members m = {.of = calloc(page->n + 1, sizeof(*m.of))};
    struct page_drawing d;
    const bool whole = page_drawing_open(page, &d) && m.of != NULL;

    if (whole && page->n_files > 1) {
        for (size_t i = 0; i < sizeof(axes) / sizeof(*axes); i++)
            draw_speed_up(page, &m, &axes[i], &d, f);
        draw_ranks(page, &m, &d, f);
    }
    page_drawing_close(&d);
    free(m.of);
    return whole;
}
