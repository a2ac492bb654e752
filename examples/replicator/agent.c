/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A small control agent that learns to balance a pole on a cart by actor-critic. One
 * program for any kind of replicator, like classifier.c: agent [KIND [STEPS]].
 *
 * A sample is the seed of an episode, which the gradient function plays. Sources:
 * Barto, Sutton & Anderson, IEEE Trans. Systems, Man & Cybernetics 13, 1983 (the cart
 * and the pole); Williams, Machine Learning 8, 1992 (the gradient).
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tributary.h>
#include <tributary/replicator.h>

#include "examples/draw.h"

/* ---- the cart -------------------------------------------------------------------- */

enum { SENSES = 4, MOVES_MAX = 200 };

/* Position and velocity of the cart, angle and angular velocity of the pole. */
struct cart {
    float at[SENSES];
};

/* Push the cart to the right or left for 0.02 s. Return 0 if the pole has fallen. */
static int push(struct cart *c, int right)
{
    const float mass = 1.1f, pole = 0.05f, half = 0.5f, g = 9.8f, dt = 0.02f;
    const float sine = sinf(c->at[2]), cosine = cosf(c->at[2]);
    const float force =
        ((right ? 10.0f : -10.0f) + pole * c->at[3] * c->at[3] * sine) / mass;
    const float turn = (g * sine - cosine * force) /
                       (half * (4.0f / 3 - 0.1f * cosine * cosine / mass));

    c->at[0] += dt * c->at[1];
    c->at[1] += dt * (force - pole * turn * cosine / mass);
    c->at[2] += dt * c->at[3];
    c->at[3] += dt * turn;
    return fabsf(c->at[0]) < 2.4f && fabsf(c->at[2]) < 0.21f;
}

/* ---- the model: a hidden layer with two outputs, choice and value ---------------- */

enum { HIDDEN = 16, UNIT = SENSES + 3, PARAMS = HIDDEN * UNIT + 2, BATCH = 24 };
enum { TESTS = 24 };

struct move {
    float senses[SENSES], hidden[HIDDEN], right, value;
    int choice;
};

struct agent {
    trib_trainer_t *trainer;
    float params[PARAMS];
    struct move moves[MOVES_MAX];
};

/* Unit u has input weights, a bias, and the weights of its two outputs. */
static void decide(const float *p, const struct cart *c, struct move *m)
{
    float choice = p[HIDDEN * UNIT];

    m->value = p[HIDDEN * UNIT + 1];
    memcpy(m->senses, c->at, sizeof(c->at));
    for (size_t u = 0; u < HIDDEN; u++) {
        const float *w = p + u * UNIT;
        float x = w[SENSES];

        for (size_t i = 0; i < SENSES; i++)
            x += w[i] * c->at[i];
        m->hidden[u] = x = tanhf(x);
        choice += w[SENSES + 1] * x;
        m->value += w[SENSES + 2] * x;
    }
    m->right = 1 / (1 + expf(-choice));
}

/* Play an episode with random or with greedy moves. Return the number of moves. */
static size_t play(const float *p, uint64_t seed, int by_chance, struct move *moves)
{
    struct cart c;
    size_t n = 0;
    int stands = 1;

    for (size_t i = 0; i < SENSES; i++)
        c.at[i] = 0.1f * (draw_unit(&seed) - 0.5f);
    while (stands && n < MOVES_MAX) {
        struct move *m = &moves[n++];

        decide(p, &c, m);
        m->choice = m->right > (by_chance ? draw_unit(&seed) : 0.5f);
        stands = push(&c, m->choice);
    }
    return n;
}

/* Add a move's gradient, for the derivatives of the loss by the choice and by the
 * value. */
static void learn(const float *p, const struct move *m, float by_choice, float by_value,
                  float *gradient)
{
    gradient[HIDDEN * UNIT] += by_choice;
    gradient[HIDDEN * UNIT + 1] += by_value;
    for (size_t u = 0; u < HIDDEN; u++) {
        const float *w = p + u * UNIT, x = m->hidden[u];
        float *g = gradient + u * UNIT;
        const float by_x =
            (by_choice * w[SENSES + 1] + by_value * w[SENSES + 2]) * (1 - x * x);

        for (size_t i = 0; i < SENSES; i++)
            g[i] += by_x * m->senses[i];
        g[SENSES] += by_x;
        g[SENSES + 1] += by_choice * x;
        g[SENSES + 2] += by_value * x;
    }
}

static int gradient(trib_replica_t *r, const float *p, const void *samples,
                    size_t count, float *gradient, double *loss_out)
{
    struct agent *a = trib_replica_state(r);
    const uint64_t *seeds = samples;

    memset(gradient, 0, PARAMS * sizeof(float));
    for (size_t s = 0; s < count; s++) {
        const size_t n = play(p, seeds[s], 1, a->moves);
        float later = 0; /* discounted return of the moves from here on */

        for (size_t i = n; i-- > 0;) {
            const struct move *m = &a->moves[i];
            const float part = 1 / (float)(count * MOVES_MAX);

            later = 0.05f + 0.95f * later;
            const float better = later - m->value;
            learn(p, m, part * better * (m->right - (float)m->choice), -part * better,
                  gradient);
        }
        *loss_out -= (double)n / (double)count;
    }
    return 0;
}

/* ---- the program ----------------------------------------------------------------- */

static int start(trib_replica_t *r)
{
    struct agent *a = trib_replica_state(r);
    trib_trainer_desc_t desc = TRIB_TRAINER_DESC_INIT;
    uint64_t state = 1;

    for (size_t i = 0; i < PARAMS; i++)
        a->params[i] = draw_unit(&state) - 0.5f;
    desc.params = a->params;
    desc.count = PARAMS;
    desc.optimizer = "adam";
    desc.rate = "0.03";
    return trib_replica_trainer(r, &desc, &a->trainer);
}

static int input(trib_replica_t *r, const trib_input_t *in, void *samples)
{
    (void)r;
    for (size_t i = 0; i < in->count; i++)
        ((uint64_t *)samples)[i] = in->first + i;
    return 0;
}

static int step(trib_replica_t *r, void *samples)
{
    (void)samples;
    return trib_replica_train(r, ((struct agent *)trib_replica_state(r))->trainer,
                              gradient, NULL);
}

static int count_moves(trib_replica_t *r, size_t item, void *moves)
{
    struct agent *a = trib_replica_state(r);

    *(double *)moves = (double)play(a->params, (UINT64_C(1) << 40) + item, 0, a->moves);
    return 0;
}

static int finish(trib_replica_t *r)
{
    const struct agent *a = trib_replica_state(r);
    double moves;

    if (trib_replica_map_reduce(r, count_moves, TESTS, &moves, 1, TRIB_F64, TRIB_MEAN))
        return -1;
    if (trib_replica_id(r) == 0 && trib_replica_device(r) == 0)
        printf("balanced for %.1f of %d moves, hash %016" PRIx64 "\n", moves, MOVES_MAX,
               trib_hash(a->params, sizeof(a->params), 0));
    return 0;
}

int main(int argc, char **argv)
{
    trib_replicator_opts_t opts = TRIB_REPLICATOR_OPTS_INIT;

    opts.kind = argc > 1 ? argv[1] : NULL;
    opts.steps = argc > 2 ? strtoull(argv[2], NULL, 10) : 80;
    opts.batch = BATCH;
    opts.sample_bytes = sizeof(uint64_t);
    opts.state_bytes = sizeof(struct agent);
    opts.start = start;
    opts.input = input;
    opts.step = step;
    opts.finish = finish;
    if (trib_replicator_run(&opts) == TRIB_OK)
        return 0;
    fprintf(stderr, "agent: %s\n", trib_replicator_error());
    return 1;
}
