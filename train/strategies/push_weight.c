/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/strategies/push_weight.h"

#include <math.h>
#include <stdio.h>

void trib_push_unbias(const struct trib_trainer *t, const struct trib_push *push,
                      float *restrict z)
{
    const float inverse = (float)(1 / push->weight);
    const float *restrict x = push->x;

    for (size_t i = 0; i < t->count; i++)
        z[i] = x[i] * inverse;
}

int trib_push_fields(struct trib_trainer *t,
                     struct trib_train_field out[TRIB_TRAIN_FIELDS])
{
    struct trib_push *p = t->strategy;

    out[0] = (struct trib_train_field){"own", p->x, t->count * sizeof(float), false};
    out[1] = (struct trib_train_field){"weight", &p->weight, sizeof(p->weight), false};
    return 2;
}

void trib_push_model(struct trib_trainer *t, float *out)
{
    trib_push_unbias(t, t->strategy, out);
}

trib_status_t trib_push_moved(struct trib_trainer *t, const struct trib_train_move *m)
{
    struct trib_push *p = t->strategy;
    double sum = m->is_new ? 0 : p->weight;

    const trib_status_t st = trib_train_set_comm_error(
        t, trib_allreduce(t->comm, NULL, &sum, 1, TRIB_F64, TRIB_SUM));
    if (st != TRIB_OK)
        return st;
    if (fabs(sum - m->ranks_before) > 1e-9) {
        t->stats.lost_weight += m->ranks_before - sum;
        snprintf(m->note, m->note_bytes,
                 "weight %.6g of %d is lost, with the same fraction of the sum of "
                 "parameters",
                 m->ranks_before - sum, m->ranks_before);
    }
    if (m->is_new || fabs(sum - m->old) < 1e-12)
        return TRIB_OK;
    const double scale = m->old / sum;
    for (size_t i = 0; i < t->count; i++)
        p->x[i] = (float)((double)p->x[i] * scale);
    p->weight *= scale;
    return TRIB_OK;
}
