/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sums of raw elements: every type and op, of few and many sources, with any number of
 * threads, compared with a plain sum and bit by bit with one thread.
 */
#include "tests/comm/oracle.h"
#include "tests/harness/tribtest.h"

#include "base/dtype.h"
#include "base/workers.h"
#include "pipeline/payload/chunk_parts.h"
#include "pipeline/payload/payload_state.h"
#include "pipeline/payload/raw_sum.h"

enum {
    THREADS = 4,
    MANY = 2 * TRIB_REDUCE_MAX_SRC + 3,
    MOST = TRIB_PARTS_CHUNK + 2 * TRIB_PARTS_BYTES, /* bytes */
    STRIDE = 997, /* distance of elements that are compared with the oracle */
    PERIOD = 4098, /* elements after which inputs repeat; even, for pairs */
};

struct bench {
    struct trib_config cfg[THREADS];
    struct trib_error err;
    struct trib_engine engines[THREADS]; /* with 0, 1, … workers */
    struct trib_payload_state payload;
    struct trib_run run;
    uint8_t *given[MANY];
    uint8_t *src[MANY];
    uint8_t *extra; /* a second destination, unaligned */
    uint8_t *alone; /* the sum of one thread */
};

static void open_bench(struct bench *b)
{
    memset(b, 0, sizeof(*b));
    b->run = (struct trib_run){.desc = {.element = 1, .piece = MOST, .total = MOST},
                               .payload = &b->payload};
    for (int i = 0; i < THREADS; i++) {
        b->cfg[i] = (struct trib_config){.encode_threads = i, .spin_us = 20};
        b->engines[i] = (struct trib_engine){
            .cfg = &b->cfg[i], .err = &b->err, .kernels = trib_kernels_get(NULL)};
        assert_status(trib_parts_prepare(&b->engines[i], &b->run), TRIB_OK);
    }
    for (int k = 0; k < MANY; k++) {
        b->given[k] = malloc(MOST);
        b->src[k] = malloc(MOST);
        assert_true(b->given[k] && b->src[k]);
    }
    b->extra = malloc(MOST + 1);
    b->alone = malloc(MOST);
    assert_true(b->extra && b->alone);
}

static void close_bench(struct bench *b)
{
    for (int i = 0; i < THREADS; i++)
        trib_workers_destroy(b->engines[i].workers);
    for (int k = 0; k < MANY; k++) {
        free(b->given[k]);
        free(b->src[k]);
    }
    free(b->extra);
    free(b->alone);
}

/* Sum n elements of n_src sources in place: the result overwrites source `onto`. */
static void sum(struct bench *b, struct trib_engine *e, size_t n, int n_src, int onto)
{
    const bool mean = b->run.desc.op.op == TRIB_MEAN;
    struct trib_reduce_args args = {.n = n,
                                    .dst = {b->src[onto], b->extra + 1},
                                    .n_dst = 2,
                                    .ranks = mean ? n_src : 0};

    for (int k = 0; k < n_src; k++)
        memcpy(b->src[k], b->given[k], n * b->run.desc.element);
    trib_raw_sum(e, &b->run, (const uint8_t *const *)b->src, n_src, &args);
}

/* Compare with the oracle, around the ends of parts and at some other elements. */
static void assert_right(const struct bench *b, const struct oracle *o, size_t n)
{
    const size_t part = TRIB_PARTS_BYTES / b->run.desc.element;

    for (size_t i = 0; i < n; i++) {
        if (i % STRIDE && (i + 2) % part > 3 && i + 3 < n)
            continue;
        const struct oracle_answer want = oracle_reduced(o, i % PERIOD);
        if (!oracle_equal(o->dtype, &want, perf_number_load(o->dtype, b->alone, i)))
            fail_msg("op %d of %zu %s by %d: element %zu", (int)o->op, n,
                     trib_dtype_name(o->dtype), o->size, i);
    }
}

static void fill(const struct oracle *o, int rank, size_t n, size_t element,
                 uint8_t *dst)
{
    oracle_fill(o, rank, 0, PERIOD, dst);
    for (size_t i = PERIOD * element; i < n * element; i++)
        dst[i] = dst[i - PERIOD * element];
}

static void check(struct bench *b, const struct oracle *o, size_t n)
{
    const size_t bytes = n * b->run.desc.element;
    const int onto = (int)(n % (size_t)o->size);

    for (int k = 0; k < o->size; k++)
        fill(o, k, n, b->run.desc.element, b->given[k]);
    for (int t = 0; t < THREADS; t++) {
        struct trib_engine *e = &b->engines[t];
        const uint64_t splits = e->stats.splits;
        e->parts_until = UINT64_MAX; /* wake the workers */
        sum(b, e, n, o->size, onto);
        if (t == 0)
            memcpy(b->alone, b->src[onto], bytes);
        assert_memory_equal(b->src[onto], b->alone, bytes);
        assert_memory_equal(b->extra + 1, b->alone, bytes);
        assert_int_equal(e->stats.splits - splits,
                         e->splits && bytes >= TRIB_PARTS_CHUNK);
    }
    assert_right(b, o, n);
}

static bool exists(const struct bench *b, trib_dtype_t dtype, trib_op_t op)
{
    return b->engines[0].kernels->reduce[dtype][op] != NULL;
}

/* Sizes that end with whole parts, within a part, and below the least that is split. */
TEST(test_threads)
{
    static const int sources[] = {2, 3, TRIB_REDUCE_MAX_SRC, 3, 2, MANY};
    static struct bench b;
    int cases = 0;

    open_bench(&b);
    for (int dtype = 0; dtype < TRIB_DTYPE_COUNT; dtype++)
        for (int op = 0; op < TRIB_OP_COUNT; op++) {
            if (!exists(&b, (trib_dtype_t)dtype, (trib_op_t)op))
                continue;
            const size_t element = trib_dtype_size((trib_dtype_t)dtype);
            const size_t bytes[] = {TRIB_PARTS_CHUNK + 8 * element, MOST,
                                    TRIB_PARTS_CHUNK - 2 * element};
            const bool narrow = trib_dtype_is_narrow((trib_dtype_t)dtype);
            const int n_src = sources[narrow && op == TRIB_PROD ? 0 : cases % 6];
            const struct oracle o = {.seed = (uint64_t)cases,
                                     .dtype = (trib_dtype_t)dtype,
                                     .op = (trib_op_t)op,
                                     .size = n_src};
            b.run.desc.op.dtype = o.dtype;
            b.run.desc.op.op = o.op;
            b.run.desc.element = element;
            const size_t odd = !perf_op_is_located(o.op); /* those take pairs */
            check(&b, &o, bytes[cases / 6 % 3] / element - odd);
            cases++;
        }
    close_bench(&b);
    assert_true(cases > 60);
}
