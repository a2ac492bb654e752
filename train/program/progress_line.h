/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A progress line on standard error, for trainings of more than two seconds.
 */
#ifndef TRAIN_PROGRAM_PROGRESS_LINE_H
#define TRAIN_PROGRAM_PROGRESS_LINE_H

#include <stddef.h>
#include <stdint.h>

#include "train/program/train_args.h"

struct progress_line {
    enum train_progress how;
    const char *title;
    uint64_t begun_ns, shown_ns;
    size_t shown; /* number of lines shown */
};

/* The contents of the line. */
struct progress_state {
    size_t step, steps;
    double loss, step_ms;
    double wire_bytes; /* NAN: unknown */
};

/** progress_line_begin - start. AUTO becomes REWRITE on a terminal, and otherwise
 * LINES: one every two seconds. */
void progress_line_begin(struct progress_line *line, enum train_progress how,
                         const char *title);

/** progress_line_show - show the state if an update is due. */
void progress_line_show(struct progress_line *line, const struct progress_state *state);

/** progress_line_end - erase a rewritten line. */
void progress_line_end(struct progress_line *line);

/** progress_clock - return the monotonic time in ns. */
uint64_t progress_clock(void);

#endif
