/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Creation and release of trainers, and errors of calls without a trainer.
 */
#include <stdio.h>
#include <stdlib.h>

#include "train/trainer/estimate.h"
#include "train/trainer/trainer.h"

static _Thread_local char create_error[512];

trib_status_t trib_trainer_create(trib_comm_t *comm, const trib_trainer_desc_t *desc,
                                  trib_trainer_t **trainer_out)
{
    struct trib_trainer *t = calloc(1, sizeof(*t));
    trib_status_t st = TRIB_ERR_NO_MEMORY;

    *trainer_out = NULL;
    if (t) {
        t->comm = comm;
        t->rank = trib_rank(comm);
        t->ranks = trib_size(comm);
        st = trib_train_create_strategy(t, trib_train_take_desc(t, desc), NULL);
        t->wire_at_create = st == TRIB_OK ? trib_train_wire_bytes(t) : 0;
    }
    if (st == TRIB_OK) {
        *trainer_out = t;
        return TRIB_OK;
    }
    snprintf(create_error, sizeof(create_error), "%s",
             t ? trib_error_text(&t->err) : "out of memory");
    trib_trainer_free(t);
    return st;
}

trib_status_t trib_estimate_step(trib_estimate_t *estimate)
{
    struct trib_error err = {0};
    const trib_status_t st = trib_train_estimate(estimate, &err);

    if (st != TRIB_OK)
        snprintf(create_error, sizeof(create_error), "%s", trib_error_text(&err));
    return st;
}

const char *trib_trainer_error(const trib_trainer_t *trainer)
{
    return trainer ? trib_error_text(&trainer->err) : create_error;
}

trib_status_t trib_trainer_free(trib_trainer_t *trainer)
{
    if (!trainer)
        return TRIB_OK;
    trib_train_release(trainer);
    trib_train_parts_destroy(&trainer->parts);
    free(trainer->codecs);
    free(trainer);
    return TRIB_OK;
}
