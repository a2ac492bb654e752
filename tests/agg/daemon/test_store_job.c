/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A store in tribd. A store whose first rank joins without memory ends unless the rank
 * returns. A store that has ended takes no rank. A rank's copy that replaces a vector
 * ends the pulls that wait for its version. A shutdown writes a snapshot again that an
 * operator has removed, and tries failed ones again. The ranks of a store that is ended
 * do not wait for the disk. A store whose key another store uses discards its
 * snapshots.
 *
 * A restore whose rank was lost does not undo the pushes that follow. A push that
 * overtakes a restore is saved by a shutdown. A copy that undoes pushes replaces the
 * snapshot that has them. Ranks take turns at snapshots.
 */
#include "tests/harness/tribtest.h"

#include <sys/eventfd.h>
#include <sys/socket.h>

#include "agg/daemon/archive.h"
#include "agg/daemon/store_job.h"
#include "agg/store/store_image.h"
#include "agg/store/store_peer.h"
#include "base/fd.h"
#include "base/time.h"

enum { SOON_MS = 300, LONG_MS = 60000, TURNS_MOST = 50 };

static _Atomic bool short_of_memory;
static _Atomic int keep_ms; /* overrides STORE_JOB_KEEP_MS */
static _Atomic bool disk_hangs;
static _Atomic bool copies_hang;
static _Atomic bool overtakes; /* a push of rank 0 overtakes each restore */

static trib_status_t create_peer(const struct trib_store_peer_opts *opts,
                                 struct trib_store_peer **out)
{
    *out = NULL;
    return atomic_load(&short_of_memory) ? TRIB_ERR_NO_MEMORY
                                         : trib_store_peer_create(opts, out);
}

static bool is_done(struct archive *archive, const struct archive_task *task)
{
    return !atomic_load(&disk_hangs) && archive_is_done(archive, task);
}

static void wait_for_disk(struct archive *archive, const struct archive_task *task)
{
    while (atomic_load(&disk_hangs))
        usleep(1000);
    archive_wait(archive, task);
}

/* Restore, and push the next number of rank 0 before the restore is noted. */
static trib_status_t put(struct trib_store_table *table, uint32_t vector,
                         const struct trib_store_image *image,
                         const struct trib_store_tick *tick, struct trib_error *err)
{
    int32_t one = 1;
    const trib_status_t st = trib_store_put(table, vector, image, tick, err);
    struct trib_store_table_push push = {
        .number = trib_store_clock(table, vector, 0) + 1, .data = &one};

    if (st != TRIB_OK || !atomic_load(&overtakes))
        return st;
    return trib_store_table_push(table, vector, &push, tick, err);
}

static void copy_slowly(const struct trib_store_image *image,
                        const struct trib_snapshot_about *about,
                        struct trib_store_walk *walk, uint8_t *out)
{
    while (atomic_load(&copies_hang))
        usleep(1000);
    trib_snapshot_copy(image, about, walk, out);
}

#define trib_snapshot_copy(image, about, walk, out) copy_slowly(image, about, walk, out)
#define trib_store_peer_create(opts, out) create_peer(opts, out)
#define archive_is_done(archive, task) is_done(archive, task)
#define archive_wait(archive, task) wait_for_disk(archive, task)
#define trib_store_put(table, vector, image, tick, err) \
    put(table, vector, image, tick, err)
#define STORE_JOB_KEEP_MS (uint64_t) keep_ms
#include "agg/daemon/store_job.c"
#include "agg/daemon/store_keeper.c"
#include "agg/daemon/store_thread.c"

/* A store, and the parts of tribd that it needs. */
struct rig {
    struct trib_auth *auth;
    struct trib_log log;
    struct trib_metrics *metrics;
    struct store_turns *turns;
    struct store_job *job;
    struct archive *archive; /* or NULL */
    uint64_t every_pushes; /* between two snapshots; 0: none */
    struct trib_quota quota;
    char folder[400]; /* of snapshots; or "" */
    int wake_fd;
};

struct rank {
    struct trib_session *session;
    struct trib_error err;
    struct trib_control m; /* received last */
};

static void rig_open(struct rig *rig, uint32_t ranks)
{
    const struct trib_auth_opts none = {.method = "none"};
    const struct trib_metrics_opts metrics = {.start_ns = 1};
    const struct archive_limits no_limits = {.disk = 0};
    struct trib_error err = {0};

    rig->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    trib_log_init(&rig->log, TRIB_LOG_ERROR, NULL, NULL);
    if (rig->folder[0])
        assert_status(
            archive_open(rig->folder, &no_limits, &rig->log, &err, &rig->archive),
            TRIB_OK);
    assert_status(trib_auth_open(&none, &err, &rig->auth), TRIB_OK);
    assert_status(trib_metrics_create(&metrics, &rig->metrics), TRIB_OK);
    assert_status(store_turns_create(1, &rig->turns), TRIB_OK);
    const struct store_job_opts opts = {.ranks = ranks,
                                        .threads = 1,
                                        .quota = &rig->quota,
                                        .metrics = rig->metrics,
                                        .id = 1,
                                        .wake_fd = rig->wake_fd,
                                        .log = &rig->log,
                                        .turns = rig->turns,
                                        .archive = rig->archive,
                                        .every_pushes = rig->every_pushes,
                                        .about = {.user = "ana", .job = "job"}};
    assert_status(store_job_open(&opts, &err, &rig->job), TRIB_OK);
}

static void rig_close(struct rig *rig)
{
    store_job_free(rig->job);
    archive_close(rig->archive);
    store_turns_free(rig->turns);
    trib_metrics_destroy(rig->metrics);
    trib_auth_free(rig->auth);
    close(rig->wake_fd);
}

/* Connect a rank and hand its session to the store. */
static void join_for(const struct rig *rig, uint32_t rank, struct rank *r,
                     trib_status_t expected)
{
    struct trib_session_opts opts = {.role = TRIB_CONTROL_JOB,
                                     .auth = rig->auth,
                                     .job = "job",
                                     .peer = "tribd",
                                     .handshake_ms = LONG_MS,
                                     .err = &r->err};
    struct trib_error err = {0};
    struct trib_session *there;
    int fds[2];

    assert_int_equal(trib_fd_pair(fds, SOCK_STREAM | SOCK_CLOEXEC), 0);
    *r = (struct rank){0};
    opts.fd = fds[0];
    assert_status(trib_session_open(&opts, &r->session), TRIB_OK);
    opts.fd = fds[1];
    opts.role = TRIB_CONTROL_AGGREGATOR;
    opts.err = &err;
    assert_status(trib_session_open(&opts, &there), TRIB_OK);
    while (!trib_session_ready(there) || !trib_session_ready(r->session)) {
        assert_status(trib_session_step(there, &r->m), TRIB_INPROGRESS);
        assert_status(trib_session_step(r->session, &r->m), TRIB_INPROGRESS);
    }
    assert_status(store_job_add(rig->job, there, rank, NULL), expected);
    if (expected != TRIB_OK)
        trib_session_free(there);
}

static void join(const struct rig *rig, uint32_t rank, struct rank *r)
{
    join_for(rig, rank, r, TRIB_OK);
}

static void say(struct rank *r, struct trib_control m)
{
    assert_status(trib_session_send_wait(r->session, trib_deadline_ms(LONG_MS), &m),
                  TRIB_OK);
}

static void hear(struct rank *r, enum trib_control_kind kind)
{
    assert_status(trib_session_take_wait(r->session, trib_deadline_ms(LONG_MS), &r->m),
                  TRIB_OK);
    assert_string_equal(trib_control_name(r->m.kind), trib_control_name(kind));
}

static void leave(struct rank *r)
{
    say(r, (struct trib_control){.kind = TRIB_CONTROL_GOODBYE});
    trib_session_free(r->session);
}

/* Wait until the store has ended by itself. */
static void ends(const struct rig *rig, const char *why)
{
    const uint64_t until = trib_deadline_ms(tribtest_patience_ms());

    while (!store_job_reap(rig->job)) {
        assert_false(trib_deadline_passed(until));
        usleep(1000);
    }
    assert_string_equal(store_job_why(rig->job), why);
}

static void join_without_memory(const struct rig *rig)
{
    struct rank r;

    atomic_store(&short_of_memory, true);
    join(rig, 0, &r);
    assert_status(trib_session_take_wait(r.session, trib_deadline_ms(LONG_MS), &r.m),
                  TRIB_ERR_ABORTED);
    assert_non_null(strstr(trib_error_text(&r.err), "out of memory"));
    trib_session_free(r.session);
    atomic_store(&short_of_memory, false);
}

TEST(test_first_rank_without_memory)
{
    struct rig rig = {.folder = ""};

    atomic_store(&keep_ms, SOON_MS);
    rig_open(&rig, 2);
    join_without_memory(&rig);
    ends(&rig, "its ranks are lost");
    rig_close(&rig);
}

TEST(test_it_comes_back)
{
    struct rank r;
    struct rig rig = {.folder = ""};

    atomic_store(&keep_ms, LONG_MS);
    rig_open(&rig, 2);
    join_without_memory(&rig);
    join(&rig, 0, &r);
    hear(&r, TRIB_CONTROL_STORE_JOINED);
    leave(&r);
    ends(&rig, "its ranks have left");
    rig_close(&rig);
}

/* It may wait for the disk after its end: such a rank would get no answer. */
TEST(test_return_to_an_ended_store)
{
    struct rank r;
    struct rig rig = {.folder = ""};

    rig_open(&rig, 2);
    join(&rig, 0, &r);
    hear(&r, TRIB_CONTROL_STORE_JOINED);
    leave(&r);
    ends(&rig, "its ranks have left");
    join_for(&rig, 1, &r, TRIB_ERR_PEER_LOST);
    trib_session_free(r.session);
    assert_true(store_job_is_deserted(rig.job));
    rig_close(&rig);
}

TEST(test_a_copy_ends_pulls)
{
    static const int32_t copy = 7;
    struct rank waits, restores;
    struct trib_control m = {.kind = TRIB_CONTROL_STORE_OPEN,
                             .store_open = {"x", TRIB_I32, 1, "sum"}};
    struct rig rig = {.folder = ""};

    rig_open(&rig, 2);
    join(&rig, 0, &restores);
    join(&rig, 1, &waits);
    hear(&restores, TRIB_CONTROL_STORE_JOINED);
    hear(&waits, TRIB_CONTROL_STORE_JOINED);
    say(&restores, m);
    hear(&restores, TRIB_CONTROL_STORE_VECTOR);
    say(&waits,
        (struct trib_control){.kind = TRIB_CONTROL_STORE_PULL,
                              .store_pull = {.at_least = 5,
                                             .bound = TRIB_CONTROL_UNBOUNDED,
                                             .wait_ms = TRIB_CONTROL_WAIT_MAX}});
    while (!atomic_load(&rig.job->threads[0].waits))
        usleep(1000);
    say(&restores,
        (struct trib_control){.kind = TRIB_CONTROL_STORE_PUSH,
                              .store_push = {.purpose = TRIB_CONTROL_PUSH_RESTORE,
                                             .number = 6,
                                             .data = {(const uint8_t *)&copy, 4}}});
    hear(&restores, TRIB_CONTROL_STORE_DONE);
    hear(&waits, TRIB_CONTROL_STORE_DONE);
    assert_int_equal(waits.m.store_state.version, 5);
    leave(&restores);
    leave(&waits);
    ends(&rig, "its ranks have left");
    rig_close(&rig);
}

/* A store of one rank with snapshots, and a vector of one element ------------------ */

static const uint8_t owner[TRIB_SNAPSHOT_OWNER_BYTES];
static const struct archive_key key = {owner, "ana", "x"};

static void say_push(struct rank *r, enum trib_control_push purpose, uint64_t number)
{
    static const int32_t one = 1;

    say(r, (struct trib_control){.kind = TRIB_CONTROL_STORE_PUSH,
                                 .store_push = {.purpose = purpose,
                                                .number = number,
                                                .data = {(const uint8_t *)&one, 4}}});
    hear(r, TRIB_CONTROL_STORE_DONE);
}

static void say_order(struct rank *r, enum trib_control_snapshot what)
{
    say(r, (struct trib_control){.kind = TRIB_CONTROL_STORE_SNAPSHOT,
                                 .store_snapshot = {0, what}});
}

static void join_and_open(const struct rig *rig, struct rank *r)
{
    join(rig, 0, r);
    hear(r, TRIB_CONTROL_STORE_JOINED);
    say(r, (struct trib_control){.kind = TRIB_CONTROL_STORE_OPEN,
                                 .store_open = {"x", TRIB_I32, 1, "sum"}});
    hear(r, TRIB_CONTROL_STORE_VECTOR);
}

static void make_folder(struct rig *rig)
{
    const char *tmp = getenv("TMPDIR");

    atomic_store(&keep_ms, LONG_MS);
    snprintf(rig->folder, sizeof(rig->folder), "%.300s/snapshots.XXXXXX",
             tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(rig->folder));
}

/* Push once, and save version 1. */
static void begin_saved(struct rig *rig, struct rank *r)
{
    make_folder(rig);
    rig_open(rig, 1);
    join_and_open(rig, r);
    say_push(r, TRIB_CONTROL_PUSH, 1);
    say_order(r, TRIB_CONTROL_SNAPSHOT_TAKE);
    hear(r, TRIB_CONTROL_STORE_DONE);
}

static void shut_down(const struct rig *rig)
{
    store_job_drain(rig->job);
    store_job_end(rig->job, "a shutdown");
    ends(rig, "a shutdown");
}

static void end_saved(struct rig *rig)
{
    const struct archive_key all = {owner, "ana", NULL};

    store_job_end(rig->job, "the end");
    while (!store_job_reap(rig->job))
        usleep(1000);
    archive_drop(rig->archive, &all);
    rig_close(rig);
    assert_int_equal(rmdir(rig->folder), 0);
}

static bool is_busy(const struct rig *rig)
{
    struct store_keeper *keeper = rig->job->keeper;

    pthread_mutex_lock(&keeper->mutex);
    const bool busy = keeper->busy;
    pthread_mutex_unlock(&keeper->mutex);
    return busy;
}

/* Wait until the snapshot on disk has a version. */
static void await_version(const struct rig *rig, uint64_t version)
{
    const uint64_t until = trib_deadline_ms(tribtest_patience_ms());

    while (archive_version(rig->archive, &key) != version + 1) {
        assert_false(trib_deadline_passed(until));
        usleep(1000);
    }
}

TEST(test_forgotten)
{
    struct rig rig = {.folder = ""};
    struct rank r;
    uint64_t removal;
    char text[100];

    begin_saved(&rig, &r);
    assert_true(archive_forget(rig.archive, "job", text, sizeof(text), &removal));
    assert_int_equal(archive_version(rig.archive, &key), 0);
    shut_down(&rig);
    assert_int_equal(archive_version(rig.archive, &key), 2);
    trib_session_free(r.session);
    end_saved(&rig);
}

static uint64_t failures(const struct rig *rig)
{
    struct trib_snapshots_view view;

    archive_view(rig->archive, &view);
    free(view.rows);
    return view.failures;
}

/* Memory for the copy is missing at first. */
TEST(test_last_snapshot_again)
{
    struct rig rig = {.folder = ""};
    struct rank r;

    begin_saved(&rig, &r);
    say_push(&r, TRIB_CONTROL_PUSH, 2);
    atomic_store(&rig.quota.most, trib_quota_held_mt(&rig.quota));
    store_job_drain(rig.job);
    store_job_end(rig.job, "a shutdown");
    while (!failures(&rig) && !store_job_reap(rig.job))
        usleep(1000);
    atomic_store(&rig.quota.most, 0);
    ends(&rig, "a shutdown");
    assert_int_equal(archive_version(rig.archive, &key), 3);
    trib_session_free(r.session);
    end_saved(&rig);
}

TEST(test_end_while_the_disk_hangs)
{
    const uint64_t until = trib_deadline_ms(tribtest_patience_ms());
    struct rig rig = {.folder = ""};
    struct rank r;

    begin_saved(&rig, &r);
    atomic_store(&disk_hangs, true);
    say_order(&r, TRIB_CONTROL_SNAPSHOT_TAKE);
    while (!is_busy(&rig))
        usleep(1000);
    store_job_end(rig.job, "kicked");
    const trib_status_t st = trib_session_take_wait(r.session, until, &r.m);
    atomic_store(&disk_hangs, false);
    assert_status(st, TRIB_ERR_ABORTED);
    assert_non_null(strstr(trib_error_text(&r.err), "kicked"));
    trib_session_free(r.session);
    end_saved(&rig);
}

/* Another store uses the key: this one discards its last snapshot, and one that is
 * being copied. */
TEST(test_replaced)
{
    for (int copies = 0; copies < 2; copies++) {
        struct rig rig = {.folder = ""};
        struct rank r;
        begin_saved(&rig, &r);
        say_push(&r, TRIB_CONTROL_PUSH, 2);
        atomic_store(&copies_hang, copies);
        if (copies)
            say_order(&r, TRIB_CONTROL_SNAPSHOT_TAKE);
        while (copies && !is_busy(&rig))
            usleep(1000);
        store_job_drain(rig.job);
        store_job_replace(rig.job);
        atomic_store(&copies_hang, false);
        ends(&rig, "another run uses its key now");
        assert_int_equal(archive_version(rig.archive, &key), 2);
        trib_session_free(r.session);
        end_saved(&rig);
    }
}

/* The disk hangs until the rank has given up, and has continued from its own copy. */
TEST(test_restore_without_rank)
{
    struct rig rig = {.folder = ""};
    struct rank r;

    begin_saved(&rig, &r);
    atomic_store(&disk_hangs, true);
    say_order(&r, TRIB_CONTROL_SNAPSHOT_RESTORE);
    while (!is_busy(&rig))
        usleep(1000);
    trib_session_free(r.session);
    join_and_open(&rig, &r);
    say_push(&r, TRIB_CONTROL_PUSH, 2);
    atomic_store(&disk_hangs, false);
    while (is_busy(&rig))
        usleep(1000);
    say_push(&r, TRIB_CONTROL_PUSH, 3);
    assert_int_equal(r.m.store_state.version, 3);
    say_order(&r, TRIB_CONTROL_SNAPSHOT_RESTORE);
    hear(&r, TRIB_CONTROL_STORE_DONE);
    assert_int_equal(r.m.store_state.version, 1);
    shut_down(&rig);
    trib_session_free(r.session);
    end_saved(&rig);
}

TEST(test_push_overtakes_restore)
{
    struct rig rig = {.folder = ""};
    struct rank r;

    begin_saved(&rig, &r);
    atomic_store(&overtakes, true);
    say_order(&r, TRIB_CONTROL_SNAPSHOT_RESTORE);
    hear(&r, TRIB_CONTROL_STORE_DONE);
    atomic_store(&overtakes, false);
    shut_down(&rig);
    assert_int_equal(archive_version(rig.archive, &key), 3);
    trib_session_free(r.session);
    end_saved(&rig);
}

TEST(test_copy_undoes_pushes)
{
    struct rig rig = {.every_pushes = 3};
    struct rank r;

    begin_saved(&rig, &r);
    for (uint64_t n = 2; n <= 4; n++)
        say_push(&r, TRIB_CONTROL_PUSH, n);
    await_version(&rig, 4);
    say_push(&r, TRIB_CONTROL_PUSH_RESTORE, 2 + 1); /* of version 2 */
    await_version(&rig, 2);
    shut_down(&rig);
    trib_session_free(r.session);
    end_saved(&rig);
}

/* Each rank has its own vector. The others order again at once. */
TEST(test_turns)
{
    struct trib_control open = {.kind = TRIB_CONTROL_STORE_OPEN,
                                .store_open = {"x", TRIB_I32, 1, "sum"}};
    struct trib_control order = {.kind = TRIB_CONTROL_STORE_SNAPSHOT,
                                 .store_snapshot.order = TRIB_CONTROL_SNAPSHOT_TAKE};
    struct rig rig = {.folder = ""};
    struct rank ranks[3];
    trib_status_t st = TRIB_INPROGRESS;

    make_folder(&rig);
    rig_open(&rig, 3);
    for (uint32_t r = 0; r < 3; r++) {
        join(&rig, r, &ranks[r]);
        hear(&ranks[r], TRIB_CONTROL_STORE_JOINED);
        open.store_open.name[0] = (char)('x' + r);
        say(&ranks[r], open);
        hear(&ranks[r], TRIB_CONTROL_STORE_VECTOR);
        order.store_snapshot.vector = r;
        say(&ranks[r], order);
    }
    for (int n = 0; n < TURNS_MOST && st == TRIB_INPROGRESS; n++) {
        order.store_snapshot.vector = (uint32_t)n % 2;
        hear(&ranks[n % 2], TRIB_CONTROL_STORE_DONE);
        say(&ranks[n % 2], order);
        st = trib_session_step(ranks[2].session, &ranks[2].m);
    }
    assert_status(st, TRIB_OK);
    for (int r = 0; r < 3; r++)
        trib_session_free(ranks[r].session);
    end_saved(&rig);
}
