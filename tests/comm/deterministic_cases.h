/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cases of test_deterministic: dense vectors of each dtype, all codecs, and pairs.
 */
#ifndef TESTS_COMM_DETERMINISTIC_CASES_H
#define TESTS_COMM_DETERMINISTIC_CASES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tributary/info.h>

#include "base/dtype.h"
#include "compress/codec.h"
#include "tests/comm/algorithms.h"

enum {
    CASES_MOST = 160,
    CASE_STEPS = 4,
    DENSE = 5003, /* elements */
    CODED = 52001, /* two rounds of 64 KiB chunks of three ranks */
    SHORT = 6001, /* for slow codecs */
};

/* The algorithms that a case may use. */
enum of_algorithms { AUTO_ALONE, THOSE_IN_ORDER, ALL };

struct one_case {
    trib_coll_t coll;
    trib_dtype_t dtype;
    trib_op_t op;
    char codec[80];
    const char *feedback;
    size_t count;
    int steps;
    enum of_algorithms algorithms;
    bool pairs;
};

static struct one_case cases[CASES_MOST];
static int n_cases;

static inline void add_case(struct one_case c)
{
    assert(n_cases < CASES_MOST);
    if (!c.steps)
        c.steps = 2;
    cases[n_cases++] = c;
}

static inline void add_dense(trib_coll_t coll, trib_dtype_t dtype, trib_op_t op)
{
    const bool whole = coll == TRIB_ALLREDUCE || coll == TRIB_REDUCE;
    const struct one_case c = {
        .coll = coll,
        .dtype = dtype,
        .op = op,
        .codec = "none",
        .count = coll == TRIB_REDUCE_SCATTER ? DENSE / 3 : DENSE,
        .algorithms = !whole                       ? AUTO_ALONE
                      : trib_dtype_is_float(dtype) ? THOSE_IN_ORDER
                                                   : ALL,
    };

    add_case(c);
}

static inline void add_codec(const char *codec, const char *feedback,
                             trib_dtype_t dtype, trib_op_t op, size_t count)
{
    struct one_case c = {.coll = TRIB_ALLREDUCE,
                         .dtype = dtype,
                         .op = op,
                         .feedback = feedback,
                         .count = count};
    struct trib_codec *made;

    if (trib_codec_create(codec, NULL, NULL, &made) != TRIB_OK)
        abort();
    if (trib_codec_info(made)->flags & TRIB_CODEC_MODEL)
        c.steps = CASE_STEPS;
    if (trib_codec_info(made)->flags & TRIB_CODEC_ORDERLESS)
        c.algorithms = ALL;
    trib_codec_destroy(made);
    snprintf(c.codec, sizeof(c.codec), "%s", codec);
    add_case(c);
}

/* Add the rows of the table that do not learn, each by its first text and by its
 * name. */
static inline void add_rows(void)
{
    for (size_t i = 0; i < trib_codecs_count; i++) {
        const struct trib_codec_row *row = &trib_codecs[i];
        if (row->flags & (TRIB_CODEC_MODEL | TRIB_CODEC_IDENTITY))
            continue;
        add_codec(row->texts[0], NULL, TRIB_F32, i % 2 ? TRIB_MEAN : TRIB_SUM, CODED);
        add_codec(row->name, NULL, i % 3 ? TRIB_F16 : TRIB_BF16,
                  i % 2 ? TRIB_SUM : TRIB_MEAN, DENSE);
    }
}

static inline void add_all_cases(void)
{
    static const trib_coll_t colls[] = {TRIB_REDUCE, TRIB_REDUCE_SCATTER, TRIB_SCAN,
                                        TRIB_EXSCAN};

    for (int d = 0; d < TRIB_DTYPE_COUNT; d++)
        for (int op = 0; op < TRIB_OP_COUNT; op++)
            if (trib_op_takes((trib_op_t)op, (trib_dtype_t)d) &&
                (op == TRIB_SUM ||
                 (op == TRIB_MEAN && trib_dtype_is_float((trib_dtype_t)d))))
                add_dense(TRIB_ALLREDUCE, (trib_dtype_t)d, (trib_op_t)op);
    add_dense(TRIB_ALLREDUCE, TRIB_F32, TRIB_PROD);
    for (int i = 0; i < 4; i++) {
        add_dense(colls[i], TRIB_F32, TRIB_SUM);
        add_dense(colls[i], TRIB_F16, TRIB_SUM);
    }
    add_rows();
    add_codec("topk:ratio=0.02", "ef14:momentum=0.9,nesterov=1,clip=2", TRIB_F32,
              TRIB_MEAN, CODED);
    add_codec("topk:ratio=0.1", "ef21", TRIB_F32, TRIB_SUM, CODED);
    add_codec("topk:ratio=0.05,result=selected", NULL, TRIB_F32, TRIB_SUM, CODED);
    add_codec("topk:k=700", NULL, TRIB_F32, TRIB_SUM, CODED);
    add_codec("int8:result=requantised", "ef14:momentum=0.9", TRIB_F32, TRIB_SUM,
              CODED);
    add_codec("hadamard+efsign", NULL, TRIB_F32, TRIB_MEAN, CODED);
    add_codec("powersgd:rank=2", NULL, TRIB_F32, TRIB_MEAN, CODED);
    add_codec("gradiveq:slice=64,kept=8,train=1,coded=2", NULL, TRIB_F32, TRIB_SUM,
              CODED);
    add_codec("lgc:ratio=0.02,dense=1,train=1,sample=1", NULL, TRIB_F32, TRIB_MEAN,
              SHORT);
    for (int d = TRIB_F32; d <= TRIB_BF16; d++)
        add_case((struct one_case){.coll = TRIB_ALLREDUCE,
                                   .dtype = (trib_dtype_t)d,
                                   .op = d == TRIB_F16 ? TRIB_MEAN : TRIB_SUM,
                                   .codec = "none",
                                   .count = DENSE,
                                   .algorithms = THOSE_IN_ORDER,
                                   .pairs = true});
}

/* Return the name of the algorithm of a case in this run. */
static inline const char *algorithm_for(const struct one_case *c, int run)
{
    static const char *const in_order[] = {"auto", "direct", "flat"};

    if (c->algorithms == AUTO_ALONE || run % 4 == 0)
        return "auto";
    if (c->algorithms == THOSE_IN_ORDER)
        return in_order[run % 3];
    const char *name = algorithm_at((size_t)run);
    return algorithm_does(name, c->coll) ? name : "auto";
}

#endif
