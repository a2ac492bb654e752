/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cases of test_matrix: each is a number in the mixed radix of the axes.
 */
#ifndef TESTS_COMM_MATRIX_CASES_H
#define TESTS_COMM_MATRIX_CASES_H

#include "tests/harness/tribtest.h"

#include "base/dtype.h"
#include "comm/plan/plan_parts.h"
#include "compress/vectors/robust_op.h"
#include "tests/comm/matrix_codecs.h"
#include "tests/comm/oracle.h"

#define RANKS_MOST 8

static const char *const names_of_colls[] = {"allreduce", "reduce", "broadcast",
                                             "allgather", "reduce-scatter"};

enum memory {
    MEMORY_ALLOC,
    MEMORY_MALLOC,
    MEMORY_REGISTERED,
    MEMORY_MIXED, /* send from malloc, receive into trib_alloc */
    MEMORY_KINDS,
};

static const char *const memory_names[] = {"alloc", "malloc", "registered", "mixed"};
static const size_t chunks[] = {0, 256, 4096};
static const int rank_counts[] = {1, 2, 3, 4, 5, 8};

struct pair {
    trib_coll_t coll;
    char algorithm[32];
};

/* The axes; a case is one number in this mixed radix. */
enum axis {
    AXIS_PAIR,
    AXIS_DTYPE,
    AXIS_OP,
    AXIS_CODEC,
    AXIS_SIZE,
    AXIS_PLACE, /* out of place, in place */
    AXIS_MEMORY,
    AXIS_OFFSET, /* 0, one element, one byte */
    AXIS_CHUNK,
    AXES,
};

struct one {
    int digit[AXES];
    uint64_t number;
    struct pair pair;
    struct oracle oracle;
    const char *codec;
    size_t count;
    bool in_place;
    size_t offset; /* bytes */
    int root;
    bool blocking;
};

/* Memory that the ranks of a job share with the test. */
struct job {
    const char *transport;
    int size;
    uint64_t seed;
    uint64_t only; /* number of one case, or UINT64_MAX */
    uint64_t every; /* run one of this number of cases */
    bool whole;    /* the product, not a sample */
    int draws;     /* of a sample, for each pair, dtype and op */
    int n_pairs;
    struct pair pairs[64];
    uint64_t *hashes; /* [HASHES][RANKS_MOST], shared: results that must be equal */
};

static inline void add_pairs(void *arg, const trib_item_t *item)
{
    struct job *j = arg;

    for (int c = TRIB_ALLREDUCE; c < TRIB_BARRIER; c++) {
        char padded[160], name[40];
        snprintf(padded, sizeof(padded), " %s ", item->value);
        snprintf(name, sizeof(name), " %s ", trib_coll_name((trib_coll_t)c));
        if (!strstr(padded, name))
            continue;
        struct pair *p = &j->pairs[j->n_pairs++];
        p->coll = (trib_coll_t)c;
        snprintf(p->algorithm, sizeof(p->algorithm), "%s", item->name);
    }
}

static inline void find_pairs(struct job *j)
{
    j->n_pairs = 0;
    assert_status(trib_list_each(TRIB_LIST_ALGORITHMS, add_pairs, j), TRIB_OK);
    for (int c = TRIB_ALLREDUCE; c < TRIB_BARRIER; c++)
        j->pairs[j->n_pairs++] = (struct pair){(trib_coll_t)c, "auto"};
    assert_in_range(j->n_pairs, 20, 64);
}

static inline void radices(const struct job *j, int radix[AXES])
{
    radix[AXIS_PAIR] = j->n_pairs;
    radix[AXIS_DTYPE] = TRIB_DTYPE_COUNT;
    radix[AXIS_OP] = TRIB_OP_COUNT;
    radix[AXIS_CODEC] = n_matrix_codecs;
    radix[AXIS_SIZE] = 12;
    radix[AXIS_PLACE] = 2;
    radix[AXIS_MEMORY] = MEMORY_KINDS;
    radix[AXIS_OFFSET] = 3;
    radix[AXIS_CHUNK] = (int)(sizeof(chunks) / sizeof(*chunks));
}

static inline size_t size_of(int digit, int ranks)
{
    const size_t p = (size_t)ranks;
    const size_t sizes[] = {0, 1, 2, 3, p - 1, p, p + 1, 17, 1023, 4097, 30000, 65537};

    return sizes[digit];
}

static inline uint64_t number_of(const struct job *j, const int digit[AXES])
{
    int radix[AXES];
    uint64_t n = 0;

    radices(j, radix);
    for (int a = 0; a < AXES; a++)
        n = n * (uint64_t)radix[a] + (uint64_t)digit[a];
    return n;
}

static inline uint64_t product(const struct job *j)
{
    int radix[AXES];
    uint64_t n = 1;

    radices(j, radix);
    for (int a = 0; a < AXES; a++)
        n *= (uint64_t)radix[a];
    return n;
}

/* Return true if a case is worth running: cases that are refused or equal to others are
 * not. */
static inline bool makes_sense(const struct job *j, const int digit[AXES])
{
    trib_coll_t coll = j->pairs[digit[AXIS_PAIR]].coll;
    trib_op_t op = (trib_op_t)digit[AXIS_OP];
    bool lossy = digit[AXIS_CODEC] != 0;
    bool any_op = matrix_codecs[digit[AXIS_CODEC]].any_op;

    if (!trib_coll_sums(coll) && op != TRIB_SUM)
        return false;
    if (trib_robust_is(op) || !trib_op_takes(op, (trib_dtype_t)digit[AXIS_DTYPE]))
        return false;
    if (lossy && (digit[AXIS_DTYPE] > TRIB_BF16 || trib_op_is_located(op)))
        return false;
    return !lossy || any_op || op == TRIB_SUM || op == TRIB_MEAN;
}

static inline void decode(const struct job *j, uint64_t number, struct one *c)
{
    int radix[AXES];
    uint64_t rest = number, bits = oracle_mix(number ^ oracle_mix(j->seed));

    radices(j, radix);
    for (int a = AXES; a-- > 0; rest /= (uint64_t)radix[a])
        c->digit[a] = (int)(rest % (uint64_t)radix[a]);
    c->number = number;
    c->pair = j->pairs[c->digit[AXIS_PAIR]];
    c->codec = matrix_codecs[c->digit[AXIS_CODEC]].text;
    c->count = size_of(c->digit[AXIS_SIZE], j->size);
    c->in_place = c->digit[AXIS_PLACE];
    c->root = (int)(bits % (uint64_t)j->size);
    c->oracle = (struct oracle){
        .kind = (enum oracle_kind)(bits >> 32) % ORACLE_KINDS,
        .seed = bits,
        .dtype = (trib_dtype_t)c->digit[AXIS_DTYPE],
        .op = (trib_op_t)c->digit[AXIS_OP],
        .size = j->size,
    };
    if (trib_op_is_located(c->oracle.op))
        c->count -= c->count % 2; /* pairs */
    bool lossy = c->digit[AXIS_CODEC] != 0;
    if (lossy)
        c->oracle.kind = bits >> 32 & 1 ? ORACLE_EXACT : ORACLE_REALS;
    size_t element = trib_dtype_size(c->oracle.dtype);
    c->offset = c->digit[AXIS_OFFSET] == 0   ? 0
                : c->digit[AXIS_OFFSET] == 1 ? element
                                             : 1;
    c->blocking = !lossy && c->digit[AXIS_CHUNK] == 0 &&
                  strcmp(c->pair.algorithm, "auto") == 0 && (bits >> 50 & 1);
}

#endif
