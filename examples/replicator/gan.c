/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A small generative adversarial network (Goodfellow et al., NeurIPS 2014, with the
 * gradient penalty of Mescheder et al., ICML 2018). One program for any kind of
 * replicator, like classifier.c: gan [KIND [STEPS]].
 *
 * Each step trains two models with the same samples: first the discriminator, then the
 * generator, which learns numbers of mean 3 and deviation 0.5.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tributary.h>
#include <tributary/replicator.h>

#include "examples/draw.h"

/* ---- the models: two networks with one input, a hidden layer and one output ------ */

enum { HIDDEN = 16, PARAMS = 3 * HIDDEN + 1, BATCH = 96, FAKES = 4096 };

struct sample {
    float real, noise;
};

struct gan {
    trib_trainer_t *judge, *maker;
    float judge_params[PARAMS], maker_params[PARAMS];
};

/* Return a normal random number (Box & Muller, 1958). */
static float normal(uint64_t *state)
{
    const float radius = sqrtf(-2 * logf(1 - draw_unit(state)));

    return radius * cosf(6.2831853f * draw_unit(state));
}

static void draw_params(float *params, uint64_t seed)
{
    for (size_t i = 0; i < PARAMS; i++)
        params[i] = i == 3 * HIDDEN ? 0 : 1.5f * normal(&seed);
}

/* Unit u has weight p[3 u], bias p[3 u + 1], and output weight p[3 u + 2]. */
static float network(const float *p, float x)
{
    float y = p[3 * HIDDEN];

    for (size_t u = 0; u < HIDDEN; u++)
        y += p[3 * u + 2] * tanhf(p[3 * u] * x + p[3 * u + 1]);
    return y;
}

/* Add the derivative of the output by the parameters, times `by`, to gradient. Return
 * the derivative by x. */
static float derive(const float *p, float x, float by, float *gradient)
{
    float by_x = 0;

    for (size_t u = 0; u < HIDDEN; u++) {
        const float t = tanhf(p[3 * u] * x + p[3 * u + 1]);
        const float inner = p[3 * u + 2] * (1 - t * t);

        by_x += inner * p[3 * u];
        if (!gradient)
            continue;
        gradient[3 * u] += by * inner * x;
        gradient[3 * u + 1] += by * inner;
        gradient[3 * u + 2] += by * t;
    }
    if (gradient)
        gradient[3 * HIDDEN] += by;
    return by_x;
}

static float sigmoid(float x)
{
    return 1 / (1 + expf(-x));
}

/* Add the gradient of slope^2 / 2 at x, where slope is the derivative of the output by
 * x. */
static void penalise(const float *p, float x, float by, float *gradient)
{
    const float slope = derive(p, x, 0, NULL);

    for (size_t u = 0; u < HIDDEN; u++) {
        const float w = p[3 * u], a = p[3 * u + 2], t = tanhf(w * x + p[3 * u + 1]);
        const float d = 1 - t * t, dd = -2 * t * d;

        gradient[3 * u] += by * slope * a * (d + w * x * dd);
        gradient[3 * u + 1] += by * slope * a * w * dd;
        gradient[3 * u + 2] += by * slope * w * d;
    }
}

/* The discriminator's output should be large for real numbers and small for generated
 * ones. */
static int judge_gradient(trib_replica_t *r, const float *p, const void *samples,
                          size_t count, float *gradient, double *loss_out)
{
    const struct gan *g = trib_replica_state(r);
    const float *maker = trib_replica_params(r, g->maker);
    const struct sample *s = samples;
    const float part = 1 / (float)count;

    memset(gradient, 0, PARAMS * sizeof(float));
    for (size_t i = 0; i < count; i++) {
        const float fake = network(maker, s[i].noise);
        const float yes = network(p, s[i].real), no = network(p, fake);

        derive(p, s[i].real, (sigmoid(yes) - 1) * part, gradient);
        derive(p, fake, sigmoid(no) * part, gradient);
        penalise(p, s[i].real, 0.3f * part, gradient);
        *loss_out += (double)(part * (log1pf(expf(-yes)) + log1pf(expf(no))));
    }
    return 0;
}

/* The discriminator's output should be large for generated numbers. */
static int maker_gradient(trib_replica_t *r, const float *p, const void *samples,
                          size_t count, float *gradient, double *loss_out)
{
    const struct gan *g = trib_replica_state(r);
    const float *judge = trib_replica_params(r, g->judge);
    const struct sample *s = samples;
    const float part = 1 / (float)count;

    memset(gradient, 0, PARAMS * sizeof(float));
    for (size_t i = 0; i < count; i++) {
        const float fake = network(p, s[i].noise), yes = network(judge, fake);
        const float by_fake = derive(judge, fake, 0, NULL);

        derive(p, s[i].noise, (sigmoid(yes) - 1) * by_fake * part, gradient);
        *loss_out += (double)(part * log1pf(expf(-yes)));
    }
    return 0;
}

/* ---- the program ----------------------------------------------------------------- */

static int start(trib_replica_t *r)
{
    struct gan *g = trib_replica_state(r);
    trib_trainer_desc_t desc = TRIB_TRAINER_DESC_INIT;

    draw_params(g->judge_params, 1);
    draw_params(g->maker_params, 2);
    desc.count = PARAMS;
    desc.optimizer = "adam:beta1=0";
    desc.rate = "0.02";
    desc.params = g->judge_params;
    if (trib_replica_trainer(r, &desc, &g->judge) != TRIB_OK)
        return -1;
    desc.params = g->maker_params;
    desc.rate = "0.002"; /* slow, so that the discriminator can follow */
    return trib_replica_trainer(r, &desc, &g->maker);
}

static int input(trib_replica_t *r, const trib_input_t *in, void *samples)
{
    struct sample *s = samples;

    (void)r;
    for (size_t i = 0; i < in->count; i++) {
        uint64_t state = in->first + i;

        s[i].real = 3 + 0.5f * normal(&state);
        s[i].noise = normal(&state);
    }
    return 0;
}

static int step(trib_replica_t *r, void *samples)
{
    struct gan *g = trib_replica_state(r);

    (void)samples;
    return trib_replica_train(r, g->judge, judge_gradient, NULL) != TRIB_OK ||
           trib_replica_train(r, g->maker, maker_gradient, NULL) != TRIB_OK;
}

static int finish(trib_replica_t *r)
{
    const struct gan *g = trib_replica_state(r);
    uint64_t state = 7;
    double sum = 0, square = 0;

    for (size_t i = 0; i < FAKES; i++) {
        const double fake = (double)network(g->maker_params, normal(&state));

        sum += fake / FAKES;
        square += fake * fake / FAKES;
    }
    if (trib_replica_id(r) == 0 && trib_replica_device(r) == 0)
        printf("mean %.2f, deviation %.2f, hash %016" PRIx64 "\n", sum,
               sqrt(square - sum * sum),
               trib_hash(g->maker_params, sizeof(g->maker_params), 0));
    return 0;
}

int main(int argc, char **argv)
{
    trib_replicator_opts_t opts = TRIB_REPLICATOR_OPTS_INIT;

    opts.kind = argc > 1 ? argv[1] : NULL;
    opts.steps = argc > 2 ? strtoull(argv[2], NULL, 10) : 600;
    opts.batch = BATCH;
    opts.sample_bytes = sizeof(struct sample);
    opts.state_bytes = sizeof(struct gan);
    opts.start = start;
    opts.input = input;
    opts.step = step;
    opts.finish = finish;
    if (trib_replicator_run(&opts) == TRIB_OK)
        return 0;
    fprintf(stderr, "gan: %s\n", trib_replicator_error());
    return 1;
}
