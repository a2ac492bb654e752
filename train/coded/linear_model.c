/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/coded/linear_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <tributary/send.h>

/* Losses --------------------------------------------------------------------------- */

static double logistic(double margin, double *slope_out)
{
    *slope_out = -1 / (1 + exp(margin));
    return margin > 0 ? log1p(exp(-margin)) : log1p(exp(margin)) - margin;
}

static double hinge(double margin, double *slope_out)
{
    *slope_out = margin < 1 ? -1 : 0;
    return margin < 1 ? 1 - margin : 0;
}

trib_linear_loss_fn trib_linear_loss_find(const char *name)
{
    return !name || strcmp(name, "logistic") == 0 ? logistic
           : strcmp(name, "hinge") == 0           ? hinge
                                                  : NULL;
}

static double sign_of(float label)
{
    return label > 0 ? 1 : label < 0 ? -1 : 0;
}

/* Creating ------------------------------------------------------------------------- */

static trib_status_t no_memory(struct trib_linear_model *m, trib_comm_t *comm)
{
    if (comm) /* the other ranks would wait for this rank */
        (void)trib_comm_abort(comm, "no memory for a linear model");
    return trib_fail(&m->err, TRIB_ERR_NO_MEMORY, "no memory for a linear model");
}

static trib_status_t taken(struct trib_linear_model *m, trib_comm_t *comm,
                           trib_status_t st)
{
    return st == TRIB_OK ? TRIB_OK
                         : trib_fail(&m->err, st, "%s", trib_last_error(comm));
}

/* Copy this rank's samples, append a column of 1, and optionally the labels. */
static float *copy_samples(const struct trib_linear_model *m,
                           const trib_coded_fit_desc_t *d, bool with_labels)
{
    const size_t width = m->columns + with_labels;
    float *samples = malloc(m->rows * width * sizeof(*samples));

    for (size_t i = 0; i < m->rows && samples; i++) {
        float *row = samples + i * width;
        memcpy(row, d->features + i * d->columns, d->columns * sizeof(*row));
        row[d->columns] = 1;
        if (with_labels)
            row[width - 1] = d->labels[i];
    }
    return samples;
}

static trib_status_t gather_labels(struct trib_linear_model *m, trib_comm_t *comm,
                                   const trib_coded_fit_desc_t *d)
{
    const size_t n = m->rows * (size_t)trib_size(comm);
    float *own = calloc(m->rows, sizeof(*own));

    m->labels = calloc(n, sizeof(*m->labels));
    if (!own || !m->labels) {
        free(own);
        return no_memory(m, comm);
    }
    if (trib_rank(comm) < m->parts)
        memcpy(own, d->labels, m->rows * sizeof(*own));
    const trib_status_t st =
        taken(m, comm, trib_allgather(comm, own, m->labels, m->rows, TRIB_F32));
    free(own);
    for (size_t i = 0; i < m->rows * (size_t)m->parts; i++)
        m->n_samples += m->labels[i] > 0 || m->labels[i] < 0;
    if (st == TRIB_OK && !m->n_samples)
        return trib_fail(&m->err, TRIB_ERR_INVALID,
                         "all labels are 0: there is no sample");
    return st;
}

/* Return the features per partition of X', including padding. */
static size_t features_each(const struct trib_linear_model *m)
{
    return (m->columns + (size_t)m->parts - 1) / (size_t)m->parts;
}

/* Cut block `to` out of the features of these samples: [each][rows]. */
static void cut_features(const struct trib_linear_model *m, const float *samples,
                         int to, float *block)
{
    const size_t each = features_each(m);

    for (size_t f = 0; f < each; f++) {
        const size_t column = (size_t)to * each + f;
        for (size_t i = 0; i < m->rows; i++)
            block[f * m->rows + i] =
                column < m->columns ? samples[i * m->columns + column] : 0;
    }
}

static trib_status_t swap_blocks(struct trib_linear_model *m, trib_comm_t *comm,
                                 const float *blocks, float *features)
{
    const size_t each = features_each(m), n = each * m->rows;
    trib_request_t *sends[TRIB_CODE_RANKS_MAX] = {NULL};
    float *block = malloc(n * sizeof(*block));
    trib_status_t st = block ? TRIB_OK : no_memory(m, comm);

    for (int p = 0; p < m->parts && st == TRIB_OK; p++)
        st = taken(
            m, comm,
            trib_isend(comm, blocks + (size_t)p * n, n, TRIB_F32, p, 0, &sends[p]));
    for (int p = 0; p < m->parts && st == TRIB_OK; p++) {
        st = taken(m, comm, trib_recv(comm, block, n, TRIB_F32, p, 0));
        for (size_t f = 0; f < each && st == TRIB_OK; f++)
            memcpy(features + (f * (size_t)m->parts + (size_t)p) * m->rows,
                   block + f * m->rows, m->rows * sizeof(*block));
    }
    for (int p = 0; p < m->parts; p++) {
        const trib_status_t sent = sends[p] ? trib_request_wait(sends[p]) : TRIB_OK;
        st = st == TRIB_OK ? taken(m, comm, sent) : st;
        (void)trib_request_free(sends[p]);
    }
    free(block);
    return st;
}

/* Exchange blocks so that each rank with samples gets its partition of X'. */
static trib_status_t transpose(struct trib_linear_model *m, trib_comm_t *comm,
                               const float *samples, float **features_out)
{
    const size_t n = features_each(m) * m->rows, all = n * (size_t)m->parts;
    float *blocks = malloc(all * sizeof(*blocks));
    float *features = malloc(all * sizeof(*features));
    trib_status_t st = blocks && features ? TRIB_OK : no_memory(m, comm);

    for (int p = 0; p < m->parts && st == TRIB_OK; p++)
        cut_features(m, samples, p, blocks + (size_t)p * n);
    if (st == TRIB_OK)
        st = swap_blocks(m, comm, blocks, features);
    free(blocks);
    *features_out = features;
    return st;
}

static trib_status_t make_vectors(struct trib_linear_model *m, trib_comm_t *comm)
{
    const size_t samples = m->rows * (size_t)m->parts;
    const size_t features = features_each(m) * (size_t)m->parts;

    m->z = calloc(samples, sizeof(*m->z));
    m->r = calloc(samples, sizeof(*m->r));
    m->g = calloc(features + 1, sizeof(*m->g));
    return m->z && m->r && m->g ? TRIB_OK : no_memory(m, comm);
}

/* Encode a matrix; takes ownership of the partition. */
static trib_status_t encode(struct trib_linear_model *m, trib_comm_t *comm,
                            const trib_coded_fit_desc_t *d, float *partition,
                            size_t rows, size_t columns, trib_coded_t **out)
{
    trib_coded_desc_t desc = TRIB_CODED_DESC_INIT;

    desc.code = d->code;
    desc.partition = partition;
    desc.rows = rows;
    desc.columns = columns;
    desc.partitions = d->partitions;
    desc.seed = d->seed;
    const trib_status_t st =
        trib_coded_matrix_begin(comm, &desc, m->star, &m->err, out);
    if (st == TRIB_OK)
        trib_coded_own_partition(*out, partition);
    else
        free(partition);
    return st;
}

static trib_status_t create_sums(struct trib_linear_model *m, trib_comm_t *comm,
                                 const trib_coded_fit_desc_t *d)
{
    const bool has = trib_rank(comm) < m->parts;
    float *samples = has ? copy_samples(m, d, false) : NULL, *features = NULL;
    trib_status_t st = samples || !has ? TRIB_OK : no_memory(m, comm);

    if (st == TRIB_OK && has)
        st = transpose(m, comm, samples, &features);
    if (st == TRIB_OK)
        st = encode(m, comm, d, features, features_each(m), m->rows * (size_t)m->parts,
                    &m->features);
    else
        free(features);
    if (st != TRIB_OK) {
        free(samples);
        return st;
    }
    return encode(m, comm, d, samples, m->rows, m->columns, &m->scores);
}

static trib_status_t create_gradients(struct trib_linear_model *m, trib_comm_t *comm,
                                      const trib_coded_fit_desc_t *d)
{
    const bool has = trib_rank(comm) < m->parts;
    float *samples = has ? copy_samples(m, d, true) : NULL;

    if (has && !samples)
        return no_memory(m, comm);
    return encode(m, comm, d, samples, m->rows, m->columns + 1, &m->gradients);
}

trib_status_t trib_linear_model_create(struct trib_linear_model *m, trib_comm_t *comm,
                                       const trib_coded_fit_desc_t *d)
{
    struct trib_code_choice choice;

    m->rows = d->rows;
    m->columns = d->columns + 1;
    m->parts = d->partitions;
    trib_status_t st = trib_code_parse(d->code, &m->err, &choice);
    if (st == TRIB_OK)
        st = trib_order_star_open(comm, &m->err, &m->star);
    if (st == TRIB_OK)
        st = make_vectors(m, comm);
    if (st == TRIB_OK)
        st = gather_labels(m, comm, d);
    if (st != TRIB_OK)
        return st;
    return choice.row->ops->mixes ? create_gradients(m, comm, d)
                                  : create_sums(m, comm, d);
}

/* Moving --------------------------------------------------------------------------- */

/* Properties that a newcomer needs. */
struct shape {
    uint64_t rows, columns, n_samples;
    int32_t parts, mixes;
};

static trib_status_t tell_shape(struct trib_linear_model *m, trib_comm_t *comm,
                                int from)
{
    struct shape s = {m->rows, m->columns, m->n_samples, m->parts,
                      m->gradients != NULL};
    const bool newcomer = !m->labels;

    trib_status_t st =
        taken(m, comm, trib_broadcast(comm, &s, sizeof(s), TRIB_U8, from));
    if (st != TRIB_OK)
        return st;
    const size_t n = (size_t)s.parts * s.rows;
    if (newcomer) {
        m->rows = s.rows;
        m->columns = s.columns;
        m->n_samples = s.n_samples;
        m->parts = s.parts;
        m->labels = calloc(n, sizeof(*m->labels));
        st = m->labels ? make_vectors(m, comm) : no_memory(m, comm);
    }
    if (st == TRIB_OK)
        st = taken(m, comm, trib_broadcast(comm, m->labels, n, TRIB_F32, from));
    if (st == TRIB_OK && s.mixes)
        return trib_coded_matrix_move(comm, m->star, &m->err, &m->gradients);
    if (st == TRIB_OK)
        st = trib_coded_matrix_move(comm, m->star, &m->err, &m->features);
    return st == TRIB_OK ? trib_coded_matrix_move(comm, m->star, &m->err, &m->scores)
                         : st;
}

trib_status_t trib_linear_model_move(struct trib_linear_model *m, trib_comm_t *comm,
                                     int from)
{
    trib_error_clear(&m->err);
    trib_linear_model_leave(m);
    const trib_status_t st = trib_order_star_open(comm, &m->err, &m->star);
    return st == TRIB_OK ? tell_shape(m, comm, from) : st;
}

void trib_linear_model_leave(struct trib_linear_model *m)
{
    if (m->star)
        m->late += trib_order_star_late(m->star);
    trib_order_star_close(m->star);
    m->star = NULL;
}

void trib_linear_model_destroy(struct trib_linear_model *m)
{
    trib_linear_model_leave(m);
    (void)trib_coded_free(m->scores);
    (void)trib_coded_free(m->features);
    (void)trib_coded_free(m->gradients);
    free(m->labels);
    free(m->z);
    free(m->r);
    free(m->g);
}

void trib_linear_model_reset(struct trib_linear_model *m)
{
    const struct trib_linear_model fresh = {
        .loss = m->loss, .work = m->work, .work_arg = m->work_arg};

    trib_linear_model_destroy(m);
    *m = fresh;
}

void trib_linear_model_fail(struct trib_linear_model *m, trib_status_t status,
                            const char *why)
{
    if (m->star)
        trib_order_star_fail(m->star, status, why);
}

void trib_linear_model_finish(struct trib_linear_model *m)
{
    trib_order_star_skip(m->star);
}

void trib_linear_model_stats(const struct trib_linear_model *m, trib_coded_stats_t *out)
{
    const trib_coded_t *all[] = {m->scores, m->features, m->gradients};
    const char *why;

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (all[i])
            trib_coded_add_stats(all[i], out);
    out->late += m->late + (m->star ? trib_order_star_late(m->star) : 0);
    out->lost = m->star ? (uint64_t)trib_order_star_lost(m->star, &why) : 0;
}

/* The gradient --------------------------------------------------------------------- */

/* trib_coded_fn: compute gradient and loss of a partition's samples. */
static void gradient_of_samples(void *arg, int number, const float *partition,
                                const float *in, float *out)
{
    const struct trib_linear_model *m = arg;
    const size_t width = m->columns + 1;

    (void)number;
    for (size_t i = 0; i < m->rows; i++) {
        const float *row = partition + i * width;
        const double sign = sign_of(row[width - 1]);
        double score = 0, slope;
        if (sign == 0)
            continue;
        for (size_t k = 0; k < m->columns; k++)
            score += (double)row[k] * (double)in[k];
        out[m->columns] += (float)m->loss(sign * score, &slope);
        for (size_t k = 0; k < m->columns && slope != 0; k++)
            out[k] += (float)(sign * slope) * row[k];
    }
}

static trib_status_t copy_error(struct trib_linear_model *m, const trib_coded_t *c,
                                trib_status_t st)
{
    trib_error_clear(&m->err);
    return st == TRIB_OK ? TRIB_OK : trib_fail(&m->err, st, "%s", trib_coded_error(c));
}

static trib_coded_t *for_work(const struct trib_linear_model *m, trib_coded_t *c)
{
    c->work = m->work;
    c->work_arg = m->work_arg;
    return c;
}

/* Compute the second product of a code of sums, from the slopes at the scores. */
static trib_status_t multiply_slopes(struct trib_linear_model *m, bool leads,
                                     double *loss_out)
{
    double loss = 0, slope;

    for (size_t i = 0; i < m->rows * (size_t)m->parts && leads; i++) {
        const double sign = sign_of(m->labels[i]);
        m->r[i] = 0;
        if (sign == 0)
            continue;
        loss += m->loss(sign * (double)m->z[i], &slope);
        m->r[i] = (float)(sign * slope);
    }
    *loss_out = loss;
    return copy_error(m, m->features,
                      trib_coded_multiply(for_work(m, m->features), m->r, m->g));
}

trib_status_t trib_linear_model_gradient(struct trib_linear_model *m, float *weights,
                                         float *gradient_out, double *loss_out,
                                         bool *taken_out)
{
    trib_coded_t *first = for_work(m, m->gradients ? m->gradients : m->scores);
    const bool leads = first->rank == 0;
    const double scale = 1 / (double)m->n_samples;
    trib_status_t st;

    if (m->gradients)
        st = trib_coded_gradient(first, gradient_of_samples, m, leads ? weights : NULL,
                                 leads ? m->columns : 0, m->g, m->columns + 1);
    else
        st = trib_coded_multiply(first, leads ? weights : NULL, m->z);
    st = copy_error(m, first, st);
    *taken_out = !leads && st == TRIB_OK && first->taken;
    if (*taken_out)
        memcpy(weights, first->taken, m->columns * sizeof(*weights));
    if (st == TRIB_OK && !m->gradients)
        st = multiply_slopes(m, leads, loss_out);
    else if (st == TRIB_OK)
        *loss_out = (double)m->g[m->columns];
    if (st != TRIB_OK || !leads)
        return st;
    *loss_out *= scale;
    for (size_t k = 0; k < m->columns; k++)
        gradient_out[k] = (float)(scale * (double)m->g[k]);
    return TRIB_OK;
}
