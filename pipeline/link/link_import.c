/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cache of imported regions that the peer named in ADVERT frames.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "pipeline/link/link.h"

static struct trib_import **bucket_of(struct trib_link *l, const struct trib_blob *blob)
{
    uint64_t hash = 0, word;

    assert(blob->len > 0 && blob->len <= TRIB_BLOB_MAX);
    for (size_t i = 0; i < blob->len; i += sizeof(word)) {
        size_t left = blob->len - i;
        word = 0;
        memcpy(&word, blob->bytes + i, left < sizeof(word) ? left : sizeof(word));
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15); /* Fibonacci hashing */
        hash ^= hash >> 32;
    }
    return &l->imports[hash & (TRIB_IMPORT_BUCKETS - 1)];
}

static void import_drop(struct trib_link *l, struct trib_import **at)
{
    struct trib_import *im = *at;
    assert(l->n_imports > 0);
    *at = im->next;
    l->transport->ops->release(l->transport, im->remote);
    free(im);
    l->n_imports--;
}

/*
 * Make room for one import: drop regions that the peer has freed and, if the cache is
 * full, the least recently used one. Keep the newest: an operation looks up two in a
 * row.
 */
static void imports_trim(struct trib_link *l)
{
    const struct trib_transport_ops *ops = l->transport->ops;
    struct trib_import **oldest = NULL;

    for (int i = 0; i < TRIB_IMPORT_BUCKETS; i++) {
        for (struct trib_import **at = &l->imports[i]; *at;) {
            if ((*at)->used != l->clock && ops->stale(l->transport, (*at)->remote)) {
                import_drop(l, at);
                continue;
            }
            if (!oldest || (*at)->used < (*oldest)->used)
                oldest = at;
            at = &(*at)->next;
        }
    }
    assert(l->n_imports == 0 || oldest);
    if (l->n_imports >= TRIB_IMPORTS)
        import_drop(l, oldest);
}

void trib_link_drop_imports(struct trib_link *l)
{
    for (int i = 0; i < TRIB_IMPORT_BUCKETS; i++)
        while (l->imports[i])
            import_drop(l, &l->imports[i]);
}

struct trib_import *trib_link_import(struct trib_link *l, const struct trib_blob *blob,
                                     struct trib_error *err)
{
    if (blob->len == 0 || blob->len > TRIB_BLOB_MAX)
        return NULL;
    struct trib_import **bucket = bucket_of(l, blob);
    for (struct trib_import *im = *bucket; im; im = im->next) {
        if (!trib_blob_same(&im->blob, blob))
            continue;
        im->used = ++l->clock;
        return im;
    }
    imports_trim(l);
    struct trib_import *fresh = calloc(1, sizeof(*fresh));
    if (!fresh) {
        trib_fail(err, TRIB_ERR_NO_MEMORY, "out of memory");
        return NULL;
    }
    const struct trib_transport_ops *ops = l->transport->ops;
    if (ops->import_region(l->transport, l->peer, blob, &fresh->remote) != TRIB_OK) {
        free(fresh);
        return NULL;
    }
    trib_blob_copy(&fresh->blob, blob);
    fresh->base = ops->map(l->transport, fresh->remote, NULL);
    fresh->len = ops->length(l->transport, fresh->remote);
    fresh->used = ++l->clock;
    fresh->next = *bucket;
    *bucket = fresh;
    l->n_imports++;
    return fresh;
}
