/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of the fake: protection domains, regions, and the limit of pinned pages.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/memlock.h"
#include "tests/harness/fake_hub.h"
#include "tests/harness/fake_pages.h"
#include "transport/verbs/verbs_iova.h"

enum { SHORT = 256 }; /* bytes that are written by words */

struct mr {
    struct ibv_mr base;
    uint64_t iova; /* address of its first byte in requests */
    uint8_t *mapped; /* of a dma-buf */
    size_t map_len;
    int access;
    size_t pinned;
    struct fake_pages *pages; /* real_pages */
    struct mr *next;
};

struct pd {
    struct ibv_pd base;
    struct pd *next;
};

static struct mr *mrs;
static struct pd *pds;
static uint32_t next_key;

void fake_memory_reset(void)
{
    mrs = NULL;
    pds = NULL;
    next_key = 1000;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    struct pd *pd = calloc(1, sizeof(*pd));

    pd->base.context = context;
    fake_lock();
    pd->next = pds;
    pds = pd;
    fake_count(1);
    fake_unlock();
    return &pd->base;
}

int ibv_dealloc_pd(struct ibv_pd *base)
{
    struct pd **at = &pds;

    fake_lock();
    for (struct mr *mr = mrs; mr; mr = mr->next) {
        if (mr->base.pd == base)
            fake_mistake("a protection domain goes before its regions");
    }
    while (&(*at)->base != base)
        at = &(*at)->next;
    *at = (*at)->next;
    fake_count(-1);
    fake_unlock();
    free(base);
    return 0;
}

int fake_domains(const struct ibv_context *context)
{
    int n = 0;

    for (struct pd *pd = pds; pd; pd = pd->next)
        n += !context || pd->base.context == context;
    return n;
}

int fake_verbs_domains(void)
{
    fake_lock();
    const int n = fake_domains(NULL);
    fake_unlock();
    return n;
}

static size_t pinned(void)
{
    size_t bytes = 0;

    for (struct mr *mr = mrs; mr; mr = mr->next)
        bytes += mr->pinned;
    return bytes;
}

size_t fake_verbs_pinned(void)
{
    fake_lock();
    size_t bytes = pinned();
    fake_unlock();
    return bytes;
}

int fake_verbs_regions(const struct ibv_pd *pd)
{
    int n = 0;

    fake_lock();
    for (struct mr *mr = mrs; mr; mr = mr->next)
        n += mr->base.pd == pd;
    fake_unlock();
    return n;
}

static void memlock(struct trib_memlock *out)
{
    *out = (struct trib_memlock){.limited = false};
    if (!fake_opts.memlock)
        return;
    trib_memlock_read(out);
    fake_lock();
    out->used = pinned();
    fake_unlock();
}

/* Insert a region; NULL: the device may not pin as much. */
static struct ibv_mr *insert(struct mr *mr, uint64_t iova, int access)
{
    mr->iova = iova;
    mr->access = access;
    fake_lock();
    const bool fits =
        fake_use(mr->base.context, (struct fake_usage){.pinned = mr->pinned});
    if (fits) {
        mr->base.lkey = mr->base.rkey = next_key++;
        mr->next = mrs;
        mrs = mr;
        fake_count(1);
        fake_opts.regs++;
    }
    fake_unlock();
    if (fits)
        return &mr->base;
    if (mr->pages)
        fake_pages_unpin(mr->pages);
    free(mr);
    return NULL;
}

/* As the kernel requires: iova and address have the same offset within a
 * page. */
struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *ptr, size_t len, uint64_t iova,
                               int access)
{
    if (fake_opts.reg_errno || len == 0 || iova % 4096 != (uintptr_t)ptr % 4096) {
        errno = len && fake_opts.reg_errno ? fake_opts.reg_errno : EINVAL;
        return NULL;
    }
    struct trib_memlock m;
    memlock(&m);
    struct mr *mr = calloc(1, sizeof(*mr));
    mr->pinned = (len + 4095) / 4096 * 4096;
    if (mr->pinned > trib_memlock_left(&m)) {
        free(mr);
        errno = ENOMEM;
        return NULL;
    }
    mr->base =
        (struct ibv_mr){.context = pd->context, .pd = pd, .addr = ptr, .length = len};
    mr->pages = fake_opts.real_pages ? fake_pages_pin(ptr, len) : NULL;
    if (fake_opts.real_pages && !mr->pages) {
        free(mr);
        return NULL;
    }
    return insert(mr, iova, access);
}

static struct ibv_mr *reg_mr_iova2(struct ibv_pd *pd, void *ptr, size_t len,
                                   uint64_t iova, unsigned access)
{
    fake_opts.relaxed_regs += (access & VERBS_RELAXED_ORDERING) != 0;
    return ibv_reg_mr_iova(pd, ptr, len, iova, (int)access & ~VERBS_RELAXED_ORDERING);
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *ptr, size_t len, int access)
{
    return ibv_reg_mr_iova(pd, ptr, len, (uintptr_t)ptr, access);
}

/* Register a memory file by mapping it, because there is no device. */
struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
                                 uint64_t iova, int fd, int access)
{
    struct stat st;

    if (fake_opts.dmabuf_errno) {
        errno = fake_opts.dmabuf_errno;
        return NULL;
    }
    if (fstat(fd, &st) != 0)
        return NULL;
    if (offset + length > (uint64_t)st.st_size || offset % 4096 != iova % 4096) {
        errno = EINVAL;
        return NULL;
    }
    const uint64_t from = offset / 4096 * 4096;
    uint8_t *map = mmap(NULL, length + (offset - from), PROT_READ | PROT_WRITE,
                        MAP_SHARED, fd, (off_t)from);
    if (map == MAP_FAILED)
        return NULL;
    struct mr *mr = calloc(1, sizeof(*mr));
    mr->mapped = map;
    mr->map_len = length + (offset - from);
    mr->base = (struct ibv_mr){.context = pd->context,
                               .pd = pd,
                               .addr = map + (offset - from),
                               .length = length};
    return insert(mr, iova, access);
}

int ibv_dereg_mr(struct ibv_mr *base)
{
    struct mr **at = &mrs;

    fake_lock();
    while (&(*at)->base != base)
        at = &(*at)->next;
    *at = (*at)->next;
    fake_unuse(base->context,
               (struct fake_usage){.pinned = ((struct mr *)base)->pinned});
    fake_count(-1);
    fake_unlock();
    if (((struct mr *)base)->mapped)
        munmap(((struct mr *)base)->mapped, ((struct mr *)base)->map_len);
    if (((struct mr *)base)->pages)
        fake_pages_unpin(((struct mr *)base)->pages);
    free(base);
    return 0;
}

struct ibv_mr *fake_region(const struct ibv_pd *pd, uint32_t key, uint64_t address,
                           uint64_t len)
{
    for (struct mr *mr = mrs; mr; mr = mr->next) {
        uint64_t start = mr->iova;
        if (mr->base.lkey == key && mr->base.pd == pd && address >= start &&
            address - start <= mr->base.length &&
            len <= mr->base.length - (address - start))
            return &mr->base;
    }
    return NULL;
}

void *fake_memory(const struct ibv_mr *mr, uint64_t address)
{
    return (uint8_t *)mr->addr + (address - ((const struct mr *)mr)->iova);
}

bool fake_writable(const struct ibv_mr *mr)
{
    return (((const struct mr *)mr)->access & IBV_ACCESS_REMOTE_WRITE) != 0;
}

/* An adapter writes aligned words atomically. Counters and notices, which are short,
 * are read before any event. */
static void put(void *to, const void *from, size_t len)
{
    _Atomic uint32_t *out = to;
    uint32_t word;

    if (len > SHORT || len % sizeof(word) != 0 || (uintptr_t)to % sizeof(word) != 0) {
        memcpy(to, from, len);
        return;
    }
    for (size_t i = 0; i < len / sizeof(word); i++) {
        memcpy(&word, (const uint8_t *)from + i * sizeof(word), sizeof(word));
        atomic_store_explicit(&out[i], word, memory_order_release);
    }
}

bool fake_put(const struct fake_source *source, const struct ibv_mr *mr,
              uint64_t address, const struct fake_request *r)
{
    const struct fake_pages *pages = ((const struct mr *)mr)->pages;
    const struct fake_pages *from =
        source->mr ? ((const struct mr *)source->mr)->pages : NULL;
    void *to = fake_memory(mr, address);
    uint8_t word[SHORT];

    if (pages && from && r->len > SHORT) {
        if (!fake_pages_copy(pages, to, from, source->bytes, r->len))
            fake_mistake("pinned pages cannot be copied");
        return true;
    }
    if (source->bytes) {
        put(to, source->bytes, r->len);
        return true;
    }
    if (r->len > SHORT)
        return fake_read(source->process, to, r->from, r->len);
    if (!fake_read(source->process, word, r->from, r->len))
        return false;
    put(to, word, r->len);
    return true;
}

void fake_memory_table(struct trib_verbs_api *api)
{
    if (fake_opts.no_iova)
        api->ibv_reg_mr_iova = NULL;
    if (!fake_opts.no_iova && !fake_opts.no_iova2)
        api->ibv_reg_mr_iova2 = reg_mr_iova2;
    if (fake_opts.dmabuf_errno < 0)
        api->ibv_reg_dmabuf_mr = NULL;
    api->memlock = memlock;
}
