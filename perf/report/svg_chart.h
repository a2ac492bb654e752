/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Charts as SVG inside an HTML page, both axes by powers. Colours and sizes of letters
 * come from the page's style: classes ink0 to ink7, grid, rule, band.
 */
#ifndef PERF_REPORT_SVG_CHART_H
#define PERF_REPORT_SVG_CHART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define SVG_INKS 8 /* series beyond these take the same colours again */

enum svg_unit {
    SVG_SIZE, /* bytes, by powers of 2 */
    SVG_TIME, /* µs */
    SVG_NUMBER,
    SVG_COUNT, /* by powers of 2 */
};

struct svg_point {
    double x, y; /* above 0; others are left out */
    double top; /* where the band above the line ends; NAN: there is none */
    const char *label; /* beside the point; NULL: none */
    char about[200]; /* what a mouse over the point shows */
};

struct svg_line {
    const struct svg_point *points; /* by rising x */
    size_t n;
    int ink;
    bool limit; /* dashed, without signs */
};

struct svg_chart {
    const char *title; /* for who cannot see it */
    enum svg_unit x, y;
    int height; /* of a chart 400 wide */
    bool joined; /* lines between the points */
    bool rule; /* a line at y = 1, which is always in sight */
};

/** svg_chart_draw - one svg element; nothing if no point can be drawn. */
void svg_chart_draw(const struct svg_chart *chart, const struct svg_line *lines,
                    size_t n, FILE *f);

/** svg_key_draw - the sign of a series, for a legend. */
void svg_key_draw(int ink, FILE *f);

/** svg_text - write a text such that HTML and XML take it; what is no UTF-8 becomes
 * question marks. */
void svg_text(const char *text, FILE *f);

/** svg_time_text - "1.5 ms" of µs; returns text. */
char *svg_time_text(double us, char *text, size_t bytes);

#endif
