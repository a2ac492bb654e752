/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loop of docs/training.md for lost ranks, and the function of tributary/train.h.
 * Rank 1 dies before it ends a step, while it waits in one, in the last step, or while
 * it waits for the model; or another error occurs:
 *
 *     trib-run -n 3 --grace 60 -- trainer_lost STRATEGY compute|end|last|settle|wrong
 */
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <tributary.h>
#include <tributary/elastic.h>
#include <tributary/train.h>

enum { N = 4096 };

static const uint64_t steps = 40;
static const char *fault;
static trib_trainer_t *trainer;
static trib_step_t step = TRIB_STEP_INIT;
static bool victim, armed;
static pid_t victim_pid;

#ifdef OF_HEADER
/* snippet include/tributary/train.h: // After TRIB_ERR_PEER_LOST */
#else
/* snippet docs/training.md: static trib_status_t survive */
#endif

static bool is(const char *name)
{
    return strcmp(fault, name) == 0;
}

/* Called while a rank waits. */
static int idle(void *arg)
{
    (void)arg;
    if (armed)
        raise(SIGKILL);
    return 0;
}

/* The others continue only after the victim has waited for them and died. */
static void await_death(void)
{
    for (int i = 0; i < 20000 && kill(victim_pid, 0) == 0; i++)
        usleep(1000);
}

static double gradient(const float *x, float *g)
{
    for (int i = 0; i < N; i++)
        g[i] = x[i] - 1;
    if (is("wrong") && step.number == 5)
        trib_trainer_end(trainer, 0); /* the next one has no step to end */
    if (victim && is("compute") && step.number == 5)
        raise(SIGKILL);
    if (victim && is("last") && step.number + 1 == steps)
        raise(SIGKILL);
    armed = victim && ((is("end") && step.number >= 5) ||
                       (is("settle") && step.number + 1 == steps));
    if (!victim &&
        ((is("end") && step.number == 5) || (is("settle") && step.number + 1 == steps)))
        await_death();
    return 1;
}

int main(int argc, char **argv)
{
    static float params[N];
    trib_opts_t opts = TRIB_OPTS_INIT;
    trib_trainer_desc_t desc = TRIB_TRAINER_DESC_INIT;
    trib_comm_t *comm;
    bool done = false;

    fault = argc > 2 ? argv[2] : "";
    opts.idle = idle;
    trib_status_t st = trib_init(&opts, &comm);
    if (st != TRIB_OK)
        return 1;
    victim = trib_rank(comm) == 1;
    int64_t pid = getpid();
    if (trib_broadcast(comm, &pid, 1, TRIB_I64, 1) != TRIB_OK)
        return 1;
    victim_pid = (pid_t)pid;
    desc.params = params;
    desc.count = N;
    desc.strategy = argc > 1 ? argv[1] : NULL;
    if (trib_trainer_create(comm, &desc, &trainer) != TRIB_OK)
        return printf("%s\n", trib_trainer_error(NULL)), 2;
    /* snippet docs/training.md: do { */
    if (st != TRIB_OK)
        return printf("error at step %d: %s\n", (int)step.number,
                      trib_trainer_error(trainer)),
               3;
    printf("rank %d of %d: step %d, x %.6f, right %.6f\n", trib_rank(comm),
           trib_size(comm), (int)step.number, (double)params[N - 1],
           1 - pow(0.99, (double)step.number + 1));
    trib_trainer_free(trainer);
    return trib_free_comm(comm) != TRIB_OK;
}
