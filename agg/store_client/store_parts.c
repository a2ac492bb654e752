/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parts of a vector: ranges in different shards, computed equally on all ranks.
 *
 * Parts start at chunk boundaries of codecs, so that their encoding equals that of the
 * whole vector. Short vectors are the exception.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agg/store_client/rank_store.h"
#include "base/digest.h"
#include "base/minmax.h"

enum {
    UNIT = 65536, /* elements; parts start at multiples of it */
    PART_BYTES = 1 << 20, /* of the shortest part, unless desc->shards is set */
};

static size_t choose_parts(const struct trib_store *store, const trib_vector_desc_t *d)
{
    const size_t bytes = d->count * trib_dtype_size(d->dtype);
    const size_t most = d->shards ? trib_min((size_t)d->shards, d->count)
                                  : trib_min(bytes / PART_BYTES, d->count / UNIT);

    return trib_max(trib_min(most, (size_t)store->job.n), 1);
}

struct trib_vector *trib_vector_make(struct trib_store *store,
                                     const trib_vector_desc_t *d)
{
    const size_t n = choose_parts(store, d);
    const size_t unit = d->count >= n * UNIT ? UNIT : 1;
    const size_t units = (d->count - 1) / unit + 1;
    const uint64_t digest = trib_digest(d->name, strlen(d->name));
    struct trib_vector *v = calloc(1, sizeof(*v) + n * sizeof(v->parts[0]));

    assert(n <= units);
    if (!v)
        return NULL;
    v->store = store;
    v->count = d->count;
    v->dtype = d->dtype;
    v->n_parts = (int)n;
    for (size_t i = 0; i < n; i++) {
        struct trib_vector_part *p = &v->parts[i];
        const size_t end = trib_min((units * (i + 1)) / n * unit, d->count);
        p->shard = (int)((digest + i) % (uint64_t)store->job.n);
        p->first = i ? p[-1].first + p[-1].count : 0;
        p->count = end - p->first;
    }
    snprintf(v->name, sizeof(v->name), "%s", d->name);
    snprintf(v->rule, sizeof(v->rule), "%s", d->rule ? d->rule : "sum");
    return v;
}

void trib_vector_free(struct trib_vector *v)
{
    if (!v)
        return;
    trib_vector_codecs_free(v);
    trib_sorted_pairs_free(&v->pairs);
    free(v);
}

trib_vector_state_t trib_vector_state(const struct trib_vector *v)
{
    trib_vector_state_t s = {
        .version = UINT64_MAX, .saved = UINT64_MAX, .pushes = UINT64_MAX};

    for (int i = 0; i < v->n_parts; i++) {
        const struct trib_vector_part *p = &v->parts[i];
        s.version = p->seen < s.version ? p->seen : s.version;
        s.pushes = p->pushed < s.pushes ? p->pushed : s.pushes;
        s.saved = p->saved < s.saved ? p->saved : s.saved;
        s.lost |= p->lost;
    }
    s.saved = s.saved ? s.saved - 1 : TRIB_VERSION_NONE;
    return s;
}

trib_status_t trib_vector_append_seen(const struct trib_vector *v, trib_status_t st)
{
    const trib_vector_state_t s = trib_vector_state(v);
    char why[sizeof(v->store->err.text)];
    char saved[64] = "this rank knows of no snapshot of it";

    snprintf(why, sizeof(why), "%.300s", trib_error_text(&v->store->err));
    if (s.saved != TRIB_VERSION_NONE)
        snprintf(saved, sizeof(saved), "version %" PRIu64 " is in a snapshot", s.saved);
    return trib_store_fail(v->store, st,
                           "%s; the newest version of vector %s that this rank knows "
                           "is %" PRIu64 ", and %s: use trib_store_restore",
                           why, v->name, s.version, saved);
}

/* Shares of a request -------------------------------------------------------------- */

/* Return the position of the first index of a later part. */
static size_t end_of(const struct trib_store_request *r,
                     const struct trib_vector_part *p, size_t from)
{
    size_t low = from, high = r->n_indices;

    if (p == &r->vector->parts[r->vector->n_parts - 1])
        return high;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (r->indices[middle] < p->first + p->count)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Set the share of a sparse request. A push goes to all parts, so that all count it. */
static void deal_indices(const struct trib_store_request *r, struct trib_vector_part *p,
                         size_t *at)
{
    const size_t element = trib_dtype_size(r->vector->dtype);
    const size_t end = end_of(r, p, *at);
    struct trib_part_request *q = &p->request;

    q->indices = r->indices + *at;
    q->n_indices = q->count = end - *at;
    q->first_index = p->first;
    if (r->purpose) {
        q->data = r->data + *at * element;
        q->data_bytes = q->n_indices * element;
    } else if (!q->n_indices) {
        q->stage = TRIB_PART_DONE;
    }
    q->out = r->out ? r->out + *at * element : NULL;
    q->out_bytes = r->out ? q->n_indices * element : 0;
    *at = end;
}

static void deal_push(const struct trib_store_request *r, struct trib_vector_part *p)
{
    const size_t element = trib_dtype_size(r->vector->dtype);
    struct trib_part_request *q = &p->request;

    assert(r->data && p->count > 0);
    q->data = r->data + (r->codec ? p->coded_at : p->first * element);
    q->data_bytes = r->codec ? p->coded_bytes : p->count * element;
    q->out = r->out ? r->out + p->first * element : NULL;
    q->out_bytes = r->out ? p->count * element : 0;
}

/* Set the share of a ranged pull. A pull of 0 elements goes to all parts. */
static void deal_pull(const struct trib_store_request *r, struct trib_vector_part *p)
{
    const size_t element = trib_dtype_size(r->vector->dtype);
    const size_t first = trib_max(r->first, p->first);
    const size_t end = trib_min(r->first + r->count, p->first + p->count);
    struct trib_part_request *q = &p->request;

    if (!r->count)
        return;
    if (first >= end) {
        q->stage = TRIB_PART_DONE;
        return;
    }
    q->first = first - p->first;
    q->count = end - first;
    q->out = r->out + (first - r->first) * element;
    q->out_bytes = q->count * element;
    if (r->decoded) {
        q->words = p->pull.words;
        q->decoded = r->decoded + (first - r->first);
    }
}

void trib_vector_deal(struct trib_store_request *r)
{
    size_t at = 0;

    assert(r->vector->n_parts > 0);
    for (int i = 0; i < r->vector->n_parts; i++) {
        struct trib_vector_part *p = &r->vector->parts[i];
        p->request = (struct trib_part_request){.stage = TRIB_PART_FORM};
        if (r->only && r->only != p)
            p->request.stage = TRIB_PART_DONE;
        else if (r->indices)
            deal_indices(r, p, &at);
        else if (r->purpose)
            deal_push(r, p);
        else if (!r->order)
            deal_pull(r, p);
    }
}
