/* SPDX-License-Identifier: BSD-3-Clause */
#include "examples/report.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const uint64_t rewrite_ns = 100 * 1000 * 1000;
static const uint64_t line_ns = 2000 * 1000 * 1000u;

uint64_t report_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int close_file(FILE *file, const char *path)
{
    int failed = ferror(file);

    if (fclose(file) != 0 || failed) {
        fprintf(stderr, "train: %s: could not be written\n", path);
        return -1;
    }
    return 0;
}

/* Found before the training, and not after it. */
static int try_summary(const char *path, char *error, size_t bytes)
{
    FILE *file = fopen(path, "a");

    if (file == NULL) {
        snprintf(error, bytes, "%s: %s", path, strerror(errno));
        return -1;
    }
    return fclose(file);
}

int report_open(struct report *report, const struct train_options *options, char *error,
                size_t bytes)
{
    *report = (struct report){.codec = options->codec};
    report->progress = options->progress;
    if (report->progress == TRAIN_PROGRESS_AUTO)
        report->progress =
            isatty(STDERR_FILENO) ? TRAIN_PROGRESS_REWRITE : TRAIN_PROGRESS_LINES;
    if (options->summary != NULL && try_summary(options->summary, error, bytes) != 0)
        return -1;
    if (options->csv == NULL)
        return 0;
    report->csv = fopen(options->csv, "w");
    if (report->csv == NULL) {
        snprintf(error, bytes, "%s: %s", options->csv, strerror(errno));
        return -1;
    }
    fputs("step,wire_bytes,accuracy_pct,loss,seconds\n", report->csv);
    return 0;
}

static double ms_per_step(const struct report_state *state)
{
    return (double)state->step_ns / 1e6 / (double)(state->step > 0 ? state->step : 1);
}

static void show_bar(size_t step, size_t steps)
{
    static const char bar[] = "##########";
    size_t width = sizeof(bar) - 1;

    fprintf(stderr, "[%-*.*s]", (int)width, (int)(width * step / steps), bar);
}

/* At most 79 columns, so that a line is one line of any terminal. */
void report_step(struct report *report, const struct report_state *state)
{
    int rewrites = report->progress == TRAIN_PROGRESS_REWRITE;
    uint64_t pause_ns = rewrites ? rewrite_ns : line_ns;
    uint64_t now = report_clock();
    int last = state->step == state->steps;

    if (report->progress == TRAIN_PROGRESS_NONE ||
        (now - report->shown_ns < pause_ns && !last))
        return;
    report->shown_ns = now;
    /* Up one line and erase it: trib-run passes on whole lines only. */
    if (rewrites && report->shown > 0)
        fputs("\033[A\033[2K", stderr);
    report->shown++;
    fprintf(stderr, "%-15s ", report->codec);
    show_bar(state->step, state->steps);
    fprintf(stderr, " %4zu/%zu  accuracy %4.1f %%  %6.1f MB  %4.1f ms/step\n",
            state->step, state->steps, 100.0 * state->accuracy,
            (double)state->wire_bytes / 1e6, ms_per_step(state));
}

void report_point(struct report *report, const struct report_state *state)
{
    if (report->csv == NULL)
        return;
    fprintf(report->csv, "%zu,%llu,%.2f,%.4f,%.3f\n", state->step,
            (unsigned long long)state->wire_bytes, 100.0 * state->accuracy, state->loss,
            (double)state->step_ns / 1e9);
}

static double share_pct(const struct report_state *state)
{
    return state->step_ns > 0
               ? 100.0 * (double)state->library_ns / (double)state->step_ns
               : 0.0;
}

static double bytes_per_step(const struct report_state *state)
{
    return (double)state->wire_bytes / (double)state->step;
}

static void print_result(const struct report *report,
                         const struct report_result *result)
{
    const struct report_state *end = &result->end;

    printf("codec          %s\n", report->codec);
    printf("model          %zu parameters, %d rank%s, %zu step%s\n", result->n_params,
           result->ranks, result->ranks == 1 ? "" : "s", end->step,
           end->step == 1 ? "" : "s");
    printf("test accuracy  %.2f %%\n", 100.0 * end->accuracy);
    printf("wire           %.1f kB per step and rank\n", bytes_per_step(end) / 1e3);
    printf("step           %.2f ms, %.0f %% of it not hidden by compute\n",
           ms_per_step(end), share_pct(end));
    printf("weights        %016llx, %s on all ranks\n",
           (unsigned long long)result->weights_hash,
           result->identical ? "identical" : "NOT identical");
}

static int write_summary(const char *path, const struct report *report,
                         const struct report_result *result)
{
    const struct report_state *end = &result->end;
    FILE *file = fopen(path, "w");

    if (file == NULL) {
        fprintf(stderr, "train: %s: %s\n", path, strerror(errno));
        return -1;
    }
    fprintf(file, "codec\t%s\n", report->codec);
    fprintf(file, "ranks\t%d\n", result->ranks);
    fprintf(file, "parameters\t%zu\n", result->n_params);
    fprintf(file, "steps\t%zu\n", end->step);
    fprintf(file, "accuracy_pct\t%.2f\n", 100.0 * end->accuracy);
    fprintf(file, "bytes_per_step\t%.0f\n", bytes_per_step(end));
    fprintf(file, "ms_per_step\t%.3f\n", ms_per_step(end));
    fprintf(file, "not_hidden_pct\t%.1f\n", share_pct(end));
    fprintf(file, "weights_hash\t%016llx\n", (unsigned long long)result->weights_hash);
    fprintf(file, "identical\t%s\n", result->identical ? "yes" : "no");
    return close_file(file, path);
}

int report_finish(struct report *report, const struct train_options *options,
                  const struct report_result *result)
{
    int failed = 0;

    if (report->csv != NULL)
        failed |= close_file(report->csv, options->csv);
    report->csv = NULL;
    print_result(report, result);
    if (options->summary != NULL)
        failed |= write_summary(options->summary, report, result);
    return failed;
}

void report_close(struct report *report)
{
    if (report->csv != NULL)
        fclose(report->csv);
    report->csv = NULL;
}
