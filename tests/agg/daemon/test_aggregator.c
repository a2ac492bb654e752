/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an aggregator refuses in a JOIN, whoever sent it, and its choice of a worker:
 * aggregator_open, before it contacts any rank. Also which frames count as dropped.
 */
#include "tests/harness/tribtest.h"

#include <sys/eventfd.h>

#include "agg/daemon/aggregator_metrics.h"
#include "agg/daemon/job_settings.h"
#include "agg/daemon/worker.h"
#include "base/time.h"
#include "comm/members/wireup_check.h"
#include "transport/shm/shm_layout.h"

struct fixture {
    struct trib_log log;
    struct worker *worker;
    int wake_fd;
};

static int open_fixture(void **state)
{
    static struct fixture f;
    struct trib_error err = {0};

    trib_log_init(&f.log, TRIB_LOG_ERROR, NULL, NULL);
    f.wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    assert_true(f.wake_fd >= 0);
    assert_ok(worker_start(&err, &f.worker));
    *state = &f;
    return 0;
}

static int close_fixture(void **state)
{
    struct fixture *f = *state;

    worker_stop(f->worker);
    close(f->wake_fd);
    return 0;
}

static struct trib_control_join join_of(uint32_t slots, uint64_t bytes,
                                        const char *settings)
{
    struct trib_control_join j = {.job = "a",
                                  .user = "b",
                                  .ranks = 4,
                                  .aggregators = 1,
                                  .slots = slots,
                                  .bytes = bytes};

    snprintf(j.settings, sizeof(j.settings), "%s", settings);
    return j;
}

static trib_status_t open_node(struct fixture *f, const struct trib_control_join *join,
                               struct trib_error *err, struct aggregator **out)
{
    const struct aggregator_opts opts = {
        .join = join, .worker = f->worker, .wake_fd = f->wake_fd, .log = &f->log};

    return aggregator_open(&opts, err, out);
}

static void await_gone(struct aggregator *agg)
{
    const uint64_t end = trib_deadline_ms(tribtest_patience_ms());

    while (atomic_load(&agg->state) != AGGREGATOR_GONE) {
        assert_true(trib_now_ns() < end);
        sched_yield();
    }
    aggregator_free(agg);
}

/* 4 ranks, a window of 8 and both workers: 64 slots. */
TEST(test_within_its_grant)
{
    struct trib_control_join j =
        join_of(64, UINT64_C(64) << 16, "transport=tcp chunk=64K window=8");
    struct trib_error err = {0};
    struct aggregator *agg;

    assert_ok(open_node(*state, &j, &err, &agg));
    aggregator_end(agg, NULL);
    await_gone(agg);
}

/* A JOIN without a chunk size could get larger chunks than were charged: the ranks'
 * rendezvous raises an unset size, to 256 KiB between hosts. */
TEST(test_no_larger_chunks)
{
    struct trib_control_join j =
        join_of(64, UINT64_C(64) << 16, "transport=tcp window=8");
    struct trib_error err = {0};
    struct aggregator *agg;

    assert_ok(open_node(*state, &j, &err, &agg));
    assert_int_equal(agg->cfg.chunk, 65536);
    assert_int_not_equal(agg->cfg.origin[TRIB_CONFIG_ROW_chunk], TRIB_ORIGIN_DEFAULT);
    aggregator_end(agg, NULL);
    await_gone(agg);
}

TEST(test_refused)
{
    static const struct {
        uint32_t slots;
        uint64_t bytes;
        const char *settings;
        trib_status_t status;
        const char *why;
    } cases[] = {
        {63, UINT64_C(64) << 16, "transport=tcp chunk=64K window=8", TRIB_ERR_PROTOCOL,
         "4 peers with window 8 need 64 slots; the job requested 63"},
        {64, (UINT64_C(64) << 16) - 1, "transport=tcp chunk=64K window=8",
         TRIB_ERR_PROTOCOL,
         "64 slots of 65536 bytes need 4194304 bytes; the job requested 4194303"},
        {64, UINT64_C(64) << 16, "transport=tcp chunk=16M window=8", TRIB_ERR_PROTOCOL,
         "64 slots of 16777216 bytes"},
        {64, UINT64_C(64) << 16, "transport=tcp chunk=64K window=256",
         TRIB_ERR_PROTOCOL, "window 256 need 2048 slots"},
        {64, UINT64_C(64) << 16, "transport=tcp window=999", TRIB_ERR_CONFIG, "window"},
        {64, UINT64_C(64) << 16, "transport=tcp tea=yes", TRIB_ERR_CONFIG, "tea=yes"},
        {64, UINT64_C(64) << 16, "transport=tcp trace=9", TRIB_ERR_CONFIG, "trace=9"},
        {64, UINT64_C(64) << 16, "codec=none;trace=9", TRIB_ERR_CONFIG,
         "does not accept the setting"},
        {64, UINT64_C(64) << 16, "codec", TRIB_ERR_CONFIG,
         "does not accept the setting"},
        {64, UINT64_C(64) << 16, "transport=fault+tcp", TRIB_ERR_CONFIG, "decorators"},
        {64, UINT64_C(64) << 16, "transport=loop", TRIB_ERR_CONFIG,
         "the setting transports of this tribd allows auto,shm,tcp,verbs"},
        {64, UINT64_C(64) << 16, "transport=ucx", TRIB_ERR_CONFIG,
         "transport ucx is not allowed"},
        {64, UINT64_C(64) << 16, "codec=none transport=rails", TRIB_ERR_CONFIG,
         "rails is not"},
    };
    struct aggregator *agg;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct trib_control_join j =
            join_of(cases[i].slots, cases[i].bytes, cases[i].settings);
        struct trib_error err = {0};

        assert_status(open_node(*state, &j, &err, &agg), cases[i].status);
        assert_null(agg);
        if (!strstr(trib_error_text(&err), cases[i].why))
            fail_msg("\"%s\" does not say \"%s\"", trib_error_text(&err), cases[i].why);
    }
}

/* The transports that the operator lists, of those that jobs may use at all. */
TEST(test_transports)
{
    static const struct {
        const char *list, *why;
    } cases[] = {
        {"auto,shm,tcp,verbs", NULL},
        {"tcp, ucx", NULL},
        {"loop", "transports: loop is not available to jobs"},
        {"auto,rails", "transports: rails is not available to jobs"},
        {"", "transports is empty"},
        {", ,", "only commas"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct trib_error err = {0};

        assert_int_equal(job_settings_check_transports(cases[i].list, &err),
                         cases[i].why == NULL);
        if (cases[i].why && !strstr(trib_error_text(&err), cases[i].why))
            fail_msg("\"%s\" does not say \"%s\"", trib_error_text(&err), cases[i].why);
    }
    struct trib_error err = {0};
    assert_true(job_settings_allow("transport=ucx window=8", "auto,ucx", &err));
    assert_false(job_settings_allow("window=8  transport=shm", "auto,tcp", &err));
    assert_true(job_settings_allow("", "tcp", &err));
}

/* A job whose ranks never connect announces plan after plan: no aggregator accepts
 * them. */
TEST(test_announcements_have_an_end)
{
    struct trib_control_join j =
        join_of(64, UINT64_C(64) << 16, "transport=tcp chunk=64K window=8");
    struct trib_error err = {0};
    struct aggregator *agg;

    assert_ok(open_node(*state, &j, &err, &agg));
    for (int i = 0; i < AGGREGATOR_PLANS_WAITING_MAX; i++)
        assert_ok(aggregator_announce(agg, (uint32_t)i, "coll=allreduce"));
    for (int i = 0; i < 10; i++)
        assert_status(aggregator_announce(agg, 0, "coll=allreduce"),
                      TRIB_ERR_NO_RESOURCE);
    aggregator_end(agg, NULL);
    await_gone(agg);
}

/* Also refused: a job that keeps announcing to a failed aggregator until it is
 * notified. */
TEST(test_announcements_in_vain)
{
    static struct aggregator agg;

    atomic_store(&agg.state, AGGREGATOR_FAILED);
    for (int i = 0; i < AGGREGATOR_PLANS_WAITING_MAX; i++)
        assert_ok(aggregator_announce(&agg, (uint32_t)i, "coll=allreduce"));
    assert_status(aggregator_announce(&agg, 0, "coll=allreduce"), TRIB_ERR_NO_RESOURCE);
    assert_null(agg.first);
}

static void assert_dropped(struct trib_metrics *metrics, uint64_t frames)
{
    struct trib_service_view view;
    char line[80];

    assert_ok(trib_metrics_view_mt(metrics, 3, &view));
    char *text = trib_metrics_text(&view), *json = trib_metrics_json(&view);
    assert_non_null(text);
    assert_non_null(json);
    snprintf(line, sizeof(line), "\ntribd_dropped_frames_total %u\n", (unsigned)frames);
    assert_non_null(strstr(text, line));
    snprintf(line, sizeof(line), "\"dropped_frames\":%u,", (unsigned)frames);
    assert_non_null(strstr(json, line));
    free(text);
    free(json);
    trib_service_view_free(&view);
}

/* Frames late for a quorum: each counts. Invalid frames: the one that ends the job
 * counts. */
TEST(test_dropped_frames)
{
    static struct trib_engine e;
    static struct trib_link link;
    struct trib_metrics *metrics;

    e.links = &link;
    assert_ok(
        trib_metrics_create(&(struct trib_metrics_opts){.start_ns = 1}, &metrics));
    struct aggregator_metrics *w =
        aggregator_metrics_open(metrics, 1, 1, &(bool){true});
    assert_non_null(w);
    assert_dropped(metrics, 0);
    e.stats.late_frames = 3;
    aggregator_metrics_turn_ends(w, &e, 1, 2);
    aggregator_metrics_turn_ends(w, &e, 2, 3);
    assert_dropped(metrics, 3);
    e.stats.late_frames = 5;
    e.failed = TRIB_ERR_PROTOCOL;
    aggregator_metrics_turn_ends(w, &e, 3, 4);
    aggregator_metrics_turn_ends(w, &e, 4, 5);
    assert_dropped(metrics, 6);
    aggregator_metrics_close(w);
    assert_dropped(metrics, 6); /* including jobs that have ended */
    trib_metrics_destroy(metrics);
}

/* Nodes that join together are spread over workers before any of them has contacted its
 * ranks. */
TEST(test_lanes_are_spread)
{
    struct fixture f = *(struct fixture *)*state;
    struct trib_control_join j =
        join_of(64, UINT64_C(64) << 16, "transport=tcp chunk=64K window=8");
    struct trib_control_join wrong = join_of(1, 1, "transport=tcp chunk=64K window=8");
    struct trib_error err = {0};
    struct worker *workers[2] = {f.worker, NULL};
    struct aggregator *agg[3], *none;

    assert_ok(worker_start(&err, &workers[1]));
    for (int i = 0; i < 3; i++) {
        f.worker = worker_least_loaded(workers, 2);
        assert_ptr_equal(f.worker, workers[i % 2]);
        assert_status(open_node(&f, &wrong, &err, &none), TRIB_ERR_PROTOCOL);
        assert_ok(open_node(&f, &j, &err, &agg[i]));
    }
    for (int i = 0; i < 3; i += 2) {
        aggregator_end(agg[i], NULL);
        await_gone(agg[i]);
    }
    assert_ptr_equal(worker_least_loaded(workers, 2), workers[0]);
    aggregator_end(agg[1], NULL);
    await_gone(agg[1]);
    worker_stop(workers[1]);
}

/* Receive the blob of an aggregator in the current exchange. */
static uint32_t hear(struct aggregator *agg, uint8_t *room)
{
    const uint64_t end = trib_deadline_ms(tribtest_patience_ms());
    struct trib_control own;

    while (!aggregator_get_blob(agg, &own, room, TRIB_CONTROL_BLOB_MAX)) {
        assert_true(trib_now_ns() < end);
        sched_yield();
    }
    return own.blobs.each;
}

/* Send all blobs of an exchange: the blobs of the rank and both aggregators. */
static void tell(struct aggregator *agg, uint32_t exchange, uint32_t each,
                 const uint8_t *const blobs[3])
{
    uint8_t *all = malloc(3 * (size_t)each);

    for (size_t i = 0; i < 3; i++)
        memcpy(all + i * each, blobs[i], each);
    const struct trib_control_blobs b = {.exchange = exchange,
                                         .total = 3,
                                         .count = 3,
                                         .each = each,
                                         .data = {all, 3 * each}};
    assert_true(aggregator_put_blobs(agg, &b));
    free(all);
}

/* Set the region of shm in the facts of an aggregator, as a job can forge it. */
static void name_memory(uint8_t *facts, uint32_t bytes, const void *ptr)
{
    struct trib_shm_export x;
    size_t at = 0;

    do {
        assert_true(at + sizeof(x) <= bytes);
        memcpy(&x, facts + at++, sizeof(x));
    } while (x.magic != TRIB_SHM_EXPORT_MAGIC);
    assert_int_equal(x.addr, 0);
    x.kind = TRIB_SHM_FOREIGN;
    x.addr = (uintptr_t)ptr;
    x.len = UINT64_C(1) << 40;
    memcpy(facts + at - 1, &x, sizeof(x));
}

/* Rank 0 forwards to each aggregator the blobs of the others. It sends one aggregator
 * the address of the other, which is in the same process, with an arena anywhere in
 * that process. */
TEST(test_no_peer_is_this_process)
{
    static const uint16_t tree[] = {2, 0, 1, 0, 0,
                                    1, 1, 0, 1}; /* a unit below
                                                                 * another */
    static uint8_t memory[8 << 20];
    uint8_t hello[2][TRIB_CONTROL_BLOB_MAX], facts[2][TRIB_CONTROL_BLOB_MAX];
    uint8_t forged[TRIB_CONTROL_BLOB_MAX];
    struct trib_error err = {0};
    struct aggregator *agg[2];
    uint32_t each = 0;

    for (uint32_t i = 0; i < 2; i++) {
        struct trib_control_join j =
            join_of(64, UINT64_C(64) << 16, "transport=shm chunk=64K window=8");
        j.ranks = 1;
        j.aggregators = 2;
        j.aggregator = i;
        j.tree = (struct trib_control_bytes){(const uint8_t *)tree, sizeof(tree)};
        assert_ok(open_node(*state, &j, &err, &agg[i]));
    }
    for (int i = 0; i < 2; i++)
        each = hear(agg[i], hello[i]);
    for (int i = 0; i < 2; i++)
        tell(agg[i], 0, each, (const uint8_t *const[]){hello[1], hello[0], hello[1]});
    for (int i = 0; i < 2; i++)
        each = hear(agg[i], facts[i]);
    memcpy(forged, facts[0], each);
    name_memory(forged, each, memory);
    tell(agg[0], 1, each, (const uint8_t *const[]){facts[0], facts[0], facts[1]});
    tell(agg[1], 1, each, (const uint8_t *const[]){facts[1], forged, facts[1]});
    for (int i = 0; i < 2; i++) {
        const uint64_t end = trib_deadline_ms(tribtest_patience_ms());
        while (atomic_load(&agg[i]->state) != AGGREGATOR_GONE) {
            assert_true(trib_now_ns() < end);
            sched_yield();
        }
        if (!strstr(agg[i]->why, "claims to be this process"))
            fail_msg("\"%s\"", agg[i]->why);
        aggregator_free(agg[i]);
    }
    for (size_t i = 0; i < sizeof(memory); i++)
        assert_int_equal(memory[i], 0);
}

/* Texts of peers without a terminator: nothing after them is read. */
TEST(test_texts_without_end)
{
    enum {
        SETTINGS = offsetof(struct wireup_msg1, settings),
        TEXT = offsetof(struct wireup_msg1, settings_text),
    };
    struct trib_control_join j =
        join_of(64, UINT64_C(64) << 16, "transport=tcp chunk=64K window=8");
    uint8_t hello[TRIB_CONTROL_BLOB_MAX], other[TRIB_CONTROL_BLOB_MAX];
    struct trib_error err = {0};
    struct aggregator *agg;

    j.ranks = 1;
    j.aggregators = 2;
    assert_ok(open_node(*state, &j, &err, &agg));
    const uint32_t each = hear(agg, hello);
    memcpy(other, hello, each);
    other[SETTINGS] ^= 1;
    memset(other + TEXT, 'x', sizeof(((struct wireup_msg1 *)0)->settings_text));
    tell(agg, 0, each, (const uint8_t *const[]){hello, hello, other});
    const uint64_t end = trib_deadline_ms(tribtest_patience_ms());
    while (atomic_load(&agg->state) != AGGREGATOR_GONE) {
        assert_true(trib_now_ns() < end);
        sched_yield();
    }
    if (!strstr(agg->why, "has xxxx") || !strstr(agg->why, "on all ranks"))
        fail_msg("\"%s\"", agg->why);
    aggregator_free(agg);
}

/* Sanitizers need extra memory and time. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MEASURES 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MEASURES 0
#endif
#endif
#ifndef MEASURES
#define MEASURES 1
#endif

static uint64_t most_resident(void)
{
    FILE *f = fopen("/proc/self/status", "r");
    unsigned long long kib = 0;
    char line[256];

    assert_non_null(f);
    while (fgets(line, sizeof(line), f))
        if (sscanf(line, "VmHWM: %llu", &kib) == 1)
            break;
    fclose(f);
    return kib << 10;
}

/* Let all ranks repeat the blob of the aggregator, each 8 as one process of another
 * host. */
static void give_all(struct aggregator *agg, uint32_t total)
{
    enum {
        AT_ONCE = 12,
        MACHINE = 16
    }; /* blobs per message; offset of the host's
                                          * number in a hello */
    static uint8_t room[TRIB_CONTROL_BLOB_MAX], data[AT_ONCE * TRIB_CONTROL_BLOB_MAX];
    const uint64_t end = trib_deadline_ms(tribtest_patience_ms());
    struct trib_control m;

    while (!aggregator_get_blob(agg, &m, room, sizeof(room))) {
        assert_true(trib_now_ns() < end);
        sched_yield();
    }
    struct trib_control_blobs b = m.blobs;
    b.data.at = data;
    for (b.first = 0; b.first < total; b.first += b.count) {
        b.count = total - b.first < AT_ONCE ? total - b.first : AT_ONCE;
        b.data.n = b.count * b.each;
        for (uint32_t i = 0; i < b.count; i++) {
            const uint64_t machine = 1 + (b.first + i) / 8;
            memcpy(data + (size_t)i * b.each, room, b.each);
            if (b.exchange == 0)
                memcpy(data + (size_t)i * b.each + MACHINE, &machine, sizeof(machine));
        }
        assert_true(aggregator_put_blobs(agg, &b));
    }
}

/* The cost of ranks that are only declared: memory as charged, and time proportional to
 * their number; quadratic time would be 6 s here. */
static void meet_many(struct fixture *f, const char *transport, uint32_t ranks)
{
    struct trib_control_join j = join_of(ranks * 16, (uint64_t)ranks * 16 << 16, "");
    const uint64_t before = most_resident();
    const clock_t began = clock();
    struct trib_error err = {0};
    struct aggregator *agg;

    snprintf(j.settings, sizeof(j.settings), "transport=%s chunk=64K window=8",
             transport);
    j.ranks = ranks;
    assert_ok(open_node(f, &j, &err, &agg));
    give_all(agg, ranks + 1);
    give_all(agg, ranks + 1);
    const double s = (double)(clock() - began) / CLOCKS_PER_SEC;
    aggregator_end(agg, NULL);
    await_gone(agg);
    const double each = (double)(most_resident() - before) / ranks;
    printf("# %u ranks by %s: %.0f bytes each, %.2f s\n", (unsigned)ranks, transport,
           each, s);
    assert_true(!MEASURES || each <= AGGREGATOR_RANK_BYTES);
    assert_true(!MEASURES || s < 2);
}

TEST(test_ranks_that_are_only_declared)
{
    meet_many(*state, "auto", 16384); /* tcp needs less */
    meet_many(*state, "tcp", 16384);
}

TEST_GROUP(open_fixture, close_fixture)
