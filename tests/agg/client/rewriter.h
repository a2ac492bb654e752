/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process that rewrites all memory that a rank shares with one peer, usually a node,
 * while the peer works with it: memory of the peer that the rank may write, and memory
 * of the rank that the peer reads. It changes known fields and random bytes. Most are
 * restored at once, so that a value can change between check and use.
 */
#ifndef TESTS_AGG_CLIENT_REWRITER_H
#define TESTS_AGG_CLIENT_REWRITER_H

#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pipeline/engine/engine.h"
#include "transport/backends.h"
#include "transport/shm/shm.h"

enum { REWRITER_AREAS = 32 };

/* Memory of records of `stride` bytes whose fields are rewritten; stride 0: any
 * bytes. */
struct rewriter_area {
    volatile uint8_t *at;
    size_t n, stride;
    const uint8_t *fields; /* offsets of 32-bit numbers in a record, ended by 0xff */
};

struct rewriter {
    struct rewriter_area areas[REWRITER_AREAS];
    int n;
    uint64_t random;
};

static inline void rewriter_add(struct rewriter *w, void *at, size_t n, size_t stride,
                                const uint8_t *fields)
{
    if (at && n >= sizeof(uint32_t) && w->n < REWRITER_AREAS)
        w->areas[w->n++] = (struct rewriter_area){at, n, stride, fields};
}

/* Add the slots of the peer for this rank: the fields of their cells, and their
 * payloads. */
static inline void rewriter_add_slots(struct rewriter *w, struct trib_engine *e,
                                      int peer)
{
    static const uint8_t cell[] = {0, 4, 8, 12, 16, 24, 28, 56, 60, 12, 60, 0xff};
    struct trib_link *l = &e->links[peer];

    for (int lane = 0; lane < TRIB_LANES; lane++) {
        const size_t n = l->stride * e->arena.slots;
        rewriter_add(w, l->send[lane].remote, n, l->stride, cell);
        rewriter_add(w, l->send[lane].remote, n, l->stride, cell);
        rewriter_add(w, l->send[lane].remote, n, 0, NULL);
    }
}

/* Add control segments: header, then rings. Leave the descriptor of a pipe alone: a
 * test may write to that pipe. */
static inline void rewriter_add_control(struct rewriter *w, uint8_t *base,
                                        uint32_t size, uint32_t slots)
{
    static const uint8_t header[] = {0, 8, 12, 16, 20, 128, 0xff};
    static const uint8_t entry[] = {0, 4, 8, 12, 0xff}, one[] = {0, 0xff};
    struct trib_shm_header *h = (struct trib_shm_header *)base;

    rewriter_add(w, h, sizeof(*h), sizeof(*h), header);
    rewriter_add(w, &h->attached, 4, 4, one);
    rewriter_add(w, &h->sleeping, 4, 4, one);
    rewriter_add(w, &h->doorbell, 4, 4, one);
    for (uint32_t i = 0; i < size; i++) {
        struct trib_shm_ring *r = trib_shm_ring_at(h, i, slots);
        rewriter_add(w, r->entries, slots * sizeof(r->entries[0]),
                     sizeof(r->entries[0]), entry);
        rewriter_add(w, r, offsetof(struct trib_shm_ring, entries), TRIB_SHM_LINE_PAIR,
                     one);
    }
}

/** rewriter_find - find the memory that a rank shares over shm with a linked peer. */
static inline void rewriter_find(struct rewriter *w, struct trib_engine *e, int peer)
{
    static const uint8_t heads[] = {0, 4, 64, 68, 72, 80, 0xff};
    struct trib_link *l = &e->links[peer];
    struct shm *shm = shm_of(e->transport);
    size_t len = 0;
    uint8_t *arena = e->transport->ops->map(e->transport, l->arena, &len);

    *w = (struct rewriter){.random = (uint64_t)getpid() * UINT64_C(0x9e3779b97f4a7c15)};
    rewriter_add_slots(w, e, peer);
    if (arena) {
        rewriter_add(w, arena + l->head_off, 576, 576, heads);
        rewriter_add(w, arena + l->head_off, 576, 0, NULL);
        rewriter_add(w, arena, len, 0, NULL);
    }
    rewriter_add(w, e->arena.base, e->arena.block_bytes, 0, NULL);
    if (e->transport->ops != &trib_shm_ops)
        return;
    const struct trib_segment *control = &shm->peers[peer].control;
    rewriter_add_control(w, control->base, (uint32_t)shm->size,
                         shm->peers[peer].out_slots);
    rewriter_add(w, control->base + control->len, 64, 0, NULL); /* the trailer */
    rewriter_add(w, shm->control.base + shm->control.len, 64, 0, NULL);
    rewriter_add(w, &shm->header->state, 4, 4, NULL);
}

static inline uint64_t rewriter_draw(struct rewriter *w)
{
    w->random ^= w->random << 13; /* xorshift: Marsaglia, J. Stat. Soft. 2003 */
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return w->random;
}

static inline uint32_t rewriter_value(struct rewriter *w, uint32_t was)
{
    static const uint32_t values[] = {0,    1,     4,          28,         64,
                                      4096, 65536, 0x7fffffff, 0x80000000, UINT32_MAX};
    const uint64_t r = rewriter_draw(w);

    switch (r % 4) {
    case 0:
        return was ^ 1u << (r >> 8 & 31);
    case 1:
        return was + (uint32_t)(int32_t)(int8_t)(r >> 8);
    case 2:
        return values[(r >> 8) % (sizeof(values) / sizeof(*values))];
    default:
        return (uint32_t)(r >> 16);
    }
}

static inline void rewriter_pause(uint64_t turns)
{
    for (volatile uint64_t i = turns; i; i--)
        ;
}

/** rewriter_once - rewrite one field or any four bytes. The race is intended. */
__attribute__((no_sanitize("thread", "address", "undefined"))) static inline void
rewriter_once(struct rewriter *w)
{
    const uint64_t r = rewriter_draw(w);
    const struct rewriter_area *a = &w->areas[r % (uint64_t)w->n];
    size_t at = (r >> 16) % (a->n - 3);

    if (a->stride) {
        const size_t record = (r >> 16) % (a->n / a->stride) * a->stride;
        size_t fields = 0;
        while (a->fields && a->fields[fields] != 0xff)
            fields++;
        at = record + (fields ? a->fields[(r >> 8 & 0xff) % fields] : 0);
    }
    volatile uint32_t *to = (volatile uint32_t *)(a->at + (at & ~(size_t)3));
    const uint32_t was = *to;
    *to = rewriter_value(w, was);
    rewriter_pause(r >> 40 & 63);
    if (r >> 50 & 7)
        *to = was;
    rewriter_pause(r >> 54 & 255);
}

/** rewriter_start - rewrite in a separate process until it is killed. */
static inline pid_t rewriter_start(struct trib_engine *e, int peer)
{
    const pid_t parent = getpid(), pid = fork();
    struct rewriter w;

    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    rewriter_find(&w, e, peer);
    w.random ^= (uint64_t)parent << 32 | 1;
    for (unsigned n = 1; n && w.n; n++) {
        rewriter_once(&w);
        if (n % 4096 == 0 && getppid() != parent)
            break;
    }
    _exit(0);
}

static inline void rewriter_stop(pid_t pid)
{
    if (pid <= 0)
        return;
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

#endif
