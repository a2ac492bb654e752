/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A classifier of small images. One program for any kind of replicator:
 *
 *     classifier one                          this process alone
 *     classifier threads:4                    replicas as threads
 *     trib-run -n 4 -- classifier workers     replicas as processes
 *     trib-run -n 4 -- classifier workers:devices=2     hidden units on two devices
 *     trib-run -n 4 -- classifier hybrid:groups=2       with a tribd: see TRIB_SERVICE
 *
 * With shares=12 as well ("threads:4,shares=12"), the final parameters have the same
 * bits for 1, 2, 3, 4, 6 or 12 replicas. The hash shows this.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tributary.h>
#include <tributary/replicator.h>

#include "examples/draw.h"

/* ---- the model: one hidden layer, split over the devices of a replica ------------ */

enum { SIDE = 8, PIXELS = SIDE * SIDE, CLASSES = 10, HIDDEN = 48, BATCH = 96 };
enum { UNIT = PIXELS + 1 + CLASSES }; /* input weights, bias, output weights */
enum { TESTS = 12 }; /* batches of test samples, separate from training */

struct sample {
    float pixels[PIXELS];
    uint64_t label;
};

struct classifier {
    trib_trainer_t *trainer;
    float params[HIDDEN * UNIT + CLASSES]; /* the last device has the output biases */
    size_t units;
    float hidden[BATCH * HIDDEN], out[BATCH * CLASSES];
    struct sample tests[BATCH];
};

/* A class is a random pattern, shifted sideways and with noise. */
static void draw_sample(uint64_t number, struct sample *s)
{
    uint64_t state = number, shift = draw_u64(&state) % 3;

    s->label = draw_u64(&state) % CLASSES;
    for (size_t i = 0; i < PIXELS; i++) {
        uint64_t pattern = s->label * PIXELS + (i / SIDE * SIDE + (i + shift) % SIDE);

        s->pixels[i] = draw_unit(&pattern) - 0.5f + 1.6f * (draw_unit(&state) - 0.5f);
    }
}

static void draw_params(struct classifier *c, size_t first)
{
    for (size_t i = 0; i < c->units * UNIT; i++) {
        uint64_t state = first * UNIT + i + 1;

        c->params[i] = i % UNIT == PIXELS ? 0 : 0.4f * (draw_unit(&state) - 0.5f);
    }
}

/* Compute the outputs of a batch: the sum over all devices of their units'
 * contributions. */
static trib_status_t forward(trib_replica_t *r, struct classifier *c,
                             const float *params, const struct sample *in, size_t count)
{
    const int last = trib_replica_device(r) == trib_replica_devices(r) - 1;

    for (size_t s = 0; s < count; s++) {
        float *out = c->out + s * CLASSES;

        for (size_t k = 0; k < CLASSES; k++)
            out[k] = last ? params[c->units * UNIT + k] : 0;
        for (size_t u = 0; u < c->units; u++) {
            const float *w = params + u * UNIT;
            float x = w[PIXELS];

            for (size_t i = 0; i < PIXELS; i++)
                x += w[i] * in[s].pixels[i];
            c->hidden[s * HIDDEN + u] = x = x > 0 ? x : 0;
            for (size_t k = 0; k < CLASSES; k++)
                out[k] += w[PIXELS + 1 + k] * x;
        }
    }
    return trib_allreduce(trib_replica_model(r), NULL, c->out, count * CLASSES,
                          TRIB_F32, TRIB_SUM);
}

/* Replace the outputs of a sample by the gradient of its loss; return the loss. */
static double softmax(float *out, size_t label)
{
    float most = out[0], sum = 0;

    for (size_t k = 1; k < CLASSES; k++)
        most = out[k] > most ? out[k] : most;
    for (size_t k = 0; k < CLASSES; k++)
        sum += out[k] = expf(out[k] - most);
    const double loss = -log((double)(out[label] / sum) + 1e-30);
    for (size_t k = 0; k < CLASSES; k++)
        out[k] = out[k] / sum - (k == label);
    return loss;
}

static void backward(const struct classifier *c, const float *params,
                     const struct sample *in, size_t s, float *gradient)
{
    const float *out = c->out + s * CLASSES;

    for (size_t u = 0; u < c->units; u++) {
        const float *w = params + u * UNIT, x = c->hidden[s * HIDDEN + u];
        float *g = gradient + u * UNIT, delta = 0;

        for (size_t k = 0; k < CLASSES; k++) {
            g[PIXELS + 1 + k] += out[k] * x;
            delta += out[k] * w[PIXELS + 1 + k];
        }
        if (x <= 0)
            continue;
        for (size_t i = 0; i < PIXELS; i++)
            g[i] += delta * in[s].pixels[i];
        g[PIXELS] += delta;
    }
}

static int gradient(trib_replica_t *r, const float *params, const void *samples,
                    size_t count, float *gradient, double *loss_out)
{
    struct classifier *c = trib_replica_state(r);
    const size_t n = c->units * UNIT;
    const int last = trib_replica_device(r) == trib_replica_devices(r) - 1;

    memset(gradient, 0, (n + (last ? CLASSES : 0)) * sizeof(float));
    if (forward(r, c, params, samples, count) != TRIB_OK)
        return -1;
    for (size_t s = 0; s < count; s++) {
        *loss_out +=
            softmax(c->out + s * CLASSES, ((const struct sample *)samples)[s].label) /
            (double)count;
        for (size_t k = 0; k < CLASSES; k++)
            c->out[s * CLASSES + k] /= (float)count;
        backward(c, params, samples, s, gradient);
        for (size_t k = 0; last && k < CLASSES; k++)
            gradient[n + k] += c->out[s * CLASSES + k];
    }
    return 0;
}

/* ---- the program ----------------------------------------------------------------- */

static int start(trib_replica_t *r)
{
    struct classifier *c = trib_replica_state(r);
    trib_trainer_desc_t desc = TRIB_TRAINER_DESC_INIT;
    const size_t device = trib_replica_device(r), devices = trib_replica_devices(r);
    const size_t first = HIDDEN * device / devices;

    c->units = HIDDEN * (device + 1) / devices - first;
    draw_params(c, first);
    desc.params = c->params;
    desc.count = c->units * UNIT + (device == devices - 1 ? CLASSES : 0);
    desc.optimizer = "sgd:momentum=0.5";
    desc.rate = "0.08";
    return trib_replica_trainer(r, &desc, &c->trainer);
}

static int input(trib_replica_t *r, const trib_input_t *in, void *samples)
{
    (void)r;
    for (size_t i = 0; i < in->count; i++)
        draw_sample(in->first + i, (struct sample *)samples + i);
    return 0;
}

static int step(trib_replica_t *r, void *samples)
{
    (void)samples;
    return trib_replica_train(r, ((struct classifier *)trib_replica_state(r))->trainer,
                              gradient, NULL);
}

/* Count the samples of a test batch that are classified correctly. */
static int count_right(trib_replica_t *r, size_t item, void *right)
{
    struct classifier *c = trib_replica_state(r);
    int64_t sum = 0;

    for (size_t s = 0; s < BATCH; s++)
        draw_sample((UINT64_C(1) << 40) + item * BATCH + s, &c->tests[s]);
    if (forward(r, c, c->params, c->tests, BATCH) != TRIB_OK)
        return -1;
    for (size_t s = 0; s < BATCH; s++) {
        const float *out = c->out + s * CLASSES;
        size_t best = 0;

        for (size_t k = 1; k < CLASSES; k++)
            best = out[k] > out[best] ? k : best;
        sum += best == c->tests[s].label;
    }
    *(int64_t *)right = sum;
    return 0;
}

static int finish(trib_replica_t *r)
{
    struct classifier *c = trib_replica_state(r);
    const size_t n = c->units * UNIT;
    trib_trainer_stats_t stats = {.size = sizeof(stats)};
    int64_t right;
    double square = 0;

    if (trib_replica_map_reduce(r, count_right, TESTS, &right, 1, TRIB_I64, TRIB_SUM))
        return -1;
    for (size_t i = 0; i < n; i++)
        square += (double)c->params[i] * (double)c->params[i];
    if (trib_allreduce(trib_replica_model(r), NULL, &square, 1, TRIB_F64, TRIB_SUM))
        return -1;
    trib_trainer_stats(c->trainer, &stats);
    if (trib_replica_id(r) == 0 && trib_replica_device(r) == 0)
        printf("accuracy %.1f %%, staleness %.1f, norm %.6f, hash %016" PRIx64 "\n",
               100.0 * (double)right / (TESTS * BATCH),
               (double)stats.stale / (double)stats.rounds, sqrt(square),
               trib_hash(c->params, n * sizeof(float), 0));
    return 0;
}

int main(int argc, char **argv)
{
    trib_replicator_opts_t opts = TRIB_REPLICATOR_OPTS_INIT;

    opts.kind = argc > 1 ? argv[1] : NULL;
    opts.steps = argc > 2 ? strtoull(argv[2], NULL, 10) : 240;
    opts.batch = BATCH;
    opts.sample_bytes = sizeof(struct sample);
    opts.state_bytes = sizeof(struct classifier);
    opts.start = start;
    opts.input = input;
    opts.step = step;
    opts.finish = finish;
    if (trib_replicator_run(&opts) == TRIB_OK)
        return 0;
    fprintf(stderr, "classifier: %s\n", trib_replicator_error());
    return 1;
}
