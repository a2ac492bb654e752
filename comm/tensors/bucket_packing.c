/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Choose which tensors share a bucket. All ranks compute the same result from equal
 * inputs.
 */
#include <stdlib.h>

#include "comm/tensors/tensor_group.h"

/* A bucket that accepts more tensors of its kind. */
struct open_bucket {
    trib_dtype_t dtype;
    int priority;
    uint32_t bucket;
    size_t bytes;
    int64_t first_us; /* when its first tensor became ready */
};

/* Assigns tensors to buckets one by one. */
struct packer {
    const struct trib_group *g;
    uint32_t *assign;
    uint32_t n_buckets;
    struct open_bucket *open; /* [n_open], room for g->n; one per kind */
    size_t n_open;
    bool by_time;
};

static bool is_full(const struct packer *p, const struct open_bucket *o, size_t i)
{
    const struct trib_group *g = p->g;

    assert(i < g->n);
    if (o->bytes + g->tensors[i].bytes > g->opts.bucket_bytes)
        return true;
    return p->by_time && g->times[i] - o->first_us > (int64_t)g->opts.cycle_us;
}

static struct open_bucket *find_kind(struct packer *p,
                                     const struct trib_group_tensor *t)
{
    for (size_t i = 0; i < p->n_open; i++)
        if (p->open[i].dtype == t->desc.dtype &&
            p->open[i].priority == t->desc.priority)
            return &p->open[i];
    assert(p->n_open < p->g->n);
    p->open[p->n_open] = (struct open_bucket){.dtype = t->desc.dtype,
                                              .priority = t->desc.priority,
                                              .bucket = TRIB_BUCKET_NONE};
    return &p->open[p->n_open++];
}

static void pack(struct packer *p, size_t i)
{
    const struct trib_group_tensor *t = &p->g->tensors[i];

    p->assign[i] = TRIB_BUCKET_NONE;
    if (!t->desc.count)
        return;
    if (t->alone) {
        p->assign[i] = p->n_buckets++;
        return;
    }
    struct open_bucket *o = find_kind(p, t);
    assert(o->dtype == t->desc.dtype);
    if (o->bucket == TRIB_BUCKET_NONE || is_full(p, o, i)) {
        o->bucket = p->n_buckets++;
        o->bytes = 0;
        o->first_us = p->by_time ? p->g->times[i] : 0;
    }
    o->bytes += t->bytes;
    p->assign[i] = o->bucket;
}

/* Return tensor number k in the usual order of readiness. */
static size_t in_feed_order(const struct trib_group *g, size_t k)
{
    return g->opts.feed == TRIB_FEED_BACKWARD ? g->n - 1 - k : k;
}

struct moment {
    int32_t us;
    uint32_t tensor;
    uint32_t place; /* in feed order */
};

static int earlier(const void *a, const void *b)
{
    const struct moment *x = a, *y = b;

    if (x->us != y->us)
        return x->us < y->us ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

static struct moment *moments_of(const struct trib_group *g)
{
    struct moment *all = malloc((g->n + 1) * sizeof(*all));

    for (size_t k = 0; all && k < g->n; k++) {
        const size_t i = in_feed_order(g, k);
        all[k] = (struct moment){
            .us = g->times[i], .tensor = (uint32_t)i, .place = (uint32_t)k};
    }
    if (all)
        qsort(all, g->n, sizeof(*all), earlier);
    return all;
}

bool trib_buckets_assign(const struct trib_group *g, bool by_time, uint32_t *assign,
                         uint32_t *n_out)
{
    struct packer p = {.g = g, .assign = assign, .by_time = by_time};
    struct moment *moments = by_time ? moments_of(g) : NULL;

    assert(!by_time || g->times);
    p.open = malloc((g->n + 1) * sizeof(*p.open));
    const bool can = p.open && (moments || !by_time);
    for (size_t k = 0; can && k < g->n; k++)
        pack(&p, by_time ? moments[k].tensor : in_feed_order(g, k));
    free(p.open);
    free(moments);
    *n_out = p.n_buckets;
    return can;
}

bool trib_buckets_are_valid(const struct trib_group *g, const uint32_t *assign,
                            uint32_t n_buckets)
{
    uint32_t *first = malloc(((size_t)n_buckets + 1) * sizeof(*first));
    uint32_t n_seen = 0;
    bool valid = first != NULL && n_buckets <= g->n;

    for (uint32_t b = 0; valid && b < n_buckets; b++)
        first[b] = TRIB_BUCKET_NONE;
    for (size_t i = 0; i < g->n && valid; i++) {
        const struct trib_group_tensor *t = &g->tensors[i];
        if (!t->desc.count || assign[i] >= n_buckets) {
            valid = !t->desc.count && assign[i] == TRIB_BUCKET_NONE;
            continue;
        }
        uint32_t *f = &first[assign[i]];
        if (*f == TRIB_BUCKET_NONE) {
            *f = (uint32_t)i;
            n_seen++;
            continue;
        }
        const struct trib_group_tensor *o = &g->tensors[*f];
        valid = !t->alone && !o->alone && t->desc.dtype == o->desc.dtype &&
                t->desc.priority == o->desc.priority;
    }
    free(first);
    return valid && n_seen == n_buckets;
}
