/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The short path matches the general engine: the same bits, frames and counters for
 * every algorithm, and the same rejected frames.
 */
#include "tests/pipeline/engine/engines.h"

#include "pipeline/engine/short_path.h"

static const char *const transports[] = {"shm", "shm+nomap", "loop"};

enum { FLOATS = 4096, STARTS = 20 };

/* Fill inputs with numbers whose sum depends on the order. */
static void fill(struct engines *t, int start)
{
    for (int i = 0; i < t->n; i++) {
        for (size_t k = 0; k < t->floats; k++) {
            t->side[i].x[k] = (float)(1 + i * i) / (float)(3 + start + (int)(k % 97));
            t->side[i].y[k] = -1.0f;
        }
    }
}

/* Results and counters of the ranks after some starts. */
struct outcome {
    float y[ENGINES_MAX][FLOATS];
    struct trib_engine_stats stats[ENGINES_MAX];
};

static void run(struct engines *t, struct outcome *out)
{
    for (int i = 0; i < t->n; i++)
        t->side[i].engine.stats = (struct trib_engine_stats){.operations = 0};
    for (int start = 0; start < STARTS; start++) { /* more than a window of frames */
        fill(t, start);
        engines_start(t);
        engines_drive(t);
        engines_done(t);
    }
    for (int i = 0; i < t->n; i++) {
        memcpy(out->y[i], t->side[i].y, t->floats * sizeof(float));
        out->stats[i] = t->side[i].engine.stats;
    }
}

static void take_the_general_path(struct engines *t)
{
    for (int i = 0; i < t->n; i++)
        trib_short_dispose(&t->side[i].run);
}

static void compare(const char *transport, int n, const struct trib_algo *algo,
                    size_t count, const struct trib_run_desc *desc)
{
    static struct outcome a, b;
    const size_t floats = count * (size_t)n;
    struct engines *t = engines_open(n, floats, transport, "window=4");

    memset(&a, 0, sizeof(a));
    memset(&b, 0, sizeof(b));
    engines_prepare(t, algo, count, desc);
    for (int i = 0; i < n; i++)
        assert_non_null(t->side[i].run.short_path);
    run(t, &a);
    engines_dispose_runs(t);
    engines_prepare(t, algo, count, desc);
    take_the_general_path(t);
    run(t, &b);
    engines_close(t);
    for (int i = 0; i < n; i++) {
        if (memcmp(a.y[i], b.y[i], sizeof(a.y[i])) != 0)
            fail_msg("%s, %d ranks, %s, %zu floats: rank %d has another result",
                     transport, n, algo->name, count, i);
        if (memcmp(&a.stats[i], &b.stats[i], sizeof(a.stats[i])) != 0)
            fail_msg("%s, %d ranks, %s, %zu floats: rank %d counts otherwise",
                     transport, n, algo->name, count, i);
    }
}

static bool can(const struct trib_algo *algo, trib_coll_t coll, int n)
{
    const struct trib_shape shape = {.coll = coll, .size = n};

    return algo->colls & 1u << coll && !algo->groups && !algo->aggregators &&
           (!algo->can || algo->can(&shape));
}

TEST(test_same_as_the_general_path)
{
    static const size_t counts[] = {1, 6, 7, 100, 900};
    const trib_coll_t colls[] = {TRIB_ALLREDUCE, TRIB_REDUCE, TRIB_BROADCAST,
                                 TRIB_ALLGATHER, TRIB_REDUCE_SCATTER};

    for (size_t i = 0; i < sizeof(colls) / sizeof(*colls); i++)
        for (const struct trib_algo *const *algo = trib_algos; *algo; algo++)
            for (int n = 2; n <= 4; n++)
                for (size_t k = 0; can(*algo, colls[i], n) && k < 5; k++)
                    compare(transports[(i + k) % 3], n, *algo, counts[k],
                            &(struct trib_run_desc){
                                .op.coll = colls[i],
                                .op.op = k % 2 && colls[i] == TRIB_ALLREDUCE ? TRIB_MEAN
                                                                             : TRIB_SUM,
                                .op.root = colls[i] == TRIB_REDUCE ||
                                                   colls[i] == TRIB_BROADCAST
                                               ? 1
                                               : TRIB_ROOT_NONE});
}

/* More contributions than a kernel sums at once. */
TEST(test_many_sources)
{
    const struct trib_run_desc desc = {.op.root = TRIB_ROOT_NONE};

    compare("shm", ENGINES_MAX, trib_algo_find("flat"), 100, &desc);
    compare("loop", ENGINES_MAX, trib_algo_find("flat"), 100, &desc);
}

/* Runs that need more than one pass over raw chunks in slots use the general path. */
TEST(test_who_takes_it)
{
    const struct {
        struct trib_run_desc desc;
        size_t count;
        bool takes;
    } rows[] = {
        {{.op.root = TRIB_ROOT_NONE}, 2, true},
        {{.op.root = TRIB_ROOT_NONE}, 0, true},
        {{.op.root = TRIB_ROOT_NONE, .zero_copy = true}, 2, false},
        {{.op.root = TRIB_ROOT_NONE, .check.sum = true}, 2, false},
        {{.op.root = TRIB_ROOT_NONE, .check.finite = true}, 2, false},
        {{.op.root = TRIB_ROOT_NONE, .op.feed = TRIB_FEED_BACKWARD}, 2, false},
        {{.op.root = TRIB_ROOT_NONE, .op.op = TRIB_MEDIAN}, 2, false},
        {{.op.root = TRIB_ROOT_NONE}, TRIB_SMALL_BYTES / sizeof(float), true},
        {{.op.root = TRIB_ROOT_NONE}, TRIB_SMALL_BYTES / sizeof(float) + 1, false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct engines *t = engines_open(2, FLOATS, "shm", "chunk=64K");
        engines_prepare(t, trib_algo_find("flat"), rows[i].count, &rows[i].desc);
        for (int k = 0; k < 2; k++)
            assert_int_equal(t->side[k].run.short_path != NULL, rows[i].takes);
        fill(t, 0);
        engines_start(t);
        for (int k = 0; k < 2 && rows[i].desc.op.feed != TRIB_FEED_WHOLE; k++)
            assert_true(trib_run_feed(&t->side[k].run, 0, rows[i].count));
        engines_drive(t);
        engines_done(t);
        engines_close(t);
    }
}

/* With more ranks than cores: a peer that ran on this core has to get it, one that ran
 * elsewhere may be waited for. */
TEST(test_whose_core)
{
    const struct trib_run_desc desc = {.op.root = TRIB_ROOT_NONE};
    struct engines *t = engines_open(3, FLOATS, "shm", "");
    struct trib_engine *e = &t->side[0].engine;
    const struct trib_run *run = &t->side[0].run;

    for (int i = 0; i < t->n; i++)
        t->side[i].engine.oversubscribed = true;
    engines_prepare(t, trib_algo_find("flat"), 2, &desc);
    fill(t, 0);
    trib_run_start(e, &t->side[0].run, t->side[0].x, t->side[0].y);
    assert_true(trib_short_awaits_core(e, run)); /* no peer has sent its core */
    for (int i = 1; i < t->n; i++)
        trib_run_start(&t->side[i].engine, &t->side[i].run, t->side[i].x, t->side[i].y);
    engines_drive(t);
    engines_done(t);
    assert_true(e->links[1].core > 0 && e->links[2].core > 0);

    fill(t, 1);
    trib_run_start(e, &t->side[0].run, t->side[0].x, t->side[0].y);
    e->links[1].core = e->links[2].core = UINT32_MAX;
    assert_false(trib_short_awaits_core(e, run));
    e->links[2].core = 0;
    assert_true(trib_short_awaits_core(e, run));
    trib_run_start(&t->side[2].engine, &t->side[2].run, t->side[2].x, t->side[2].y);
    assert_false(trib_short_awaits_core(e, run)); /* its frame is here */
    trib_run_start(&t->side[1].engine, &t->side[1].run, t->side[1].x, t->side[1].y);
    engines_drive(t);
    engines_done(t);
    engines_close(t);
}

/* The frame is sent before the start returns, without polling the transport. */
TEST(test_start_sends)
{
    const struct trib_run_desc desc = {.op.root = TRIB_ROOT_NONE};

    for (int k = 0; k < 3; k++) {
        struct engines *t = engines_open(2, FLOATS, transports[k], "");
        engines_prepare(t, trib_algo_find("flat"), 2, &desc);
        fill(t, 0);
        trib_run_start(&t->side[0].engine, &t->side[0].run, t->side[0].x, t->side[0].y);
        assert_int_equal(t->side[0].engine.stats.messages, 1);
        assert_int_equal(t->side[0].run.now.state, TRIB_RUN_ACTIVE);
        trib_run_start(&t->side[1].engine, &t->side[1].run, t->side[1].x, t->side[1].y);
        engines_drive(t);
        engines_done(t);
        engines_close(t);
    }
}

/* False values that rank 0 writes into its frame; rank 1 must reject them. */
static void lie_about_bytes(struct trib_entry *c)
{
    c->frame.bytes = 12;
}

static void lie_hugely(struct trib_entry *c)
{
    c->frame.bytes = UINT32_MAX;
}

TEST(test_refuses_hostile_frames)
{
    static const struct {
        void (*lie)(struct trib_entry *c);
        trib_status_t status;
    } lies[] = {
        {lie_about_bytes, TRIB_ERR_PROTOCOL}, {lie_hugely, TRIB_ERR_PROTOCOL},
        {lie_about_kind, TRIB_ERR_PROTOCOL},  {lie_about_chunk, TRIB_ERR_PROTOCOL},
        {lie_about_seq, TRIB_ERR_MISMATCH},   {lie_about_op, TRIB_ERR_MISMATCH},
    };
    const struct {
        trib_coll_t coll;
        uint32_t root;
    } ways[] = {{TRIB_ALLREDUCE, TRIB_ROOT_NONE}, {TRIB_BROADCAST, 0}};

    for (size_t i = 0; i < 2 * sizeof(lies) / sizeof(*lies); i++) {
        const struct trib_run_desc desc = {.op.coll = ways[i % 2].coll,
                                           .op.root = ways[i % 2].root};
        struct engines *t = engines_open(2, FLOATS, "shm", "");
        struct engine_side *s = &t->side[1];
        const char *words[] = {"rank 0", "rank 1", trib_coll_name(desc.op.coll), NULL};
        engines_prepare(t, trib_algo_find("flat"), 4, &desc);
        fill(t, 0);
        trib_run_start(&t->side[0].engine, &t->side[0].run, t->side[0].x, t->side[0].y);
        const int lane = desc.op.coll == TRIB_BROADCAST ? TRIB_LANE_DOWN : TRIB_LANE_UP;
        lies[i / 2].lie(trib_link_slot(&s->engine.links[0], &s->engine.arena, lane));
        trib_run_start(&s->engine, &s->run, s->x, s->y);
        engines_drive(t);
        assert_status((trib_status_t)s->engine.failed, lies[i / 2].status);
        engines_words(s->engine.failure.text, words);
        assert_status(s->run.now.status, lies[i / 2].status);
        assert_true(s->y[0] == -1.0f);
        engines_close(t);
    }
}

static int room; /* writes that the transport accepts before it is full */
static trib_status_t (*plain_write)(struct trib_transport *t, int peer,
                                    const struct trib_write *w);

static trib_status_t write_now_and_then(struct trib_transport *t, int peer,
                                        const struct trib_write *w)
{
    return room++ % 3 ? TRIB_ERR_NO_RESOURCE : plain_write(t, peer, w);
}

/* A full transport delays a frame, whose elements are copied once. */
TEST(test_full_transport)
{
    const struct trib_run_desc desc = {.op.root = TRIB_ROOT_NONE};
    struct engines *t = engines_open(3, FLOATS, "shm+nomap", "window=2");

    engines_prepare(t, trib_algo_find("flat"), 10, &desc);
    struct trib_engine *e = &t->side[1].engine;
    struct trib_transport_ops busy = *e->transport->ops;
    plain_write = busy.write;
    busy.write = write_now_and_then;
    e->transport->ops = &busy;
    for (int start = 0; start < STARTS; start++) {
        fill(t, start);
        engines_start(t);
        engines_drive(t);
        engines_done(t);
        assert_true(memcmp(t->side[0].y, t->side[1].y, 40) == 0);
    }
    assert_int_equal(e->stats.messages, t->side[2].engine.stats.messages);
    assert_int_equal(e->stats.copied_bytes, t->side[2].engine.stats.copied_bytes);
    engines_close(t);
}
