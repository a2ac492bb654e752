/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tensors of a test: drawn from a seed, the same on all ranks, with an oracle for each.
 */
#ifndef TESTS_COMM_TENSORS_TENSORS_H
#define TESTS_COMM_TENSORS_TENSORS_H

#include "tests/comm/oracle.h"
#include "tests/harness/ranks.h"

enum { TENSORS_MOST = 64 };

struct tensors {
    size_t n;
    trib_op_t op;
    char names[TENSORS_MOST][40];
    trib_tensor_t of[TENSORS_MOST];
    char *send[TENSORS_MOST], *recv[TENSORS_MOST]; /* malloc'd */
};

/* Return the next number of a stream. */
static inline uint64_t tensors_draw(uint64_t *state)
{
    return oracle_mix((*state)++);
}

/* Allocate separate memory for each tensor, followed by guard bytes. */
static inline void tensors_memory(struct ranks_self *self, struct tensors *t)
{
    for (size_t i = 0; i < t->n; i++) {
        const size_t bytes = t->of[i].count * 8 + 64;
        t->send[i] = malloc(bytes);
        t->recv[i] = malloc(bytes);
        ranks_assert(self, t->send[i] && t->recv[i]);
        memset(t->recv[i], 0x5a, bytes);
        t->of[i].send = t->send[i];
        t->of[i].recv = t->recv[i];
    }
}

/* Odd sizes of all dtypes; codecs on some tensors of floats. */
static inline void tensors_make(struct ranks_self *self, struct tensors *t, size_t n,
                                uint64_t seed, const char *const *codecs,
                                size_t n_codecs)
{
    static const size_t counts[] = {0,  1,   2,   3,    5,    7,    63,    64,
                                    65, 255, 777, 1024, 2049, 4097, 10007, 33333};

    *t = (struct tensors){.n = n, .op = TRIB_SUM};
    for (size_t i = 0; i < n; i++) {
        trib_tensor_t *of = &t->of[i];
        *of = (trib_tensor_t)TRIB_TENSOR_INIT;
        snprintf(t->names[i], sizeof(t->names[i]), "layer%zu.weight", i);
        of->name = t->names[i];
        of->dtype = (trib_dtype_t)(tensors_draw(&seed) % TRIB_DTYPE_COUNT);
        if (tensors_draw(&seed) % 2)
            of->dtype = TRIB_F32;
        of->count = counts[tensors_draw(&seed) % (sizeof(counts) / sizeof(*counts))];
        of->dims = (int)(tensors_draw(&seed) % 4);
        of->priority = (int)(tensors_draw(&seed) % 3) - 1;
        of->codec = "none";
        if (n_codecs && of->dtype == TRIB_F32 && of->count >= 255)
            of->codec = codecs[tensors_draw(&seed) % n_codecs];
    }
    tensors_memory(self, t);
}

static inline struct oracle tensors_oracle(const struct ranks_self *self,
                                           const struct tensors *t, size_t i,
                                           uint64_t step)
{
    return (struct oracle){.kind = ORACLE_EXACT,
                           .seed = step * 1000 + i,
                           .dtype = t->of[i].dtype,
                           .op = t->op,
                           .size = self->size};
}

/* Fill in the input of tensor i in this step; in_place: in recv. */
static inline void tensors_fill(struct ranks_self *self, struct tensors *t, size_t i,
                                uint64_t step, bool in_place)
{
    const struct oracle o = tensors_oracle(self, t, i, step);

    oracle_fill(&o, self->rank, 0, t->of[i].count, in_place ? t->recv[i] : t->send[i]);
}

static inline void tensors_check(struct ranks_self *self, const struct tensors *t,
                                 size_t i, uint64_t step)
{
    const struct oracle o = tensors_oracle(self, t, i, step);
    const size_t size = trib_dtype_size(t->of[i].dtype), count = t->of[i].count;

    for (size_t k = 0; k < count; k++) {
        const struct oracle_answer a = oracle_reduced(&o, k);
        const union perf_number got = perf_number_load(t->of[i].dtype, t->recv[i], k);
        if (!oracle_equal(t->of[i].dtype, &a, got))
            ranks_die(
                self,
                "%s (%s), step %llu, element %zu of %zu: %g or %lld, not %g or %lld",
                t->names[i], trib_dtype_name(t->of[i].dtype), (unsigned long long)step,
                k, count, got.f, (long long)got.i, a.value.f, (long long)a.value.i);
    }
    ranks_assert(self, t->recv[i][count * size] == 0x5a);
}

static inline void tensors_free(struct tensors *t)
{
    for (size_t i = 0; i < t->n; i++) {
        free(t->send[i]);
        free(t->recv[i]);
    }
}

/* Draw a random order of 0 … n - 1. */
static inline void tensors_shuffle(size_t *order, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++)
        order[i] = i;
    for (size_t i = n; i-- > 1;) {
        const size_t j = tensors_draw(&seed) % (i + 1), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

#endif
