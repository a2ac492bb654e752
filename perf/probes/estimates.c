/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * estimates - compare the timing model of pipelined training with measured steps.
 *
 *     trib-run -n 4 -- estimates [COMPUTE_MS [STEPS [CODECS]]]
 *
 * A gradient takes COMPUTE_MS (5) of sleep, as on an accelerator, and a copy of 535 818
 * random elements. A trainer with width=auto measures its first steps and estimates
 * each row of CODECS ("none|int8|qsgd:bits=4"); then each row runs for STEPS (60)
 * steps. Rank 0 prints a line per row, with the median of its steps:
 *
 *     compute_ms,codec,width,estimated_ms,measured_ms,error,gain,measured_gain,at_most,
 *     chosen
 *
 * Gains, estimated and measured, are relative to the dense synchronous step. The last
 * lines say where a gain of 5.4 is possible: t_sum / t_compute from 4.4 up to c / (5.4
 * - c).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tributary.h>
#include <tributary/train.h>

enum { ELEMENTS = 535818, WARM = 5, ROWS_MAX = 17 };
#define GAIN 5.4 /* speedup in the abstract of Pipe-SGD */

struct bench {
    trib_comm_t *comm;
    long compute_us;
    int steps;
    float *params, *gradient;
    double *samples;
};

static double now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return 1e3 * (double)ts.tv_sec + 1e-6 * (double)ts.tv_nsec;
}

static void die(const struct bench *b, const trib_trainer_t *t)
{
    fprintf(stderr, "estimates: rank %d: %s\n", trib_rank(b->comm),
            trib_trainer_error(t));
    exit(1);
}

/* Element magnitudes differ by layer and by rank. */
static void draw_gradient(const struct bench *b)
{
    uint64_t state = 88172645463325252u + (uint64_t)trib_rank(b->comm);

    for (size_t i = 0; i < ELEMENTS; i++) {
        double sum = -2;

        for (int k = 0; k < 4; k++) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            sum += (double)(state >> 11) * 0x1p-53;
        }
        b->gradient[i] = (float)(0.01 * sum * sum * sum);
    }
}

static trib_trainer_t *trainer_of(const struct bench *b, const char *strategy)
{
    trib_trainer_desc_t desc = TRIB_TRAINER_DESC_INIT;
    trib_trainer_t *t;

    desc.params = b->params;
    desc.count = ELEMENTS;
    desc.strategy = strategy;
    desc.optimizer = "sgd:momentum=0.9";
    desc.rate = "0.001";
    if (trib_trainer_create(b->comm, &desc, &t) != TRIB_OK)
        die(b, NULL);
    return t;
}

static double run_step(const struct bench *b, trib_trainer_t *t)
{
    const double began = now_ms();
    const struct timespec nap = {b->compute_us / 1000000,
                                 b->compute_us % 1000000 * 1000};
    trib_step_t step = TRIB_STEP_INIT;

    if (trib_trainer_begin(t, &step) != TRIB_OK)
        die(b, t);
    memcpy(step.gradient, b->gradient, ELEMENTS * sizeof(float));
    nanosleep(&nap, NULL);
    if (trib_trainer_end(t, 0) != TRIB_OK)
        die(b, t);
    return now_ms() - began;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Return the median step time of a new trainer. */
static double measure(const struct bench *b, const char *codec, int width)
{
    char strategy[256];

    snprintf(strategy, sizeof(strategy), "pipe:width=%d+%s", width, codec);
    trib_trainer_t *t = trainer_of(b, strategy);

    for (int i = 0; i < WARM; i++)
        (void)run_step(b, t);
    for (int i = 0; i < b->steps; i++)
        b->samples[i] = run_step(b, t);
    qsort(b->samples, (size_t)b->steps, sizeof(*b->samples), by_size);
    if (trib_trainer_settle(t, NULL) != TRIB_OK)
        die(b, t);
    trib_trainer_free(t);
    return b->samples[b->steps / 2];
}

static void print_inputs(const trib_estimate_t *e)
{
    printf("# %s, width %d: ms of compute %.2f, update %.2f, start %.2f, link %.2f, "
           "processor %.2f and %.2f; %.1f ranks for a processor\n",
           e->codec, e->width, 1e3 * e->compute, 1e3 * e->update, 1e3 * e->start,
           1e3 * e->wire, 1e3 * e->busy, 1e3 * e->load, e->crowd);
}

static void print_row(const struct bench *b, const trib_estimate_t *e, int chosen,
                      double ms, double dense_ms)
{
    printf("%g,\"%s\",%d,%.2f,%.2f,%+.0f%%,%.2f,%.2f,%.2f,%d\n",
           1e-3 * (double)b->compute_us, e->codec, e->width, 1e3 * e->step, ms,
           100 * (1e3 * e->step / ms - 1), e->gain, dense_ms / ms, e->cap, chosen);
}

/* Print the range of communication over computation where a codec of ratio c gains GAIN
 * over a dense synchronous ring. */
static void print_window(const trib_estimate_t *e)
{
    const double c = e->ratio, least = GAIN - 1;
    const double most = c >= GAIN ? (double)INFINITY : c / (GAIN - c);

    if (e->width < 2)
        return;
    if (most < least)
        printf("# %s: %.1f times smaller, never %.1f times faster\n", e->codec, c,
               GAIN);
    else
        printf("# %s: %.1f times smaller, %.1f times faster for t_sum / t_compute "
               "from %.1f to %.1f\n",
               e->codec, c, GAIN, least, most);
}

static size_t read_rows(const struct bench *b, const char *codecs,
                        trib_estimate_t *rows, int *chosen)
{
    char strategy[256];
    size_t n = 0;

    snprintf(strategy, sizeof(strategy), "pipe:width=auto+%s", codecs);
    trib_trainer_t *t = trainer_of(b, strategy);
    trib_status_t st = TRIB_ERR_BUSY;

    while (st == TRIB_ERR_BUSY) {
        (void)run_step(b, t);
        rows[0] = (trib_estimate_t)TRIB_ESTIMATE_INIT;
        st = trib_trainer_estimate(t, 0, &rows[0], NULL);
    }
    for (; n < ROWS_MAX; n++) {
        rows[n] = (trib_estimate_t)TRIB_ESTIMATE_INIT;
        if (trib_trainer_estimate(t, n, &rows[n], &chosen[n]) != TRIB_OK)
            break;
        rows[n].codec = strdup(rows[n].codec);
    }
    if (trib_trainer_settle(t, NULL) != TRIB_OK)
        die(b, t);
    trib_trainer_free(t);
    return n;
}

static void run(const struct bench *b, const char *codecs)
{
    trib_estimate_t rows[ROWS_MAX];
    int chosen[ROWS_MAX] = {0};
    double ms[ROWS_MAX];
    const size_t n = read_rows(b, codecs, rows, chosen);

    for (size_t i = 0; i < n; i++)
        ms[i] = measure(b, rows[i].codec, rows[i].width);
    for (size_t i = 0; i < n && trib_rank(b->comm) == 0; i++)
        print_row(b, &rows[i], chosen[i], ms[i], ms[0]);
    for (size_t i = 0; i < n; i++) {
        if (trib_rank(b->comm) == 0) {
            print_inputs(&rows[i]);
            print_window(&rows[i]);
        }
        free((char *)(uintptr_t)rows[i].codec);
    }
}

int main(int argc, char **argv)
{
    const double ms = argc > 1 ? atof(argv[1]) : 5;
    struct bench b = {.compute_us = (long)(1e3 * ms),
                      .steps = argc > 2 ? atoi(argv[2]) : 60};

    if (!(ms >= 0) || b.steps < 1)
        return fprintf(stderr, "usage: estimates [COMPUTE_MS [STEPS [CODECS]]]\n"), 2;
    if (trib_init(NULL, &b.comm) != TRIB_OK)
        return fprintf(stderr, "%s\n", trib_last_error(NULL)), 1;
    b.params = calloc(ELEMENTS, sizeof(float));
    b.gradient = calloc(ELEMENTS, sizeof(float));
    b.samples = calloc((size_t)b.steps, sizeof(double));
    if (!b.params || !b.gradient || !b.samples)
        return fprintf(stderr, "estimates: no memory\n"), 1;
    draw_gradient(&b);
    run(&b, argc > 3 ? argv[3]
                     : "none|int8:result=requantised|qsgd:bits=4|"
                       "topk:ratio=0.001+natural");
    free(b.params);
    free(b.gradient);
    free(b.samples);
    return trib_free_comm(b.comm) != TRIB_OK;
}
