/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls of tributary/replicator.h and docs/replicator.md. With a number, rank 1
 * dies in that step. With "fail", replica 1 reports an invalid sample.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tributary.h>
#include <tributary/replicator.h>

enum { N = 16 };

struct sample {
    float value;
    int label;
};

struct model {
    trib_trainer_t *trainer;
    float params[N];
};

static const char *fault = "";

static int start(trib_replica_t *replica)
{
    struct model *m = trib_replica_state(replica);
    trib_trainer_desc_t desc = TRIB_TRAINER_DESC_INIT;

    desc.params = m->params;
    desc.count = N;
    return trib_replica_trainer(replica, &desc, &m->trainer);
}

static int input(trib_replica_t *replica, const trib_input_t *in, void *samples)
{
    struct sample *s = samples;

    (void)replica;
    for (size_t i = 0; i < in->count; i++)
        s[i] = (struct sample){1, (int)(in->first + i) % 10};
    return 0;
}

static int check(trib_replica_t *replica, int label)
{
    if (strcmp(fault, "fail") == 0 && label == 7) {
        /* snippet include/tributary/replicator.h: return trib_replica_fail( */
    }
    return 0;
}

static int gradient_of(trib_replica_t *replica, const float *params,
                       const void *samples, size_t count, float *gradient,
                       double *loss_out)
{
    const struct sample *s = samples;

    for (size_t i = 0; i < N; i++)
        gradient[i] = params[i] - s[0].value;
    *loss_out = 0;
    for (size_t i = 0; i < count; i++)
        if (check(replica, s[i].label) != 0)
            return -1;
    return 0;
}

static int step(trib_replica_t *replica, void *samples)
{
    struct model *m = trib_replica_state(replica);

    (void)samples;
    if (trib_replica_id(replica) == 1 && atoi(fault) > 0 &&
        trib_replica_step(replica) == (uint64_t)atoi(fault))
        raise(SIGKILL);
    return trib_replica_train(replica, m->trainer, gradient_of, NULL);
}

static int finish(trib_replica_t *replica)
{
    const struct model *m = trib_replica_state(replica);

    if (trib_replica_id(replica) == 0)
        printf("x %.3f\n", (double)m->params[0]);
    return 0;
}

static void of_header(void)
{
    trib_replicator_opts_t opts = TRIB_REPLICATOR_OPTS_INIT;
    int (*const make_model)(trib_replica_t *) = start;
    int (*const print_accuracy)(trib_replica_t *) = finish;
    const trib_input_fn read_samples = input;
    const trib_step_fn train = step;

    opts.state_bytes = sizeof(struct model);
    /* snippet include/tributary/replicator.h: opts.kind = "workers"; */
}

static void of_page(char **argv)
{
    /* snippet docs/replicator.md: trib_replicator_opts_t opts = */
}

static bool failed(void)
{
    return trib_replicator_error()[0] != '\0';
}

int main(int argc, char **argv)
{
    char kind[] = "workers", *words[] = {argv[0], kind, NULL};

    fault = argc > 1 ? argv[1] : "";
    of_header();
    if (!failed())
        of_page(words);
    printf("%s\n", trib_replicator_error());
    return failed() ? 3 : 0;
}
