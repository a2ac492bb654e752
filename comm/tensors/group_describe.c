/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The description of a group as named sections (base/sections.h), for ranks that have
 * no such group yet. A text of length 0 is NULL.
 */
#include "comm/tensors/group_describe.h"

#include <stdlib.h>

#include "base/sections.h"

static const struct trib_sections_kind kind = {"TRIBDESC", 1, "a group's description"};

struct about {
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

static void add_text(struct trib_sections_writer *w, const char *name, const char *text)
{
    (void)trib_sections_add(w, name, text, text ? strlen(text) + 1 : 0);
}

static void add_all(struct trib_sections_writer *w, const struct trib_group *g)
{
    const trib_group_opts_t *o = &g->opts;
    const struct about about = {.n = g->n,
                                .bucket_bytes = o->bucket_bytes,
                                .alone_bytes = o->alone_bytes,
                                .seed = o->seed,
                                .parameter = o->parameter,
                                .op = o->op,
                                .feed = o->feed,
                                .cycle_us = o->cycle_us};

    assert(o->bucket_bytes && o->alone_bytes); /* defaults are already applied */
    (void)trib_sections_add(w, "group", &about, sizeof(about));
    add_text(w, "name", g->name[0] ? g->name : NULL);
    add_text(w, "algorithm", o->algorithm);
    for (size_t i = 0; i < g->n; i++) {
        const trib_tensor_t *d = &g->tensors[i].desc;
        const struct tensor t = {.count = d->count,
                                 .dtype = d->dtype,
                                 .dims = d->dims,
                                 .priority = d->priority};
        (void)trib_sections_add(w, "tensor", &t, sizeof(t));
        add_text(w, "name", d->name);
        add_text(w, "codec", d->codec);
        add_text(w, "feedback", d->feedback);
    }
}

char *trib_group_describe(const struct trib_group *g, size_t *bytes_out)
{
    struct trib_sections_writer w = trib_sections_begin(NULL, 0);

    add_all(&w, g);
    *bytes_out = w.bytes;
    char *bytes = malloc(*bytes_out);
    w = trib_sections_begin(bytes, *bytes_out);
    add_all(&w, g);
    assert(w.bytes == *bytes_out);
    (void)trib_sections_finish(&w, &kind, NULL);
    return bytes;
}

static bool take(struct trib_sections *r, const char *name, void *to, size_t n)
{
    return trib_sections_copy(r, name, to, n, NULL) == TRIB_OK;
}

static bool take_text(struct trib_sections *r, const char *name, const char **text_out)
{
    struct trib_section s;

    if (trib_sections_next(r, name, NULL, &s) != TRIB_OK ||
        (s.bytes && s.data[s.bytes - 1]))
        return false;
    *text_out = s.bytes ? (const char *)s.data : NULL;
    return true;
}

static bool take_tensor(struct trib_sections *r, trib_tensor_t *d)
{
    struct tensor t;

    if (!take(r, "tensor", &t, sizeof(t)))
        return false;
    *d = (trib_tensor_t)TRIB_TENSOR_INIT;
    d->count = (size_t)t.count;
    d->dtype = (trib_dtype_t)t.dtype;
    d->dims = t.dims;
    d->priority = t.priority;
    return take_text(r, "name", &d->name) && take_text(r, "codec", &d->codec) &&
           take_text(r, "feedback", &d->feedback);
}

trib_tensor_t *trib_group_described(const char *bytes, size_t n,
                                    trib_group_opts_t *opts, size_t *n_out)
{
    struct trib_sections r;
    struct about h;

    *opts = (trib_group_opts_t)TRIB_GROUP_OPTS_INIT;
    if (trib_sections_open(&kind, bytes, n, NULL, &r) != TRIB_OK ||
        !take(&r, "group", &h, sizeof(h)) || !take_text(&r, "name", &opts->name) ||
        !take_text(&r, "algorithm", &opts->algorithm) ||
        h.n > (r.bytes - r.at) / sizeof(struct tensor))
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
