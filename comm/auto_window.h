/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Codec auto: the starts between two agreements, and their times. A window's length
 * follows from figures that all ranks hold alike, never from a clock of one of them.
 */
#ifndef COMM_AUTO_WINDOW_H
#define COMM_AUTO_WINDOW_H

#include <stdbool.h>

enum { TRIB_AUTO_KEPT = 31 }; /* times that a window keeps */

struct trib_auto_window {
    unsigned length; /* starts */
    unsigned done; /* of them so far */
    unsigned n; /* times that were added */
    float us[TRIB_AUTO_KEPT]; /* the latest of them */
};

/** trib_auto_window_begin - the next window: no start of it is done. */
void trib_auto_window_begin(struct trib_auto_window *w, unsigned length);

/** trib_auto_window_counts - true if the start that comes next is to be measured: not
 * the first one, and of a long window the last ones alone. */
bool trib_auto_window_counts(const struct trib_auto_window *w);

/** trib_auto_window_add - a measured start took this long. */
void trib_auto_window_add(struct trib_auto_window *w, double us);

/**
 * trib_auto_window_typical - the median of the times that were kept, of an even number
 * the lower one; 0: there are none.
 *
 * noise_us  receives by how much the median may be off by chance
 */
double trib_auto_window_typical(const struct trib_auto_window *w, double *noise_us);

/** trib_auto_window_tried - length of a window in which something is tried whose starts
 * take about so long: more of short ones, whose times scatter. 0 us: not known. */
unsigned trib_auto_window_tried(double us);

/**
 * trib_auto_window_next - length of a window behind one of `length` starts, where
 * nothing is left to try: twice as many each time, up to about a second's.
 *
 * changes  how often all was measured anew so far: the more often, the longer it lasts
 *          until the next time, so that trials take few of all starts
 */
unsigned trib_auto_window_next(unsigned length, int changes, double us);

#endif
