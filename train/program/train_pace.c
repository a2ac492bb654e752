/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/program/train_pace.h"

#include <stdlib.h>

int train_pace_open(struct train_pace *pace, size_t steps)
{
    pace->n = 0;
    pace->room = steps + 1;
    pace->at = malloc(pace->room * sizeof(*pace->at));
    return pace->at ? 0 : -1;
}

void train_pace_mark(struct train_pace *pace, double now)
{
    if (pace->n < pace->room)
        pace->at[pace->n++] = now;
}

/* Return the number of steps completed at a moment, with a fraction of the current
 * one. */
static double ended(const struct train_pace *pace, double moment)
{
    size_t i = 0;

    while (i < pace->n && pace->at[i] <= moment)
        i++;
    if (i == 0)
        return 0;
    if (i == pace->n)
        return (double)pace->n - 1;
    return (double)i - 1 + (moment - pace->at[i - 1]) / (pace->at[i] - pace->at[i - 1]);
}

/* Return this rank's steps between two moments, with fractions at both ends. */
static double steps_within(const struct train_pace *pace, double from, double to)
{
    return ended(pace, to) - ended(pace, from);
}

trib_status_t train_pace_rate(const struct train_pace *pace, trib_comm_t *comm,
                              double *rate_out)
{
    double from = pace->n ? pace->at[0] : 0;
    double to = pace->n ? pace->at[pace->n - 1] : 0;
    trib_status_t st = trib_allreduce(comm, NULL, &from, 1, TRIB_F64, TRIB_MAX);

    if (st == TRIB_OK)
        st = trib_allreduce(comm, NULL, &to, 1, TRIB_F64, TRIB_MIN);
    if (st != TRIB_OK)
        return st;
    double steps = steps_within(pace, from, to);

    st = trib_allreduce(comm, NULL, &steps, 1, TRIB_F64, TRIB_SUM);
    *rate_out = to > from ? steps / (to - from) : 0;
    return st;
}

void train_pace_close(struct train_pace *pace)
{
    free(pace->at);
    *pace = (struct train_pace){.at = NULL};
}
