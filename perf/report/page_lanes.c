/* SPDX-License-Identifier: BSD-3-Clause */
#include "perf/coll/measure.h"
#include "perf/common/sizes.h"
#include "perf/report/page_parts.h"
#include "perf/report/svg_lanes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    LANES = 8, /* per figure of overlap */
    PARTS = PERF_LAYERS + 2, /* per lane */
};

/* --- one size each --- */

/* Return the first limit that applies to the row; NULL: none. */
static const struct report_row *limit_of(const struct page_series *s)
{
    const struct report_row *r = &s->rows[0];

    for (size_t i = 0; i < s->file->n_limits && r->GBps > 0; i++) {
        const struct report_row *l = &s->file->limits[i];
        if (l->bytes == 0 || l->bytes == r->bytes)
            return l;
    }
    return NULL;
}

static void fill_bar(const struct page *page, size_t at, struct svg_lane *lane,
                     struct svg_part *part)
{
    const struct page_series *s = &page->series[at];
    const struct report_row *r = &s->rows[0];
    const struct report_row *limit = limit_of(s);
    char size[32], time[32];

    perf_size_text((size_t)r->bytes, size, sizeof(size));
    svg_time_text(r->p50, time, sizeof(time));
    *part = (struct svg_part){0, r->p50, (int)at, false, ""};
    snprintf(lane->label, sizeof(lane->label), "%.100s: %s", s->label, time);
    snprintf(part->about, sizeof(part->about), "%.50s, %s: %s", s->label, size, time);
    lane->parts = part;
    lane->n = 1;
    lane->limit = limit != NULL ? r->p50 * r->GBps / limit->GBps : 0;
}

static void write_caption(const struct page *page, FILE *f)
{
    const struct report_row *limit = NULL;
    const double bytes = page->series[0].rows[0].bytes;
    bool alike = true;
    char size[32];

    for (size_t i = 0; i < page->n_timed; i++) {
        limit = limit != NULL ? limit : limit_of(&page->series[i]);
        alike = alike && page->series[i].rows[0].bytes == bytes;
    }
    fputs("<figcaption><b>Time</b>: the median", f);
    if (alike)
        fprintf(f, " of %s", perf_size_text((size_t)bytes, size, sizeof(size)));
    if (limit != NULL) {
        fputs("; the dashed mark is the minimum time of a dense sum: ", f);
        svg_text(limit->name, f);
    }
    fputs(".</figcaption>\n", f);
}

bool page_bars(const struct page *page, FILE *f)
{
    struct svg_lane *lanes = calloc(page->n_timed, sizeof(*lanes));
    struct svg_part *parts = calloc(page->n_timed, sizeof(*parts));
    const bool whole = lanes != NULL && parts != NULL;

    for (size_t i = 0; i < page->n_timed && whole; i++)
        fill_bar(page, i, &lanes[i], &parts[i]);
    if (whole) {
        fputs("<div class=\"charts\"><figure>", f);
        write_caption(page, f);
        svg_lanes_draw("Time of each", lanes, page->n_timed, f);
        fputs("</figure></div>\n", f);
    }
    free(parts);
    free(lanes);
    return whole;
}

/* --- sums during computation --- */

struct overlap_figure {
    struct svg_lane lanes[LANES];
    struct svg_part parts[LANES][PARTS];
    size_t n;
};

static double number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static struct svg_lane *add_lane(struct overlap_figure *o)
{
    struct svg_lane *lane = &o->lanes[o->n];

    *lane = (struct svg_lane){.parts = o->parts[o->n]};
    o->n++;
    return lane;
}

static void add_part(struct overlap_figure *o, double from, double to, int ink,
                     bool pale)
{
    struct svg_lane *lane = &o->lanes[o->n - 1];
    struct svg_part *part = &o->parts[o->n - 1][lane->n];
    char a[32], b[32];

    if (lane->n == PARTS || !(to > from) || !(from >= 0))
        return;
    *part = (struct svg_part){from, to, ink, pale, ""};
    snprintf(part->about, sizeof(part->about), "%s to %s",
             svg_time_text(from, a, sizeof(a)), svg_time_text(to, b, sizeof(b)));
    lane->n++;
}

static double pair_number(const json_t *pair, size_t at)
{
    return json_number_value(json_array_get(pair, at));
}

/* Add two lanes: the layers that are computed, and the sum that they feed. */
static void add_computing(struct overlap_figure *o, const json_t *hidden,
                          const char *where)
{
    const json_t *layers = json_object_get(hidden, "layers_us"), *layer;
    const size_t n = json_array_size(layers);
    double end = number(hidden, "compute_us"), begin = 0;
    double took = number(hidden, "both_us");
    char text[32];
    size_t i;

    struct svg_lane *lane = add_lane(o);
    json_array_foreach(layers, i, layer)
    {
        add_part(o, pair_number(layer, 0), pair_number(layer, 1), 0, i % 2 == 1);
    }
    if (n == 0)
        add_part(o, 0, end, 0, false);
    if (n > 0) {
        begin = pair_number(json_array_get(layers, 0), 1);
        end = pair_number(json_array_get(layers, n - 1), 1);
        took = number(hidden, "took_us");
    }
    snprintf(lane->label, sizeof(lane->label), "computing %s: %s", where,
             svg_time_text(end, text, sizeof(text)));
    lane = add_lane(o);
    add_part(o, begin, fmin(end, took), 1, true);
    add_part(o, end, took, 1, false);
    const double part = number(hidden, "hidden");
    if (part >= 0)
        snprintf(lane->label, sizeof(lane->label), "the sum during it: %.0f %% hidden",
                 100 * part);
    else
        snprintf(lane->label, sizeof(lane->label),
                 "the sum during it: longer than one after the other");
}

static void add_alone(struct overlap_figure *o, const char *name, double us, int ink)
{
    char text[32];

    if (!(us > 0) || o->n == LANES)
        return;
    struct svg_lane *lane = add_lane(o);
    add_part(o, 0, us, ink, false);
    snprintf(lane->label, sizeof(lane->label), "%s: %s", name,
             svg_time_text(us, text, sizeof(text)));
}

static void draw_timeline(struct overlap_figure *o, const struct report_row *r, FILE *f)
{
    const json_t *here = json_object_get(r->overlap, "computing_here");

    o->n = 0;
    add_alone(o, "the sum alone", number(here, "comm_us"), 1);
    add_computing(o, here, "by the same thread");
    add_computing(o, json_object_get(r->overlap, "computing_elsewhere"),
                  "elsewhere, as by an accelerator");
    fputs("<figure><figcaption><b>Timeline</b> of a rank: each part is a layer, which "
          "is summed once it is computed. The sum is pale while the computation hides "
          "it.</figcaption>\n",
          f);
    svg_lanes_draw("Sums during computation", o->lanes, o->n, f);
    fputs("</figure>\n", f);
}

static void draw_stages(struct overlap_figure *o, const struct report_row *r, FILE *f)
{
    json_t *alone = json_object_get(r->overlap, "alone_GBps");
    const char *stage;
    json_t *rate;

    o->n = 0;
    json_object_foreach(alone, stage, rate)
    {
        add_alone(o, stage, r->bytes / json_number_value(rate) * 1e-3, 2);
    }
    if (o->n == 0)
        return;
    add_alone(o, "all stages in one sum", r->p50, 1);
    fputs("<figure><figcaption><b>Stages</b> alone: fully overlapped, a sum takes as "
          "long as its slowest stage.</figcaption>\n",
          f);
    svg_lanes_draw("Stages alone", o->lanes, o->n, f);
    fputs("</figure>\n", f);
}

/* Return the row of the largest size with an overlap; NULL: none. */
static const struct report_row *overlap_row(const struct page_series *s)
{
    for (size_t i = s->n; i > 0; i--)
        if (json_is_object(s->rows[i - 1].overlap))
            return &s->rows[i - 1];
    return NULL;
}

static void draw_overlap(const struct page_series *s, struct overlap_figure *o, FILE *f)
{
    const struct report_row *r = overlap_row(s);
    char size[32];

    if (r == NULL)
        return;
    fputs("<h3>", f);
    svg_text(s->label, f);
    fprintf(f, ", %s</h3>\n<div class=\"charts\">\n",
            perf_size_text((size_t)r->bytes, size, sizeof(size)));
    draw_timeline(o, r, f);
    draw_stages(o, r, f);
    fputs("</div>\n", f);
}

bool page_overlap(const struct page *page, FILE *f)
{
    struct overlap_figure *o = calloc(1, sizeof(*o));
    bool any = false;

    for (size_t i = 0; i < page->n_timed && o != NULL; i++) {
        if (!any && overlap_row(&page->series[i]) != NULL)
            fputs("<h2>Sums during computation</h2>\n", f);
        any = any || overlap_row(&page->series[i]) != NULL;
        draw_overlap(&page->series[i], o, f);
    }
    const bool whole = o != NULL;
    free(o);
    return whole;
}
