/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An aggregator that forwards results of another aggregator, which is not trusted. A
 * rank, its leaf and a malicious root are three engines in one process, driven by hand.
 */
#include "pipeline/payload/payload_state.h"
#include "tests/harness/tribtest.h"

#include "collectives/collectives.h"
#include "pipeline/engine/engine.h"
#include "transport/open.h"

enum { COUNT = 1000, SIDES = 3, RANK = 0, ROOT = 1, LEAF = 2 };

struct side {
    struct trib_error err;
    struct trib_engine engine;
    struct trib_run run;
    struct trib_codec *codec;
    float *x;
};

struct three {
    struct trib_config cfg;
    struct side side[SIDES];
};

struct way {
    const char *transport, *codec;
    bool zero_copy;
};

static void open_side(struct three *t, int rank, const char *transport)
{
    struct side *s = &t->side[rank];
    struct trib_engine *e = &s->engine;
    struct trib_transport_opts opts = {
        .self = rank, .size = SIDES, .params = "", .cfg = &t->cfg, .err = &s->err};
    void *x;

    e->cfg = &t->cfg;
    e->err = &s->err;
    e->kernels = trib_kernels_get(NULL);
    e->rank = rank;
    e->ranks = 1;
    e->size = SIDES;
    assert_status(trib_transport_open(transport, &opts, &e->transport), TRIB_OK);
    assert_status(trib_engine_open(e), TRIB_OK);
    assert_status(trib_memory_alloc(&e->memories, COUNT * sizeof(float), &x), TRIB_OK);
    s->x = x;
}

static void introduce(struct trib_engine *to, const struct trib_engine *e)
{
    struct trib_peer *p = &to->peers[e->rank];

    snprintf(p->host, sizeof(p->host), "here");
    p->pid = getpid();
    assert_status(e->transport->ops->address(e->transport, &p->address), TRIB_OK);
    assert_status(trib_arena_export(&e->arena, &p->arena), TRIB_OK);
}

static void prepare(struct side *s, const struct way *way)
{
    static const int parent[] = {0, 0}, first[] = {0, 1, 2}, aggregators[] = {0, 1},
                     leaf_of[] = {1};
    static const struct trib_agg_tree tree = {2, parent, first, aggregators, leaf_of};
    const struct trib_shape shape = {.coll = TRIB_ALLREDUCE,
                                     .rank = s->engine.rank,
                                     .size = 1,
                                     .aggregators = 2,
                                     .tree = &tree};
    struct trib_schedule schedule = {0};

    assert_status(trib_codec_create(way->codec, NULL, NULL, &s->codec), TRIB_OK);
    assert_status(trib_codec_for_ranks(s->codec, 1, NULL), TRIB_OK);
    assert_status(trib_algo_find("service")->build(&shape, &schedule), TRIB_OK);
    assert_status(trib_program_create(&schedule, &shape, &s->run.program), TRIB_OK);
    s->run.desc = (struct trib_run_desc){.op.root = TRIB_ROOT_NONE,
                                         .element = sizeof(float),
                                         .count = COUNT,
                                         .total = COUNT,
                                         .piece = COUNT,
                                         .n_chunks = schedule.n_chunks,
                                         .rounds = 1,
                                         .codec = s->codec,
                                         .zero_copy = way->zero_copy};
    trib_schedule_free(&schedule);
    s->run.desc.name = "service";
    assert_status(trib_run_prepare(&s->engine, &s->run), TRIB_OK);
    for (int i = 0; i < COUNT; i++)
        s->x[i] = 1.0f;
}

static struct three *open_three(const struct way *way)
{
    struct three *t = calloc(1, sizeof(*t));

    assert_non_null(t);
    assert_status(trib_config_load(&t->cfg, "chunk=64K", NULL, NULL), TRIB_OK);
    for (int i = 0; i < SIDES; i++)
        open_side(t, i, way->transport);
    for (int i = 0; i < SIDES; i++)
        for (int k = 0; k < SIDES; k++)
            introduce(&t->side[i].engine, &t->side[k].engine);
    for (int i = 0; i < SIDES; i++)
        prepare(&t->side[i], way);
    for (int i = 0; i < SIDES; i++)
        trib_run_start(&t->side[i].engine, &t->side[i].run, NULL, t->side[i].x);
    return t;
}

static void close_three(struct three *t)
{
    for (int i = 0; i < SIDES; i++)
        if (t->side[i].engine.head)
            trib_engine_fail(&t->side[i].engine, TRIB_ERR_TIMEOUT,
                             "another one has failed");
    for (int i = 0; i < SIDES; i++) {
        struct side *s = &t->side[i];
        trib_run_dispose(&s->run);
        trib_codec_destroy(s->codec);
        trib_engine_close(&s->engine);
        s->engine.transport->ops->close(s->engine.transport);
    }
    free(t);
}

/* Return the result that the root has sent to the leaf, which has not polled yet. */
static struct trib_entry *result_of_root(struct three *t)
{
    struct trib_engine *leaf = &t->side[LEAF].engine;
    struct trib_entry *entry = NULL;

    for (int i = 0; i < 300 && !entry; i++) {
        (void)trib_engine_progress(&t->side[RANK].engine);
        (void)trib_engine_progress(&t->side[ROOT].engine);
        (void)trib_engine_events(leaf);
        entry = trib_link_peek(&leaf->links[ROOT], &leaf->arena, TRIB_LANE_DOWN);
        if (!entry)
            (void)trib_engine_progress(leaf);
    }
    assert_non_null(entry);
    return entry;
}

static void drive(struct three *t)
{
    for (int i = 0; i < 300; i++)
        (void)trib_engine_progress(&t->side[i % SIDES].engine);
}

static void assert_refused(struct three *t)
{
    drive(t);
    assert_status((trib_status_t)t->side[LEAF].engine.failed, TRIB_ERR_PROTOCOL);
    assert_non_null(strstr(t->side[LEAF].engine.failure.text, "rank 1"));
    close_three(t);
}

static const struct way slots[] = {
    {"shm", "bf16", false}, {"shm+nomap", "bf16", false}, {"shm", "signsgd", false}};
static const struct way in_place = {"shm", "signsgd", true};

TEST(test_passes_on)
{
    for (size_t k = 0; k < 4; k++) {
        struct three *t = open_three(k < 3 ? &slots[k] : &in_place);
        (void)result_of_root(t);
        drive(t);
        for (int i = 0; i < SIDES; i++) {
            assert_int_equal(t->side[i].run.now.state, TRIB_RUN_DONE);
            assert_status(t->side[i].run.now.status, TRIB_OK);
        }
        assert_true(t->side[RANK].x[0] == 1.0f && t->side[RANK].x[COUNT - 1] == 1.0f);
        close_three(t);
    }
}

/* More bytes than the codec's bound for a chunk: a full slot, and one byte too many. */
TEST(test_refuses_long_words)
{
    for (size_t k = 0; k < sizeof(slots) / sizeof(slots[0]); k++) {
        for (int most = 1; most >= 0; most--) {
            struct three *t = open_three(&slots[k]);
            struct trib_entry *entry = result_of_root(t);
            const size_t bound = trib_codec_bound(t->side[LEAF].codec, COUNT);
            entry->frame.bytes = most ? (uint32_t)t->side[LEAF].engine.arena.slot_bytes
                                      : (uint32_t)bound + 1;
            assert_refused(t);
        }
    }
}

/* Claim that the encoded chunk is in the root's memory. An aggregator never sends this
 * to another one, but the protocol permits it. */
static void name_word(struct trib_entry *entry, uint32_t len)
{
    entry->frame.kind = TRIB_FRAME_GET;
    entry->frame.source = TRIB_SOURCE_RECV;
    entry->frame.bytes = sizeof(len);
    memcpy(entry->payload, &len, sizeof(len));
}

TEST(test_refuses_long_words_in_place)
{
    struct three *t = open_three(&in_place);
    struct trib_entry *entry = result_of_root(t);
    const uint32_t len = (uint32_t)trib_codec_bound(t->side[LEAF].codec, COUNT) + 1;

    assert_true(len <= t->side[LEAF].run.payload->acc_bytes);
    name_word(entry, len);
    assert_refused(t);
}

/* One that is in order, but for whose way on there is a slot that is too small. */
TEST(test_no_slot_for_a_wide_sum)
{
    struct three *t = open_three(&in_place);
    struct side *leaf = &t->side[LEAF];
    struct trib_entry *entry = result_of_root(t);

    name_word(entry, entry->frame.bytes);
    trib_ref_none(&leaf->run.now.advert.recv);
    leaf->engine.arena.slot_bytes = 64;
    drive(t);
    assert_status((trib_status_t)leaf->engine.failed, TRIB_ERR_NO_RESOURCE);
    assert_non_null(strstr(leaf->engine.failure.text, "does not fit into a slot"));
    close_three(t);
}
