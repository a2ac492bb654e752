/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sums whose order does not depend on the number of replicas. Each replica receives its
 * part of the gradients of all shares, adds them in the order of shares, and sends the
 * result to all replicas.
 */
#include <stdlib.h>
#include <string.h>

#include "train/replicator/replica.h"

enum { SEND_COUNTS, RECV_COUNTS, RESULT_COUNTS, RESULT_OFFSETS, COUNT_ARRAYS };

int trib_ordered_shares(const struct trib_replica *r)
{
    return r->of->kind.shares / r->of->shape.in_sync;
}

/* Return the first element of replica q's part. */
static size_t part_of(const struct trib_replica *r, size_t count, size_t q)
{
    const size_t n = (size_t)r->of->shape.in_sync;

    return count / n * q + (q < count % n ? q : count % n);
}

trib_status_t trib_ordered_open(struct trib_replica *r, struct trib_replica_trained *s)
{
    const size_t n = (size_t)r->of->shape.in_sync, k = (size_t)trib_ordered_shares(r);
    const size_t me = (size_t)(r->id - r->group * r->of->shape.in_sync);
    const size_t mine = part_of(r, s->count, me + 1) - part_of(r, s->count, me);

    s->send = malloc(k * s->count * sizeof(float));
    s->recv = n > 1 ? malloc((n * k * mine + 1) * sizeof(float)) : NULL;
    s->counts = calloc(COUNT_ARRAYS * n, sizeof(size_t));
    if (!s->send || (n > 1 && !s->recv) || !s->counts)
        return trib_fail(&r->err, TRIB_ERR_NO_MEMORY,
                         "no memory for the gradients of %zu shares", k);
    for (size_t q = 0; q < n; q++) {
        const size_t first = part_of(r, s->count, q);
        const size_t length = part_of(r, s->count, q + 1) - first;

        s->counts[SEND_COUNTS * n + q] = k * length;
        s->counts[RECV_COUNTS * n + q] = k * mine;
        s->counts[RESULT_COUNTS * n + q] = length;
        s->counts[RESULT_OFFSETS * n + q] = first;
    }
    return TRIB_OK;
}

void trib_ordered_close(struct trib_replica_trained *s)
{
    free(s->send);
    free(s->recv);
    free(s->counts);
}

void trib_ordered_put(const struct trib_replica *r, struct trib_replica_trained *s,
                      int i, const float *gradient)
{
    const size_t n = (size_t)r->of->shape.in_sync, k = (size_t)trib_ordered_shares(r);

    for (size_t q = 0; q < n; q++) {
        const size_t first = part_of(r, s->count, q);
        const size_t length = part_of(r, s->count, q + 1) - first;

        memcpy(s->send + k * first + (size_t)i * length, gradient + first,
               length * sizeof(float));
    }
}

static void add_in_order(const float *rows, size_t n_rows, size_t length, float *out)
{
    for (size_t e = 0; e < length; e++) {
        double sum = 0;

        for (size_t s = 0; s < n_rows; s++)
            sum += (double)rows[s * length + e];
        out[e] = (float)(sum / (double)n_rows);
    }
}

trib_status_t trib_ordered_sum(struct trib_replica *r, struct trib_replica_trained *s,
                               float *gradient_out)
{
    const size_t n = (size_t)r->of->shape.in_sync, all = (size_t)r->of->kind.shares;
    const size_t me = (size_t)(r->id - r->group * r->of->shape.in_sync);
    const size_t first = part_of(r, s->count, me);
    const size_t length = part_of(r, s->count, me + 1) - first;

    if (n == 1) {
        add_in_order(s->send, all, length, gradient_out);
        return TRIB_OK;
    }
    trib_status_t st =
        trib_alltoallv(r->sync, s->send, s->counts + SEND_COUNTS * n, NULL, s->recv,
                       s->counts + RECV_COUNTS * n, NULL, TRIB_F32);
    if (st == TRIB_OK) {
        add_in_order(s->recv, all, length, gradient_out + first);
        st = trib_allgatherv(r->sync, NULL, gradient_out, s->counts + RESULT_COUNTS * n,
                             s->counts + RESULT_OFFSETS * n, TRIB_F32);
    }
    return trib_fault_comm(r, r->sync, st);
}
