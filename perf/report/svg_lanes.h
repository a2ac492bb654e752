/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Horizontal bars over a common time axis that begins at 0. The name of each lane is
 * above it, so that long names fit a narrow page.
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
    char about[120]; /* tooltip */
};

struct svg_lane {
    char label[160];
    const struct svg_part *parts;
    size_t n;
    double limit; /* position of a dashed mark across the lane; 0: none */
};

/** svg_lanes_draw - write an svg element; nothing if no part has a length. */
void svg_lanes_draw(const char *title, const struct svg_lane *lanes, size_t n, FILE *f);

#endif
