/* SPDX-License-Identifier: BSD-3-Clause */
/* Logistic regression that waits for no slow rank: a third of the ranks hold coded sums
 * of the others' samples.  trib-run -n 6 -- coded rlnc; "none" waits for all ranks */
#include <math.h>
#include <stdio.h>
#include <time.h>
#include <tributary.h>
#include <tributary/coded.h>
#include <unistd.h>

enum { ROWS = 500, COLUMNS = 200 };
static void step(void *rank, const trib_coded_step_t *s)
{
    if (*(int *)rank == 1 && s->step % 5 == 1)
        usleep(100000); /* rank 1 is slow in some steps */
    if (*(int *)rank == 0 && s->step % 20 == 1)
        printf("loss %.3f, bias %.3f\n", s->loss, (double)s->weights[COLUMNS]);
}

int main(int argc, char **argv)
{
    static float x[ROWS * COLUMNS], labels[ROWS], weights[COLUMNS + 1];
    trib_comm_t *comm;
    trib_coded_fit_desc_t d = TRIB_CODED_FIT_DESC_INIT;
    if (trib_init(NULL, &comm) != TRIB_OK)
        return fprintf(stderr, "%s\n", trib_last_error(NULL)), 1;
    int rank = trib_rank(comm);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        x[i] = sinf((float)(i * 7919 % 10007 + rank * 31));
    for (int i = 0; i < ROWS; i++)
        labels[i] = x[i * COLUMNS] + x[i * COLUMNS + 1] > 0 ? 1 : -1;
    d.code = argc > 1 ? argv[1] : "rlnc", d.features = x, d.labels = labels;
    d.rows = ROWS, d.columns = COLUMNS, d.partitions = (2 * trib_size(comm) + 2) / 3;
    d.steps = 101, d.rate = 0.5, d.step = step, d.step_arg = &rank;
    const time_t begin = time(NULL);
    const trib_status_t st = trib_coded_fit(&comm, &d, weights, NULL);
    if (st != TRIB_OK || rank == 0)
        printf("%ld s %s\n", time(NULL) - begin, st ? trib_coded_error(NULL) : "");
    return trib_free_comm(comm) != TRIB_OK || st != TRIB_OK;
}
