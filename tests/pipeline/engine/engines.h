/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several engines of one process, driven by hand, that run one collective.
 */
#ifndef TESTS_PIPELINE_ENGINE_ENGINES_H
#define TESTS_PIPELINE_ENGINE_ENGINES_H

#include "tests/harness/tribtest.h"

#include "collectives/collectives.h"
#include "pipeline/engine/engine.h"
#include "transport/open.h"

enum { ENGINES_MAX = 9 };

struct engine_side {
    struct trib_error err;
    struct trib_engine engine;
    struct trib_run run;
    float *x; /* input */
    float *y; /* result */
};

struct engines {
    struct trib_config cfg;
    int n;
    int ranks;     /* ranks come first, aggregators follow */
    size_t floats; /* of x and y of each rank */
    struct engine_side side[ENGINES_MAX];
};

struct engines_opts {
    int ranks;
    int aggregators;
    size_t floats;
    const char *transport;
    const char *config; /* a list of settings, or NULL */
    bool per_link;      /* slots of a link are allocated when it opens */
    bool on_billboard;      /* small sums may go over the billboard */
};

static inline void engines_open_side(struct engines *t, int rank, const char *transport)
{
    struct engine_side *s = &t->side[rank];
    struct trib_engine *e = &s->engine;
    struct trib_transport_opts opts = {
        .self = rank, .size = t->n, .params = "", .cfg = &t->cfg, .err = &s->err};
    void *x, *y;

    e->cfg = &t->cfg;
    e->err = &s->err;
    e->kernels = trib_kernels_get(NULL);
    e->rank = rank;
    e->size = t->n;
    e->ranks = t->ranks;
    assert_ok(trib_transport_open(transport, &opts, &e->transport));
    assert_ok(trib_engine_open(e));
    assert_ok(trib_memory_alloc(&e->memories, t->floats * sizeof(float) + 1, &x));
    assert_ok(trib_memory_alloc(&e->memories, t->floats * sizeof(float) + 1, &y));
    s->x = x;
    s->y = y;
}

/* Open connected engines; no link is up yet. */
static inline struct engines *engines_meet(const struct engines_opts *o)
{
    struct engines *t = calloc(1, sizeof(*t));
    const int n = o->ranks + o->aggregators;

    assert_non_null(t);
    assert_in_range(n, 1, ENGINES_MAX);
    t->n = n;
    t->ranks = o->ranks;
    t->floats = o->floats;
    assert_ok(trib_config_load(&t->cfg, o->config, NULL, NULL));
    for (int i = 0; i < n; i++) {
        t->side[i].engine.arena.per_link = o->per_link;
        t->side[i].engine.arena.on_billboard = o->on_billboard;
        engines_open_side(t, i, o->transport);
    }
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < n; k++) {
            const struct trib_engine *e = &t->side[k].engine;
            struct trib_peer *p = &t->side[i].engine.peers[k];
            snprintf(p->host, sizeof(p->host), "here");
            p->pid = getpid();
            assert_ok(e->transport->ops->address(e->transport, &p->address));
            assert_ok(trib_arena_export(&e->arena, &p->arena));
        }
    }
    return t;
}

static inline struct engines *engines_open(int n, size_t floats, const char *transport,
                                           const char *config)
{
    return engines_meet(&(struct engines_opts){
        .ranks = n, .floats = floats, .transport = transport, .config = config});
}

/* Prepare a rank's run of `count` floats in one round of an algorithm. desc holds the
 * settings that differ from the defaults. */
static inline void engines_prepare_side(struct engines *t, int rank,
                                        const struct trib_algo *algo, size_t count,
                                        const struct trib_run_desc *desc)
{
    const bool blocked =
        desc->op.coll == TRIB_ALLGATHER || desc->op.coll == TRIB_REDUCE_SCATTER;
    const struct trib_shape shape = {
        .coll = desc->op.coll,
        .op = desc->op.op,
        .rank = rank,
        .size = t->n,
        .root = desc->op.root == TRIB_ROOT_NONE ? 0 : (int)desc->op.root};
    struct engine_side *s = &t->side[rank];
    struct trib_schedule schedule = {0};

    assert_ok(algo->build(&shape, &schedule));
    assert_ok(trib_program_create(&schedule, &shape, &s->run.program));
    s->run.desc = *desc;
    s->run.desc.element = sizeof(float);
    s->run.desc.count = count;
    s->run.desc.total = blocked ? count * (size_t)t->n : count;
    s->run.desc.cut = blocked ? TRIB_CUT_BLOCKED : TRIB_CUT_INTERLEAVED;
    s->run.desc.n_chunks = schedule.n_chunks;
    s->run.desc.rounds = 1;
    s->run.desc.piece =
        blocked ? count : (count + schedule.n_chunks - 1) / schedule.n_chunks;
    s->run.desc.name = algo->name;
    trib_schedule_free(&schedule);
    assert_ok(trib_run_prepare(&s->engine, &s->run));
}

static inline void engines_prepare(struct engines *t, const struct trib_algo *algo,
                                   size_t count, const struct trib_run_desc *desc)
{
    for (int i = 0; i < t->n; i++)
        engines_prepare_side(t, i, algo, count, desc);
}

enum { ENGINES_COUNT = 1000 };

/* Prepare a rank's in-place sum of ENGINES_COUNT floats in registered memory. Elements
 * of rank i are i + 1. */
static inline void engines_prepare_sum(struct engines *t, int rank, bool zero_copy)
{
    const struct trib_run_desc desc = {.op.root = TRIB_ROOT_NONE,
                                       .zero_copy = zero_copy};

    engines_prepare_side(t, rank, trib_algo_find("direct"), ENGINES_COUNT, &desc);
    for (int k = 0; k < ENGINES_COUNT; k++)
        t->side[rank].x[k] = (float)(rank + 1);
}

static inline struct engines *engines_two(const char *transport, bool zero_copy)
{
    struct engines *t = engines_open(2, ENGINES_COUNT, transport, "trace=1K");

    for (int i = 0; i < 2; i++)
        engines_prepare_sum(t, i, zero_copy);
    return t;
}

static inline void engines_start_in_place(struct engines *t, int rank)
{
    struct engine_side *s = &t->side[rank];

    trib_run_start(&s->engine, &s->run, NULL, s->x);
}

static inline void engines_start(struct engines *t)
{
    for (int i = 0; i < t->n; i++)
        trib_run_start(&t->side[i].engine, &t->side[i].run, t->side[i].x, t->side[i].y);
}

/* Nothing is lost on the way: a few passes do. */
static inline void engines_drive(struct engines *t)
{
    for (int i = 0; i < 200 * t->n; i++)
        (void)trib_engine_progress(&t->side[i % t->n].engine);
}

static inline void engines_done(const struct engines *t)
{
    for (int i = 0; i < t->n; i++) {
        assert_int_equal(t->side[i].run.now.state, TRIB_RUN_DONE);
        assert_ok(t->side[i].run.now.status);
    }
}

static inline void engines_dispose_runs(struct engines *t)
{
    for (int i = 0; i < t->n; i++) {
        struct engine_side *s = &t->side[i];
        if (s->engine.head)
            trib_engine_fail(&s->engine, TRIB_ERR_TIMEOUT, "another one has failed");
        trib_run_dispose(&s->run);
        s->run = (struct trib_run){.payload = NULL};
    }
}

static inline void engines_close(struct engines *t)
{
    engines_dispose_runs(t);
    for (int i = 0; i < t->n; i++) {
        struct engine_side *s = &t->side[i];
        trib_engine_close(&s->engine);
        s->engine.transport->ops->close(s->engine.transport);
    }
    free(t);
}

static inline void engines_words(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (!strstr(text, *words))
            fail_msg("\"%s\" is not in: %s", *words, text);
}

/* False values that a rank writes into a frame or entry; its peer must reject them. */
static inline void lie_about_kind(struct trib_entry *c)
{
    c->frame.kind = TRIB_FRAME_GET;
}

static inline void lie_about_chunk(struct trib_entry *c)
{
    c->frame.chunk = 7;
}

static inline void lie_about_seq(struct trib_entry *c)
{
    c->frame.seq++;
}

static inline void lie_about_op(struct trib_entry *c)
{
    c->frame.count++;
}

#endif
