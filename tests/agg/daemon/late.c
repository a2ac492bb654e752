/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A job for tests of tribd: sums with a quorum, for which a rank may be late.
 *
 *     trib-run -n 3 -- late FILE    run until the file exists; rank R stops itself
 *                                   at FILE.R
 *
 * Each rank prints its pid. Rank 0 prints the missing ranks of a step as soon as it
 * knows them. At the end, the results add up to all inputs, however often ranks were
 * late. Values are small integers, so this is exact.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/agg/daemon/exact_jobs.h"

enum {
    COUNT = 30001,
    PLANS = 2,
    RANKS = 8,
    SETTLED = 3,
    LONGEST_S = 240,
    DRAIN_S = 60
};

struct job {
    trib_comm_t *comm;
    trib_plan_t *plan[PLANS];
    float *x[PLANS]; /* [COUNT], in place */
    double *given, *got[PLANS];
    int rank, size;
};

static void make(struct job *j)
{
    static const char *const codecs[PLANS] = {"none", "topk:ratio=0.25"};
    trib_desc_t d = TRIB_DESC_INIT;

    d.count = COUNT;
    d.quorum = "0.6,deadline=20ms";
    j->given = calloc(COUNT, sizeof(double));
    for (int p = 0; p < PLANS; p++) {
        j->x[p] = calloc(COUNT, sizeof(float));
        j->got[p] = calloc(COUNT, sizeof(double));
        if (!j->x[p] || !j->got[p] || !j->given)
            exit(1);
        d.recv = j->x[p];
        d.codec = codecs[p];
        must(j->comm, trib_plan_allreduce(j->comm, &d, &j->plan[p]), "a plan");
    }
}

/* Start both plans, with values of this step or zeros. */
static void one_step(struct job *j, long step, int gives)
{
    size_t absent[RANKS];

    for (int p = 0; p < PLANS; p++)
        for (int i = 0; i < COUNT; i++)
            j->x[p][i] = gives ? value(j->rank, step, i) : 0;
    for (int i = 0; gives && i < COUNT; i++)
        for (int r = 0; r < j->size; r++)
            j->given[i] += (double)value(r, step, i);
    for (int p = 0; p < PLANS; p++)
        must(j->comm, trib_plan_start(j->plan[p]), "start");
    for (int p = 0; p < PLANS; p++) {
        must(j->comm, trib_plan_wait(j->plan[p]), "a sum");
        must(j->comm, trib_plan_absent(j->plan[p], absent), "who is absent");
        for (int r = 0; r < j->size; r++) {
            if (j->rank == 0 && absent[r])
                printf("plan %d of step %ld lacks rank %d\n", p, step, r);
        }
        for (int i = 0; i < COUNT; i++)
            j->got[p][i] += (double)j->x[p][i];
    }
    fflush(stdout);
}

static int goes_on(const struct job *j, const char *file)
{
    int32_t on = access(file, F_OK) != 0;

    must(j->comm, trib_broadcast(j->comm, &on, 1, TRIB_I32, 0), "a broadcast");
    return on;
}

/* Stop between two steps, like a rank that is late for the next. */
static void stop_if(const struct job *j, const char *file)
{
    char mine[500];

    snprintf(mine, sizeof(mine), "%s.%d", file, j->rank);
    if (unlink(mine) != 0)
        return;
    usleep(100000); /* the other ranks may continue */
    raise(SIGSTOP);
}

/* Return whether the results add up to the inputs. All ranks get the same answer. */
static int settled(const struct job *j, int tells)
{
    for (int p = 0; p < PLANS; p++) {
        for (int i = 0; i < COUNT; i++) {
            if (j->got[p][i] == j->given[i])
                continue;
            if (tells)
                fprintf(stderr,
                        "rank %d, plan %d, element %d: %g came out, %g went in\n",
                        j->rank, p, i, j->got[p][i], j->given[i]);
            return 0;
        }
    }
    return 1;
}

/* Run steps with zero input that drain the residuals, then some more that must change
 * nothing. */
static int drain(struct job *j, long *step, time_t until)
{
    int rests = 0;

    for (int32_t on = 1; on; (*step)++) {
        one_step(j, *step, 0);
        rests = settled(j, 0) ? rests + 1 : 0;
        on = rests < SETTLED && time(NULL) < until;
        must(j->comm, trib_broadcast(j->comm, &on, 1, TRIB_I32, 0), "a broadcast");
    }
    return settled(j, 1);
}

int main(int argc, char **argv)
{
    const time_t began = time(NULL);
    struct job j = {.comm = NULL};
    long step = 0;

    if (argc != 2 || trib_init(NULL, &j.comm) != TRIB_OK) {
        fprintf(stderr, "%s\n", argc == 2 ? trib_last_error(NULL) : "usage: late FILE");
        return 1;
    }
    j.rank = trib_rank(j.comm);
    j.size = trib_size(j.comm);
    if (j.size > RANKS)
        return 1;
    make(&j);
    printf("rank %d is process %d\n", j.rank, (int)getpid());
    for (; goes_on(&j, argv[1]); step++) {
        stop_if(&j, argv[1]);
        one_step(&j, step, 1);
        if (time(NULL) - began > LONGEST_S)
            return 1;
    }
    if (!drain(&j, &step, time(NULL) + DRAIN_S))
        return 1;
    for (int p = 0; p < PLANS; p++)
        must(j.comm, trib_plan_free(j.plan[p]), "free");
    must(NULL, trib_free_comm(j.comm), "leave");
    if (j.rank == 0)
        printf("%ld steps, all right\n", step);
    for (int p = 0; p < PLANS; p++) {
        free(j.x[p]);
        free(j.got[p]);
    }
    free(j.given);
    return 0;
}
