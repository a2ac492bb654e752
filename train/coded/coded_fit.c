/* SPDX-License-Identifier: BSD-3-Clause */
/* Gradient descent for linear models, with late, lost and joining ranks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sized.h"
#include "train/coded/linear_model.h"

#define NEVER UINT64_MAX

struct fit {
    trib_coded_fit_desc_t desc;
    trib_comm_t **comm;
    struct trib_linear_model model;
    float *weights; /* [columns + 1] the caller's */
    float *gradient;
    uint64_t step, known; /* the next step; the step of `weights` */
    uint64_t met; /* the step of the last rendezvous of all ranks; NEVER: one is due */
    double loss; /* of the previous step, on rank 0 */
    bool has_model, has_gradient;
    struct trib_error err;
};

/* Exchanged by the ranks at the start and after each change of the communicator. */
struct news {
    int32_t status, has_model;
    uint64_t known;
};

static void tell_work(void *arg, int blocks)
{
    const struct fit *f = arg;

    f->desc.work(f->desc.step_arg, f->step,
                 f->model.gradients ? (double)blocks : 0.5 * (double)blocks);
}

static trib_status_t check(struct fit *f, const trib_coded_fit_desc_t *given)
{
    static const struct trib_sized kind = {
        "trib_coded_fit_desc_t", "TRIB_CODED_FIT_DESC_INIT", sizeof(f->desc),
        TRIB_SIZED_UP_TO(trib_coded_fit_desc_t, work)};
    trib_coded_fit_desc_t *d = &f->desc;

    *d = (trib_coded_fit_desc_t)TRIB_CODED_FIT_DESC_INIT;
    if (trib_sized_take(&kind, given, d, &f->err) != TRIB_OK)
        return TRIB_ERR_INVALID;
    f->model.loss = trib_linear_loss_find(d->loss);
    if (!f->model.loss)
        return trib_fail(&f->err, TRIB_ERR_INVALID,
                         "loss \"%.40s\" is neither logistic nor hinge", d->loss);
    if (!(d->rate > 0) || !(d->decay >= 0) || !isfinite(d->rate) || !isfinite(d->decay))
        return trib_fail(
            &f->err, TRIB_ERR_INVALID,
            "rate is %g and decay %g: they must be finite, rate above 0 and "
            "decay 0 or more",
            d->rate, d->decay);
    if (d->listener && !d->meet)
        return trib_fail(
            &f->err, TRIB_ERR_INVALID,
            "listener is set but meet is 0: new ranks join only every meet steps, so "
            "set meet to 1 or more");
    if (!d->columns)
        return trib_fail(&f->err, TRIB_ERR_INVALID, "columns is 0");
    f->model.work = d->work ? tell_work : NULL;
    f->model.work_arg = f;
    f->gradient = calloc(d->columns + 1, sizeof(*f->gradient));
    if (!f->gradient)
        return trib_fail(&f->err, TRIB_ERR_NO_MEMORY, "no memory for %zu weights",
                         d->columns + 1);
    return TRIB_OK;
}

/* Check the samples that a rank with this number needs at the start. */
static trib_status_t check_samples(struct fit *f)
{
    const trib_coded_fit_desc_t *d = &f->desc;
    const int rank = trib_rank(*f->comm);

    if (trib_size(*f->comm) > TRIB_CODE_RANKS_MAX)
        return trib_fail(&f->err, TRIB_ERR_UNSUPPORTED,
                         "a code has at most %d ranks, but there are %d: split the "
                         "communicator",
                         TRIB_CODE_RANKS_MAX, trib_size(*f->comm));
    if (d->partitions < 1 || d->partitions > trib_size(*f->comm) || !d->rows)
        return trib_fail(
            &f->err, TRIB_ERR_INVALID,
            "%d partitions of %zu rows in %d ranks: there must be at least one of "
            "each, and at most one partition per rank",
            d->partitions, d->rows, trib_size(*f->comm));
    if (rank < d->partitions && (!d->features || !d->labels))
        return trib_fail(&f->err, TRIB_ERR_INVALID,
                         "rank %d has one of the %d partitions, but its features or "
                         "labels are NULL",
                         rank, d->partitions);
    return TRIB_OK;
}

static trib_status_t taken(struct fit *f, trib_status_t st)
{
    return st == TRIB_OK ? TRIB_OK
                         : trib_fail(&f->err, st, "%s", trib_last_error(*f->comm));
}

static trib_status_t of_model(struct fit *f, trib_status_t st)
{
    return st == TRIB_OK ? TRIB_OK
                         : trib_fail(&f->err, st, "%s", trib_error_text(&f->model.err));
}

/* Return the rank with the newest weights; -1: the run starts. */
static int newest(const struct news *all, int ranks)
{
    int best = -1;

    for (int r = 0; r < ranks; r++)
        if (all[r].has_model && (best < 0 || all[r].known > all[best].known))
            best = r;
    return best;
}

static trib_status_t hear(struct fit *f, trib_status_t own, int *from_out)
{
    const int ranks = trib_size(*f->comm);
    const struct news mine = {own, f->has_model, f->known};
    struct news *all = calloc((size_t)ranks, sizeof(*all));

    if (!all) {
        (void)trib_comm_abort(*f->comm, "no memory for a linear model");
        return trib_fail(&f->err, TRIB_ERR_NO_MEMORY, "no memory for %d ranks", ranks);
    }
    trib_status_t st =
        taken(f, trib_allgather(*f->comm, &mine, all, sizeof(mine), TRIB_U8));
    *from_out = newest(all, ranks);
    for (int r = 0; r < ranks && st == TRIB_OK; r++)
        if (all[r].status != TRIB_OK)
            st = trib_fail(&f->err, trib_status_of_peer(all[r].status),
                           "rank %d has failed: %s", r,
                           trib_status_str(trib_status_of_peer(all[r].status)));
    free(all);
    return own != TRIB_OK ? own : st;
}

/* Bring all ranks of a communicator to the same model and step, or start the run. */
static trib_status_t come_together(struct fit *f, trib_status_t own)
{
    int from;

    trib_status_t st = hear(f, own, &from);
    if (st != TRIB_OK)
        return st;
    if (from < 0) {
        st = check_samples(f);
        st = hear(f, st, &from);
        trib_linear_model_reset(&f->model);
        if (st == TRIB_OK)
            st = of_model(f, trib_linear_model_create(&f->model, *f->comm, &f->desc));
    } else {
        st = of_model(f, trib_linear_model_move(&f->model, *f->comm, from));
        if (st == TRIB_OK && f->model.columns != f->desc.columns + 1)
            st = trib_fail(&f->err, TRIB_ERR_MISMATCH,
                           "the other ranks have %zu columns, this rank has %zu",
                           f->model.columns - 1, f->desc.columns);
        if (st == TRIB_OK)
            st = taken(f, trib_broadcast(*f->comm, f->weights, f->model.columns,
                                         TRIB_F32, from));
        if (st == TRIB_OK)
            st = taken(f, trib_broadcast(*f->comm, &f->known, 1, TRIB_U64, from));
    }
    f->has_model |= st == TRIB_OK;
    f->step = f->met = f->known;
    return st;
}

static bool can_be_mended(trib_status_t st)
{
    return st == TRIB_ERR_PEER_LOST || st == TRIB_ERR_TIMEOUT || st == TRIB_ERR_ABORTED;
}

/* Continue without lost ranks; repeat if more are lost. */
static trib_status_t mend(struct fit *f, trib_status_t st)
{
    for (int tries = 0; can_be_mended(st) && tries < TRIB_CODE_RANKS_MAX; tries++) {
        trib_comm_t *smaller;
        trib_linear_model_fail(&f->model, st, trib_error_text(&f->err));
        trib_linear_model_leave(&f->model);
        trib_error_clear(&f->err);
        st = trib_comm_shrink(*f->comm, &smaller);
        if (st != TRIB_OK)
            return trib_fail(&f->err, st, "%s", trib_last_error(NULL));
        (void)trib_free_comm(*f->comm);
        *f->comm = smaller;
        st = come_together(f, TRIB_OK);
        f->met = NEVER; /* the rendezvous may be what failed */
    }
    return st;
}

/* Admit newcomers. An error means that a rank is lost. */
static trib_status_t meet(struct fit *f)
{
    const int room = TRIB_CODE_RANKS_MAX - trib_size(*f->comm);
    trib_comm_t *bigger = NULL;

    trib_linear_model_finish(&f->model);
    trib_status_t st =
        taken(f, trib_comm_grow(*f->comm, f->desc.listener, room, &bigger));
    if (st != TRIB_OK || !bigger)
        return st;
    trib_linear_model_leave(&f->model);
    (void)trib_free_comm(*f->comm);
    *f->comm = bigger;
    return come_together(f, TRIB_OK);
}

static void tell_step(const struct fit *f)
{
    const trib_coded_step_t step = {.size = sizeof(step),
                                    .step = f->step,
                                    .weights = f->weights,
                                    .gradient = f->has_gradient ? f->gradient : NULL,
                                    .loss = f->loss};

    if (f->desc.step)
        f->desc.step(f->desc.step_arg, &step);
}

static trib_status_t take_step(struct fit *f)
{
    const trib_coded_fit_desc_t *d = &f->desc;
    const bool leads = trib_rank(*f->comm) == 0;
    bool taken_over;

    tell_step(f);
    const trib_status_t st =
        of_model(f, trib_linear_model_gradient(&f->model, f->weights, f->gradient,
                                               &f->loss, &taken_over));
    if (st != TRIB_OK)
        return st;
    for (size_t k = 0; k <= d->columns && leads; k++) {
        const double decay = k < d->columns ? d->decay * (double)f->weights[k] : 0;
        f->weights[k] -= (float)(d->rate * ((double)f->gradient[k] + decay));
    }
    f->has_gradient = leads;
    if (leads)
        f->known = f->step + 1;
    else if (taken_over)
        f->known = f->step;
    f->step++;
    return TRIB_OK;
}

static trib_status_t run(struct fit *f)
{
    trib_status_t st = TRIB_OK;

    while (f->step < f->desc.steps && st == TRIB_OK) {
        if (f->desc.meet && f->step != f->met && f->step % f->desc.meet == 0)
            st = meet(f);
        if (st == TRIB_OK)
            st = take_step(f);
        st = mend(f, st);
    }
    return st;
}

static trib_status_t fit(struct fit *f, const trib_coded_fit_desc_t *desc,
                         trib_coded_stats_t *stats)
{
    static const struct trib_sized kind = {"trib_coded_stats_t",
                                           "TRIB_CODED_STATS_INIT", sizeof(*stats),
                                           TRIB_SIZED_UP_TO(trib_coded_stats_t, lost)};
    trib_coded_stats_t all = TRIB_CODED_STATS_INIT;

    trib_status_t st = check(f, desc);
    if (st == TRIB_OK && stats)
        st = trib_sized_fits(&kind, stats, &f->err);
    st = mend(f, come_together(f, st));
    if (st == TRIB_OK)
        st = run(f);
    if (st != TRIB_OK) /* the other ranks would wait for orders */
        trib_linear_model_fail(&f->model, st, trib_error_text(&f->err));
    trib_linear_model_stats(&f->model, &all);
    if (stats && st == TRIB_OK)
        trib_sized_give(&kind, &all, stats);
    return st;
}

trib_status_t trib_coded_fit(trib_comm_t **comm, const trib_coded_fit_desc_t *desc,
                             float *weights, trib_coded_stats_t *stats)
{
    struct fit f = {.comm = comm, .weights = weights, .loss = NAN};

    if (!comm || !*comm || !desc || !weights) {
        trib_fail(&f.err, TRIB_ERR_INVALID, "comm, desc or weights is NULL");
        return trib_coded_keep_sentence(TRIB_ERR_INVALID, &f.err);
    }
    const trib_status_t st = fit(&f, desc, stats);
    trib_linear_model_destroy(&f.model);
    free(f.gradient);
    return trib_coded_keep_sentence(st, &f.err);
}
