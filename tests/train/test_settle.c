/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The model of trib_trainer_settle counts every step, wherever in a period the run
 * stops, and asking for it changes nothing in the run.
 */
#include <math.h>

#include "tests/train/quadratic.h"

enum { PERIOD = 4, MOST = 2 * PERIOD + 1 };

static void train(struct ranks_self *self, const char *strategy, int steps, bool asks,
                  float x[QUADRATIC_COUNT])
{
    struct quadratic q;

    quadratic_init(&q, self, strategy);
    q.desc.optimizer = "sgd:momentum=0.5";
    quadratic_open(&q);
    for (int k = 0; k < steps; k++) {
        quadratic_steps(&q, 1);
        if (asks)
            quadratic_finish(&q);
    }
    quadratic_finish(&q);
    quadratic_close(&q);
    memcpy(x, q.x, sizeof(q.x));
}

static void near(const struct ranks_self *self, const char *what, int steps,
                 const float *a, const float *b, double within)
{
    double most = 0;

    for (size_t i = 0; i < QUADRATIC_COUNT; i++)
        most = fmax(most, fabs((double)a[i] - (double)b[i]));
    if (!(most <= within))
        ranks_die(self, "%s, %d steps: %g apart", what, steps, most);
}

/* A run of one rank is plain SGD for at most this number of steps. */
static const struct {
    const char *strategy;
    int most;
} alone[] = {
    {"pipe:width=2", 1}, /* gradients are one step late */
    {"local:period=4", MOST},
    {"local:period=4,fragments=3", MOST},
    {"local:period=4,late=2", MOST},
    {"local:period=4,fragments=2,late=1", MOST},
    {"diloco:period=4,rate=1,momentum=0,nesterov=0", MOST},
    {"local:period=4+topk:ratio=0.25", PERIOD - 1}, /* a round holds back the rest */
    {"easgd:period=4,beta=1", PERIOD}, /* then the centre and the rank change places */
    {"lsgd:period=4,late=2", MOST},
    {"sgp", MOST},
    {"osgp:tau=2", MOST},
    {"agp", MOST},
};

RANKS_TEST(test_is_sgd, .size = 1, .config = "transport=shm")
{
    float a[QUADRATIC_COUNT], b[QUADRATIC_COUNT];

    for (size_t s = 0; s < sizeof(alone) / sizeof(alone[0]); s++)
        for (int steps = 1; steps <= alone[s].most; steps++) {
            train(self, "sync", steps, false, a);
            train(self, alone[s].strategy, steps, false, b);
            near(self, alone[s].strategy, steps, a, b, 1e-5);
        }
    return 0;
}

/* A run that stops within its first period has the model of one whose period ends
 * there. */
static int is_a_round(struct ranks_self *self)
{
    static const char *const strategies[] = {"local:period=%d", "diloco:period=%d",
                                             "easgd:period=%d"};
    float a[QUADRATIC_COUNT], b[QUADRATIC_COUNT];
    char text[64];

    for (size_t s = 0; s < sizeof(strategies) / sizeof(strategies[0]); s++)
        for (int steps = 1; steps <= MOST; steps++) {
            snprintf(text, sizeof(text), strategies[s], steps);
            train(self, text, steps, false, a);
            snprintf(text, sizeof(text), strategies[s], MOST + 1);
            train(self, text, steps, false, b);
            near(self, text, steps, a, b, 1e-5);
        }
    return 0;
}

static int is_not_changed(struct ranks_self *self)
{
    static const char *const strategies[] = {
        "local:period=4",      "local:period=4,fragments=3",
        "diloco:period=4",     "local:period=4+topk:ratio=0.25",
        "easgd:period=4",      "diloco:period=4,fragments=2+qsgd:bits=4,ef=1",
        "easgd:period=4+int8",
    };
    float a[QUADRATIC_COUNT], b[QUADRATIC_COUNT];

    for (size_t s = 0; s < sizeof(strategies) / sizeof(strategies[0]); s++)
        for (int steps = MOST - 1; steps <= MOST; steps++) {
            train(self, strategies[s], steps, false, a);
            train(self, strategies[s], steps, true, b);
            near(self, strategies[s], steps, a, b, 0);
        }
    return 0;
}

TEST(test_ranks)
{
    ranks_pass(.size = 3, .fn = is_a_round, .config = "transport=shm", .threads = true);
    ranks_pass(.size = 3, .fn = is_not_changed, .config = "transport=tcp");
}
