/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Small sums over the billboard give the bits and counters that frames give, and ranks
 * that disagree find out, wherever each of them is.
 */
#include "tests/pipeline/engine/engines.h"

#include "pipeline/engine/short_billboard.h"
#include "pipeline/engine/short_path.h"
#include "pipeline/link/billboard.h"

enum { FLOATS = 2048, STARTS = 7 };

static const struct trib_run_desc sum_desc = {.op.root = TRIB_ROOT_NONE};

static struct engines *open_billboard(int n)
{
    return engines_meet(&(struct engines_opts){
        .ranks = n, .floats = FLOATS, .transport = "shm", .on_billboard = true});
}

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

static void start(struct engines *t, int rank)
{
    struct engine_side *s = &t->side[rank];

    trib_run_start(&s->engine, &s->run, s->x, s->y);
}

/* True if the active run of a rank waits on the billboard; *peer_out: for that rank. */
static bool on_billboard(struct engines *t, int rank, int *peer_out)
{
    return trib_short_awaits(&t->side[rank].engine, &t->side[rank].run, peer_out);
}

/* Results and counters of the ranks after some starts. */
struct outcome {
    float y[ENGINES_MAX][FLOATS];
    struct trib_engine_stats stats[ENGINES_MAX];
};

static void run(struct engines *t, bool in_place, struct outcome *out)
{
    for (int i = 0; i < t->n; i++)
        t->side[i].engine.stats = (struct trib_engine_stats){.operations = 0};
    for (int k = 0; k < STARTS; k++) {
        fill(t, k);
        for (int i = 0; i < t->n; i++) {
            /* The last ranks begin the odd ones. */
            const int rank = k % 2 ? t->n - 1 - i : i;
            if (in_place)
                engines_start_in_place(t, rank);
            else
                start(t, rank);
        }
        engines_drive(t);
        engines_done(t);
    }
    for (int i = 0; i < t->n; i++) {
        const struct engine_side *s = &t->side[i];
        memcpy(out->y[i], in_place ? s->x : s->y, t->floats * sizeof(float));
        out->stats[i] = s->engine.stats;
    }
}

/* Compare one sum over the billboard with the same sum by frames. Only the counter of
 * copies may differ. */
static void compare(int n, size_t count, trib_op_t op, bool in_place)
{
    static struct outcome a, b;
    const struct trib_run_desc desc = {.op.root = TRIB_ROOT_NONE, .op.op = op};
    const struct trib_algo *flat = trib_algo_find("flat");
    struct engines *t = open_billboard(n);
    int peer;

    engines_prepare(t, flat, count, &desc);
    /* Turn numbers wrap around to 0. */
    for (int i = 0; i < n; i++)
        t->side[i].engine.arena.billboard_turn = UINT32_MAX - STARTS / 2;
    fill(t, 0);
    start(t, 0);
    assert_true(on_billboard(t, 0, &peer));
    assert_int_equal(peer, 1);
    for (int i = 1; i < n; i++)
        start(t, i);
    engines_drive(t);
    run(t, in_place, &a);
    engines_close(t);

    t = engines_open(n, FLOATS, "shm", "");
    engines_prepare(t, flat, count, &desc);
    fill(t, 0);
    start(t, 0);
    assert_false(on_billboard(t, 0, &peer));
    for (int i = 1; i < n; i++)
        start(t, i);
    engines_drive(t);
    run(t, in_place, &b);
    engines_close(t);
    for (int i = 0; i < n; i++) {
        assert_int_equal(b.stats[i].copied_bytes,
                         a.stats[i].copied_bytes * (uint64_t)(n - 1));
        b.stats[i].copied_bytes = a.stats[i].copied_bytes;
        if (memcmp(a.y[i], b.y[i], sizeof(a.y[i])) != 0)
            fail_msg("%d ranks, %zu floats: rank %d has another result", n, count, i);
        if (memcmp(&a.stats[i], &b.stats[i], sizeof(a.stats[i])) != 0)
            fail_msg("%d ranks, %zu floats: rank %d counts otherwise", n, count, i);
    }
}

TEST(test_same_as_by_frames)
{
    static const size_t counts[] = {0, 1, 6, 7, 16, 47, 48};

    for (int n = 2; n <= ENGINES_MAX; n += n < 4 ? 1 : ENGINES_MAX - 4)
        for (size_t k = 0; k < sizeof(counts) / sizeof(*counts); k++)
            compare(n, counts[k], k % 2 ? TRIB_MEAN : TRIB_SUM, k % 3 == 0);
}

/* For every algorithm either all ranks use the billboard or none does. */
TEST(test_all_or_none)
{
    for (const struct trib_algo *const *algo = trib_algos; *algo; algo++) {
        for (int n = 2; n <= ENGINES_MAX; n++) {
            const struct trib_shape shape = {.coll = TRIB_ALLREDUCE, .size = n};
            if (!((*algo)->colls & 1u << TRIB_ALLREDUCE) || (*algo)->groups ||
                (*algo)->aggregators || ((*algo)->can && !(*algo)->can(&shape)))
                continue;
            struct engines *t = open_billboard(n);
            int users = 0, peer;
            engines_prepare(t, *algo, 8, &sum_desc);
            fill(t, 0);
            for (int i = 0; i < n; i++) {
                start(t, i);
                users +=
                    on_billboard(t, i, &peer) || t->side[i].engine.arena.billboard_turn;
            }
            engines_drive(t);
            engines_done(t);
            assert_true(users == 0 || users == n);
            assert_true(users == n || strcmp((*algo)->name, "flat") != 0);
            engines_close(t);
        }
    }
}

/* It is not used for: longer vectors, other collectives, and all if one rank's
 * transport does not map. */
TEST(test_who_uses_it)
{
    const struct {
        trib_coll_t coll;
        size_t count;
        bool all_map, uses;
    } rows[] = {
        {TRIB_ALLREDUCE, 48, true, true},  {TRIB_ALLREDUCE, 49, true, false},
        {TRIB_ALLREDUCE, 1, false, false}, {TRIB_BROADCAST, 1, true, false},
        {TRIB_REDUCE, 1, true, false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct trib_run_desc desc = {
            .op.coll = rows[i].coll,
            .op.root = rows[i].coll == TRIB_ALLREDUCE ? TRIB_ROOT_NONE : 1};
        struct engines *t = open_billboard(3);
        for (int k = 0; k < 3; k++)
            t->side[k].engine.peers[2].arena.on_billboard = rows[i].all_map;
        t->side[2].engine.arena.on_billboard = rows[i].all_map;
        engines_prepare(t, trib_algo_find("flat"), rows[i].count, &desc);
        engines_start(t);
        engines_drive(t);
        engines_done(t);
        for (int k = 0; k < 3; k++)
            assert_int_equal(t->side[k].engine.arena.billboard_turn, rows[i].uses);
        engines_close(t);
    }
}

static void refused(const struct engine_side *s, trib_status_t status)
{
    const char *words[] = {"rank 0", "rank 1", "allreduce", NULL};

    assert_status((trib_status_t)s->engine.failed, status);
    engines_words(s->engine.failure.text, words);
}

/* Two ranks sum vectors of unlike lengths. Both may be on the billboard, or one of them
 * on its lanes, by more floats. */
TEST(test_disagreement)
{
    static const size_t counts[][2] = {{2, 3}, {2, 1000}, {1000, 2}};

    for (size_t i = 0; i < 3; i++) {
        struct engines *t = open_billboard(2);
        for (int k = 0; k < 2; k++)
            engines_prepare_side(t, k, trib_algo_find("flat"), counts[i][k], &sum_desc);
        fill(t, 0);
        engines_start(t);
        engines_drive(t);
        if (i > 0) {
            assert_int_equal(t->side[0].engine.failed, TRIB_OK);
            assert_int_equal(t->side[1].engine.failed, TRIB_OK);
            for (int k = 0; k < 2; k++)
                trib_short_check(&t->side[k].engine);
        }
        refused(&t->side[0], TRIB_ERR_MISMATCH);
        refused(&t->side[1], TRIB_ERR_MISMATCH);
        engines_drive(t);
        for (int k = 0; k < 2; k++)
            assert_status(t->side[k].run.now.status, TRIB_ERR_MISMATCH);
        assert_true(t->side[1].y[0] == -1.0f);
        engines_close(t);
    }
}

/* The waiting rank polls from time to time without an event. */
TEST(test_wait_looks)
{
    struct engines *t = open_billboard(2);

    engines_prepare_side(t, 0, trib_algo_find("flat"), 2, &sum_desc);
    engines_prepare_side(t, 1, trib_algo_find("flat"), 1000, &sum_desc);
    fill(t, 0);
    engines_start(t);
    assert_status(trib_engine_wait(&t->side[0].engine, &t->side[0].run),
                  TRIB_ERR_MISMATCH);
    refused(&t->side[0], TRIB_ERR_MISMATCH);
    engines_close(t);
}

/* A peer that is one operation ahead is no mismatch: with a frame after its entry, or
 * on the billboard while this rank is still in a broadcast. */
TEST(test_peer_ahead)
{
    const struct trib_run_desc bcast = {.op.coll = TRIB_BROADCAST, .op.root = 0};
    struct engines *t = open_billboard(3);
    struct trib_run other[3] = {0};

    engines_prepare(t, trib_algo_find("flat"), 2, &bcast);
    for (int i = 0; i < 3; i++) {
        other[i] = t->side[i].run;
        t->side[i].run = (struct trib_run){.payload = NULL};
    }
    engines_prepare(t, trib_algo_find("flat"), 2, &sum_desc);
    fill(t, 0);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 3; i++) {
            struct engine_side *s = &t->side[i];
            if (i == 1)
                trib_short_check(&s->engine); /* 0 has sent its frames */
            trib_run_start(&s->engine, &other[i], s->x, s->x);
            start(t, i);
            trib_short_check(&s->engine);
        }
        /* Rank 0 is on the billboard, and rank 2 has not received its frame. */
        trib_short_check(&t->side[2].engine);
        (void)trib_engine_progress(&t->side[2].engine);
        (void)trib_engine_progress(&t->side[1].engine);
        for (int i = 0; i < 3; i++)
            trib_short_check(&t->side[i].engine);
        engines_drive(t);
        engines_done(t);
    }
    /* Rank 0 sums with 1 and 2, then broadcasts; rank 1 has not polled since. */
    for (int i = 0; i < 3; i++)
        start(t, i);
    (void)trib_engine_progress(&t->side[0].engine);
    trib_run_start(&t->side[0].engine, &other[0], t->side[0].x, t->side[0].x);
    trib_short_check(&t->side[1].engine);
    for (int i = 1; i < 3; i++)
        trib_run_start(&t->side[i].engine, &other[i], t->side[i].x, t->side[i].x);
    engines_drive(t);
    engines_done(t);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(t->side[i].engine.failed, TRIB_OK);
        assert_true(memcmp(t->side[i].y, t->side[0].y, 8) == 0);
        trib_run_dispose(&other[i]);
    }
    engines_close(t);
}

/* False values that rank 0 writes into its entry; rank 1 must reject them. */
static void lie_about_bytes(struct trib_entry *c)
{
    c->frame.bytes = UINT32_MAX;
}

TEST(test_refuses_hostile_entries)
{
    static const struct {
        void (*lie)(struct trib_entry *c);
        trib_status_t status;
    } lies[] = {
        {lie_about_bytes, TRIB_ERR_PROTOCOL}, {lie_about_kind, TRIB_ERR_PROTOCOL},
        {lie_about_chunk, TRIB_ERR_PROTOCOL}, {lie_about_seq, TRIB_ERR_MISMATCH},
        {lie_about_op, TRIB_ERR_MISMATCH},
    };

    for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
        struct engines *t = open_billboard(2);
        struct engine_side *s = &t->side[1];
        engines_prepare(t, trib_algo_find("flat"), 4, &sum_desc);
        fill(t, 0);
        start(t, 0);
        lies[i].lie(trib_billboard_entry(&s->engine.arena, 0, 1));
        start(t, 1);
        engines_drive(t);
        refused(s, lies[i].status);
        assert_status(s->run.now.status, lies[i].status);
        assert_true(s->y[0] == -1.0f);
        engines_close(t);
    }
}

/* The rank that is missing is named. */
TEST(test_names_the_missing)
{
    struct engines *t = open_billboard(3);
    char text[200];

    engines_prepare(t, trib_algo_find("flat"), 2, &sum_desc);
    fill(t, 0);
    start(t, 0);
    start(t, 1);
    for (int i = 0; i < 2; i++) {
        (void)trib_engine_progress(&t->side[i].engine);
        trib_engine_awaits(&t->side[i].engine, text, sizeof(text));
        engines_words(text, (const char *[]){"contribution of rank 2", NULL});
    }
    start(t, 2);
    engines_drive(t);
    engines_done(t);
    engines_close(t);
}

/* With more ranks than cores: a peer that ran on this core has to get it, one that ran
 * elsewhere may be waited for. */
TEST(test_whose_core)
{
    struct engines *t = open_billboard(3);
    struct trib_engine *e = &t->side[0].engine;
    const struct trib_run *run = &t->side[0].run;

    for (int i = 0; i < t->n; i++)
        t->side[i].engine.oversubscribed = true;
    engines_prepare(t, trib_algo_find("flat"), 2, &sum_desc);
    fill(t, 0);
    start(t, 0);
    assert_true(trib_short_awaits_core(e, run)); /* no peer has sent its core */
    for (int i = 1; i < t->n; i++)
        start(t, i);
    engines_drive(t);
    engines_done(t);

    start(t, 0);
    assert_true(trib_billboard_core(trib_billboard_entry(&e->arena, 1, 1)) > 0);
    trib_billboard_entry(&e->arena, 1, 1)->place = UINT32_MAX;
    trib_billboard_entry(&e->arena, 2, 1)->place = UINT32_MAX;
    assert_false(trib_short_awaits_core(e, run));
    trib_billboard_entry(&e->arena, 2, 1)->place = 0;
    assert_true(trib_short_awaits_core(e, run));
    start(t, 2);
    assert_false(trib_short_awaits_core(e, run)); /* its contribution is here */
    start(t, 1);
    engines_drive(t);
    engines_done(t);
    engines_close(t);
}

static int woken[ENGINES_MAX];

static void count_wake(struct trib_transport *t, int peer)
{
    (void)t;
    woken[peer]++;
}

/* Only ranks that announced their sleep are woken; they clear the flag when they
 * continue. */
TEST(test_wakes_sleepers)
{
    struct engines *t = open_billboard(3);
    struct trib_transport_ops ops;

    engines_prepare(t, trib_algo_find("flat"), 2, &sum_desc);
    struct trib_transport *transport = t->side[0].engine.transport;
    const struct trib_transport_ops *plain = transport->ops;
    ops = *plain;
    ops.wake = count_wake;
    transport->ops = &ops;
    for (int k = 0; k < 3; k++) {
        memset(woken, 0, sizeof(woken));
        fill(t, k);
        if (k == 1)
            trib_engine_arm(&t->side[2].engine);
        for (int i = 0; i < 3; i++)
            start(t, i);
        engines_drive(t);
        engines_done(t);
        assert_int_equal(woken[0] + woken[1], 0);
        assert_int_equal(woken[2], k == 1);
        trib_engine_awake(&t->side[2].engine);
    }
    transport->ops = plain;
    engines_close(t);
}
