/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An agreement that a rank receives late: two engines in one process, driven by hand;
 * the second gets no credits for results for a while.
 *
 * The root of the agreement has the sum before it can send it. Its codec uses the sum
 * at once, and the peer must still receive the unchanged sum.
 */
#include "tests/harness/tribtest.h"

#include <stdatomic.h>

#include "base/rng.h"
#include "collectives/collectives.h"
#include "pipeline/engine/engine.h"
#include "pipeline/payload/payload_agree.h"
#include "transport/open.h"

enum {
    COLUMNS = 16,
    PIECE = 32 * COLUMNS,
    CHUNKS = 2, /* of a round: one is finished by each rank */
    ROUNDS = 6,
    COUNT = PIECE * CHUNKS * ROUNDS,
    STEPS = 3,
    LANES = 2,
};

struct side {
    struct trib_error err;
    struct trib_engine engine;
    struct trib_run run;
    float *x;
    /* Credits of the peer on its link, as they arrive and as the link is shown them. */
    _Atomic uint32_t *arrived;
    _Atomic uint32_t shown[LANES];
};

struct two {
    struct trib_config cfg;
    struct trib_codec *codec;
    struct side side[2];
};

static void open_side(struct two *t, int rank)
{
    struct side *s = &t->side[rank];
    struct trib_engine *e = &s->engine;
    const struct trib_transport_opts opts = {
        .self = rank, .size = 2, .params = "", .cfg = &t->cfg, .err = &s->err};
    void *x;

    e->cfg = &t->cfg;
    e->err = &s->err;
    e->kernels = trib_kernels_get(NULL);
    e->rank = rank;
    e->size = e->ranks = 2;
    assert_ok(trib_transport_open("shm", &opts, &e->transport));
    assert_ok(trib_engine_open(e));
    assert_ok(trib_memory_alloc(&e->memories, COUNT * sizeof(float), &x));
    s->x = x;
}

static void introduce(struct trib_engine *to, const struct trib_engine *e)
{
    struct trib_peer *p = &to->peers[e->rank];

    snprintf(p->host, sizeof(p->host), "here");
    p->pid = getpid();
    assert_ok(e->transport->ops->address(e->transport, &p->address));
    assert_ok(trib_arena_export(&e->arena, &p->arena));
}

/* The agreement passes through rank 0 in one frame, the vector through both ranks. */
static void build(const struct trib_shape *shape, struct trib_program *out)
{
    struct trib_schedule share = {0}, vector = {0}, joined = {0};

    assert_ok(trib_algo_find("tree")->build(shape, &share));
    assert_ok(trib_algo_find("direct")->build(shape, &vector));
    assert_int_equal(share.n_chunks, 1);
    assert_int_equal(vector.n_chunks, CHUNKS);
    trib_schedule_init(&joined, CHUNKS);
    trib_schedule_append(&joined, &share, CHUNKS);
    trib_schedule_append(&joined, &vector, 0);
    assert_ok(trib_program_create(&joined, shape, out));
    trib_schedule_free(&share);
    trib_schedule_free(&vector);
    trib_schedule_free(&joined);
}

static void prepare(struct two *t, struct side *s)
{
    struct trib_engine *e = &s->engine;
    const struct trib_shape shape = {
        .coll = TRIB_ALLREDUCE, .rank = e->rank, .size = 2};
    const struct trib_model_opts opts = {
        .total = COUNT, .piece = PIECE, .rank = e->rank, .ranks = 2, .seed = 1};
    struct trib_run_desc *d = &s->run.desc;

    build(&shape, &s->run.program);
    *d = (struct trib_run_desc){.op.root = TRIB_ROOT_NONE,
                                .element = sizeof(float),
                                .count = COUNT,
                                .total = COUNT,
                                .piece = PIECE,
                                .n_chunks = CHUNKS,
                                .rounds = ROUNDS + 1,
                                .share_lead = 1,
                                .codec = t->codec,
                                .seed = opts.seed};
    d->share_piece = trib_codec_agreed_floats(t->codec, PIECE) * CHUNKS;
    assert_true(d->share_piece > 0);
    assert_ok(trib_model_create(t->codec, &opts, &s->err, &d->model));
    s->run.desc.name = "direct";
    assert_ok(trib_run_prepare(e, &s->run));
    struct trib_link *l = &e->links[1 - e->rank];
    s->arrived = l->my_credits;
    l->my_credits = s->shown;
}

static void open_two(struct two *t)
{
    memset(t, 0, sizeof(*t));
    assert_ok(trib_config_load(&t->cfg, "window=1;chunk=4K", NULL, NULL));
    assert_ok(
        trib_codec_create("powersgd:rank=2,columns=16,ef=0", NULL, NULL, &t->codec));
    for (int i = 0; i < 2; i++)
        open_side(t, i);
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++)
            introduce(&t->side[i].engine, &t->side[k].engine);
    for (int i = 0; i < 2; i++)
        prepare(t, &t->side[i]);
}

static void close_two(struct two *t)
{
    for (int i = 0; i < 2; i++) {
        struct side *s = &t->side[i];
        struct trib_model *model = s->run.desc.model;
        s->engine.links[1 - i].my_credits = s->arrived;
        trib_run_dispose(&s->run);
        trib_model_destroy(model);
        trib_engine_close(&s->engine);
        s->engine.transport->ops->close(s->engine.transport);
    }
    trib_codec_destroy(t->codec);
}

static void fill(struct side *s, uint32_t step)
{
    const struct trib_rng rng = {7, step, (uint32_t)s->engine.rank};

    for (uint64_t i = 0; i < COUNT; i++)
        s->x[i] = (float)(int32_t)trib_rng_draw4(rng, i).word[0] * 0x1p-31f;
}

static void show_credits(struct side *s, bool results)
{
    for (int lane = 0; lane < LANES; lane++)
        if (lane != TRIB_LANE_DOWN || results)
            atomic_store(&s->shown[lane], atomic_load(&s->arrived[lane]));
}

static bool over(const struct two *t)
{
    return t->side[0].run.now.state == TRIB_RUN_DONE &&
           t->side[1].run.now.state == TRIB_RUN_DONE;
}

/* Rank 0 may send a result every HELD passes; all other tasks that can progress have
 * done so by then. */
static void run_step(struct two *t, uint32_t step)
{
    enum { HELD = 8, PASSES = 4000 };

    for (int i = 0; i < 2; i++) {
        fill(&t->side[i], step);
        trib_run_start(&t->side[i].engine, &t->side[i].run, NULL, t->side[i].x);
    }
    for (int pass = 0; pass < PASSES && !over(t); pass++) {
        for (int i = 0; i < 2; i++) {
            show_credits(&t->side[i], i != 0 || pass % HELD == HELD - 1);
            (void)trib_engine_progress(&t->side[i].engine);
        }
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(t->side[i].run.now.state, TRIB_RUN_DONE);
        assert_ok(t->side[i].run.now.status);
    }
}

TEST(test_sum_is_sent_as_it_was)
{
    static struct two t;

    open_two(&t);
    for (uint32_t step = 1; step <= STEPS; step++) {
        run_step(&t, step);
        for (int i = 0; i < COUNT; i++)
            if (memcmp(&t.side[0].x[i], &t.side[1].x[i], sizeof(float)) != 0)
                fail_msg("step %u: element %d is %.9g on rank 0, %.9g on rank 1", step,
                         i, (double)t.side[0].x[i], (double)t.side[1].x[i]);
    }
    close_two(&t);
}
