/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/program/progress_line.h"

#include <math.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static const uint64_t patience_ns = 2000 * 1000 * 1000u; /* before the first line */
static const uint64_t rewrite_ns = 100 * 1000 * 1000;

uint64_t progress_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void progress_line_begin(struct progress_line *line, enum train_progress how,
                         const char *title)
{
    *line = (struct progress_line){.how = how, .title = title};
    if (how == TRAIN_PROGRESS_AUTO)
        line->how =
            isatty(STDERR_FILENO) ? TRAIN_PROGRESS_REWRITE : TRAIN_PROGRESS_LINES;
    line->begun_ns = progress_clock();
}

/* Move up one line and erase it, because trib-run forwards only whole lines. */
static void erase(const struct progress_line *line)
{
    if (line->how == TRAIN_PROGRESS_REWRITE && line->shown > 0)
        fputs("\033[A\033[2K", stderr);
}

/* Print at most 79 columns, so that the line does not wrap. */
void progress_line_show(struct progress_line *line, const struct progress_state *state)
{
    static const char bar[] = "##########";
    const size_t width = sizeof(bar) - 1;
    char sent[32] = "";
    double left = 0; /* seconds, estimated from the average step so far */
    const uint64_t now = progress_clock();
    const uint64_t pause =
        line->how == TRAIN_PROGRESS_REWRITE ? rewrite_ns : patience_ns;

    if (line->how == TRAIN_PROGRESS_NONE || now - line->begun_ns < patience_ns ||
        now - line->shown_ns < pause)
        return;
    if (isfinite(state->wire_bytes))
        snprintf(sent, sizeof(sent), "  %.1f MB", state->wire_bytes / 1e6);
    erase(line);
    line->shown_ns = now;
    line->shown++;
    if (state->step > 0)
        left = (double)(now - line->begun_ns) * 1e-9 / (double)state->step *
               (double)(state->steps - state->step);
    fprintf(stderr, "%-20.20s [%-*.*s] %zu/%zu  loss %.3f%s  %.1f ms  %.0f s left\n",
            line->title, (int)width, (int)(width * state->step / state->steps), bar,
            state->step, state->steps, state->loss, sent, state->step_ms, left);
}

void progress_line_end(struct progress_line *line)
{
    erase(line);
    line->shown = 0;
}
