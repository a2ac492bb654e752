/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/train/replicas.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tributary.h>

struct state {
    trib_trainer_t *trainer;
    float params[REPLICAS_PARAMS];
};

static const double learning_rate = 0.125;

static void first_params(float *params)
{
    for (int i = 0; i < REPLICAS_PARAMS; i++)
        params[i] = (float)(i % 5) * 0.37f - 0.6f;
}

/* Two samples of a batch cancel; a value that is added between them loses its low
 * bits. */
static float huge(uint64_t place)
{
    return place == 1 ? 0x1p45f : place == 7 ? -0x1p45f : 0;
}

/* The gradient of a mean that is curved, so that every rounding shows. */
static void mean_gradient(const float *params, const uint64_t *samples, size_t count,
                          float *gradient)
{
    for (int i = 0; i < REPLICAS_PARAMS; i++) {
        float sum = 0;

        for (size_t s = 0; s < count; s++) {
            const uint64_t mixed =
                (samples[s] * 37 + (uint64_t)i) * 0x9e3779b97f4a7c15u;
            const float a = (float)(mixed >> 40) * 0x1p-24f;

            sum += tanhf(params[i] * (0.5f + a)) - 0.3f * a;
            if (i < REPLICAS_WIDE)
                sum += huge(samples[s] % REPLICAS_BATCH);
        }
        gradient[i] = sum / (float)count;
    }
}

static void update(void *arg, float *params, const float *gradient, size_t first,
                   size_t count, double rate)
{
    (void)arg;
    for (size_t i = first; i < first + count; i++)
        params[i] -= (float)rate * gradient[i];
}

void replicas_oracle(int shares, float params_out[REPLICAS_PARAMS])
{
    const size_t count = REPLICAS_BATCH / (size_t)shares;
    float gradient[REPLICAS_PARAMS];
    double sum[REPLICAS_PARAMS];

    first_params(params_out);
    for (uint64_t step = 0; step < REPLICAS_STEPS; step++) {
        memset(sum, 0, sizeof(sum));
        for (int k = 0; k < shares; k++) {
            uint64_t samples[REPLICAS_BATCH];

            for (size_t s = 0; s < count; s++)
                samples[s] = step * REPLICAS_BATCH + (size_t)k * count + s;
            mean_gradient(params_out, samples, count, gradient);
            for (int i = 0; i < REPLICAS_PARAMS; i++)
                sum[i] += (double)gradient[i];
        }
        for (int i = 0; i < REPLICAS_PARAMS; i++)
            gradient[i] = (float)(sum[i] / shares);
        update(NULL, params_out, gradient, 0, REPLICAS_PARAMS, learning_rate);
    }
}

double replicas_distance(const float *a, const float *b)
{
    double most = 0;

    for (int i = REPLICAS_WIDE; i < REPLICAS_PARAMS; i++)
        most = fmax(most, fabs((double)a[i] - (double)b[i]));
    return most;
}

/* ---- the program ----------------------------------------------------------------- */

static bool fails(trib_replica_t *r, enum replicas_fault fault)
{
    const struct replicas_job *job = trib_replica_arg(r);

    return job->fault == fault && job->replica == trib_replica_id(r) &&
           job->step == trib_replica_step(r) &&
           trib_replica_device(r) == trib_replica_devices(r) - 1;
}

static int start(trib_replica_t *r)
{
    const struct replicas_job *job = trib_replica_arg(r);
    struct state *state = trib_replica_state(r);
    trib_trainer_desc_t desc = TRIB_TRAINER_DESC_INIT;

    if (fails(r, FAULT_START))
        return trib_replica_fail(r, "no %s", "model");
    first_params(state->params);
    desc.params = state->params;
    desc.count = REPLICAS_PARAMS;
    desc.update = job->by_rule ? NULL : update;
    desc.rate = "0.125";
    if (fails(r, FAULT_STRATEGY))
        desc.strategy = "local:period=4";
    return trib_replica_trainer(r, &desc, &state->trainer);
}

static int input(trib_replica_t *r, const trib_input_t *in, void *samples)
{
    struct replicas_job *job = trib_replica_arg(r);

    if (job->fault == FAULT_INPUT && job->step == trib_replica_step(r) &&
        job->replica >= trib_replica_id(r))
        return trib_replica_fail(r, "no more samples");
    atomic_fetch_add(&job->inputs, 1);
    for (size_t i = 0; i < in->count; i++) {
        ((uint64_t *)samples)[i] = in->first + i;
        atomic_fetch_add(&job->made[in->first + i], 1);
    }
    return 0;
}

static int gradient(trib_replica_t *r, const float *params, const void *samples,
                    size_t count, float *gradient, double *loss_out)
{
    struct replicas_job *job = trib_replica_arg(r);
    const uint64_t *numbers = samples;

    if (fails(r, FAULT_GRADIENT))
        return trib_replica_fail(r, "the loss is NaN");
    for (size_t s = 0; s < count; s++)
        atomic_fetch_add(&job->seen[numbers[s]], 1);
    mean_gradient(params, numbers, count, gradient);
    *loss_out = (double)numbers[0];
    return 0;
}

/* Run a step with calls of the trainer instead of trib_replica_train. */
static int step_by_hand(struct state *state)
{
    trib_step_t step = TRIB_STEP_INIT;

    if (trib_trainer_begin(state->trainer, &step) != TRIB_OK)
        return -1;
    memset(step.gradient, 0, sizeof(state->params));
    return trib_trainer_end(state->trainer, 0);
}

static int step(trib_replica_t *r, void *samples)
{
    const struct replicas_job *job = trib_replica_arg(r);
    struct state *state = trib_replica_state(r);
    float one = 1;
    double loss;

    if (fails(r, FAULT_STEP))
        return trib_replica_fail(r, "label %d", 11);
    if (fails(r, FAULT_STEP_SILENT))
        return 7;
    if (fails(r, FAULT_BY_HAND))
        return step_by_hand(state);
    if (fails(r, FAULT_DIES)) {
        atomic_store(job->waits, 1);
        for (;;)
            pause();
    }
    if (fails(r, FAULT_ORDER)
            ? trib_replica_broadcast(r, &one, 1, TRIB_F32, 0)
            : trib_replica_all_reduce(r, NULL, &one, 1, TRIB_F32, TRIB_SUM))
        return -1;
    if (one != (float)trib_replica_in_sync(r))
        return trib_replica_fail(r, "a sum of ones is %g", (double)one);
    if (job->check && job->check(r) != 0)
        return -1;
    if (trib_replica_train(r, state->trainer, gradient, &loss) != TRIB_OK)
        return -1;
    return loss < (double)((uint64_t *)samples)[0];
}

static int finish(trib_replica_t *r)
{
    struct replicas_job *job = trib_replica_arg(r);
    const struct state *state = trib_replica_state(r);
    trib_trainer_stats_t stats = {.size = sizeof(stats)};

    trib_trainer_stats(state->trainer, &stats);
    for (int most = atomic_load(&job->stale); most < (int)stats.stale;)
        atomic_compare_exchange_weak(&job->stale, &most, (int)stats.stale);
    if (job->fault == FAULT_FINISH && job->replica == trib_replica_id(r))
        return trib_replica_fail(r, "no room for the model");
    if (trib_replica_id(r) == 0 && trib_replica_device(r) == 0)
        memcpy(job->params, state->params, sizeof(job->params));
    atomic_fetch_add(&job->finished, 1);
    return 0;
}

trib_status_t replicas_run(struct replicas_job *job)
{
    trib_replicator_opts_t opts = TRIB_REPLICATOR_OPTS_INIT;

    opts.kind = job->kind;
    opts.comm = job->comm;
    opts.batch = REPLICAS_BATCH;
    opts.sample_bytes = sizeof(uint64_t);
    opts.steps = REPLICAS_STEPS;
    opts.state_bytes = sizeof(struct state);
    opts.start = start;
    opts.input = input;
    opts.step = step;
    opts.finish = finish;
    opts.arg = job;
    return trib_replicator_run(&opts);
}
