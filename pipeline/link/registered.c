/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/link/registered.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static trib_status_t reserve(struct trib_memories *m)
{
    assert(m->n <= m->capacity);
    if (m->n < m->capacity)
        return TRIB_OK;
    size_t capacity = m->capacity ? 2 * m->capacity : 8;
    struct trib_memory *list = realloc(m->list, capacity * sizeof(*list));
    if (!list)
        return TRIB_ERR_NO_MEMORY;
    m->list = list;
    m->capacity = capacity;
    return TRIB_OK;
}

static trib_status_t keep(struct trib_memories *m, struct trib_memory e)
{
    trib_status_t st =
        m->transport->ops->export_region(m->transport, e.region, &e.blob);
    if (st != TRIB_OK) {
        m->transport->ops->dereg(m->transport, e.region);
        return st;
    }
    if (e.allocated)
        m->allocated_bytes += e.bytes;
    m->list[m->n++] = e;
    return TRIB_OK;
}

trib_status_t trib_memory_alloc(struct trib_memories *m, size_t bytes, void **ptr_out)
{
    struct trib_memory e = {.bytes = bytes, .allocated = true};
    void *ptr;
    trib_status_t st = reserve(m);
    if (st != TRIB_OK)
        return st;
    st = m->transport->ops->alloc_user(m->transport, bytes, &ptr, &e.region);
    if (st != TRIB_OK)
        return st;
    e.ptr = ptr;
    st = keep(m, e);
    if (st == TRIB_OK)
        *ptr_out = ptr;
    return st;
}

trib_status_t trib_memory_register(struct trib_memories *m, void *ptr, size_t bytes)
{
    struct trib_memory e = {.ptr = ptr, .bytes = bytes};
    trib_status_t st = reserve(m);
    if (st != TRIB_OK)
        return st;
    st = m->transport->ops->reg(m->transport, ptr, bytes, &e.region);
    if (st != TRIB_OK)
        return st;
    return keep(m, e);
}

trib_status_t trib_memory_register_dmabuf(struct trib_memories *m,
                                          const struct trib_dmabuf *d)
{
    struct trib_memory e = {.ptr = d->ptr, .bytes = d->len};
    trib_status_t st = reserve(m);
    if (st != TRIB_OK)
        return st;
    st = m->transport->ops->reg_dmabuf(m->transport, d, &e.region);
    if (st != TRIB_OK)
        return st;
    return keep(m, e);
}

static void drop(struct trib_memories *m, size_t i)
{
    assert(i < m->n);
    if (m->list[i].allocated)
        m->allocated_bytes -= m->list[i].bytes;
    m->transport->ops->dereg(m->transport, m->list[i].region);
    memmove(&m->list[i], &m->list[i + 1], (m->n - i - 1) * sizeof(m->list[0]));
    m->n--;
}

trib_status_t trib_memory_remove(struct trib_memories *m, void *ptr, bool allocated,
                                 bool in_use)
{
    for (size_t i = m->n; i-- > 0;) {
        if (m->list[i].ptr == ptr && m->list[i].allocated == allocated &&
            !m->list[i].borrowed) {
            if (allocated && !in_use)
                m->transport->ops->release_pages(m->transport, m->list[i].region);
            drop(m, i);
            return TRIB_OK;
        }
    }
    return TRIB_ERR_INVALID;
}

void trib_memory_remove_all(struct trib_memories *m)
{
    while (m->n)
        drop(m, m->n - 1);
    free(m->list);
    m->list = NULL;
    m->capacity = 0;
}

/* Return the newest entry that contains the whole range. */
static const struct trib_memory *find(const struct trib_memories *m, const uint8_t *ptr,
                                      size_t bytes, bool mapped)
{
    for (size_t i = m->n; ptr && i-- > 0;) {
        const struct trib_memory *e = &m->list[i];
        if ((!mapped || e->blob.mappable) && ptr >= e->ptr &&
            (size_t)(ptr - e->ptr) <= e->bytes &&
            bytes <= e->bytes - (size_t)(ptr - e->ptr))
            return e;
    }
    return NULL;
}

struct trib_place trib_memory_place(const struct trib_memories *m, const void *ptr,
                                    size_t lo, size_t hi)
{
    const struct trib_memory *e = find(m, ptr, hi - lo, false);
    struct trib_place place = {.region = NULL};

    assert(lo <= hi);
    if (!e || e->copied)
        return place;
    place.region = e->region;
    place.origin = (int64_t)((const uint8_t *)ptr - e->ptr) - (int64_t)lo;
    return place;
}

void trib_memory_copy(struct trib_memories *m, const struct trib_region *region)
{
    for (size_t i = 0; i < m->n; i++)
        m->list[i].copied |= m->list[i].region == region;
}

void trib_memory_ref(const struct trib_memories *m, const void *ptr, size_t lo,
                     size_t hi, bool mapped, struct trib_ref *out)
{
    const struct trib_memory *e = find(m, ptr, hi - lo, mapped);

    assert(lo <= hi);
    trib_ref_none(out);
    out->lo = lo;
    out->hi = hi;
    if (e && !e->closed) {
        trib_blob_copy(&out->blob, &e->blob);
        out->origin = (int64_t)((const uint8_t *)ptr - e->ptr) - (int64_t)lo;
    }
}

struct trib_region *trib_memory_borrow(struct trib_memories *m, uint8_t *ptr,
                                       size_t bytes, bool written)
{
    struct trib_transport *t = m->transport;
    struct trib_memory e = {
        .ptr = ptr, .bytes = bytes, .borrowed = true, .closed = !written};

    if (!t->ops->borrow || find(m, ptr, bytes, false) || reserve(m) != TRIB_OK ||
        t->ops->borrow(t, ptr, bytes, written, &e.region) != TRIB_OK)
        return NULL;
    if (written && t->ops->export_region(t, e.region, &e.blob) != TRIB_OK) {
        t->ops->give_back(t, e.region, false);
        return NULL;
    }
    m->list[m->n++] = e;
    return e.region;
}

void trib_memory_give_back(struct trib_memories *m, struct trib_region *region,
                           bool broken)
{
    size_t i = m->n;

    while (i > 0 && m->list[i - 1].region != region)
        i--;
    assert(i > 0 && m->list[i - 1].borrowed);
    memmove(&m->list[i - 1], &m->list[i], (m->n - i) * sizeof(m->list[0]));
    m->n--;
    m->transport->ops->give_back(m->transport, region, broken);
}

bool trib_memory_hold(struct trib_memories *m, uint8_t *ptr, size_t bytes,
                      struct trib_ref *ref, struct trib_hold *out)
{
    struct trib_transport *t = m->transport;
    const struct trib_memory *e = find(m, ptr, bytes, false);
    struct trib_region *region;
    struct trib_ref none;

    *out = (struct trib_hold){.borrowed = NULL};
    if (e && !e->borrowed) {
        trib_memory_ref(m, ptr, 0, bytes, false, ref ? ref : &none);
        out->place = trib_memory_place(m, ptr, 0, bytes);
        return ref || out->place.region;
    }
    if (!t->ops->borrow || t->ops->borrow(t, ptr, bytes, ref, &region) != TRIB_OK)
        return false;
    out->place.region = out->borrowed = region;
    if (!ref)
        return true;
    trib_ref_none(ref);
    ref->hi = bytes;
    if (t->ops->export_region(t, out->borrowed, &ref->blob) == TRIB_OK)
        return true;
    trib_memory_let_go(m, out, false);
    return false;
}

void trib_memory_let_go(struct trib_memories *m, struct trib_hold *hold, bool broken)
{
    if (hold->borrowed)
        m->transport->ops->give_back(m->transport, hold->borrowed, broken);
    *hold = (struct trib_hold){.borrowed = NULL};
}
