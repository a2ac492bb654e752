/* SPDX-License-Identifier: BSD-3-Clause */
#include "perf/report/page_parts.h"

#include <math.h>
#include <string.h>

/* Return the row of the largest size that has an error and encoded bytes; NULL:
 * none. */
static const struct report_row *lossy_row(const struct page_series *s)
{
    for (size_t i = s->n; i > 0; i--)
        if (s->rows[i - 1].nmse >= 0 && s->rows[i - 1].element_bytes > 0)
            return &s->rows[i - 1];
    return NULL;
}

/* Return the row of a series, unless an earlier series of the same codec is within 5
 * %. */
static const struct report_row *new_row(const struct page *page, size_t at)
{
    const struct report_row *r = lossy_row(&page->series[at]);

    for (size_t i = 0; i < at && r != NULL; i++) {
        const struct report_row *other = lossy_row(&page->series[i]);
        if (other != NULL &&
            strcmp(page_codec_of(&page->series[i]), page_codec_of(&page->series[at])) ==
                0 &&
            fabs(other->element_bytes - r->element_bytes) <= 0.05 * r->element_bytes &&
            fabs(other->nmse - r->nmse) <= 0.05 * r->nmse)
            return NULL;
    }
    return r;
}

static size_t add_codecs(struct page_drawing *d, const struct page *page)
{
    size_t number = 0, drawn = 0;

    d->n = d->used = 0;
    for (size_t i = 0; i < page->n; i++) {
        const struct report_row *r = new_row(page, i);
        struct svg_point *p = &d->points[d->used];
        if (r == NULL)
            continue;
        snprintf(d->labels[d->used], sizeof(d->labels[0]), "%zu", ++number);
        *p = (struct svg_point){r->element_bytes, r->nmse, (double)NAN,
                                d->labels[d->used], ""};
        snprintf(p->about, sizeof(p->about), "%.90s: %.3g B, nmse %.2g",
                 page_codec_of(&page->series[i]), r->element_bytes, r->nmse);
        d->lines[d->n++] = (struct svg_line){.points = p, .n = 1};
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
        const struct report_row *r = new_row(page, i);
        if (r == NULL)
            continue;
        fprintf(f, "<tr><td>%zu</td><th scope=\"row\">", ++number);
        svg_text(page_codec_of(&page->series[i]), f);
        fprintf(f, "</th><td>%.3g</td><td>%.2g</td></tr>\n", r->element_bytes, r->nmse);
    }
    fputs("</tbody></table></div>\n", f);
}

void page_codecs(const struct page *page, struct page_drawing *d, FILE *f)
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
          "nmse</b>: squared error over the squared values, by encoded bytes per "
          "float32. Lower left is better; exact codecs are only in the "
          "table.</figcaption>\n",
          f);
    svg_chart_draw(&chart, d->lines, d->n, f);
    fputs("</figure>\n", f);
    write_codecs(page, f);
    fputs("</div>\n", f);
}
