/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A linear model that is trained by any strategy: the loop is the same for all of them.
 *
 *     trib-run -n 4 -- strategy "local:period=8+topk:ratio=0.25"
 */
#include <stdio.h>
#include <tributary.h>
#include <tributary/train.h>

enum { WEIGHTS = 64, STEPS = 800 };

/* Compute the gradient of one sample, whose label is the sum of i * x[i], and return
 * its loss. */
static double gradient(const float *w, float *g, unsigned draw)
{
    float x[WEIGHTS], error = 0;
    for (int i = 0; i < WEIGHTS; i++) {
        draw = draw * 1664525u + 1013904223u;
        x[i] = (float)(draw >> 8) / (1 << 23) - 1;
        error += (w[i] - (float)i) * x[i];
    }
    for (int i = 0; i < WEIGHTS; i++)
        g[i] = error * x[i];
    return 0.5 * (double)(error * error);
}

int main(int argc, char **argv)
{
    float w[WEIGHTS] = {0};
    double far = 0;
    trib_comm_t *comm;
    trib_trainer_t *t = NULL;
    trib_trainer_desc_t d = TRIB_TRAINER_DESC_INIT;
    if (trib_init(NULL, &comm) != TRIB_OK)
        return fprintf(stderr, "%s\n", trib_last_error(NULL)), 1;
    d.params = w, d.count = WEIGHTS, d.rate = "0.02";
    d.strategy = argc > 1 ? argv[1] : "sync";
    trib_status_t st = trib_trainer_create(comm, &d, &t);
    for (unsigned k = 0; k < STEPS && st == TRIB_OK; k++) {
        trib_step_t step = TRIB_STEP_INIT;
        st = trib_trainer_begin(t, &step);
        if (st == TRIB_OK)
            st = trib_trainer_end(t, gradient(step.params, step.gradient,
                                              k * 1000 + (unsigned)trib_rank(comm)));
    }
    st = st == TRIB_OK ? trib_trainer_settle(t, NULL) : st;
    for (int i = 0; i < WEIGHTS; i++)
        far += (double)((w[i] - (float)i) * (w[i] - (float)i));
    if (st != TRIB_OK || trib_rank(comm) == 0)
        printf("%s: %s %.3g\n", d.strategy,
               st ? trib_trainer_error(t) : "squared distance", far);
    trib_trainer_free(t);
    return trib_free_comm(comm) != TRIB_OK || st != TRIB_OK;
}
