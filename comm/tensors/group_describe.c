/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Serialize the description of a group, for ranks that have no such group yet.
 */
#include "comm/tensors/group_describe.h"

#include <stdio.h>
#include <stdlib.h>

struct head {
    uint64_t n, bucket_bytes, alone_bytes, seed;
    double parameter;
    int32_t op, feed;
    uint32_t cycle_us, unused;
};

struct tensor {
    uint64_t count;
    int32_t dtype, dims, priority;
    uint32_t unused;
};

/* Write a string as its length with the NUL, and its bytes; length 0 means NULL. */
static void put_text(FILE *f, const char *text)
{
    const uint32_t n = text ? (uint32_t)strlen(text) + 1 : 0;

    fwrite(&n, sizeof(n), 1, f);
    fwrite(text, 1, n, f);
}

char *trib_group_describe(const struct trib_group *g, size_t *bytes_out)
{
    const trib_group_opts_t *o = &g->opts;
    const struct head h = {.n = g->n,
                           .bucket_bytes = o->bucket_bytes,
                           .alone_bytes = o->alone_bytes,
                           .seed = o->seed,
                           .parameter = o->parameter,
                           .op = o->op,
                           .feed = o->feed,
                           .cycle_us = o->cycle_us};
    char *bytes = NULL;
    FILE *f = open_memstream(&bytes, bytes_out);

    assert(o->bucket_bytes && o->alone_bytes); /* defaults are already applied */
    if (!f)
        return NULL;
    fwrite(&h, sizeof(h), 1, f);
    put_text(f, g->name[0] ? g->name : NULL);
    put_text(f, o->algorithm);
    for (size_t i = 0; i < g->n; i++) {
        const trib_tensor_t *d = &g->tensors[i].desc;
        const struct tensor t = {.count = d->count,
                                 .dtype = d->dtype,
                                 .dims = d->dims,
                                 .priority = d->priority};
        fwrite(&t, sizeof(t), 1, f);
        put_text(f, d->name);
        put_text(f, d->codec);
        put_text(f, d->feedback);
    }
    assert(!g->n || g->tensors);
    const bool failed = ferror(f);
    if (fclose(f) == 0 && !failed)
        return bytes;
    free(bytes);
    return NULL;
}

/* Bytes not read yet. */
struct rest {
    const char *at;
    size_t n;
};

static bool take(struct rest *r, void *to, size_t n)
{
    if (n > r->n)
        return false;
    memcpy(to, r->at, n);
    r->at += n;
    r->n -= n;
    return true;
}

static bool take_text(struct rest *r, const char **text_out)
{
    uint32_t n;

    if (!take(r, &n, sizeof(n)) || n > r->n || (n && r->at[n - 1]))
        return false;
    *text_out = n ? r->at : NULL;
    r->at += n;
    r->n -= n;
    return true;
}

static bool take_tensor(struct rest *r, trib_tensor_t *d)
{
    struct tensor t;

    if (!take(r, &t, sizeof(t)))
        return false;
    *d = (trib_tensor_t)TRIB_TENSOR_INIT;
    d->count = (size_t)t.count;
    d->dtype = (trib_dtype_t)t.dtype;
    d->dims = t.dims;
    d->priority = t.priority;
    return take_text(r, &d->name) && take_text(r, &d->codec) &&
           take_text(r, &d->feedback);
}

trib_tensor_t *trib_group_described(const char *bytes, size_t n,
                                    trib_group_opts_t *opts, size_t *n_out)
{
    struct rest r = {bytes, n};
    struct head h;

    *opts = (trib_group_opts_t)TRIB_GROUP_OPTS_INIT;
    if (!take(&r, &h, sizeof(h)) || !take_text(&r, &opts->name) ||
        !take_text(&r, &opts->algorithm) || h.n > r.n / sizeof(struct tensor))
        return NULL;
    opts->op = (trib_op_t)h.op;
    opts->parameter = h.parameter;
    opts->feed = (trib_feed_t)h.feed;
    opts->bucket_bytes = (size_t)h.bucket_bytes;
    opts->alone_bytes = (size_t)h.alone_bytes;
    opts->cycle_us = h.cycle_us;
    opts->seed = h.seed;
    *n_out = (size_t)h.n;
    trib_tensor_t *tensors = calloc(*n_out + 1, sizeof(*tensors));
    for (size_t i = 0; tensors && i < *n_out; i++) {
        if (take_tensor(&r, &tensors[i]))
            continue;
        free(tensors);
        return NULL;
    }
    return tensors;
}
