/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/strategies/push_weight.h"

#include <math.h>
#include <stdio.h>

void trib_push_unbias(const struct trib_trainer *t, const float *restrict x,
                      double weight, float *restrict z)
{
    const float inverse = (float)(1 / weight);

    for (size_t i = 0; i < t->count; i++)
        z[i] = x[i] * inverse;
}

trib_status_t trib_push_moved(struct trib_trainer *t, const struct trib_train_move *m,
                              float *x, double *weight)
{
    double sum = m->is_new ? 0 : *weight;

    const trib_status_t st =
        trib_train_taken(t, trib_allreduce(t->comm, NULL, &sum, 1, TRIB_F64, TRIB_SUM));
    if (st != TRIB_OK)
        return st;
    if (fabs(sum - m->ranks_before) > 1e-9) {
        t->stats.lost_weight += m->ranks_before - sum;
        snprintf(m->note, m->note_bytes,
                 "weight %.6g of %d is lost, and as much of the sum of parameters",
                 m->ranks_before - sum, m->ranks_before);
    }
    if (m->is_new || fabs(sum - m->old) < 1e-12)
        return TRIB_OK;
    const double scale = m->old / sum;
    for (size_t i = 0; i < t->count; i++)
        x[i] = (float)((double)x[i] * scale);
    *weight *= scale;
    return TRIB_OK;
}
