/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Count the 4-byte words that a rank sends for pairs, including headers. Compare with
 * an index and a value for each pair sent to the owners and for each pair of the union
 * sent by owners, 2 (p-1)/p (k + K); and for the k largest of the sum, with the bound
 * of Ok-Topk, 6 k (p-1)/p.
 *
 *     test_sparse_volume [--table]     more of it, as a table
 */
#include <tributary/sparse.h>

#include "tests/comm/oracle.h"
#include "tests/harness/ranks.h"

struct volume {
    size_t length;
    uint32_t one_in; /* a rank contributes one of this number of elements */
    bool skewed; /* nine of ten are in a tenth of the vector */
    bool table;
};

static bool gives(const struct volume *v, int rank, size_t i)
{
    const uint64_t x = oracle_mix((uint64_t)rank << 40 ^ i);
    const bool hot = i / (v->length / 10 + 1) == 3;

    if (!v->skewed)
        return x % v->one_in == 0;
    return hot ? x % v->one_in < 9 : x % (9 * (uint64_t)v->one_in) == 0;
}

static size_t give(const struct volume *v, int rank, uint64_t *indices, float *values)
{
    size_t n = 0;

    for (size_t i = 0; i < v->length; i++)
        if (gives(v, rank, i)) {
            indices[n] = i;
            values[n++] = 1;
        }
    return n;
}

/* Return the words sent since `before`; the maximum over the ranks. */
static double words_since(struct ranks_self *self, const trib_stats_t *before)
{
    trib_stats_t now = {.size = sizeof(now)};

    ranks_ok(self, trib_stats(self->comm, &now));
    double words = (double)(now.wire_bytes - before->wire_bytes) / 4;
    ranks_ok(self, trib_allreduce(self->comm, NULL, &words, 1, TRIB_F64, TRIB_MAX));
    return words;
}

static void say(struct ranks_self *self, const struct volume *v, const char *what,
                double words, double bound)
{
    if (v->table && self->rank == 0)
        fprintf(stderr, "| %d | %g %% | %s | %s | %.0f | %.0f | %.2f |\n", self->size,
                100.0 / v->one_in, v->skewed ? "skewed" : "uniform", what, words, bound,
                words / bound);
}

static void of_pairs(struct ranks_self *self, const struct volume *v, uint64_t *indices,
                     float *values)
{
    const double share = (self->size - 1.0) / self->size;
    trib_sparse_desc_t d = TRIB_SPARSE_DESC_INIT;
    const size_t n = give(v, self->rank, indices, values);
    trib_stats_t before = {.size = sizeof(before)};
    uint64_t most = n;
    trib_plan_t *plan;
    size_t all;

    ranks_ok(self, trib_allreduce(self->comm, NULL, &most, 1, TRIB_U64, TRIB_MAX));
    d.length = v->length;
    d.most = most;
    ranks_ok(self, trib_plan_sparse(self->comm, &d, &plan));
    for (int step = 0; step < 2; step++) { /* the first one connects */
        ranks_ok(self, trib_stats(self->comm, &before));
        ranks_ok(self, trib_plan_start_sparse(plan, indices, values, n));
        ranks_ok(self, trib_plan_wait(plan));
    }
    const double words = words_since(self, &before);
    ranks_ok(self, trib_plan_sparse_count(plan, &all));
    const double bound = 2 * share * (double)(most + all);
    say(self, v, "pairs", words, bound);
    ranks_assert(self, words <= bound);
    ranks_ok(self, trib_plan_free(plan));
}

/* The k largest of the sum; the rest stays in the residuals. */
static void of_largest(struct ranks_self *self, const struct volume *v, float *x)
{
    const double share = (self->size - 1.0) / self->size;
    trib_stats_t before = {.size = sizeof(before)};
    char codec[60];

    snprintf(codec, sizeof(codec), "topk:ratio=%g,result=selected", 1.0 / v->one_in);
    trib_plan_t *plan = ranks_plan(self, TRIB_ALLREDUCE, .recv = x, .count = v->length,
                                   .codec = codec);
    for (int step = 0; step < 3; step++) {
        for (size_t i = 0; i < v->length; i++)
            x[i] = gives(v, self->rank, i) ? 1 + (float)(oracle_mix(i) % 999) : 1e-3F;
        ranks_ok(self, trib_stats(self->comm, &before));
        ranks_step(self, plan);
    }
    const double words = words_since(self, &before);
    const double bound = 6 * share * (double)v->length / v->one_in;
    say(self, v, "k largest", words, bound);
    ranks_assert(self, words <= bound);
    ranks_ok(self, trib_plan_free(plan));
}

static int measure(struct ranks_self *self)
{
    const struct volume *v = self->arg;
    uint64_t *indices = malloc(v->length * sizeof(*indices));
    float *x = malloc(v->length * sizeof(*x));

    ranks_assert(self, indices && x);
    of_pairs(self, v, indices, x);
    of_largest(self, v, x);
    free(indices);
    free(x);
    return 0;
}

static bool table;

TEST(test_volume)
{
    for (int k = 0; k < (table ? 12 : 4); k++) {
        const struct volume v = {.length = table ? 1 << 22 : 1 << 19,
                                 .one_in = k / 2 % 2 ? 1000 : 100,
                                 .skewed = k % 2,
                                 .table = table};
        ranks_pass(.size = table   ? 4 << k / 4
                           : k % 3 ? 4
                                   : 5,
                   .fn = measure, .arg = (void *)(uintptr_t)&v,
                   .config = "transport=shm");
    }
}

int main(int argc, char **argv)
{
    table = argc > 1 && strcmp(argv[1], "--table") == 0;
    return tribtest_run();
}
