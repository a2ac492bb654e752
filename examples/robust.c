/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One rank sends poisoned gradients, and the others still learn.
 *
 *     trib-run -n 5 -- robust [mean|median|trimmed-mean|clipped-mean]
 *
 * Each rank has noisy samples of one linear function, and all ranks fit its weights by
 * gradient descent. The last rank sends the negated gradient times 100, with a NaN in
 * it. Rank 0 prints the error of the weights, and the time of one sum.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tributary.h>

enum { WEIGHTS = 2000, SAMPLES = 64, STEPS = 300 };

static float random_number(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (float)(*state >> 40) * 0x1p-23f - 1.0f;
}

static float truth(int i)
{
    return sinf((float)i);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Compute the gradient of the squared error of fresh samples, a few for each weight. */
static void gradient(const float *w, uint64_t *state, float *g)
{
    memset(g, 0, WEIGHTS * sizeof *g);
    for (int i = 0; i < WEIGHTS; i++) {
        for (int s = 0; s < SAMPLES / 16; s++) {
            const float x = random_number(state), noise = 0.1f * random_number(state);
            g[i] += 2 * x * (x * (w[i] - truth(i)) + noise) / (SAMPLES / 16);
        }
    }
}

static double distance(const float *w)
{
    double sum = 0;
    for (int i = 0; i < WEIGHTS; i++)
        sum += (double)(w[i] - truth(i)) * (double)(w[i] - truth(i));
    return sqrt(sum / WEIGHTS);
}

static trib_status_t train(trib_comm_t *comm, trib_op_t op)
{
    static float w[WEIGHTS], g[WEIGHTS];
    const int rank = trib_rank(comm), size = trib_size(comm);
    const bool poisons = rank > 0 && rank == size - 1;
    uint64_t state = 7 + (uint64_t)rank;
    double spent = 0;
    trib_desc_t d = TRIB_DESC_INIT;
    trib_plan_t *plan;

    d.recv = g;
    d.count = WEIGHTS;
    d.op = op;
    d.parameter = op == TRIB_TRIMMED_MEAN ? 0.25 : op == TRIB_CLIPPED_MEAN ? 0.5 : 0;
    trib_status_t st = trib_plan_allreduce(comm, &d, &plan);
    for (int step = 0; step < STEPS && st == TRIB_OK; step++) {
        gradient(w, &state, g);
        for (int i = 0; poisons && i < WEIGHTS; i++)
            g[i] = i == step ? NAN : -100 * g[i];
        const double begin = seconds();
        st = trib_plan_start(plan);
        if (st == TRIB_OK)
            st = trib_plan_wait(plan);
        spent += seconds() - begin;
        for (int i = 0; i < WEIGHTS; i++)
            w[i] -= 0.1f * g[i];
    }
    if (st == TRIB_OK && rank == 0)
        printf(
            "%s: %d ranks, one of them poisoned: weights are off by %.3g; %.0f us per "
            "sum\n",
            trib_op_name(op), size, distance(w), spent / STEPS * 1e6);
    trib_plan_free(plan);
    return st;
}

int main(int argc, char **argv)
{
    trib_op_t op = TRIB_MEDIAN;
    trib_comm_t *comm;
    if (argc > 1 && trib_op_parse(argv[1], &op) != TRIB_OK) {
        fprintf(stderr, "unknown operator %s\n", argv[1]);
        return 2;
    }
    if (trib_init(NULL, &comm) != TRIB_OK) {
        fprintf(stderr, "%s\n", trib_last_error(NULL));
        return 1;
    }
    const trib_status_t st = train(comm, op);
    if (st != TRIB_OK)
        fprintf(stderr, "%s\n", trib_last_error(comm));
    return trib_free_comm(comm) != TRIB_OK || st != TRIB_OK;
}
