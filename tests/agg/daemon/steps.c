/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A job for tests of tribd: take steps until a file exists, and check each.
 *
 *     trib-run -n 2 -- steps FILE [MS]    pause MS before each step
 *
 * Values are small integers, so all sums are exact. The results of the sparse sums add
 * up to their inputs at the end, and so do those by qsgd, except for the rounding of
 * float32. Exit code 1 and an error message otherwise.
 */
#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/agg/daemon/exact_jobs.h"

enum { DENSE = 30000, SPARSE = 4097, DRAIN = 12, LONGEST_S = 240 };

struct job {
    trib_comm_t *comm;
    trib_plan_t *dense, *sparse;
    float *x, *held;     /* [DENSE], [SPARSE]: in place */
    double *given, *got; /* [SPARSE] sums over all steps */
    struct {
        trib_plan_t *plan;
        float x[SPARSE];    /* in place */
        double got[SPARSE]; /* multiplied by the number of ranks */
    } anew;
    int rank, size;
};

static double sum(const struct job *j, long step, int i)
{
    double s = 0;

    for (int r = 0; r < j->size; r++)
        s += (double)value(r, step, i);
    return s;
}

static void make(struct job *j)
{
    trib_desc_t d = TRIB_DESC_INIT;
    void *x;

    must(j->comm, trib_alloc(j->comm, DENSE * sizeof(float), &x), "trib_alloc");
    j->x = x;
    j->held = calloc(SPARSE, sizeof(float));
    j->given = calloc(SPARSE, sizeof(double));
    j->got = calloc(SPARSE, sizeof(double));
    if (!j->held || !j->given || !j->got)
        exit(1);
    d.dtype = TRIB_F32;
    d.count = DENSE;
    d.recv = j->x;
    d.feed = TRIB_FEED_FORWARD;
    must(j->comm, trib_plan_allreduce(j->comm, &d, &j->dense), "a dense plan");
    d.count = SPARSE;
    d.recv = j->held;
    d.feed = TRIB_FEED_WHOLE;
    d.codec = "topk:ratio=0.25";
    must(j->comm, trib_plan_allreduce(j->comm, &d, &j->sparse), "a sparse plan");
    d.recv = j->anew.x;
    d.op = TRIB_MEAN;
    d.codec = "qsgd:bits=4,ef=1";
    must(j->comm, trib_plan_allreduce(j->comm, &d, &j->anew.plan), "a plan of qsgd");
}

/* A mean with a lossy codec for contributions and again for results. */
static void one_anew(struct job *j)
{
    must(j->comm, trib_plan_start(j->anew.plan), "start");
    must(j->comm, trib_plan_wait(j->anew.plan), "a mean by qsgd");
    for (int i = 0; i < SPARSE; i++)
        j->anew.got[i] += (double)j->anew.x[i] * j->size;
}

static void one_sparse(struct job *j)
{
    must(j->comm, trib_plan_start(j->sparse), "start");
    must(j->comm, trib_plan_wait(j->sparse), "a sparse sum");
    for (int i = 0; i < SPARSE; i++)
        j->got[i] += (double)j->held[i];
}

static void wrong(long step, int i, double is, double should)
{
    fprintf(stderr, "step %ld, element %d: %g instead of %g\n", step, i, is, should);
    exit(1);
}

static void one_step(struct job *j, long step)
{
    for (int i = 0; i < DENSE; i++)
        j->x[i] = value(j->rank, step, i);
    must(j->comm, trib_plan_start(j->dense), "start");
    must(j->comm, trib_plan_ready(j->dense, 0, DENSE / 3), "ready");
    for (int i = 0; i < SPARSE; i++)
        j->held[i] = value(j->rank, step + 1, i);
    must(j->comm, trib_plan_ready(j->dense, DENSE / 3, DENSE - DENSE / 3), "ready");
    must(j->comm, trib_plan_wait(j->dense), "a dense sum");
    for (int i = 0; i < DENSE; i++)
        if ((double)j->x[i] != sum(j, step, i))
            wrong(step, i, (double)j->x[i], sum(j, step, i));
    one_sparse(j);
    for (int i = 0; i < SPARSE; i++)
        j->given[i] += sum(j, step + 1, i);
    for (int i = 0; i < SPARSE; i++)
        j->anew.x[i] = value(j->rank, step + 1, i);
    one_anew(j);
}

/* Rank 0 decides. */
static int goes_on(const struct job *j, const char *file)
{
    int32_t on = access(file, F_OK) != 0;

    must(j->comm, trib_broadcast(j->comm, &on, 1, TRIB_I32, 0), "a broadcast");
    return on;
}

int main(int argc, char **argv)
{
    const time_t began = time(NULL);
    struct job j = {.comm = NULL};
    const useconds_t pause = argc == 3 ? (useconds_t)atoi(argv[2]) * 1000 : 0;
    long step = 0;

    if (argc < 2 || trib_init(NULL, &j.comm) != TRIB_OK) {
        fprintf(stderr, "%s\n",
                argc >= 2 ? trib_last_error(NULL) : "usage: steps FILE [MS]");
        return 1;
    }
    j.rank = trib_rank(j.comm);
    j.size = trib_size(j.comm);
    make(&j);
    for (; goes_on(&j, argv[1]); step++) {
        usleep(pause);
        one_step(&j, step);
        if (time(NULL) - began > LONGEST_S)
            return 1;
    }
    for (int i = 0; i < DRAIN; i++) {
        memset(j.held, 0, SPARSE * sizeof(float));
        one_sparse(&j);
        memset(j.anew.x, 0, sizeof(j.anew.x));
        one_anew(&j);
    }
    for (int i = 0; i < SPARSE; i++)
        if (j.got[i] != j.given[i])
            wrong(step, i, j.got[i], j.given[i]);
    for (int i = 0; i < SPARSE; i++)
        if (fabs(j.anew.got[i] - j.given[i]) > 1e-2 + 1e-6 * (double)step)
            wrong(step, i, j.anew.got[i], j.given[i]);
    must(j.comm, trib_plan_free(j.dense), "free");
    must(j.comm, trib_plan_free(j.sparse), "free");
    must(j.comm, trib_plan_free(j.anew.plan), "free");
    must(j.comm, trib_free(j.comm, j.x), "free");
    must(NULL, trib_free_comm(j.comm), "leave");
    if (j.rank == 0)
        printf("%ld steps, all right\n", step);
    free(j.held);
    free(j.given);
    free(j.got);
    return 0;
}
