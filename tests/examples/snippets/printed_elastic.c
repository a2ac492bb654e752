/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loop of tributary/elastic.h. Rank 1 dies in step 7, or before the last barrier,
 * or another error occurs:
 *
 *     trib-run -n 4 --grace 60 -- elastic step|end|wrong
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <tributary.h>
#include <tributary/elastic.h>

enum { N = 3000 };

static const char *fault;
static trib_comm_t *comm, *smaller;
static float in[N], out[N];
static size_t n = N;

/* A count that is too large is an error of the caller, which no smaller communicator
 * cures. */
static void prepare(float *x, uint64_t step)
{
    const bool dies = trib_rank(comm) == 1 && trib_size(comm) == 4;

    if (dies && step == (strcmp(fault, "step") == 0 ? 7 : 20) &&
        strcmp(fault, "wrong") != 0)
        raise(SIGKILL);
    if (strcmp(fault, "wrong") == 0 && step == 7)
        n = SIZE_MAX / 2;
    for (int i = 0; i < N; i++)
        x[i] = (float)step + (float)(i % 7);
}

int main(int argc, char **argv)
{
    const uint64_t steps = 20;
    uint64_t step = 0;
    trib_status_t st = trib_init(NULL, &comm);

    fault = argc > 1 ? argv[1] : "";
    if (st != TRIB_OK)
        return 1;
    /* snippet include/tributary/elastic.h: while (step <= steps) { */
    if (st != TRIB_OK)
        return printf("error at step %d: %s\n", (int)step, trib_last_error(comm)), 3;
    if (out[8] != 20 * (float)(strcmp(fault, "end") == 0 ? 4 : 3))
        return printf("wrong: %g\n", (double)out[8]), 4;
    printf("rank %d of %d: %d steps\n", trib_rank(comm), trib_size(comm),
           (int)step - 1);
    return trib_free_comm(comm) != TRIB_OK;
}
