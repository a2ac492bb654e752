/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The trainers of a replica, and their steps.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sized.h"
#include "train/replicator/replica.h"

static const struct trib_sized desc_kind = {
    "trib_trainer_desc_t", "TRIB_TRAINER_DESC_INIT", sizeof(trib_trainer_desc_t),
    TRIB_SIZED_UP_TO(trib_trainer_desc_t, seed)};

static trib_status_t refuse(struct trib_replica *r, const char *what, const char *value)
{
    return trib_fail(&r->err, TRIB_ERR_UNSUPPORTED,
                     "kind \"%s\": a trainer cannot have %s%s%s%s", r->of->kind.text,
                     what, value ? " \"" : "", value ? value : "", value ? "\"" : "");
}

/* Set the strategy: the kind's, or else the caller's. With shares the replica makes the
 * sums, and the trainer has one rank. */
static trib_status_t fit_desc(struct trib_replica *r, trib_trainer_desc_t *desc,
                              char *strategy, size_t bytes)
{
    const struct trib_kind *kind = &r->of->kind;
    const bool plain = !desc->strategy || strcmp(desc->strategy, "sync") == 0;

    if (kind->shares > 0 && !plain)
        return refuse(r, "shares and the strategy", desc->strategy);
    if (kind->shares > 0 && (desc->codec || desc->feedback))
        return refuse(r, "shares and a codec", NULL);
    if (kind->shares > 0 && desc->feed != TRIB_FEED_WHOLE)
        return refuse(r, "shares and a gradient in pieces", NULL);
    if (!kind->strategy)
        return TRIB_OK;
    if (!plain)
        return refuse(r, "its own strategy, such as", desc->strategy);
    const int len =
        snprintf(strategy, bytes, "%s:staleness=%d", kind->strategy, kind->staleness);

    if (kind->groups > 0)
        snprintf(strategy + len, bytes - (size_t)len, ",groups=%d",
                 r->of->shape.groups);
    desc->strategy = strategy;
    return TRIB_OK;
}

/* Create a trainer after broadcasting the first replica's parameters. */
static trib_status_t create_with_shares(struct trib_replica *r,
                                        const trib_trainer_desc_t *desc,
                                        struct trib_replica_trained *s)
{
    trib_status_t st = trib_fault_comm(
        r, r->sync, trib_broadcast(r->sync, desc->params, desc->count, TRIB_F32, 0));

    if (st != TRIB_OK)
        return st;
    s->count = desc->count;
    st = trib_trainer_create(r->self, desc, &s->trainer);
    return st == TRIB_OK ? trib_ordered_open(r, s)
                         : trib_fail(&r->err, st, "%s", trib_trainer_error(NULL));
}

static trib_status_t create(struct trib_replica *r, const trib_trainer_desc_t *theirs,
                            struct trib_replica_trained *s)
{
    trib_trainer_desc_t desc = TRIB_TRAINER_DESC_INIT;
    char strategy[120];
    trib_status_t st = trib_sized_take(&desc_kind, theirs, &desc, &r->err);

    if (st == TRIB_OK && (!desc.params || desc.count == 0))
        st = trib_fail(&r->err, TRIB_ERR_INVALID, "a trainer needs params and a count");
    if (st == TRIB_OK)
        st = fit_desc(r, &desc, strategy, sizeof(strategy));
    if (st != TRIB_OK || r->of->kind.shares > 0)
        return st != TRIB_OK ? st : create_with_shares(r, &desc, s);
    st = trib_trainer_create(r->all, &desc, &s->trainer);
    return st == TRIB_OK ? st : trib_fail(&r->err, st, "%s", trib_trainer_error(NULL));
}

trib_status_t trib_replica_trainer(trib_replica_t *replica,
                                   const trib_trainer_desc_t *desc,
                                   trib_trainer_t **trainer_out)
{
    struct trib_replica_trained *s = &replica->trainers[replica->n_trainers];

    *trainer_out = NULL;
    if (replica->n_trainers == REPLICA_TRAINERS)
        return trib_fail(&replica->err, TRIB_ERR_NO_RESOURCE,
                         "a replica has at most %d trainers", REPLICA_TRAINERS);
    const trib_status_t st = create(replica, desc, s);

    s->params = st == TRIB_OK ? desc->params : NULL;
    replica->n_trainers++;
    *trainer_out = st == TRIB_OK ? s->trainer : NULL;
    return st;
}

static trib_status_t trainer_taken(struct trib_replica *r,
                                   const trib_trainer_t *trainer, trib_status_t status)
{
    return status < 0 ? trib_fail(&r->err, status, "%s", trib_trainer_error(trainer))
                      : status;
}

/* Compute the gradients of this replica's shares, one after the other. */
static trib_status_t compute(struct trib_replica *r, struct trib_replica_trained *s,
                             const trib_step_t *step, trib_gradient_fn gradient,
                             double *loss_out)
{
    const int k = trib_ordered_shares(r) > 0 ? trib_ordered_shares(r) : 1;
    const size_t count = r->of->shape.batch / (size_t)k;

    *loss_out = 0;
    for (int i = 0; i < k; i++) {
        double loss = 0;
        const int code = gradient(
            r, step->params, r->samples + (size_t)i * count * r->of->opts.sample_bytes,
            count, step->gradient, &loss);

        if (code != 0)
            return trib_fault_callback(r, "gradient", code);
        if (s->send)
            trib_ordered_put(r, s, i, step->gradient);
        *loss_out += loss / k;
    }
    return s->send ? trib_ordered_sum(r, s, step->gradient) : TRIB_OK;
}

/* Return the index of a trainer; -1: not one of this replica's. */
static int find(const struct trib_replica *r, const trib_trainer_t *trainer)
{
    for (int i = 0; trainer && i < r->n_trainers; i++)
        if (r->trainers[i].trainer == trainer)
            return i;
    return -1;
}

const float *trib_replica_params(const trib_replica_t *replica,
                                 const trib_trainer_t *trainer)
{
    const int i = find(replica, trainer);

    return i < 0 ? NULL : replica->trainers[i].params;
}

trib_status_t trib_replica_train(trib_replica_t *replica, trib_trainer_t *trainer,
                                 trib_gradient_fn gradient, double *loss_out)
{
    const int i = find(replica, trainer);
    struct trib_replica_trained *s = i < 0 ? NULL : &replica->trainers[i];
    trib_step_t step = TRIB_STEP_INIT;
    double loss = 0;

    if (!s || !replica->in_step)
        return trib_fail(&replica->err, TRIB_ERR_INVALID, "trib_replica_train: %s",
                         s ? "samples exist only in the step function"
                           : "the trainer is not one of this replica's");
    trib_status_t st =
        trainer_taken(replica, trainer, trib_trainer_begin(trainer, &step));
    if (st == TRIB_OK)
        s->params = step.params;
    if (st == TRIB_OK)
        st = compute(replica, s, &step, gradient, &loss);
    if (st == TRIB_OK)
        st = trainer_taken(replica, trainer, trib_trainer_end(trainer, loss));
    s->steps += st == TRIB_OK;
    if (loss_out)
        *loss_out = loss;
    return st;
}
