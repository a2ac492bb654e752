/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Codec auto: the starts between two agreements, and their times. A window's length
 * depends only on figures that are equal on all ranks, never on a local clock.
 */
#ifndef COMM_AUTO_AUTO_WINDOW_H
#define COMM_AUTO_AUTO_WINDOW_H

#include <stdbool.h>

enum { TRIB_AUTO_KEPT = 31 }; /* times that a window keeps */

struct trib_auto_window {
    unsigned length; /* starts */
    unsigned done; /* starts done so far */
    unsigned n; /* times added */
    float us[TRIB_AUTO_KEPT]; /* the latest times */
};

/** trib_auto_window_begin - begin a new, empty window. */
void trib_auto_window_begin(struct trib_auto_window *w, unsigned length);

/** trib_auto_window_counts - return true if the next start is to be measured: not the
 * first one, and only the last ones of a long window. */
bool trib_auto_window_counts(const struct trib_auto_window *w);

/** trib_auto_window_add - add the time of a measured start. */
void trib_auto_window_add(struct trib_auto_window *w, double us);

/**
 * trib_auto_window_typical - return the median of the kept times, the lower one if
 * their number is even; 0: no times.
 *
 * noise_us receives the uncertainty of the median
 */
double trib_auto_window_typical(const struct trib_auto_window *w, double *noise_us);

/** trib_auto_window_tried - return the length of a trial window for starts that take
 * about `us`: longer for short starts, whose times scatter. 0 us: unknown. */
unsigned trib_auto_window_tried(double us);

/**
 * trib_auto_window_next - return the length of the window after one of `length` starts
 * when nothing is left to try: twice as long each time, up to about a second.
 *
 * changes  times that everything was measured again so far: the more, the longer until
 *          the next time, so that trials stay a small part of all starts
 */
unsigned trib_auto_window_next(unsigned length, int changes, double us);

#endif
