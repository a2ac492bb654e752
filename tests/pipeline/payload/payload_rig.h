/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sums of a few engines in one process, driven by hand: any codec, type and algorithm,
 * against a plain sum. Inputs are small integers, whose sums every type has exactly.
 */
#ifndef TESTS_PIPELINE_PAYLOAD_PAYLOAD_RIG_H
#define TESTS_PIPELINE_PAYLOAD_PAYLOAD_RIG_H

#include "tests/pipeline/engine/engines.h"

#include "compress/feedback_rule.h"
#include "pipeline/payload/payload_state.h"

enum {
    RIG_PIECE = 1024, /* elements of a chunk, where a case names no other number */
    RIG_PASSES = 200000,
};

struct payload_case {
    const char *codec;     /* NULL: raw elements */
    const char *feedback;  /* NULL: the codec's default */
    const char *algorithm; /* NULL: the aggregators' */
    int ranks;
    int aggregators;
    size_t count;
    bool out_of_place;
    struct trib_run_desc desc; /* op.dtype, op.op and non-default settings */
    const char *transport;     /* NULL: loop, which maps nothing */
    const char *config;
};

struct rig {
    struct payload_case c;
    struct engines *engines;
    struct trib_codec *codec;
    const struct trib_kernels *kernels;
};

static inline struct engine_side *rig_side(const struct rig *r, int rank)
{
    return &r->engines->side[rank];
}

/* Elements of the whole vector. */
static inline size_t rig_total(const struct rig *r)
{
    const bool blocked = r->c.desc.op.coll == TRIB_REDUCE_SCATTER ||
                         r->c.desc.op.coll == TRIB_ALLGATHER;

    return r->c.count * (blocked ? (size_t)r->c.ranks : 1);
}

static inline struct trib_shape rig_shape(const struct rig *r, int rank)
{
    return (struct trib_shape){.coll = r->c.desc.op.coll,
                               .op = r->c.desc.op.op,
                               .rank = rank,
                               .size = r->c.ranks,
                               .aggregators = r->c.aggregators};
}

/* Return the run description with defaults for the fields that a case leaves unset. */
static inline struct trib_run_desc rig_desc(const struct rig *r, uint32_t n_chunks)
{
    struct trib_run_desc d = r->c.desc;
    const size_t total = rig_total(r);

    d.element = trib_dtype_size(d.op.dtype);
    d.count = r->c.count;
    d.total = total;
    d.cut = total == d.count ? TRIB_CUT_INTERLEAVED : TRIB_CUT_BLOCKED;
    d.piece = d.piece ? d.piece : RIG_PIECE;
    d.n_chunks = n_chunks;
    const size_t round = d.cut == TRIB_CUT_BLOCKED ? d.piece : d.piece * n_chunks;
    d.rounds = (uint32_t)((d.count + round - 1) / round);
    d.codec = r->codec;
    d.op.root = d.op.coll == TRIB_REDUCE ? 0 : TRIB_ROOT_NONE;
    d.seed = 1;
    if (!r->codec)
        return d;
    const char *text = r->c.feedback ? r->c.feedback : "codec";
    assert_status(trib_feedback_parse(text, NULL, &d.feedback), TRIB_OK);
    assert_status(trib_feedback_fit(&d.feedback, r->codec, NULL), TRIB_OK);
    return d;
}

/* All of a run but trib_run_prepare. */
static inline void rig_plan(const struct rig *r, int rank, struct trib_run *run)
{
    const struct trib_algo *algo = r->c.algorithm ? trib_algo_find(r->c.algorithm)
                                                  : trib_algo_of_aggregators();
    const struct trib_shape shape = rig_shape(r, rank);
    struct trib_schedule schedule = {0};

    assert_non_null(algo);
    assert_status(algo->build(&shape, &schedule), TRIB_OK);
    assert_status(trib_program_create(&schedule, &shape, &run->program), TRIB_OK);
    run->desc = rig_desc(r, schedule.n_chunks);
    run->desc.gathers = run->desc.gets_whole = trib_algo_gathers(algo, &shape);
    run->desc.name = algo->name;
    trib_schedule_free(&schedule);
}

/* Engines and codec; the runs are not prepared. */
static inline struct rig rig_open_bare(const struct payload_case *c)
{
    struct rig r = {.c = *c, .kernels = trib_kernels_get(NULL)};

    r.engines = engines_meet(
        &(struct engines_opts){.ranks = c->ranks,
                               .aggregators = c->aggregators,
                               .floats = 2 * rig_total(&r) + 2,
                               .transport = c->transport ? c->transport : "loop",
                               .config = c->config ? c->config : "chunk=16K"});
    if (c->codec) {
        assert_status(trib_codec_create(c->codec, NULL, NULL, &r.codec), TRIB_OK);
        assert_status(trib_codec_for_ranks(r.codec, c->ranks, NULL), TRIB_OK);
    }
    return r;
}

static inline struct rig rig_open(const struct payload_case *c)
{
    struct rig r = rig_open_bare(c);

    for (int i = 0; i < r.engines->n; i++) {
        struct engine_side *s = rig_side(&r, i);
        rig_plan(&r, i, &s->run);
        assert_status(trib_run_prepare(&s->engine, &s->run), TRIB_OK);
    }
    return r;
}

static inline void rig_close(struct rig *r)
{
    engines_close(r->engines);
    trib_codec_destroy(r->codec);
}

static inline void *rig_input(const struct rig *r, int rank)
{
    return rig_side(r, rank)->x;
}

static inline void *rig_result(const struct rig *r, int rank)
{
    return r->c.out_of_place ? rig_side(r, rank)->y : rig_side(r, rank)->x;
}

/* Return true if a float32 holds the sums of rig_given exactly in this type. */
static inline bool rig_holds(trib_dtype_t dtype)
{
    return dtype <= TRIB_I64 || dtype == TRIB_I16;
}

static inline void rig_put(const struct rig *r, void *vector, size_t i, float v)
{
    const trib_dtype_t dtype = r->c.desc.op.dtype;

    r->kernels->from_f32[dtype](
        (uint8_t *)vector + i * trib_dtype_size(dtype), &v, 1);
}

static inline float rig_get(const struct rig *r, const void *vector, size_t i)
{
    const trib_dtype_t dtype = r->c.desc.op.dtype;
    float v;

    r->kernels->to_f32[dtype](
        &v, (const uint8_t *)vector + i * trib_dtype_size(dtype), 1);
    return v;
}

/* The input of a rank in a step. */
static inline float rig_given(int rank, int step, size_t i)
{
    return (float)((i * 7 + (size_t)rank * 5 + (size_t)step * 3) % 16) - 7.0f;
}

static inline void rig_fill(const struct rig *r, int step)
{
    for (int rank = 0; rank < r->c.ranks; rank++)
        for (size_t i = 0; i < rig_total(r); i++)
            rig_put(r, rig_input(r, rank), i, rig_given(rank, step, i));
}

static inline float rig_sum(const struct rig *r, int step, size_t i)
{
    float sum = 0;

    for (int rank = 0; rank < r->c.ranks; rank++)
        sum += rig_given(rank, step, i);
    return r->c.desc.op.op == TRIB_MEAN ? sum / (float)r->c.ranks : sum;
}

static inline void rig_start_one(const struct rig *r, int rank)
{
    struct engine_side *s = rig_side(r, rank);
    const bool contributes = rank < r->c.ranks;

    trib_run_start(&s->engine, &s->run,
                   contributes && r->c.out_of_place ? rig_input(r, rank) : NULL,
                   contributes ? rig_result(r, rank) : NULL);
}

static inline bool rig_over(const struct rig *r)
{
    bool over = true;

    for (int i = 0; i < r->engines->n; i++)
        over &= rig_side(r, i)->run.now.state == TRIB_RUN_DONE;
    return over;
}

static inline void rig_drive(const struct rig *r)
{
    for (int i = 0; i < RIG_PASSES && !rig_over(r); i++)
        (void)trib_engine_progress(&rig_side(r, i % r->engines->n)->engine);
}

/* Run one step on all ranks until it finishes. */
static inline void rig_step(const struct rig *r, int step)
{
    rig_fill(r, step);
    for (int i = 0; i < r->engines->n; i++)
        rig_start_one(r, i);
    rig_drive(r);
}

static inline void rig_ok(const struct rig *r)
{
    for (int i = 0; i < r->engines->n; i++) {
        const struct engine_side *s = rig_side(r, i);
        if (s->engine.failed)
            fail_msg("%s of %s: %s", r->c.codec ? r->c.codec : "raw",
                     trib_dtype_name(r->c.desc.op.dtype), s->engine.failure.text);
        assert_int_equal(s->run.now.state, TRIB_RUN_DONE);
        assert_status(s->run.now.status, TRIB_OK);
    }
}

/* Asserts the plain sum on every rank that has one, within `off`. */
static inline void rig_right(const struct rig *r, int step, float off)
{
    const bool scatter = r->c.desc.op.coll == TRIB_REDUCE_SCATTER;
    const int ranks = r->c.desc.op.coll == TRIB_REDUCE ? 1 : r->c.ranks;

    rig_ok(r);
    for (int rank = 0; rank < ranks; rank++) {
        const size_t first = scatter ? r->c.count * (size_t)rank : 0;
        /* In place, a block stays where it was. */
        const size_t at = r->c.out_of_place ? 0 : first;
        for (size_t i = 0; i < r->c.count; i++) {
            const float got = rig_get(r, rig_result(r, rank), at + i);
            const float want = rig_sum(r, step, first + i);
            if (!(got >= want - off && got <= want + off))
                fail_msg("%s of %zu %s by %s: element %zu of rank %d is %g, not %g",
                         r->c.codec ? r->c.codec : "raw", r->c.count,
                         trib_dtype_name(r->c.desc.op.dtype),
                         rig_side(r, 0)->run.desc.name, i, rank, (double)got,
                         (double)want);
        }
    }
}

/* Asserts that all ranks have the same bits. */
static inline void rig_same(const struct rig *r)
{
    const size_t bytes = r->c.count * trib_dtype_size(r->c.desc.op.dtype);

    rig_ok(r);
    for (int rank = 1; rank < r->c.ranks; rank++)
        assert_memory_equal(rig_result(r, rank), rig_result(r, 0), bytes);
}

/* Runs `steps` steps of a case and asserts its sums. */
static inline void rig_check(const struct payload_case *c, int steps, float off)
{
    struct rig r = rig_open(c);

    for (int step = 0; step < steps; step++) {
        rig_step(&r, step);
        rig_right(&r, step, off);
        if (c->desc.op.coll == TRIB_ALLREDUCE)
            rig_same(&r);
    }
    rig_close(&r);
}

#define RIG_COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* Start two ranks, the first of which sends. Return the entry of its first frame, which
 * the second rank has not read yet. */
static inline struct trib_entry *rig_first_frame(const struct rig *r)
{
    struct trib_engine *e = &rig_side(r, 1)->engine;

    rig_fill(r, 0);
    rig_start_one(r, 0);
    rig_start_one(r, 1);
    (void)trib_engine_progress(&rig_side(r, 0)->engine);
    (void)trib_engine_events(e);
    struct trib_entry *entry =
        (struct trib_entry *)(void *)e->links[0].recv[TRIB_LANE_UP].slots;
    assert_true(atomic_load(&entry->position) > 0);
    return entry;
}

#endif
