/* SPDX-License-Identifier: BSD-3-Clause */
#include "perf/report/svg_chart.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "perf/common/sizes.h"


enum {
    WIDTH = 400,
    LEFT = 58, /* x of the first column with points */
    RIGHT = WIDTH - 26,
    ABOVE = 12,
    BELOW = 26, /* height of the labels of x */
    LABELS_MOST = 64,
    LETTER = 8, /* width of a letter of a label, and half its height */
};

/* An axis: logarithms of its limits, and the coordinates where they are drawn. */
struct scale {
    enum svg_unit unit;
    double least, most;
    double from, to;
};

struct place {
    double x, y, wide;
};

/* --- texts --- */

/* Return true for a character that XML does not allow. */
static bool is_control(const char *at)
{
    const unsigned char c = (unsigned char)*at;

    return c < ' ' && c != '\n' && c != '\t';
}

static void write_character(const char *at, bool ascii, FILE *f)
{
    const bool bad = is_control(at) || (ascii && (*at & 0x80));

    switch (bad ? '?' : *at) {
    case '<':
        fputs("&lt;", f);
        break;
    case '>':
        fputs("&gt;", f);
        break;
    case '&':
        fputs("&amp;", f);
        break;
    case '"':
        fputs("&quot;", f);
        break;
    default:
        fputc(bad ? '?' : *at, f);
    }
}

void svg_text(const char *text, FILE *f)
{
    json_t *utf8 = json_string(text);

    for (; *text; text++)
        write_character(text, utf8 == NULL, f);
    json_decref(utf8);
}

char *svg_time_text(double us, char *text, size_t bytes)
{
    if (us < 999.5)
        snprintf(text, bytes, "%.3g µs", us);
    else if (us < 999.5e3)
        snprintf(text, bytes, "%.3g ms", us / 1e3);
    else
        snprintf(text, bytes, "%.4g s", us / 1e6);
    return text;
}

static void value_text(enum svg_unit unit, double value, char *text, size_t bytes)
{
    if (unit == SVG_SIZE)
        perf_size_text((size_t)value, text, bytes);
    else if (unit == SVG_TIME)
        svg_time_text(value, text, bytes);
    else if (value < 1e-3 || value >= 1e5)
        snprintf(text, bytes, "%.0e", value);
    else
        snprintf(text, bytes, "%.5g", value);
}

/* --- scales --- */

static bool is_seen(const struct svg_point *p)
{
    return isfinite(p->x) && isfinite(p->y) && p->x > 0 && p->y > 0;
}

static void widen(struct scale *s, double value)
{
    if (!isfinite(value) || value <= 0)
        return;
    s->least = fmin(s->least, log10(value));
    s->most = fmax(s->most, log10(value));
}

static bool make_scales(const struct svg_chart *chart, const struct svg_line *lines,
                        size_t n, struct scale *x, struct scale *y)
{
    *x = (struct scale){chart->x, HUGE_VAL, -HUGE_VAL, LEFT, RIGHT};
    *y = (struct scale){chart->y, HUGE_VAL, -HUGE_VAL, chart->height - BELOW, ABOVE};
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < lines[i].n; j++) {
            const struct svg_point *p = &lines[i].points[j];
            if (!is_seen(p))
                continue;
            widen(x, p->x);
            widen(y, p->y);
            widen(y, p->top);
        }
    if (x->least > x->most)
        return false;
    if (chart->rule)
        widen(y, 1);
    const double thin = chart->rule ? 0.15 : 0.3, room = y->most - y->least;
    const double more = fmax(0.04 * room, (thin - room) / 2);
    y->least -= more;
    y->most += more;
    const double aside = chart->joined ? 0 : 0.06 * (x->most - x->least);
    x->least -= x->most - x->least < 0.1 ? 0.2 : aside;
    x->most += x->most - x->least < 0.3 ? 0.2 : aside;
    return true;
}

static double at(const struct scale *s, double value)
{
    const double part = (log10(value) - s->least) / (s->most - s->least);

    return s->from + part * (s->to - s->from);
}

/* --- grid --- */

static void draw_tick(const struct svg_chart *chart, const struct scale *s, bool is_x,
                      double value, FILE *f)
{
    const double where = at(s, value);
    char text[32];

    value_text(s->unit, value, text, sizeof(text));
    if (is_x)
        fprintf(f,
                "<path class=\"grid\" d=\"M%.1f %dV%d\"/><text x=\"%.1f\" y=\"%d\" "
                "text-anchor=\"middle\">%s</text>\n",
                where, ABOVE, chart->height - BELOW, where, chart->height - 8, text);
    else
        fprintf(f,
                "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" "
                "text-anchor=\"end\">%s</text>\n",
                LEFT, where, RIGHT, LEFT - 6, where + 4, text);
}

/* Draw powers of 2, five or six of them. */
static void draw_sizes(const struct svg_chart *chart, const struct scale *s, bool is_x,
                       FILE *f)
{
    const double two = log10(2);
    const int first = (int)ceil(s->least / two - 1e-6);
    const int last = (int)floor(s->most / two + 1e-6);
    const int step = (last - first) / 5 + 1;

    for (int e = first; e <= last; e += step)
        draw_tick(chart, s, is_x, pow(2, e), f);
}

/* Count the ticks at `some` multiples of each power of 10. */
static int count_ticks(const struct scale *s, const double *some, int n, int powers)
{
    int count = 0;

    for (int e = (int)floor(s->least); e <= (int)floor(s->most); e++)
        for (int i = 0; i < n; i++) {
            const double value = log10(some[i]) + e;
            count += (e % powers) == 0 && value >= s->least && value <= s->most;
        }
    return count;
}

static void draw_powers(const struct svg_chart *chart, const struct scale *s, bool is_x,
                        FILE *f)
{
    static const double some[][14] = {
        {1},
        {1, 3},
        {1, 2, 5},
        {1, 1.5, 2, 3, 4, 5, 6, 8},
        {1, 1.1, 1.2, 1.4, 1.7, 2, 2.5, 3, 4, 5, 6, 7, 8, 9}};
    static const int n[] = {1, 2, 3, 8, 14};
    const int most = chart->height > 200 ? 7 : 4;
    size_t kind = 0;
    int powers = 1;

    while (kind + 1 < sizeof(n) / sizeof(*n) &&
           count_ticks(s, some[kind], n[kind], 1) < 3)
        kind++;
    while (kind == 0 && count_ticks(s, some[0], 1, powers) > most)
        powers++;
    for (int e = (int)floor(s->least); e <= (int)floor(s->most); e++)
        for (int i = 0; i < n[kind]; i++) {
            const double value = log10(some[kind][i]) + e;
            if (e % powers == 0 && value >= s->least && value <= s->most)
                draw_tick(chart, s, is_x, some[kind][i] * pow(10, e), f);
        }
}

static void draw_axis(const struct svg_chart *chart, const struct scale *s, bool is_x,
                      FILE *f)
{
    const bool twos = s->unit == SVG_SIZE || s->unit == SVG_COUNT;

    (twos ? draw_sizes : draw_powers)(chart, s, is_x, f);
}

/* --- lines --- */

static const char *const dashes[] = {"none", "7 3", "2 3", "9 3 2 3"};

static void draw_sign(double x, double y, int ink, FILE *f)
{
    static const char *const shapes[] = {
        "m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0z", /* circle */
        "m-3-3h6v6h-6z", "m0-4.5l4.5 4.5l-4.5 4.5l-4.5-4.5z", "m0-4l4 7h-8z"};

    fprintf(f, "<path class=\"sign ink%d\" d=\"M%.1f %.1f%s\"", ink % SVG_INKS, x, y,
            shapes[(ink + ink / SVG_INKS) % 4]);
}

static void draw_band(const struct svg_line *line, const struct scale *x,
                      const struct scale *y, FILE *f)
{
    bool open = false;

    for (size_t i = 0; i < line->n; i++)
        open = open || (is_seen(&line->points[i]) && line->points[i].top > 0);
    if (!open)
        return;
    fprintf(f, "<path class=\"band ink%d\" d=\"", line->ink % SVG_INKS);
    char letter = 'M';
    for (size_t i = 0; i < 2 * line->n; i++) {
        const bool back = i >= line->n;
        const struct svg_point *p = &line->points[back ? 2 * line->n - 1 - i : i];
        const double value = back && p->top > p->y ? p->top : p->y;
        if (!is_seen(p))
            continue;
        fprintf(f, "%c%.1f %.1f", letter, at(x, p->x), at(y, value));
        letter = 'L';
    }
    fputs("z\"/>\n", f);
}

static void draw_line(const struct svg_line *line, const struct scale *x,
                      const struct scale *y, FILE *f)
{
    char letter = 'M';

    if (line->limit)
        fputs("<path class=\"limit\" d=\"", f);
    else
        fprintf(f, "<path class=\"line ink%d\" stroke-dasharray=\"%s\" d=\"",
                line->ink % SVG_INKS, dashes[(line->ink + line->ink / SVG_INKS) % 4]);
    for (size_t i = 0; i < line->n; i++) {
        if (!is_seen(&line->points[i]))
            continue;
        fprintf(f, "%c%.1f %.1f", letter, at(x, line->points[i].x),
                at(y, line->points[i].y));
        letter = 'L';
    }
    fputs("\"/>\n", f);
}

static void draw_points(const struct svg_line *line, const struct scale *x,
                        const struct scale *y, FILE *f)
{
    for (size_t i = 0; i < line->n && !line->limit; i++) {
        const struct svg_point *p = &line->points[i];
        if (!is_seen(p))
            continue;
        draw_sign(at(x, p->x), at(y, p->y), line->ink, f);
        fputs("><title>", f);
        svg_text(p->about, f);
        fputs("</title></path>\n", f);
    }
}

/* --- labels of points --- */

static bool overlap(const struct place *a, const struct place *b)
{
    return a->x < b->x + b->wide && b->x < a->x + a->wide &&
           fabs(a->y - b->y) < 2 * LETTER - 2;
}

/*
 * Place a label so that it covers no other label and no point. Try eight directions in
 * each of five rings around the point; if none is free, use a default.
 *
 * above    try above first, for a line that continues to the right
 */
static struct place find_place(const struct place *point, double wide, double lowest,
                               bool above, const struct place *taken, size_t n)
{
    static const double way[][2] = {{0, -1}, {1, 0},   {-1, 0}, {0, -1}, {0, 1},
                                    {1, -1}, {-1, -1}, {1, 1},  {-1, 1}};

    for (int far = 1; far <= 5; far++)
        for (size_t i = !above; i < sizeof(way) / sizeof(*way); i++) {
            const double aside = way[i][0] > 0   ? 7 * far
                                 : way[i][0] < 0 ? -wide - 7 * far
                                                 : -wide / 2;
            const struct place place = {point->x + aside,
                                        point->y + 14 * far * way[i][1], wide};
            bool free = place.x > LEFT && place.x + wide < WIDTH && place.y > LETTER &&
                        place.y < lowest;
            for (size_t j = 0; j < n && free; j++)
                free = !overlap(&place, &taken[j]);
            if (free)
                return place;
        }
    return (struct place){point->x + 7, point->y, wide};
}

/* Draw a label, with a line to its point if it is far away. */
static void draw_label(const struct place *point, const struct place *place,
                       const char *text, FILE *f)
{
    const double middle = place->x + place->wide / 2;

    if (fabs(middle - point->x) > 20 || fabs(place->y - point->y) > 20)
        fprintf(f, "<path class=\"lead\" d=\"M%.1f %.1fL%.1f %.1f\"/>", point->x,
                point->y, place->x > point->x ? place->x : place->x + place->wide,
                place->y);
    fprintf(f, "<text class=\"mark\" x=\"%.1f\" y=\"%.1f\">", place->x, place->y + 4);
    svg_text(text, f);
    fputs("</text>\n", f);
}

static void draw_labels(const struct svg_line *lines, size_t n, bool above,
                        const struct scale *x, const struct scale *y, FILE *f)
{
    struct place taken[2 * LABELS_MOST];
    const char *text[LABELS_MOST];
    size_t points = 0;

    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < lines[i].n && points < LABELS_MOST; j++) {
            const struct svg_point *p = &lines[i].points[j];
            if (p->label == NULL || !is_seen(p))
                continue;
            text[points] = p->label;
            taken[points++] = (struct place){at(x, p->x) - 4, at(y, p->y), 8};
        }
    for (size_t i = 0; i < points; i++) {
        const struct place point = {taken[i].x + 4, taken[i].y, 0};
        const double wide = (double)LETTER * (double)strlen(text[i]);
        taken[points + i] = find_place(&point, wide, y->from, above, taken, points + i);
        draw_label(&point, &taken[points + i], text[i], f);
    }
}

/* --- all --- */

void svg_chart_draw(const struct svg_chart *chart, const struct svg_line *lines,
                    size_t n, FILE *f)
{
    struct scale x, y;

    if (!make_scales(chart, lines, n, &x, &y))
        return;
    fprintf(f, "<svg viewBox=\"0 0 %d %d\" role=\"img\"><title>", WIDTH, chart->height);
    svg_text(chart->title, f);
    fputs("</title>\n", f);
    draw_axis(chart, &x, true, f);
    draw_axis(chart, &y, false, f);
    if (chart->rule)
        fprintf(f, "<path class=\"rule\" d=\"M%d %.1fH%d\"/>\n", LEFT, at(&y, 1),
                RIGHT);
    for (size_t i = 0; i < n; i++)
        draw_band(&lines[i], &x, &y, f);
    for (size_t i = 0; i < n && chart->joined; i++)
        draw_line(&lines[i], &x, &y, f);
    for (size_t i = 0; i < n; i++)
        draw_points(&lines[i], &x, &y, f);
    draw_labels(lines, n, chart->joined, &x, &y, f);
    fputs("</svg>\n", f);
}

void svg_key_draw(int ink, FILE *f)
{
    fprintf(f,
            "<svg class=\"key\" viewBox=\"0 0 34 12\" aria-hidden=\"true\"><path "
            "class=\"line ink%d\" stroke-dasharray=\"%s\" d=\"M1 6H33\"/>",
            ink % SVG_INKS, dashes[(ink + ink / SVG_INKS) % 4]);
    draw_sign(17, 6, ink, f);
    fputs("/></svg>", f);
}
