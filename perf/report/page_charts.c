/* SPDX-License-Identifier: BSD-3-Clause */
#include "perf/report/page_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "perf/perf.h"

/* The lines of one chart. */
struct drawing {
    struct svg_line *lines;
    size_t n;
    struct svg_point *points; /* of all lines */
    size_t used;
    char (*labels)[8]; /* numbers beside points, or NULL */
};

static bool drawing_open(const struct page *page, struct drawing *d)
{
    size_t most = 0;

    for (size_t i = 0; i < page->n; i++)
        most += page->series[i].n;
    *d = (struct drawing){
        .lines = calloc(page->n + 1, sizeof(*d->lines)),
        .points = calloc(most + 1, sizeof(*d->points)),
        .labels = calloc(most + 1, sizeof(*d->labels)),
    };
    return d->lines != NULL && d->points != NULL && d->labels != NULL;
}

static void drawing_close(struct drawing *d)
{
    free(d->lines);
    free(d->points);
    free(d->labels);
}

/* --- time and bandwidth --- */

enum figure { FIGURE_TIME, FIGURE_RATE };

static void add_series(struct drawing *d, const struct page *page, size_t at,
                       enum figure figure)
{
    const struct page_series *s = &page->series[at];
    struct svg_line *line = &d->lines[d->n++];
    char size[32], p50[32], p99[32];

    *line = (struct svg_line){&d->points[d->used], s->n, (int)at};
    for (size_t i = 0; i < s->n; i++) {
        const struct report_row *r = &s->rows[i];
        struct svg_point *p = &d->points[d->used++];
        p->x = r->bytes;
        p->y = figure == FIGURE_TIME ? r->p50 : r->GBps;
        p->top = figure == FIGURE_TIME ? r->p99 : (double)NAN;
        perf_size_text((size_t)r->bytes, size, sizeof(size));
        svg_time_text(r->p50, p50, sizeof(p50));
        svg_time_text(r->p99, p99, sizeof(p99));
        if (figure == FIGURE_TIME)
            snprintf(p->about, sizeof(p->about), "%.60s, %s: %s%s%s", s->label, size,
                     p50, isnan(r->p99) ? "" : ", p99 ", isnan(r->p99) ? "" : p99);
        else
            snprintf(p->about, sizeof(p->about), "%.60s, %s: %.3g GB/s", s->label, size,
                     r->GBps);
    }
}

static void draw_figure(struct drawing *d, const struct page *page, enum figure figure,
                        const struct svg_chart *chart, const char *caption, FILE *f)
{
    bool any = false;

    d->n = d->used = 0;
    for (size_t i = 0; i < page->n_timed; i++) {
        add_series(d, page, i, figure);
        for (size_t j = 0; j < page->series[i].n; j++)
            any = any || (page->series[i].rows[j].bytes > 0 &&
                          (figure == FIGURE_TIME ? page->series[i].rows[j].p50
                                                 : page->series[i].rows[j].GBps) > 0);
    }
    if (!any)
        return;
    fputs("<figure><figcaption>", f);
    fputs(caption, f);
    fputs("</figcaption>\n", f);
    svg_chart_draw(chart, d->lines, d->n, f);
    fputs("</figure>\n", f);
}

/* --- one against the others --- */

static const struct report_row *row_of(const struct page_series *s, double bytes)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->rows[i].bytes == bytes && s->rows[i].p50 > 0)
            return &s->rows[i];
    return NULL;
}

static void add_ratio(struct drawing *d, const struct page *page, size_t at)
{
    const struct page_series *s = &page->series[at];
    struct svg_line *line = &d->lines[d->n++];
    char size[32];

    *line = (struct svg_line){&d->points[d->used], 0, (int)at};
    for (size_t i = 0; i < s->n; i++) {
        const struct report_row *r = &s->rows[i],
                                *first = row_of(&page->series[0], r->bytes);
        struct svg_point *p = &d->points[d->used];
        if (first == NULL || !(r->p50 > 0) || !(r->bytes > 0))
            continue;
        *p = (struct svg_point){r->bytes, r->p50 / first->p50, (double)NAN, NULL, ""};
        snprintf(p->about, sizeof(p->about), "%.60s, %s: %.3g times", s->label,
                 perf_size_text((size_t)r->bytes, size, sizeof(size)), p->y);
        d->used++;
        line->n++;
    }
}

static void draw_ratios(struct drawing *d, const struct page *page, FILE *f)
{
    const struct svg_chart chart = {
        "Ratio of median times over the size", SVG_SIZE, SVG_NUMBER, 150, true, true};

    d->n = d->used = 0;
    for (size_t i = 1; i < page->n_timed; i++)
        add_ratio(d, page, i);
    if (d->used == 0)
        return;
    fputs("<figure><figcaption><b>Ratio</b>: time over that of <b>", f);
    svg_text(page->series[0].label, f);
    fputs("</b>. Above 1 it takes longer.</figcaption>\n", f);
    svg_chart_draw(&chart, d->lines, d->n, f);
    fputs("</figure>\n", f);
}

/* --- figures --- */

static int by_value(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;

    return (a > b) - (a < b);
}

/* All sizes, once each; the caller frees them. */
static double *all_sizes(const struct page *page, size_t *n_out)
{
    size_t n = 0, kept = 0, most = 1;

    for (size_t i = 0; i < page->n_timed; i++)
        most += page->series[i].n;
    double *sizes = calloc(most, sizeof(*sizes));
    for (size_t i = 0; i < page->n_timed && sizes != NULL; i++)
        for (size_t j = 0; j < page->series[i].n; j++)
            sizes[n++] = page->series[i].rows[j].bytes;
    if (sizes != NULL)
        qsort(sizes, n, sizeof(*sizes), by_value);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || sizes[i] != sizes[kept - 1])
            sizes[kept++] = sizes[i];
    *n_out = kept;
    return sizes;
}

static void write_cell(double value, bool time, FILE *f)
{
    char text[32];

    if (!isfinite(value)) {
        fputs("<td></td>", f);
        return;
    }
    if (time)
        svg_time_text(value, text, sizeof(text));
    else
        snprintf(text, sizeof(text), "%.3g", value);
    fprintf(f, "<td>%s</td>", text);
}

/* True if a row of the only series has a rate, or an error. */
static bool has_figure(const struct page *page, bool rate)
{
    for (size_t i = 0; i < page->series[0].n; i++)
        if (rate ? page->series[0].rows[i].GBps > 0 : page->series[0].rows[i].nmse >= 0)
            return true;
    return false;
}

/* The table of one series has all of its figures, of several it has their medians. */
static void write_row(const struct page *page, double bytes, FILE *f)
{
    char size[32];

    fprintf(f, "<tr><th scope=\"row\">%s</th>",
            perf_size_text((size_t)bytes, size, sizeof(size)));
    for (size_t i = 0; i < page->n_timed; i++) {
        const struct report_row *r = row_of(&page->series[i], bytes);
        write_cell(r != NULL ? r->p50 : (double)NAN, true, f);
        if (page->n_timed > 1)
            continue;
        write_cell(r != NULL ? r->p99 : (double)NAN, true, f);
        if (has_figure(page, true))
            write_cell(r != NULL ? r->GBps : (double)NAN, false, f);
        if (has_figure(page, false))
            write_cell(r != NULL ? r->nmse : (double)NAN, false, f);
    }
    fputs("</tr>\n", f);
}

static bool write_figures(const struct page *page, FILE *f)
{
    size_t n;
    double *sizes = all_sizes(page, &n);

    if (sizes == NULL)
        return false;
    fputs("<h2>Figures</h2>\n<div class=\"wide\"><table class=\"figures\"><thead><tr>"
          "<th scope=\"col\">size</th>",
          f);
    for (size_t i = 0; i < page->n_timed && page->n_timed > 1; i++) {
        fputs("<th scope=\"col\">", f);
        svg_text(page->series[i].label, f);
        fputs("</th>", f);
    }
    if (page->n_timed == 1)
        fputs("<th scope=\"col\">median</th><th scope=\"col\">p99</th>", f);
    if (page->n_timed == 1 && has_figure(page, true))
        fputs("<th scope=\"col\">GB/s</th>", f);
    if (page->n_timed == 1 && has_figure(page, false))
        fputs("<th scope=\"col\">nmse</th>", f);
    fputs("</tr></thead><tbody>\n", f);
    for (size_t i = 0; i < n; i++)
        write_row(page, sizes[i], f);
    fputs("</tbody></table></div>\n", f);
    free(sizes);
    return true;
}

/* --- codecs --- */

/* The row of the largest size that has an error and bytes; NULL: none. */
static const struct report_row *lossy_row(const struct page_series *s)
{
    for (size_t i = s->n; i > 0; i--)
        if (s->rows[i - 1].nmse >= 0 && s->rows[i - 1].element_bytes > 0)
            return &s->rows[i - 1];
    return NULL;
}

static const char *codec_of(const struct page_series *s)
{
    return s->name[0] != '\0' ? s->name : report_text(s->file, "run", "codec");
}

static size_t add_codecs(struct drawing *d, const struct page *page)
{
    size_t number = 0, drawn = 0;

    d->n = d->used = 0;
    for (size_t i = 0; i < page->n; i++) {
        const struct report_row *r = lossy_row(&page->series[i]);
        struct svg_point *p = &d->points[d->used];
        if (r == NULL)
            continue;
        snprintf(d->labels[d->used], sizeof(d->labels[0]), "%zu", ++number);
        *p = (struct svg_point){r->element_bytes, r->nmse, (double)NAN,
                                d->labels[d->used], ""};
        snprintf(p->about, sizeof(p->about), "%.90s: %.3g B, nmse %.2g",
                 codec_of(&page->series[i]), r->element_bytes, r->nmse);
        d->lines[d->n++] = (struct svg_line){p, 1, 0};
        d->used++;
        drawn += r->nmse > 0;
    }
    return drawn;
}

static void write_codecs(const struct page *page, FILE *f)
{
    size_t number = 0;

    fputs("<div class=\"wide\"><table class=\"codecs\"><thead><tr><th scope=\"col\">"
          "</th><th scope=\"col\">codec</th><th scope=\"col\">bytes</th><th "
          "scope=\"col\">nmse</th></tr></thead><tbody>\n",
          f);
    for (size_t i = 0; i < page->n; i++) {
        const struct report_row *r = lossy_row(&page->series[i]);
        if (r == NULL)
            continue;
        fprintf(f, "<tr><td>%zu</td><th scope=\"row\">", ++number);
        svg_text(codec_of(&page->series[i]), f);
        fprintf(f, "</th><td>%.3g</td><td>%.2g</td></tr>\n", r->element_bytes, r->nmse);
    }
    fputs("</tbody></table></div>\n", f);
}

static void draw_codecs(struct drawing *d, const struct page *page, FILE *f)
{
    const struct svg_chart chart = {"Error of each codec over its bytes",
                                    SVG_NUMBER,
                                    SVG_NUMBER,
                                    300,
                                    false,
                                    false};

    if (add_codecs(d, page) == 0)
        return;
    fputs("<h2>Bytes and error</h2>\n<div class=\"charts\"><figure><figcaption><b>"
          "nmse</b>: squared error over the squared values, over the bytes that a "
          "float32 takes. Further down and left is better; what is exact is in the "
          "table alone.</figcaption>\n",
          f);
    svg_chart_draw(&chart, d->lines, d->n, f);
    fputs("</figure>\n", f);
    write_codecs(page, f);
    fputs("</div>\n", f);
}

/* --- the whole --- */

static void write_legend(const struct page *page, FILE *f)
{
    fputs("<ul class=\"legend\">\n", f);
    for (size_t i = 0; i < page->n_timed; i++) {
        fputs("<li>", f);
        svg_key_draw((int)i, f);
        svg_text(page->series[i].label, f);
        fputs("</li>\n", f);
    }
    fputs("</ul>\n", f);
}

bool page_charts(const struct page *page, FILE *f)
{
    const struct svg_chart time = {
        "Time over the size", SVG_SIZE, SVG_TIME, 300, true, false};
    const struct svg_chart rate = {
        "Bus bandwidth over the size", SVG_SIZE, SVG_NUMBER, 300, true, false};
    struct drawing d;
    bool whole = drawing_open(page, &d);

    if (whole && page->n_timed > 0) {
        write_legend(page, f);
        fputs("<div class=\"charts\">\n", f);
        draw_figure(&d, page, FIGURE_TIME, &time,
                    "<b>Time</b>: the line is the median, the band reaches up to p99.",
                    f);
        draw_figure(&d, page, FIGURE_RATE, &rate,
                    "<b>Bandwidth</b> in GB/s (10⁹ bytes); of collectives "
                    "that of the bus.",
                    f);
        draw_ratios(&d, page, f);
        fputs("</div>\n", f);
        whole = write_figures(page, f);
    }
    if (whole)
        draw_codecs(&d, page, f);
    drawing_close(&d);
    return whole;
}
