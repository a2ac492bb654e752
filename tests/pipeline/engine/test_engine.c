/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine when something is wrong, and its trace: two engines in one process that
 * run a sum of two ranks, each driven by hand.
 */
#include "tests/harness/tribtest.h"

#include <stdatomic.h>
#include <sys/resource.h>

#include "base/time.h"
#include "collectives/collectives.h"
#include "pipeline/engine/engine.h"

#define COUNT 1000

struct side {
    struct trib_error err;
    struct trib_engine engine;
    struct trib_run run;
    float *x;
};

struct two {
    struct trib_config cfg;
    struct side side[2];
};

static void open_side(struct two *t, int rank, const char *transport)
{
    struct side *s = &t->side[rank];
    struct trib_engine *e = &s->engine;
    struct trib_transport_opts opts = {
        .self = rank, .size = 2, .params = "", .cfg = &t->cfg, .err = &s->err};

    e->cfg = &t->cfg;
    e->err = &s->err;
    e->kernels = trib_kernels_get(NULL);
    e->rank = rank;
    e->size = e->ranks = 2;
    assert_non_null(e->kernels);
    assert_status(trib_transport_open(transport, &opts, &e->transport), TRIB_OK);
    assert_status(trib_engine_open(e), TRIB_OK);
    void *x;
    assert_status(trib_memory_alloc(&e->memories, COUNT * sizeof(float), &x), TRIB_OK);
    s->x = x;
}

static void introduce(struct trib_engine *to, const struct trib_engine *e)
{
    const struct trib_transport_ops *ops = e->transport->ops;
    struct trib_peer *p = &to->peers[e->rank];

    snprintf(p->host, sizeof(p->host), "here");
    p->pid = getpid();
    assert_status(ops->address(e->transport, &p->address), TRIB_OK);
    assert_status(trib_arena_export(&e->arena, &p->arena), TRIB_OK);
}

static void prepare(struct side *s)
{
    struct trib_engine *e = &s->engine;
    struct trib_shape shape = {.coll = TRIB_ALLREDUCE, .rank = e->rank, .size = 2};
    const struct trib_algo *algo = trib_algo_find("direct");
    struct trib_schedule schedule = {0};

    assert_status(algo->build(&shape, &schedule), TRIB_OK);
    assert_status(trib_program_create(&schedule, &shape, &s->run.program), TRIB_OK);
    trib_schedule_free(&schedule);
    s->run.desc = (struct trib_run_desc){.op.root = TRIB_ROOT_NONE,
                                         .element = sizeof(float),
                                         .count = COUNT,
                                         .total = COUNT,
                                         .piece = COUNT / 2,
                                         .n_chunks = 2,
                                         .rounds = 1,
                                         .zero_copy = true};
    s->run.desc.name = algo->name;
    assert_status(trib_run_prepare(e, &s->run), TRIB_OK);
    for (int i = 0; i < COUNT; i++)
        s->x[i] = (float)(e->rank + 1);
}

/* Nothing is connected yet. */
static struct two *meet_two(const char *transport, bool per_link)
{
    struct two *t = calloc(1, sizeof(*t));

    assert_non_null(t);
    for (int i = 0; i < 2; i++)
        t->side[i].engine.arena.per_link = per_link;
    assert_status(trib_config_load(&t->cfg, "trace=1K", NULL, NULL), TRIB_OK);
    for (int i = 0; i < 2; i++)
        open_side(t, i, transport);
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++)
            introduce(&t->side[i].engine, &t->side[k].engine);
    return t;
}

static struct two *open_two(const char *transport)
{
    struct two *t = meet_two(transport, false);

    for (int i = 0; i < 2; i++)
        prepare(&t->side[i]);
    return t;
}

static void close_two(struct two *t)
{
    for (int i = 0; i < 2; i++) {
        struct side *s = &t->side[i];
        if (s->engine.head)
            trib_engine_fail(&s->engine, TRIB_ERR_TIMEOUT, "the other one has failed");
    }
    for (int i = 0; i < 2; i++) {
        struct side *s = &t->side[i];
        trib_run_dispose(&s->run);
        trib_engine_close(&s->engine);
        s->engine.transport->ops->close(s->engine.transport);
    }
    free(t);
}

/* After a failure memory can be given back: nothing is written any more. */
/* Every element is in one chunk; chunks without any are where the vector or block ends,
 * so that what lies at their first element is memory of it, or one behind. */
static void test_chunks_cover(void **state)
{
    (void)state;
    for (size_t count = 0; count < 40; count++) {
        for (int blocked = 0; blocked < 2; blocked++) {
            struct trib_run run = {.desc = {.count = count,
                                            .total = blocked ? 3 * count : count,
                                            .cut = blocked ? TRIB_CUT_BLOCKED
                                                           : TRIB_CUT_INTERLEAVED,
                                            .piece = 4,
                                            .n_chunks = 3,
                                            .rounds = 10}};
            char seen[120] = {0};
            for (uint32_t i = 0; i < 30; i++) {
                struct trib_chunk c = trib_vector_chunk(&run, i / 3, i % 3);
                assert_true(c.n <= 4 && c.first + c.n <= run.desc.total);
                assert_true(!blocked || c.first + c.n <= (i % 3 + 1) * count);
                for (size_t k = 0; k < c.n; k++)
                    assert_int_equal(seen[c.first + k]++, 0);
            }
            for (size_t k = 0; k < run.desc.total; k++)
                assert_int_equal(seen[k], 1);
        }
    }
}

static void test_part(void **state)
{
    struct two *t = open_two("shm+nomap");
    struct trib_engine *e = &t->side[0].engine;
    const struct trib_write w = {.len = 0};

    (void)state;
    assert_status(e->transport->ops->write(e->transport, 1, &w), TRIB_OK);
    trib_engine_fail(e, TRIB_ERR_TIMEOUT, "a failure");
    trib_engine_part(e);
    assert_true(e->links[1].lost);
    assert_status(e->transport->ops->write(e->transport, 1, &w), TRIB_ERR_PEER_LOST);
    trib_engine_part(e);
    close_two(t);
}

static void start(struct two *t)
{
    for (int i = 0; i < 2; i++)
        trib_run_start(&t->side[i].engine, &t->side[i].run, NULL, t->side[i].x);
}

/* Nothing is lost on the way: a few passes do. */
static void drive(struct two *t)
{
    for (int i = 0; i < 100; i++)
        (void)trib_engine_progress(&t->side[i % 2].engine);
}

static void assert_words(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (!strstr(text, *words))
            fail_msg("\"%s\" is not in: %s", *words, text);
}

static void test_sums(void **state)
{
    static const char *const transports[] = {"shm", "shm+nomap"};

    (void)state;
    for (int k = 0; k < 2; k++) {
        struct two *t = open_two(transports[k]);
        start(t);
        drive(t);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(t->side[i].run.now.state, TRIB_RUN_DONE);
            assert_status(t->side[i].run.now.status, TRIB_OK);
            assert_true(t->side[i].x[0] == 3.0f && t->side[i].x[COUNT - 1] == 3.0f);
        }
        close_two(t);
    }
}

static void assert_summed(struct two *t)
{
    for (int i = 0; i < 2; i++) {
        assert_int_equal(t->side[i].run.now.state, TRIB_RUN_DONE);
        assert_status(t->side[i].run.now.status, TRIB_OK);
        assert_true(t->side[i].x[0] == 3.0f && t->side[i].x[COUNT - 1] == 3.0f);
        assert_int_equal(t->side[i].engine.arena.awaited, 0);
    }
}

/* Slots that exist once their owner uses the neighbor: who sends first waits for
 * them. */
static void test_slots_come_later(void **state)
{
    static const char *const transports[] = {"shm", "shm+nomap", "loop"};

    (void)state;
    for (int k = 0; k < 3; k++) {
        struct two *t = meet_two(transports[k], true);
        struct side *first = &t->side[0], *last = &t->side[1];
        prepare(first);
        trib_run_start(&first->engine, &first->run, NULL, first->x);
        for (int i = 0; i < 100; i++)
            (void)trib_engine_progress(&first->engine);
        assert_int_equal(first->engine.stats.messages, 0);
        assert_int_equal(first->engine.arena.awaited, 1);
        prepare(last);
        trib_run_start(&last->engine, &last->run, NULL, last->x);
        drive(t);
        assert_summed(t);
        close_two(t);
    }
}

/* Where a link has no slots there is still word of a failure. */
static void test_failure_without_slots(void **state)
{
    static const char *const transports[] = {"shm", "shm+nomap"};

    (void)state;
    for (int k = 0; k < 2; k++) {
        struct two *t = meet_two(transports[k], true);
        struct trib_engine *e = &t->side[1].engine;
        trib_engine_fail(&t->side[0].engine, TRIB_ERR_TIMEOUT, "because of this");
        assert_true(t->side[0].engine.links[1].connected);
        assert_false(t->side[0].engine.links[1].opened);
        for (int i = 0; i < 10 && !e->failed; i++) {
            (void)trib_engine_events(e);
            trib_engine_notices(e);
        }
        assert_status((trib_status_t)e->failed, TRIB_ERR_TIMEOUT);
        assert_string_equal(e->failure.text, "because of this");
        close_two(t);
    }
}

/* Who steps several engines in turn fails one without a look at its peers, and tells
 * them later. */
static void test_failure_that_is_told_later(void **state)
{
    struct two *t = meet_two("shm+nomap", true);
    struct trib_engine *e = &t->side[1].engine;

    (void)state;
    t->side[0].engine.tells_later = true;
    trib_engine_fail(&t->side[0].engine, TRIB_ERR_TIMEOUT, "because of this");
    assert_false(t->side[0].engine.links[1].connected);
    trib_engine_tell_failure(&t->side[0].engine);
    assert_true(t->side[0].engine.links[1].connected);
    for (int i = 0; i < 10 && !e->failed; i++) {
        (void)trib_engine_events(e);
        trib_engine_notices(e);
    }
    assert_status((trib_status_t)e->failed, TRIB_ERR_TIMEOUT);
    assert_string_equal(e->failure.text, "because of this");
    close_two(t);
}

static trib_status_t write_full(struct trib_transport *t, int peer,
                                const struct trib_write *w)
{
    (void)t;
    (void)peer;
    (void)w;
    return TRIB_ERR_NO_RESOURCE;
}

static void test_slots_of_a_full_transport(void **state)
{
    struct two *t = meet_two("shm+nomap", true);
    struct trib_engine *e = &t->side[0].engine;
    const struct trib_transport_ops *plain = e->transport->ops;
    struct trib_transport_ops busy = *plain;

    (void)state;
    busy.write = write_full;
    e->transport->ops = &busy;
    prepare(&t->side[0]);
    e->transport->ops = plain;
    prepare(&t->side[1]);
    assert_true(e->links[1].advert_unsent);
    start(t);
    drive(t);
    assert_false(e->links[1].advert_unsent);
    assert_summed(t);
    close_two(t);
}

static void test_refuses_hostile_adverts(void **state)
{
    static const char *const words[] = {"rank 0 (host here", "rank 1 (host here",
                                        "allreduce", NULL};
    static const char *const transports[] = {"shm", "shm+nomap"};

    (void)state;
    for (int k = 0; k < 2; k++) {
        struct two *t = meet_two(transports[k], true);
        struct trib_engine *e = &t->side[0].engine;
        prepare(&t->side[0]);
        prepare(&t->side[1]);
        (void)trib_engine_events(e);
        struct trib_slot_advert *g =
            (struct trib_slot_advert *)(e->arena.base + sizeof(struct trib_credits) +
                                        sizeof(struct trib_oob_notice));
        memset(g->blob.bytes, 0x5a, sizeof(g->blob.bytes));
        trib_run_start(e, &t->side[0].run, NULL, t->side[0].x);
        (void)trib_engine_progress(e);
        assert_true(e->failed < 0);
        assert_words(e->failure.text, words);
        close_two(t);
    }
}

/* What stands where rank 1's notices of rank 0 are. */
static void write_notice(struct trib_engine *e, uint32_t kind, int32_t status)
{
    struct trib_oob_notice *raw =
        (struct trib_oob_notice *)(e->arena.base + sizeof(struct trib_credits));

    raw->kind = kind;
    raw->status = status;
    snprintf(raw->text, sizeof(raw->text), "because");
    atomic_store(&raw->version_end, 2);
    atomic_store(&raw->version, 2);
}

/* A failure that is none would end an operation well, whatever its result has come
 * to. */
static void test_refuses_hostile_notices(void **state)
{
    static const struct {
        uint32_t kind;
        int32_t status;
    } wrong[] = {
        {TRIB_OOB_NOTICE_FAILED, TRIB_OK},
        {TRIB_OOB_NOTICE_FAILED, TRIB_INPROGRESS},
        {TRIB_OOB_NOTICE_FAILED, 7},
        {TRIB_OOB_NOTICE_FAILED, -7},
        {TRIB_OOB_NOTICE_FAILED, -9999},
        {TRIB_OOB_NOTICE_FAILED, INT32_MIN},
        {TRIB_OOB_NOTICE_FAILED, INT32_MAX},
        {0, TRIB_ERR_TIMEOUT},
        {3, TRIB_ERR_TIMEOUT},
        {UINT32_MAX, TRIB_OK},
    };
    static const char *const words[] = {"rank 0 (host here", "sent a notice",
                                        "to rank 1", NULL};

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        struct two *t = open_two("shm");
        struct side *s = &t->side[1];
        trib_run_start(&s->engine, &s->run, NULL, s->x);
        write_notice(&s->engine, wrong[i].kind, wrong[i].status);
        trib_engine_notices(&s->engine);
        assert_status((trib_status_t)s->engine.failed, TRIB_ERR_PROTOCOL);
        assert_words(s->engine.failure.text, words);
        assert_int_equal(s->run.now.state, TRIB_RUN_ACTIVE); /* a mark ends nothing */
        assert_true(trib_engine_progress(&s->engine));
        assert_int_equal(s->run.now.state, TRIB_RUN_DONE);
        assert_status(s->run.now.status, TRIB_ERR_PROTOCOL);
        assert_false(trib_engine_progress(&s->engine));
        close_two(t);
    }
    struct two *t = open_two("shm");
    write_notice(&t->side[1].engine, TRIB_OOB_NOTICE_FAILED, TRIB_ERR_NO_MEMORY);
    trib_engine_notices(&t->side[1].engine);
    assert_status((trib_status_t)t->side[1].engine.failed, TRIB_ERR_NO_MEMORY);
    assert_string_equal(t->side[1].engine.failure.text, "because");
    close_two(t);
}

/* Rank 0 says this of its buffers; rank 1 must not believe it. */
static void lie_low(struct trib_advert *o)
{
    o->recv.origin -= 4096;
}

static void lie_high(struct trib_advert *o)
{
    o->send.hi += 4096;
}

static void lie_backwards(struct trib_advert *o)
{
    o->send.lo = o->send.hi + 1;
}

static void lie_hugely(struct trib_advert *o)
{
    o->recv.origin = INT64_MAX;
}

static void lie_about_region(struct trib_advert *o)
{
    memset(o->send.blob.bytes, 0x5a, o->send.blob.len);
}

static void test_refuses_hostile_opens(void **state)
{
    static void (*const lies[])(struct trib_advert *) = {
        lie_low, lie_high, lie_backwards, lie_hugely, lie_about_region};
    static const char *const words[] = {"rank 0 (host here", "sent", "buffer", "rank 1",
                                        "phase", NULL};

    (void)state;
    for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
        struct two *t = open_two("shm");
        start(t);
        lies[i](&t->side[0].run.now.advert);
        drive(t);
        assert_status((trib_status_t)t->side[1].engine.failed, TRIB_ERR_PROTOCOL);
        assert_words(t->side[1].engine.failure.text, words);
        close_two(t);
    }
}

/* This rank's own trouble, in its name, with the cure. */
static void test_cannot_import(void **state)
{
    static const char *const words[] = {
        "rank 1 (host here", "cannot reach a buffer of rank 0",
        "allreduce",         "phase",
        "ulimit -n",         NULL};
    struct two *t = open_two("shm");
    struct trib_engine *e = &t->side[1].engine;
    struct rlimit before, none;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    /* Not in the segment that the link's own memory is in, which is open already. */
    void *x;
    size_t bytes = (size_t)8 << 20;
    assert_status(trib_memory_alloc(&t->side[0].engine.memories, bytes, &x), TRIB_OK);
    t->side[0].x = x;
    start(t);
    (void)trib_engine_progress(&t->side[0].engine);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    (void)trib_engine_progress(e);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_status((trib_status_t)e->failed, TRIB_ERR_SYSTEM);
    assert_words(e->failure.text, words);
    close_two(t);
}

/* Rank 1 does not look for a while, and its ring is full. */
static void fill_ring(struct two *t)
{
    struct trib_engine *e = &t->side[0].engine;
    struct trib_oob_notice n = {.kind = TRIB_OOB_NOTICE_FAILED};
    struct trib_link *l = &e->links[1];
    int sent = 0;

    /* Notices of nothing: their kind is none. */
    for (n.kind = 0; sent < 1000000; sent++) {
        l->notice_busy = false;
        if (trib_link_notify(l, &e->arena, &n) != TRIB_OK)
            break;
    }
    assert_in_range(sent, 1, 999999);
    assert_status(trib_link_notify(l, &e->arena, &n), TRIB_ERR_NO_RESOURCE);
}

struct later {
    struct trib_engine *engine;
    atomic_bool told;
};

/* Only events: notices are read once nobody writes them any more. */
static void *look_later(void *arg)
{
    struct later *l = arg;

    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    while (!atomic_load(&l->told))
        (void)trib_engine_events(l->engine);
    return NULL;
}

static void test_failure_is_told_later(void **state)
{
    struct two *t = open_two("shm+nomap");
    struct later later = {.engine = &t->side[1].engine};
    pthread_t thread;

    (void)state;
    fill_ring(t);
    assert_int_equal(pthread_create(&thread, NULL, look_later, &later), 0);
    trib_engine_fail(&t->side[0].engine, TRIB_ERR_TIMEOUT, "because of this");
    atomic_store(&later.told, true);
    pthread_join(thread, NULL);
    (void)trib_engine_events(later.engine);
    trib_engine_notices(later.engine);
    assert_status((trib_status_t)t->side[1].engine.failed, TRIB_ERR_TIMEOUT);
    assert_string_equal(t->side[1].engine.failure.text, "because of this");
    close_two(t);
}

/* Trace ---------------------------------------------------------------------------- */

static int count_events(const struct trib_trace *trace, enum trib_trace_kind kind)
{
    int n = 0;

    for (uint64_t i = 0; i < trace->count; i++)
        n += trace->events[i].kind == kind;
    return n;
}

static void test_trace_shows_waiting(void **state)
{
    struct two *t = open_two("shm+nomap");
    struct trib_engine *e = &t->side[1].engine;

    (void)state;
    trib_run_start(e, &t->side[1].run, NULL, t->side[1].x);
    for (int i = 0; i < 10; i++) /* the other one does not come */
        (void)trib_engine_progress(e);
    assert_int_equal(count_events(&e->trace, TRIB_TRACE_WAIT_BEGIN), 1);
    assert_int_equal(count_events(&e->trace, TRIB_TRACE_WAIT_END), 0);
    trib_run_start(&t->side[0].engine, &t->side[0].run, NULL, t->side[0].x);
    drive(t);
    assert_int_equal(t->side[1].run.now.state, TRIB_RUN_DONE);
    assert_true(count_events(&e->trace, TRIB_TRACE_ARRIVED) > 0);
    assert_int_equal(count_events(&e->trace, TRIB_TRACE_WAIT_BEGIN),
                     count_events(&e->trace, TRIB_TRACE_WAIT_END));
    assert_int_equal(e->trace.events[e->trace.count - 1].kind, TRIB_TRACE_OP_END);
    assert_int_equal(count_events(&e->trace, TRIB_TRACE_PEER_LOST), 0);
    trib_engine_lost(e, 0, false, "it is a test");
    assert_int_equal(count_events(&e->trace, TRIB_TRACE_PEER_LOST), 1);
    close_two(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chunks_cover),
        cmocka_unit_test(test_part),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_slots_come_later),
        cmocka_unit_test(test_failure_without_slots),
        cmocka_unit_test(test_failure_that_is_told_later),
        cmocka_unit_test(test_slots_of_a_full_transport),
        cmocka_unit_test(test_refuses_hostile_adverts),
        cmocka_unit_test(test_refuses_hostile_notices),
        cmocka_unit_test(test_refuses_hostile_opens),
        cmocka_unit_test(test_cannot_import),
        cmocka_unit_test(test_failure_is_told_later),
        cmocka_unit_test(test_trace_shows_waiting),
    };

    tribtest_deadline(180);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
