/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loops of tributary/train.h and of the start of docs/training.md. With an
 * argument, rank 1 dies, and the others end.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <tributary.h>
#include <tributary/train.h>

enum { N = 4096 };

static trib_comm_t *comm;
static float params[N];
static size_t n = N, number;
static bool dies;

static double gradient(const float *x, float *g)
{
    for (int i = 0; i < N; i++)
        g[i] = x[i] - 1;
    if (dies && number++ == 5)
        raise(SIGKILL);
    return 1;
}

static double my_gradient(const float *x, float *g)
{
    return gradient(x, g);
}

static int of_header(void)
{
    const size_t steps = 20;
    trib_status_t st;
    trib_trainer_t *trainer;
    trib_trainer_desc_t desc = TRIB_TRAINER_DESC_INIT;
    trib_step_t step = TRIB_STEP_INIT;

    desc.params = params;
    desc.count = n;
    /* snippet include/tributary/train.h: st = trib_trainer_create(comm */
    printf("%d steps: %.6f %s\n", (int)steps, (double)params[0],
           trib_trainer_error(trainer));
    trib_trainer_free(trainer);
    return st != TRIB_OK;
}

static int of_page(void)
{
    const int steps = 10;
    trib_trainer_t *trainer;
    /* snippet docs/training.md: trib_trainer_desc_t desc = */
    printf("%d steps: %s\n", steps, trib_trainer_error(trainer));
    trib_trainer_free(trainer);
    return st != TRIB_OK;
}

int main(int argc, char **argv)
{
    (void)argv;
    if (trib_init(NULL, &comm) != TRIB_OK)
        return 1;
    dies = argc > 1 && trib_rank(comm) == 1;
    if (of_page() || of_header())
        return printf("ended\n"), 3;
    return trib_free_comm(comm) != TRIB_OK;
}
