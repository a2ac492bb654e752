/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A line on standard error while a training takes longer than two seconds.
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
    size_t shown; /* lines so far */
};

/* What the line says. */
struct progress_state {
    size_t step, steps;
    double loss, step_ms;
    double wire_bytes; /* NAN: not known */
};

/** progress_line_begin - auto becomes a line that is rewritten on a terminal, and one
 * line each two seconds elsewhere. */
void progress_line_begin(struct progress_line *line, enum train_progress how,
                         const char *title);

/** progress_line_show - show the state if it is time. */
void progress_line_show(struct progress_line *line, const struct progress_state *state);

/** progress_line_end - take a line that was rewritten away. */
void progress_line_end(struct progress_line *line);

/** progress_clock - monotonic, in ns. */
uint64_t progress_clock(void);

#endif
