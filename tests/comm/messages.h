/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages between random pairs of ranks, known to all ranks: each message must equal
 * the data sent, in the order of its tag.
 */
#ifndef TESTS_COMM_MESSAGES_H
#define TESTS_COMM_MESSAGES_H

#include "tests/comm/oracle.h"
#include "tests/harness/ranks.h"

enum messages_order {
    MESSAGES_MIXED, /* each rank starts its ends in the order of the list */
    MESSAGES_RECEIVE_FIRST, /* all receives, a barrier, all sends */
    MESSAGES_SEND_FIRST,
    MESSAGES_ORDERS,
};

struct messages {
    uint64_t seed;
    int n;
    int tags;
    size_t largest; /* bytes */
    enum messages_order order;
    bool collectives; /* all-reduces run between them */
};

struct messages_one {
    int from, to, tag;
    trib_dtype_t dtype;
    size_t count;
};

static inline struct messages_one messages_at(const struct messages *s, int size, int k)
{
    static const size_t edges[] = {0,      1,      7,      28,    29,    63,
                                   4095,   4096,   4097,   8191,  32767, 32769,
                                   100003, 131072, 262145, 600000};
    const uint64_t x = oracle_mix(s->seed << 20 ^ (uint64_t)k);
    struct messages_one m = {.from = (int)(x % (unsigned)size),
                             .to = (int)(x >> 8 & 0xff) % size,
                             .tag = (int)(x >> 16 & 0xffff) % s->tags,
                             .dtype = (trib_dtype_t)((x >> 32) % TRIB_DTYPE_COUNT)};
    const size_t bytes = (x >> 40) % 4 ? edges[(x >> 44) % 16] : (x >> 36) % s->largest;

    m.count = (bytes < s->largest ? bytes : s->largest) / trib_dtype_size(m.dtype);
    return m;
}

static inline uint8_t messages_byte(const struct messages *s, int k, size_t i)
{
    return (uint8_t)(oracle_mix(s->seed ^ (uint64_t)k << 32 ^ i / 8) >> i % 8 * 8);
}

struct messages_end {
    uint8_t *memory; /* of malloc, or of trib_alloc */
    bool allocated;
    trib_request_t *request;
};

static inline void messages_begin(struct ranks_self *self, const struct messages *s,
                                  int k, struct messages_end *e, bool sends)
{
    const struct messages_one m = messages_at(s, self->size, k);
    const size_t bytes = m.count * trib_dtype_size(m.dtype);

    if ((sends ? m.from : m.to) != self->rank)
        return;
    void *memory = NULL;
    e->allocated = bytes > 100000 && (k + sends) % 2;
    if (e->allocated)
        ranks_ok(self, trib_alloc(self->comm, bytes + 1, &memory));
    else
        memory = malloc(bytes + 1);
    ranks_assert(self, memory != NULL);
    e->memory = memory;
    e->memory[bytes] = 0x5a;
    for (size_t i = 0; i < bytes; i++)
        e->memory[i] = sends ? messages_byte(s, k, i) : 0xee;
    const trib_status_t st = sends ? trib_isend(self->comm, e->memory, m.count, m.dtype,
                                                m.to, m.tag, &e->request)
                                   : trib_irecv(self->comm, e->memory, m.count, m.dtype,
                                                m.from, m.tag, &e->request);
    if (st != TRIB_OK)
        ranks_die(self, "message %d: %s", k, trib_last_error(self->comm));
}

static inline void messages_end(struct ranks_self *self, const struct messages *s,
                                int k, struct messages_end *e, bool sends)
{
    const struct messages_one m = messages_at(s, self->size, k);
    const size_t bytes = m.count * trib_dtype_size(m.dtype);

    if (!e->request)
        return;
    if (trib_request_wait(e->request) != TRIB_OK)
        ranks_die(self, "message %d: %s", k, trib_last_error(self->comm));
    ranks_ok(self, trib_request_free(e->request));
    for (size_t i = 0; !sends && i < bytes; i++)
        if (e->memory[i] != messages_byte(s, k, i))
            ranks_die(self, "message %d of rank %d to %d, tag %d, %zu bytes: byte %zu",
                      k, m.from, m.to, m.tag, bytes, i);
    ranks_assert(self, e->memory[bytes] == 0x5a);
}

static inline void messages_free(struct ranks_self *self, struct messages_end *e)
{
    if (e->allocated)
        ranks_ok(self, trib_free(self->comm, e->memory));
    else
        free(e->memory);
}

/* All-reduces that run concurrently with messages; two at a time. */
struct messages_sums {
    float x[2][1000];
    trib_request_t *request[2];
    int n;
};

static inline void messages_sum(struct ranks_self *self, struct messages_sums *c)
{
    const int at = c->n++ % 2;

    if (c->request[at]) {
        ranks_ok(self, trib_request_wait(c->request[at]));
        ranks_ok(self, trib_request_free(c->request[at]));
        ranks_assert(self, c->x[at][999] == 3 * (float)self->size);
    }
    for (int i = 0; i < 1000; i++)
        c->x[at][i] = 3;
    ranks_ok(self, trib_iallreduce(self->comm, NULL, c->x[at], 1000, TRIB_F32, TRIB_SUM,
                                   &c->request[at]));
}

static inline void messages_start_all(struct ranks_self *self, const struct messages *s,
                                      struct messages_end *ends, bool receives,
                                      bool sends, struct messages_sums *sums)
{
    for (int k = 0; k < s->n; k++) {
        if (receives)
            messages_begin(self, s, k, &ends[s->n + k], false);
        if (sends)
            messages_begin(self, s, k, &ends[k], true);
        if (s->collectives && k % 7 == 0)
            messages_sum(self, sums);
    }
}

static inline void messages_round(struct ranks_self *self, const struct messages *s)
{
    struct messages_end *ends = calloc(2 * (size_t)s->n, sizeof(*ends));
    struct messages_sums sums = {.n = 0};

    ranks_assert(self, ends != NULL);
    if (s->order == MESSAGES_MIXED) {
        messages_start_all(self, s, ends, true, true, &sums);
    } else {
        const bool receives = s->order == MESSAGES_RECEIVE_FIRST;
        messages_start_all(self, s, ends, receives, !receives, &sums);
        ranks_ok(self, trib_barrier(self->comm));
        messages_start_all(self, s, ends, !receives, receives, &sums);
    }
    for (int k = 0; k < s->n; k++) {
        messages_end(self, s, k, &ends[k], true);
        messages_end(self, s, k, &ends[s->n + k], false);
    }
    for (int i = 0; i < 4 && s->collectives; i++)
        messages_sum(self, &sums);
    for (int i = 0; i < 2; i++) {
        if (!sums.request[i])
            continue;
        ranks_ok(self, trib_request_wait(sums.request[i]));
        ranks_ok(self, trib_request_free(sums.request[i]));
    }
    for (int k = 0; k < 2 * s->n; k++)
        messages_free(self, &ends[k]);
    free(ends);
}

static inline int messages_run(struct ranks_self *self)
{
    struct messages s = *(const struct messages *)self->arg;

    for (int order = 0; order < MESSAGES_ORDERS; order++) {
        s.order = (enum messages_order)order;
        s.seed++;
        messages_round(self, &s);
        s.seed++;
        s.collectives = true;
        messages_round(self, &s);
    }
    return 0;
}

#endif
