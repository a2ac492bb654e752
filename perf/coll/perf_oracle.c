/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compute the right result of a collective on each rank, without the library.
 *
 * Inputs come from a counter-based generator, so any rank can generate the inputs of
 * all ranks. Floats are roughly normal (the sum of four uniform numbers), which is
 * closer to gradients than uniform ones. Factors of a product stay near 1. Integers use
 * their whole range, so that sums wrap.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "perf/coll/colls.h"
#include "perf/coll/perf_oracle.h"
#include "perf/common/perf_op.h"
#include "perf/common/samples.h"
#include "perf/common/smooth.h"

#define BLOCK 1024 /* elements generated, reduced and compared at a time */

/* --- inputs --- */

/* A bijective mixer: multiply and xor-shift, enough to make counters look random. */
static uint64_t mix(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    return x;
}

static double about_normal(uint64_t bits)
{
    int64_t sum = 0;
    for (int i = 0; i < 4; i++)
        sum += (int64_t)((bits >> (16 * i)) & 0xffff);
    /* A fraction of a step, so that few elements are equal. */
    double fraction = (double)(mix(bits) >> 40) / 0x1p24;
    /* The sum of four uniform numbers on [0, 1) has mean 2 and variance 1/3. */
    return (((double)sum + fraction) / 65536 - 2) * 1.7320508;
}

static bool block_empty(const struct perf_oracle *o, int rank, size_t block)
{
    uint64_t whose = o->same_blocks ? 0 : (uint64_t)rank + 1;
    uint64_t key = mix(o->seed * 0x10003u + whose);
    return (double)(mix(key + block) >> 11) < o->empty * 0x1p53;
}

/* Values of pairs are drawn from few, so that ranks tie. Indices differ between
 * ranks. */
static void fill_located(const struct perf_oracle *o, int rank, size_t at, void *out)
{
    const size_t size = trib_dtype_size(o->dtype);
    const uint64_t index = (uint64_t)(rank ^ 1) << 20 | (at / 2 & 0xfffff);
    const uint64_t bits = mix(mix(o->seed * 0x10001u + (uint64_t)rank + 1) + at);
    union perf_number number = {.i = bits & 7};

    if (!perf_number_is_integer(o->dtype))
        number.f = (double)(bits & 7) - 3;
    if (at % 2)
        memcpy(out, &index, size); /* little-endian */
    else
        perf_number_store(o->dtype, out, 0, number);
}

void perf_oracle_fill(const struct perf_oracle *o, int rank, size_t first, size_t n,
                      void *out)
{
    for (size_t i = 0; perf_op_is_located(o->op) && i < n; i++)
        fill_located(o, rank, first + i,
                     (unsigned char *)out + i * trib_dtype_size(o->dtype));
    if (perf_op_is_located(o->op))
        return;

    uint64_t key = mix(o->seed * 0x10001u + (uint64_t)rank + 1);
    bool empty = false;
    for (size_t i = 0; i < n; i++) {
        size_t at = first + i;
        if (o->empty > 0 && (i == 0 || at % PERF_ORACLE_BLOCK == 0))
            empty = block_empty(o, rank, at / PERF_ORACLE_BLOCK);
        uint64_t bits = mix(key + at);
        union perf_number number = {.i = bits};
        if (!perf_number_is_integer(o->dtype)) {
            number.f = about_normal(bits);
            if (o->smooth)
                number.f = perf_smooth(rank, at, number.f);
            if (o->op == TRIB_PROD)
                number.f = 1 + number.f / 8;
        }
        if (empty || (perf_op_is_truth(o->dtype, o->op) && !(mix(bits) & 3)))
            number.i = 0; /* also 0.0 for floats */
        perf_number_store(o->dtype, out, i, number);
    }
}

size_t perf_oracle_inputs(const struct perf_oracle *o)
{
    if (o->coll == TRIB_SCATTER && o->rank != o->root)
        return 0;
    return perf_coll_does(o->coll) & PERF_SEND_BLOCKS ? o->count * (size_t)o->ranks
                                                      : o->count;
}

size_t perf_oracle_outputs(const struct perf_oracle *o)
{
    const bool of_root = o->coll == TRIB_REDUCE || o->coll == TRIB_GATHER;

    if (o->coll == TRIB_BARRIER || (of_root && o->rank != o->root) ||
        (o->coll == TRIB_EXSCAN && o->rank == 0))
        return 0;
    return perf_coll_does(o->coll) & PERF_RECV_BLOCKS ? o->count * (size_t)o->ranks
                                                      : o->count;
}

/* --- expectation --- */

/* Return the result of an element: for a vote, the sign of the sum. */
static union perf_number finish(const struct perf_oracle *o, union perf_number sum)
{
    if (o->loss.kind != PERF_LOSS_VOTE)
        return perf_op_finish(o->dtype, o->op, sum, o->ranks);
    sum.f = (sum.f > 0) - (sum.f < 0);
    return sum;
}

/* Return an input's contribution to the sum: its sign for a vote. */
static union perf_number counted(const struct perf_oracle *o, union perf_number x)
{
    if (o->loss.kind == PERF_LOSS_VOTE)
        x.f = signbit(x.f) ? -1 : 1;
    return perf_op_operand(o->dtype, o->op, x);
}

struct expectation {
    union perf_number value[BLOCK];
    double magnitude[BLOCK]; /* sum of |x|, the scale of rounding errors */
};

/* Apply the robust operator to the contributions to one element. */
static double robust(const struct perf_oracle *o, double *x)
{
    size_t n = (size_t)o->ranks, first = 0, end = n;
    double sum = 0;
    if (o->op == TRIB_CLIPPED_MEAN) {
        for (size_t i = 0; i < n; i++)
            x[i] = fmax(-o->parameter, fmin(x[i], o->parameter));
    } else {
        qsort(x, n, sizeof(*x), perf_by_value);
        first = o->op == TRIB_MEDIAN ? (n - 1) / 2 : (size_t)(o->parameter * (double)n);
        end = n - first;
    }
    for (size_t i = first; i < end; i++)
        sum += x[i];
    return sum / (double)(end - first);
}

static bool is_robust(trib_op_t op)
{
    return op == TRIB_MEDIAN || op == TRIB_TRIMMED_MEAN || op == TRIB_CLIPPED_MEAN;
}

/* Without memory for all contributions, expect NaN. */
static void expect_robust(const struct perf_oracle *o, size_t first, size_t n,
                          struct expectation *e)
{
    const size_t ranks = (size_t)o->ranks;
    double *x = malloc(ranks * n * sizeof(*x));
    uint64_t block[BLOCK];
    for (size_t rank = 0; x != NULL && rank < ranks; rank++) {
        perf_oracle_fill(o, (int)rank, first, n, block);
        for (size_t i = 0; i < n; i++)
            x[i * ranks + rank] = perf_number_load(o->dtype, block, i).f;
    }
    for (size_t i = 0; i < n; i++) {
        e->value[i].f = x == NULL ? (double)NAN : robust(o, x + i * ranks);
        e->magnitude[i] = fabs(e->value[i].f) + 1;
    }
    free(x);
}

static void expect_located(const struct perf_oracle *o, size_t first, size_t n,
                           struct expectation *e)
{
    const size_t pair = 2 * trib_dtype_size(o->dtype);
    uint64_t best[BLOCK], block[BLOCK];

    assert(first % 2 == 0 && n % 2 == 0);
    for (int rank = 0; rank < o->ranks; rank++) {
        perf_oracle_fill(o, rank, first, n, block);
        for (size_t k = 0; k < n / 2; k++) {
            unsigned char *to = (unsigned char *)best + k * pair;
            const unsigned char *from = (const unsigned char *)block + k * pair;
            if (rank == 0 || perf_op_precedes(o->dtype, o->op, from, to))
                memcpy(to, from, pair);
        }
    }
    for (size_t i = 0; i < n; i++) {
        e->value[i] = perf_number_load(o->dtype, best, i);
        e->magnitude[i] = 0;
    }
}

static void expect_reduced(const struct perf_oracle *o, size_t first, size_t n,
                           struct expectation *e)
{
    uint64_t block[BLOCK];
    if (is_robust(o->op) || perf_op_is_located(o->op)) {
        (is_robust(o->op) ? expect_robust : expect_located)(o, first, n, e);
        return;
    }
    for (int rank = 0; rank < o->ranks; rank++) {
        perf_oracle_fill(o, rank, first, n, block);
        for (size_t i = 0; i < n; i++) {
            union perf_number x = counted(o, perf_number_load(o->dtype, block, i));
            e->value[i] =
                rank == 0 ? x : perf_op_combine(o->dtype, o->op, e->value[i], x);
            e->magnitude[i] = rank == 0 ? fabs(x.f) : e->magnitude[i] + fabs(x.f);
        }
    }
    for (size_t i = 0; i < n; i++) {
        e->value[i] = finish(o, e->value[i]);
        e->magnitude[i] =
            perf_op_magnitude(o->op, e->value[i].f, e->magnitude[i], o->ranks);
    }
}

/* Origin of a part of the result. */
struct place {
    int from; /* rank; -1: all ranks */
    size_t first; /* index in its input */
};

static struct place place_of(const struct perf_oracle *o, size_t first)
{
    if (o->coll == TRIB_BROADCAST)
        return (struct place){o->root, first};
    if (o->coll == PERF_SENDRECV)
        return (struct place){(o->rank + o->ranks - 1) % o->ranks, first};
    const size_t mine = (size_t)o->rank * o->count;
    const bool every = perf_coll_does(o->coll) & PERF_SEND_BLOCKS;
    if (perf_coll_does(o->coll) & PERF_RECV_BLOCKS)
        return (struct place){(int)(first / o->count),
                              first % o->count + (every ? mine : 0)};
    if (every)
        first += mine;
    return (struct place){o->coll == TRIB_SCATTER ? o->root : -1, first};
}

/* Return an oracle of only the ranks whose sum this rank receives. */
static struct perf_oracle summed_of(const struct perf_oracle *o)
{
    struct perf_oracle some = *o;
    if (o->coll == TRIB_SCAN)
        some.ranks = o->rank + 1;
    if (o->coll == TRIB_EXSCAN)
        some.ranks = o->rank;
    return some;
}

/* Compute elements first … first + n of the result, all from one rank's block. */
static void expect(const struct perf_oracle *o, size_t first, size_t n,
                   struct expectation *e)
{
    struct place at = place_of(o, first);
    if (at.from < 0) {
        const struct perf_oracle some = summed_of(o);
        expect_reduced(&some, at.first, n, e);
        return;
    }
    uint64_t block[BLOCK];
    perf_oracle_fill(o, at.from, at.first, n, block);
    for (size_t i = 0; i < n; i++) {
        e->value[i] = counted(o, perf_number_load(o->dtype, block, i));
        e->magnitude[i] = 0;
    }
}

/* State of checking a whole result, block by block. */
struct judging {
    const struct perf_oracle *o;
    struct perf_passage passage;
    struct perf_whole whole;
    size_t at; /* index of the element being compared */
    struct perf_part *parts; /* one per rank; NULL: not needed */
    struct perf_verdict *out;
};

/* Count a wrong element and record the first one for the message. */
static void count_wrong(struct judging *j, double got, double want, double tolerance)
{
    struct perf_verdict *out = j->out;
    if (out->wrong_elements++ == 0) {
        out->first = j->at;
        out->got = got;
        out->want = want;
        out->tolerance = tolerance;
    }
    out->wrong++;
}

double perf_oracle_number(trib_dtype_t dtype, const void *vector, size_t i)
{
    union perf_number number = perf_number_load(dtype, vector, i);
    return perf_number_is_integer(dtype) ? (double)(int64_t)number.i : number.f;
}

static void compare_one(struct judging *j, union perf_number got,
                        union perf_number want, double magnitude)
{
    const struct perf_oracle *o = j->o;
    struct perf_verdict *out = j->out;
    bool exact = o->loss.kind == PERF_LOSS_NONE || o->loss.kind == PERF_LOSS_VOTE;
    if (perf_number_is_integer(o->dtype)) {
        double error = (double)(int64_t)(got.i - want.i);
        out->error2 += error * error;
        out->reference2 += (double)(int64_t)want.i * (double)(int64_t)want.i;
        if (exact && got.i != want.i)
            count_wrong(j, (double)(int64_t)got.i, (double)(int64_t)want.i, 0);
        return;
    }
    double error = got.f - want.f;
    out->error2 += error * error;
    out->reference2 += want.f * want.f;
    if (!exact) {
        /* An element that is not summed has only its own magnitude. */
        magnitude = fmax(magnitude, fabs(want.f));
        if (perf_element_wrong(&j->passage, got.f, want.f, magnitude))
            count_wrong(j, got.f, want.f, perf_element_most(&j->passage, magnitude));
        j->whole.elements++;
        j->whole.nonzero += got.f != 0;
        j->whole.magnitude2 += magnitude * magnitude;
        j->whole.square += want.f * want.f;
        return;
    }
    const double tolerance = perf_op_tolerance(o->dtype, magnitude, o->ranks);
    if (!(fabs(error) <= tolerance))
        count_wrong(j, got.f, want.f, tolerance);
}

/* Add the contributions of all ranks to a block of the result. */
static void add_parts(struct judging *j, size_t first, size_t n,
                      const unsigned char *result, const struct expectation *e)
{
    const struct perf_oracle *o = j->o;
    struct place at = place_of(o, first);
    double scale = at.from < 0 && o->op == TRIB_MEAN ? 1.0 / o->ranks : 1;
    uint64_t block[BLOCK];
    for (int rank = 0; rank < o->ranks; rank++) {
        if (at.from >= 0 && rank != at.from)
            continue;
        perf_oracle_fill(o, rank, at.first, n, block);
        for (size_t i = 0; i < n; i++) {
            double got = perf_number_load(o->dtype, result, i).f;
            double x = perf_number_load(o->dtype, block, i).f * scale;
            perf_part_add(&j->passage, &j->parts[rank], x, got, got - e->value[i].f);
        }
    }
}

static void judge_whole(struct judging *j)
{
    struct perf_verdict *out = j->out;
    j->whole.parts = j->parts;
    out->error2_limit = perf_error_limit(&j->passage, &j->whole);
    /* With empty blocks, a rank may have too few elements to select from, and the same
     * ones as other ranks. */
    if (j->o->loss.kind != PERF_LOSS_SELECTED || j->o->empty <= 0)
        out->lost = (uint64_t)perf_parts_lost(&j->passage, &j->whole);
    out->wrong += out->lost + !(out->error2 <= out->error2_limit);
}

static void compare_blocks(struct judging *j, const unsigned char *result)
{
    const struct perf_oracle *o = j->o;
    struct expectation e;
    size_t total = perf_oracle_outputs(o), bytes = trib_dtype_size(o->dtype), n;
    for (size_t first = 0; first < total; first += n) {
        n = total - first < BLOCK ? total - first : BLOCK;
        if (perf_coll_does(o->coll) & PERF_RECV_BLOCKS &&
            n > o->count - first % o->count)
            n = o->count - first % o->count;
        expect(o, first, n, &e);
        const unsigned char *at = result + first * bytes;
        for (size_t i = 0; i < n; i++) {
            j->at = first + i;
            compare_one(j, perf_number_load(o->dtype, at, i), e.value[i],
                        e.magnitude[i]);
        }
        for (size_t i = 0; i < n * bytes; i++)
            j->out->hash = (j->out->hash ^ at[i]) * 0x100000001b3u;
        if (j->parts != NULL)
            add_parts(j, first, n, at, &e);
    }
}

void perf_oracle_compare(const struct perf_oracle *o, const void *result,
                         struct perf_verdict *out)
{
    struct judging j = {
        .o = o,
        .passage = {&o->loss, o->ranks, perf_number_epsilon(o->dtype) / 2},
        .out = out,
    };
    enum perf_loss_kind kind = o->loss.kind;
    bool parts = (kind == PERF_LOSS_SELECTED || kind == PERF_LOSS_RANDOM) &&
                 perf_oracle_outputs(o) > 0;
    memset(out, 0, sizeof(*out));
    out->hash = o->seed;
    out->error2_limit = (double)INFINITY;
    if (parts)
        j.parts = calloc((size_t)o->ranks, sizeof(*j.parts));
    compare_blocks(&j, result);
    if (j.parts != NULL)
        judge_whole(&j);
    out->wrong += parts && j.parts == NULL;
    free(j.parts);
}
