/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Charts as SVG inside an HTML page, on logarithmic axes. The page's style defines
 * colours and font sizes: classes ink0 to ink7, grid, rule, band.
 */
#ifndef PERF_REPORT_SVG_CHART_H
#define PERF_REPORT_SVG_CHART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define SVG_INKS 8 /* more series reuse the colours */

enum svg_unit {
    SVG_SIZE, /* bytes, ticks at powers of 2 */
    SVG_TIME, /* µs */
    SVG_NUMBER,
    SVG_COUNT, /* ticks at powers of 2 */
};

struct svg_point {
    double x, y; /* > 0; other points are left out */
    double top; /* upper edge of the band above the line; NAN: none */
    const char *label; /* text at the point; NULL: none */
    char about[200]; /* tooltip */
};

struct svg_line {
    const struct svg_point *points; /* by ascending x */
    size_t n;
    int ink;
    bool limit; /* dashed, without signs */
};

struct svg_chart {
    const char *title; /* alternative text */
    enum svg_unit x, y;
    int height; /* for a width of 400 */
    bool joined; /* draw lines between the points */
    bool rule; /* draw a line at y = 1 and always show it */
};

/** svg_chart_draw - write an svg element; nothing if no point can be drawn. */
void svg_chart_draw(const struct svg_chart *chart, const struct svg_line *lines,
                    size_t n, FILE *f);

/** svg_key_draw - draw the sign of a series, for a legend. */
void svg_key_draw(int ink, FILE *f);

/** svg_text - write text escaped for HTML and XML; invalid UTF-8 becomes question
 * marks. */
void svg_text(const char *text, FILE *f);

/** svg_time_text - write "1.5 ms" from µs; returns text. */
char *svg_time_text(double us, char *text, size_t bytes);

#endif
