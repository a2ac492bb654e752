/* SPDX-License-Identifier: BSD-3-Clause */
#include "perf/common/samples.h"
#include "perf/common/sizes.h"
#include "perf/report/page_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- time and bandwidth --- */

enum figure { FIGURE_TIME, FIGURE_RATE };

static void add_series(struct page_drawing *d, const struct page *page, size_t at,
                       enum figure figure)
{
    const struct page_series *s = &page->series[at];
    struct svg_line *line = &d->lines[d->n++];
    char size[32], p50[32], p99[32];

    *line = (struct svg_line){&d->points[d->used], s->n, (int)at, false};
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

/* --- limits --- */

/* Return true if an earlier document has a limit of this name. */
static bool is_drawn(const struct page *page, size_t file, const char *name)
{
    for (size_t i = 0; i < file; i++)
        for (size_t j = 0; j < page->files[i].n_limits; j++)
            if (strcmp(page->files[i].limits[j].name, name) == 0)
                return true;
    return false;
}

static const struct page_series *first_of(const struct page *page,
                                          const struct report_file *file)
{
    for (size_t i = 0; i < page->n_timed; i++)
        if (page->series[i].file == file)
            return &page->series[i];
    return NULL;
}

/* Add the time that the row's bytes take at the limit's rate. */
static void add_limit_point(struct page_drawing *d, const struct report_row *r,
                            const struct report_row *limit, enum figure figure)
{
    struct svg_point *p = &d->points[d->used++];

    *p = (struct svg_point){
        r->bytes, figure == FIGURE_TIME ? r->p50 * r->GBps / limit->GBps : limit->GBps,
        (double)NAN, NULL, ""};
    snprintf(p->about, sizeof(p->about), "%.90s", limit->name);
}

/* Draw the limits of one name, at each size of the series. */
static void add_limit(struct page_drawing *d, const struct page_series *s,
                      const struct report_row *limits, size_t n, enum figure figure)
{
    struct svg_line *line = &d->lines[d->n];

    *line = (struct svg_line){&d->points[d->used], 0, 0, true};
    for (size_t i = 0; i < s->n; i++)
        for (size_t j = 0; j < n; j++) {
            const struct report_row *r = &s->rows[i];
            if (!(r->GBps > 0) || !(r->p50 > 0) ||
                strcmp(limits[j].name, limits->name) != 0 ||
                (limits[j].bytes != 0 && limits[j].bytes != r->bytes))
                continue;
            add_limit_point(d, r, &limits[j], figure);
            line->n++;
        }
    if (line->n > 0)
        d->points[d->used - line->n / 2 - 1].label = limits->name;
    d->n += line->n > 0;
}

static void add_limits(struct page_drawing *d, const struct page *page,
                       enum figure figure)
{
    for (size_t i = 0; i < page->n_files; i++) {
        const struct report_file *file = &page->files[i];
        const struct page_series *s = first_of(page, file);
        const char *name = "";
        for (size_t j = 0; j < file->n_limits && s != NULL; j++) {
            if (strcmp(name, file->limits[j].name) != 0 &&
                !is_drawn(page, i, file->limits[j].name))
                add_limit(d, s, &file->limits[j], file->n_limits - j, figure);
            name = file->limits[j].name;
        }
    }
}

static void draw_figure(struct page_drawing *d, const struct page *page,
                        enum figure figure, const struct svg_chart *chart,
                        const char *caption, FILE *f)
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
    add_limits(d, page, figure);
    fputs("<figure><figcaption>", f);
    fputs(caption, f);
    fputs("</figcaption>\n", f);
    svg_chart_draw(chart, d->lines, d->n, f);
    fputs("</figure>\n", f);
}

/* --- one series against the others --- */

static void add_ratio(struct page_drawing *d, const struct page *page, size_t at)
{
    const struct page_series *s = &page->series[at];
    struct svg_line *line = &d->lines[d->n++];
    char size[32];

    *line = (struct svg_line){&d->points[d->used], 0, (int)at, false};
    for (size_t i = 0; i < s->n; i++) {
        const struct report_row *r = &s->rows[i],
                                *first = page_row_of(&page->series[0], r->bytes);
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

static void draw_ratios(struct page_drawing *d, const struct page *page, FILE *f)
{
    const struct svg_chart chart = {
        "Ratio of median times over the size", SVG_SIZE, SVG_NUMBER, 150, true, true};

    d->n = d->used = 0;
    for (size_t i = 1; i < page->n_timed; i++)
        add_ratio(d, page, i);
    if (d->used == 0)
        return;
    fputs("<figure><figcaption><b>Ratio</b>: time relative to <b>", f);
    svg_text(page->series[0].label, f);
    fputs("</b>. Above 1 is slower.</figcaption>\n", f);
    svg_chart_draw(&chart, d->lines, d->n, f);
    fputs("</figure>\n", f);
}

/* --- figures --- */

/* Return all distinct sizes; the caller frees them. */
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
        qsort(sizes, n, sizeof(*sizes), perf_by_value);
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

/* Return true if a row of the only series has a rate, or an error. */
static bool has_figure(const struct page *page, bool rate)
{
    for (size_t i = 0; i < page->series[0].n; i++)
        if (rate ? page->series[0].rows[i].GBps > 0 : page->series[0].rows[i].nmse >= 0)
            return true;
    return false;
}

/* With one series, write all its figures; with several, only their medians. */
static void write_row(const struct page *page, double bytes, FILE *f)
{
    char size[32];

    fprintf(f, "<tr><th scope=\"row\">%s</th>",
            perf_size_text((size_t)bytes, size, sizeof(size)));
    for (size_t i = 0; i < page->n_timed; i++) {
        const struct report_row *r = page_row_of(&page->series[i], bytes);
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
    fputs("<h3>Figures</h3>\n<div class=\"wide\"><table class=\"figures\"><thead><tr>"
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

/* --- all --- */

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

/* Return true if every series has a single size. Bars then show more than points. */
static bool is_flat(const struct page *page)
{
    for (size_t i = 0; i < page->n_timed; i++)
        if (page->series[i].n > 1)
            return false;
    return page->n_timed > 1;
}

static bool has_p99(const struct page *page)
{
    for (size_t i = 0; i < page->n_timed; i++)
        for (size_t j = 0; j < page->series[i].n; j++)
            if (page->series[i].rows[j].p99 > 0)
                return true;
    return false;
}

static void draw_lines(const struct page *page, struct page_drawing *d, FILE *f)
{
    const struct svg_chart time = {
        "Time over the size", SVG_SIZE, SVG_TIME, 300, true, false};
    const struct svg_chart rate = {
        "Bus bandwidth over the size", SVG_SIZE, SVG_NUMBER, 300, true, false};

    write_legend(page, f);
    fputs("<div class=\"charts\">\n", f);
    draw_figure(d, page, FIGURE_TIME, &time,
                has_p99(page)
                    ? "<b>Time</b>: the line is the median, the band reaches up to p99."
                    : "<b>Time</b>: the median.",
                f);
    draw_figure(d, page, FIGURE_RATE, &rate,
                "<b>Bandwidth</b> in GB/s (10⁹ bytes); for collectives, bus "
                "bandwidth.",
                f);
    draw_ratios(d, page, f);
    fputs("</div>\n", f);
}

static bool write_charts(const struct page *page, struct page_drawing *d, FILE *f)
{
    if (page->n_timed == 0)
        return true;
    if (is_flat(page))
        return page_bars(page, f); /* including their figures */
    draw_lines(page, d, f);
    return write_figures(page, f);
}

/* Collect the documents of the place of document `at`; 0 if an earlier document has
 * it. */
static size_t collect_place(const struct page *page, size_t at, struct report_file *out)
{
    size_t n = 0;

    for (size_t i = 0; i < page->n_files; i++) {
        if (!page_same_place(&page->files[at], &page->files[i]))
            continue;
        if (i < at)
            return 0;
        out[n++] = page->files[i];
    }
    return n;
}

static bool write_place(const struct page *page, struct page *place,
                        struct page_drawing *d, FILE *f)
{
    static const char *const skip[] = {"codec", "feedback", "call", NULL};
    char title[256] = "";

    page_series_words(page, place->files, skip, title, sizeof(title));
    if (*title == '\0')
        report_title(place->files, title, sizeof(title));
    fputs("<h2>", f);
    svg_text(title, f);
    fputs("</h2>\n", f);
    const bool whole = page_series_make(place) && write_charts(place, d, f);
    page_series_free(place);
    return whole;
}

/* Write the charts of each place below the words that distinguish it. */
static bool write_each(const struct page *page, struct page_drawing *d, FILE *f)
{
    struct report_file *files = calloc(page->n_files, sizeof(*files));
    bool whole = files != NULL;

    for (size_t i = 0; i < page->n_files && whole; i++) {
        const size_t n = collect_place(page, i, files);
        struct page place = {.files = files, .n_files = n};
        if (n > 0)
            whole = write_place(page, &place, d, f);
    }
    free(files);
    return whole;
}

bool page_charts(const struct page *page, FILE *f)
{
    struct page_drawing d;
    const bool many = page->n_files > 1 && page->n_timed > SVG_INKS;
    bool whole = page_drawing_open(page, &d);

    whole = whole && (!many || page_across(page, f)) &&
            (many ? write_each : write_charts)(page, &d, f) &&
            (many || page_across(page, f)) && page_overlap(page, f);
    if (whole)
        page_codecs(page, &d, f);
    page_drawing_close(&d);
    return whole;
}
