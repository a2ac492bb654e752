/* SPDX-License-Identifier: BSD-3-Clause */
#include "perf/report/svg_lanes.h"

#include <math.h>

#include "perf/report/svg_chart.h"

enum {
    WIDTH = 400,
    LEFT = 4,
    RIGHT = WIDTH - 30, /* leaves room for half of the axis' last label */
    LANE = 36, /* name and bar */
    NAME = 14, /* baseline of the name */
    BAR = 13,
    AXIS = 24,
};

static double greatest(const struct svg_lane *lanes, size_t n)
{
    double most = 0;

    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < lanes[i].n; j++)
            most = fmax(most, fmax(lanes[i].parts[j].to, lanes[i].limit));
    return most;
}

static double at(double value, double most)
{
    return LEFT + value / most * (RIGHT - LEFT);
}

/* Return 1, 2 or 5 times a power of 10, such that there are three to six steps. */
static double step_of(double most)
{
    const double power = pow(10, floor(log10(most / 3)));
    const double times = most / 3 / power;

    return power * (times >= 5 ? 5 : times >= 2 ? 2 : 1);
}

static void draw_axis(double most, int height, FILE *f)
{
    const double step = step_of(most);
    char text[32];

    for (double value = 0; value <= most * (1 + 1e-9); value += step) {
        fprintf(f, "<path class=\"grid\" d=\"M%.1f 0V%d\"/>", at(value, most),
                height - AXIS + 4);
        svg_time_text(value, text, sizeof(text));
        fprintf(f, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"%s\">%s</text>\n",
                at(value, most), height - 6, value > 0 ? "middle" : "start",
                value > 0 ? text : "0");
    }
}

static void draw_part(const struct svg_part *p, double top, double most, FILE *f)
{
    const double wide = at(p->to, most) - at(p->from, most);

    fprintf(f, "<path class=\"%s ink%d\" d=\"M%.2f %.1fh%.2fv%dh-%.2fz\"><title>",
            p->pale ? "pale" : "bar", p->ink % SVG_INKS, at(p->from, most), top, wide,
            BAR, wide);
    svg_text(p->about, f);
    fputs("</title></path>\n", f);
}

void svg_lanes_draw(const char *title, const struct svg_lane *lanes, size_t n, FILE *f)
{
    const double most = greatest(lanes, n);
    const int height = (int)n * LANE + AXIS + 4;

    if (!(most > 0))
        return;
    fprintf(f, "<svg viewBox=\"0 0 %d %d\" role=\"img\"><title>", WIDTH, height);
    svg_text(title, f);
    fputs("</title>\n", f);
    draw_axis(most, height, f);
    for (size_t i = 0; i < n; i++) {
        const int top = (int)i * LANE;
        fprintf(f, "<text class=\"mark\" x=\"%d\" y=\"%d\">", LEFT, top + NAME);
        svg_text(lanes[i].label, f);
        fputs("</text>\n", f);
        for (size_t j = 0; j < lanes[i].n; j++)
            draw_part(&lanes[i].parts[j], top + NAME + 5, most, f);
        if (lanes[i].limit > 0)
            fprintf(f, "<path class=\"limit\" d=\"M%.1f %dv%d\"/>\n",
                    at(lanes[i].limit, most), top + NAME + 4, BAR + 3);
    }
    fputs("</svg>\n", f);
}
