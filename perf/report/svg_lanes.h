/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bars from left to right over one axis of time, which begins at 0. Each lane has its
 * name above it, so that long names fit a narrow page.
 */
#ifndef PERF_REPORT_SVG_LANES_H
#define PERF_REPORT_SVG_LANES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct svg_part {
    double from, to; /* µs */
    int ink;
    bool pale;
    char about[120]; /* what a mouse over it shows */
};

struct svg_lane {
    char label[160];
    const struct svg_part *parts;
    size_t n;
    double limit; /* a dashed mark across the lane; 0: none */
};

/** svg_lanes_draw - one svg element; nothing if no part has a length. */
void svg_lanes_draw(const char *title, const struct svg_lane *lanes, size_t n, FILE *f);

#endif
