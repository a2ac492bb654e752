/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plans of buckets, and the memory where several tensors are fused.
 */
#include <stdlib.h>

#include "base/digest.h"
#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "comm/tensors/tensor_group.h"

enum { MEMORY_ALIGN = 64 };

/* Name a bucket's plan after its tensor, or after the first and the last one. If the
 * name is too long, a digest replaces its end. */
static void name_plan(const struct trib_group_tensor *first,
                      const struct trib_group_tensor *last,
                      char name[TRIB_PLAN_NAME_MAX + 1])
{
    char whole[2 * TRIB_TENSOR_NAME_MAX + 8];
    const int len = first == last
                        ? snprintf(whole, sizeof(whole), "%s", first->desc.name)
                        : snprintf(whole, sizeof(whole), "%s .. %s", first->desc.name,
                                   last->desc.name);

    if (len <= TRIB_PLAN_NAME_MAX)
        memcpy(name, whole, (size_t)len + 1);
    else
        snprintf(name, TRIB_PLAN_NAME_MAX + 1, "%.48s~%08x", whole,
                 trib_digest32(whole, (size_t)len));
}

static trib_status_t make_plan(struct trib_group *g,
                               const struct trib_group_tensor *first,
                               const struct trib_group_tensor *last, size_t elements,
                               trib_plan_t **plan_out)
{
    char name[TRIB_PLAN_NAME_MAX + 1], why[400];
    trib_desc_t d = TRIB_DESC_INIT;

    name_plan(first, last, name);
    d.count = elements;
    d.dtype = first->desc.dtype;
    d.op = g->opts.op;
    d.parameter = g->opts.parameter;
    d.codec = first->desc.codec;
    d.feedback = first->desc.feedback;
    d.algorithm = g->opts.algorithm;
    d.seed = g->opts.seed;
    d.name = name;
    d.timeout_ms = g->opts.timeout_ms;
    trib_status_t st = trib_plan_allreduce(g->comm, &d, plan_out);
    if (st == TRIB_OK)
        st = trib_group_watch(g, *plan_out);
    if (st == TRIB_OK)
        return st;
    snprintf(why, sizeof(why), "%s", trib_last_error(g->comm));
    return trib_comm_fail(g->comm, st, "tensor \"%s\": %s", first->desc.name, why);
}

/* Return the bucket that holds only this tensor, or NULL. */
static struct trib_bucket *bucket_of_one(const struct trib_group *g,
                                         const struct trib_group_tensor *t)
{
    if (t->bucket == TRIB_BUCKET_NONE || g->buckets.at[t->bucket].n != 1)
        return NULL;
    return &g->buckets.at[t->bucket];
}

static trib_status_t make_bucket(struct trib_group *g, const struct trib_buckets *all,
                                 struct trib_bucket *b)
{
    const uint32_t *members = &all->members[b->first];
    const struct trib_group_tensor *first = &g->tensors[members[0]];

    assert(b->n >= 1 && b->elements >= 1);
    if (b->n == 1 && bucket_of_one(g, first))
        return TRIB_OK; /* take_over reuses the plan once nothing can fail */
    return make_plan(g, first, &g->tensors[members[b->n - 1]], b->elements, &b->plan);
}

static size_t padded(size_t bytes)
{
    return (bytes + MEMORY_ALIGN - 1) / MEMORY_ALIGN * MEMORY_ALIGN;
}

/* Allocate one block of memory for all fused buckets. */
static trib_status_t make_memory(struct trib_group *g, struct trib_buckets *all)
{
    size_t bytes = 0;

    for (uint32_t b = 0; b < all->n; b++)
        bytes += all->at[b].n > 1 ? padded(all->at[b].bytes) : 0;
    if (!bytes)
        return TRIB_OK;
    const trib_status_t st = trib_alloc(g->comm, bytes, &all->memory);
    char *next = all->memory;
    for (uint32_t b = 0; st == TRIB_OK && b < all->n; b++) {
        if (all->at[b].n == 1)
            continue;
        all->at[b].buffer = next;
        next += padded(all->at[b].bytes);
    }
    return st;
}

/* Hand over plans of tensors that keep a bucket to themselves. */
static void take_over(struct trib_group *g, struct trib_buckets *fresh)
{
    for (uint32_t i = 0; i < fresh->n; i++) {
        struct trib_bucket *b = &fresh->at[i];
        if (b->plan)
            continue;
        struct trib_bucket *old =
            bucket_of_one(g, &g->tensors[fresh->members[b->first]]);
        assert(old && old->plan);
        b->plan = old->plan;
        old->plan = NULL;
    }
}

/* Fill in the buckets and their members by ascending index. */
static bool place(const struct trib_group *g, const uint32_t *assign, uint32_t n,
                  struct trib_buckets *all)
{
    *all = (struct trib_buckets){.n = n,
                                 .at = calloc((size_t)n + 1, sizeof(*all->at)),
                                 .members = calloc(g->n + 1, sizeof(uint32_t)),
                                 .order = calloc((size_t)n + 1, sizeof(uint32_t))};
    if (!all->at || !all->members || !all->order)
        return false;
    for (size_t i = 0; i < g->n; i++)
        if (assign[i] != TRIB_BUCKET_NONE)
            all->at[assign[i]].n++;
    for (uint32_t b = 0, next = 0; b < n; b++) {
        all->at[b].first = next;
        next += all->at[b].n;
        all->at[b].n = 0;
    }
    for (size_t i = 0; i < g->n; i++) {
        if (assign[i] == TRIB_BUCKET_NONE)
            continue;
        struct trib_bucket *b = &all->at[assign[i]];
        all->members[b->first + b->n++] = (uint32_t)i;
        b->bytes += g->tensors[i].bytes;
        b->elements += g->tensors[i].desc.count;
    }
    return true;
}

/* Sort by descending priority; stable. */
static void put_in_order(const struct trib_group *g, struct trib_buckets *all)
{
    for (uint32_t b = 0; b < all->n; b++) {
        const int mine = g->tensors[all->members[all->at[b].first]].desc.priority;
        uint32_t at = b;
        while (at > 0) {
            const struct trib_bucket *before = &all->at[all->order[at - 1]];
            if (g->tensors[all->members[before->first]].desc.priority >= mine)
                break;
            all->order[at] = all->order[at - 1];
            at--;
        }
        all->order[at] = b;
    }
}

/* Store each tensor's bucket and offset, and count. */
static void settle(struct trib_group *g)
{
    g->stats.buckets = g->buckets.n;
    g->stats.fused = 0;
    for (uint32_t b = 0; b < g->buckets.n; b++) {
        struct trib_bucket *bucket = &g->buckets.at[b];
        size_t offset = 0;
        for (uint32_t i = 0; i < bucket->n; i++) {
            struct trib_group_tensor *t = trib_bucket_tensor(g, bucket, i);
            t->bucket = b;
            t->offset = offset;
            offset += t->bytes;
        }
        assert(offset == bucket->bytes);
        if (bucket->n > 1)
            g->stats.fused += bucket->n;
    }
}

static trib_status_t no_memory(struct trib_group *g)
{
    return trib_comm_fail(g->comm, TRIB_ERR_NO_MEMORY,
                          "no memory for the buckets of a group of %zu tensors", g->n);
}

/* Create the agreement plan; none if the ranks need no agreement. */
static trib_status_t make_agreement(struct trib_group *g, uint32_t n,
                                    trib_plan_t **plan_out)
{
    trib_desc_t d = TRIB_DESC_INIT;

    if (g->opts.feed == TRIB_FEED_WHOLE || trib_size(g->comm) == 1)
        return TRIB_OK;
    d.count = (size_t)n + 1;
    d.dtype = TRIB_I8;
    d.op = TRIB_MIN;
    d.codec = "none";
    d.timeout_ms = g->opts.timeout_ms;
    const trib_status_t st = trib_plan_allreduce(g->comm, &d, plan_out);
    return st == TRIB_OK ? trib_group_watch(g, *plan_out) : st;
}

trib_status_t trib_buckets_form(struct trib_group *g, const uint32_t *assign,
                                uint32_t n_buckets)
{
    uint32_t *queue = calloc((size_t)n_buckets + 1, sizeof(*queue));
    int8_t *words = calloc((size_t)n_buckets + 1, 1);
    trib_plan_t *agree = NULL;
    struct trib_buckets fresh;

    assert(!g->step.running || g->step.n_ended == g->buckets.n);
    trib_status_t st = place(g, assign, n_buckets, &fresh) && queue && words
                           ? make_agreement(g, n_buckets, &agree)
                           : no_memory(g);
    if (st == TRIB_OK)
        put_in_order(g, &fresh);
    if (st == TRIB_OK)
        st = make_memory(g, &fresh);
    for (uint32_t b = 0; b < n_buckets && st == TRIB_OK; b++)
        st = make_bucket(g, &fresh, &fresh.at[b]);
    if (st != TRIB_OK) {
        free(queue);
        free(words);
        (void)trib_plan_free(agree);
        trib_buckets_free(g, &fresh);
        return st;
    }
    take_over(g, &fresh);
    free(g->queue);
    free(g->words);
    (void)trib_plan_free(g->agree);
    trib_buckets_free(g, &g->buckets);
    g->queue = queue;
    g->words = words;
    g->agree = agree;
    g->buckets = fresh;
    settle(g);
    return TRIB_OK;
}

void trib_buckets_free(struct trib_group *g, struct trib_buckets *b)
{
    for (uint32_t i = 0; b->at && i < b->n; i++)
        (void)trib_plan_free(b->at[i].plan);
    if (b->memory)
        (void)trib_free(g->comm, b->memory);
    free(b->at);
    free(b->members);
    free(b->order);
    *b = (struct trib_buckets){0};
}
