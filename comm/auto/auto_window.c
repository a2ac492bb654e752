/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/auto/auto_window.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    TRIED_LEAST = 3, /* the first start is not measured */
    TRIED_MOST = TRIB_AUTO_KEPT + 1,
    SETTLED_LEAST = 16,
    SETTLED_TRIALS = 5, /* minimum length in trial windows */
    SETTLED_MOST = 1024, /* if a second has fewer starts */
    LONGEST = 1 << 20,
};

static const double TRIED_US = 5e3; /* duration of a trial window */
static const double SETTLED_US = 1e6; /* an agreement takes about a thousandth of it */

void trib_auto_window_begin(struct trib_auto_window *w, unsigned length)
{
    assert(length >= TRIED_LEAST);
    w->length = length;
    w->done = 0;
    w->n = 0;
}

bool trib_auto_window_counts(const struct trib_auto_window *w)
{
    return w->done > 0 && w->done + TRIB_AUTO_KEPT >= w->length;
}

void trib_auto_window_add(struct trib_auto_window *w, double us)
{
    w->us[w->n++ % TRIB_AUTO_KEPT] = (float)us;
}

static int ascending(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

double trib_auto_window_typical(const struct trib_auto_window *w, double *noise_us)
{
    const unsigned n = w->n < TRIB_AUTO_KEPT ? w->n : TRIB_AUTO_KEPT;
    float us[TRIB_AUTO_KEPT];

    *noise_us = 0;
    if (n == 0)
        return 0;
    memcpy(us, w->us, n * sizeof(*us));
    qsort(us, n, sizeof(*us), ascending);
    const unsigned quarter = (n - 1) / 4;
    /* Standard error of the median, assuming normally distributed times. */
    *noise_us = (double)(us[n - 1 - quarter] - us[quarter]) / sqrt(n);
    return (double)us[(n - 1) / 2];
}

unsigned trib_auto_window_tried(double us)
{
    const double starts = us > 0 ? ceil(TRIED_US / us) : TRIED_LEAST;

    return (unsigned)fmin(fmax(starts, TRIED_LEAST), TRIED_MOST);
}

unsigned trib_auto_window_next(unsigned length, int changes, double us)
{
    const double most =
        us > 0 ? fmin(fmax(SETTLED_US / us, SETTLED_MOST), LONGEST) : SETTLED_MOST;

    const double trials = SETTLED_TRIALS * (double)trib_auto_window_tried(us);
    const double least = ldexp(fmax(SETTLED_LEAST, trials), changes);

    assert(changes >= 0);
    return (unsigned)fmin(fmax(2.0 * length, least), most);
}
