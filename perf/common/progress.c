/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The progress line of a run.
 */
#include "perf/common/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "perf/common/samples.h"
#include "perf/common/sizes.h"


void perf_progress_start(struct perf_progress *p, size_t sizes, bool speaks)
{
    *p = (struct perf_progress){
        .on = speaks && isatty(STDERR_FILENO),
        .start = perf_now(),
        .sizes = sizes,
    };
}

void perf_progress_clear(struct perf_progress *p)
{
    if (p->shown)
        fputs("\r\033[K", stderr);
    p->shown = false;
}

void perf_progress_show(void *arg, size_t bytes, long done, long samples)
{
    struct perf_progress *p = arg;
    double now = perf_now();
    char size[32];
    if (!p->on || now - p->start < 2 || now - p->last < 0.2)
        return;
    p->last = now;
    p->shown = true;
    if (p->begun != p->at + 1) {
        p->begun = p->at + 1;
        p->size_start = now;
        p->size_done = done;
    }
    fprintf(stderr, "\r\033[Ksize %zu of %zu (%s), sample %ld of %ld, %.0f s",
            p->at + 1, p->sizes, perf_size_text(bytes, size, sizeof(size)), done,
            samples, now - p->start);
    if (done > p->size_done && samples > done)
        fprintf(stderr, ", about %.0f s left for it",
                (now - p->size_start) / (double)(done - p->size_done) *
                    (double)(samples - done));
    fflush(stderr);
}
