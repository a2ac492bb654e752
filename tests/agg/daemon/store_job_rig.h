/* SPDX-License-Identifier: BSD-3-Clause */
/* A store in tribd, its ranks, and an archive whose disk may hang. */
#ifndef TESTS_AGG_DAEMON_STORE_JOB_RIG_H
#define TESTS_AGG_DAEMON_STORE_JOB_RIG_H

#include "tests/harness/tribtest.h"

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "agg/daemon/archive.h"
#include "agg/daemon/store_job_parts.h"
#include "agg/store/store_image.h"
#include "agg/store/store_peer.h"
#include "base/fd.h"
#include "base/time.h"

enum { SOON_MS = 300, LONG_MS = 60000, TURNS_MOST = 50 };

static _Atomic bool short_of_memory;
static _Atomic int keep_ms; /* overrides STORE_JOB_KEEP_MS */
static _Atomic bool disk_hangs;
static _Atomic bool copies_hang;
static _Atomic bool ends_hang; /* the first thread, once the store has ended */
static _Atomic bool overtakes; /* a push of rank 0 overtakes each restore */
static _Atomic bool writes_hang; /* so that a snapshot remains with the archive */
static _Atomic int hung;
static _Atomic bool hurries; /* between the tries of last snapshots */

/* Takes the place of the function of the C library. */
int fsync(int fd)
{
    if (atomic_load(&writes_hang))
        (void)atomic_fetch_add(&hung, 1);
    while (atomic_load(&writes_hang))
        usleep(1000);
    return (int)syscall(SYS_fsync, fd);
}

static inline trib_status_t create_peer(const struct trib_store_peer_opts *opts,
                                        struct trib_store_peer **out)
{
    *out = NULL;
    return atomic_load(&short_of_memory) ? TRIB_ERR_NO_MEMORY
                                         : trib_store_peer_create(opts, out);
}

static inline bool is_done(struct archive *archive, const struct archive_task *task)
{
    return !atomic_load(&disk_hangs) && archive_is_done(archive, task);
}

static inline void wait_for_disk(struct archive *archive,
                                 const struct archive_task *task)
{
    while (atomic_load(&disk_hangs))
        usleep(1000);
    archive_wait(archive, task);
}

/* Restore, and push the next number of rank 0 before the restore is noted. */
static inline trib_status_t put(struct trib_store_table *table, uint32_t vector,
                                const struct trib_store_image *image,
                                const struct trib_store_tick *tick,
                                struct trib_error *err)
{
    int32_t one = 1;
    const trib_status_t st = trib_store_put(table, vector, image, tick, err);
    struct trib_store_table_push push = {
        .number = trib_store_clock(table, vector, 0) + 1, .data = &one};

    if (st != TRIB_OK || !atomic_load(&overtakes))
        return st;
    return trib_store_table_push(table, vector, &push, tick, err);
}

static inline void copy_slowly(const struct trib_store_image *image,
                               const struct trib_snapshot_about *about,
                               struct trib_store_walk *walk, uint8_t *out)
{
    while (atomic_load(&copies_hang))
        usleep(1000);
    trib_snapshot_copy(image, about, walk, out);
}

static inline void rest_slowly(struct store_thread *t)
{
    while (atomic_load(&ends_hang))
        usleep(1000);
    store_thread_rest(t);
}

static inline void pause_for(const struct timespec *time, struct timespec *left)
{
    (void)(atomic_load(&hurries) ? usleep(1000) : nanosleep(time, left));
}

static inline void *grow_memory(void *bytes, size_t n)
{
    return atomic_load(&short_of_memory) ? NULL : realloc(bytes, n);
}

#define realloc(bytes, n) grow_memory(bytes, n)
#define nanosleep(...) pause_for(__VA_ARGS__)
#define trib_snapshot_copy(image, about, walk, out) copy_slowly(image, about, walk, out)
#define trib_store_peer_create(opts, out) create_peer(opts, out)
#define archive_is_done(archive, task) is_done(archive, task)
#define archive_wait(archive, task) wait_for_disk(archive, task)
#define trib_store_put(table, vector, image, tick, err) \
    put(table, vector, image, tick, err)
#define STORE_JOB_KEEP_MS (uint64_t) keep_ms
#define store_thread_rest(t) rest_slowly(t)
#include "agg/daemon/store_job.c"
#undef store_thread_rest
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

static inline void rig_open(struct rig *rig, uint32_t ranks)
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

/* Return false if last snapshots were lost. */
static inline bool rig_close(struct rig *rig)
{
    store_job_free(rig->job);
    const bool kept = archive_close(rig->archive);
    store_turns_free(rig->turns);
    trib_metrics_destroy(rig->metrics);
    trib_auth_free(rig->auth);
    close(rig->wake_fd);
    return kept;
}

/* Connect a rank and hand its session to the store. */
static inline void join_for(const struct rig *rig, uint32_t rank, struct rank *r,
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

static inline void join(const struct rig *rig, uint32_t rank, struct rank *r)
{
    join_for(rig, rank, r, TRIB_OK);
}

static inline void say(struct rank *r, struct trib_control m)
{
    assert_status(trib_session_send_wait(r->session, trib_deadline_ms(LONG_MS), &m),
                  TRIB_OK);
}

static inline void hear(struct rank *r, enum trib_control_kind kind)
{
    assert_status(trib_session_take_wait(r->session, trib_deadline_ms(LONG_MS), &r->m),
                  TRIB_OK);
    assert_string_equal(trib_control_name(r->m.kind), trib_control_name(kind));
}

static inline void leave(struct rank *r)
{
    say(r, (struct trib_control){.kind = TRIB_CONTROL_GOODBYE});
    trib_session_free(r->session);
}

/* Wait until the store has ended by itself. */
static inline void ends(const struct rig *rig, const char *why)
{
    const uint64_t until = trib_deadline_ms(tribtest_patience_ms());

    while (!store_job_reap(rig->job)) {
        assert_false(trib_deadline_passed(until));
        usleep(1000);
    }
    assert_string_equal(store_job_why(rig->job), why);
}

/* A store of one rank with snapshots, and a vector of one element ------------------ */

static const uint8_t owner[TRIB_SNAPSHOT_OWNER_BYTES];
static const struct archive_key key = {owner, "ana", "x"};

static inline void say_push(struct rank *r, enum trib_control_push purpose,
                            uint64_t number)
{
    static const int32_t one = 1;

    say(r, (struct trib_control){.kind = TRIB_CONTROL_STORE_PUSH,
                                 .store_push = {.purpose = purpose,
                                                .number = number,
                                                .data = {(const uint8_t *)&one, 4}}});
    hear(r, TRIB_CONTROL_STORE_DONE);
}

static inline void say_order(struct rank *r, enum trib_control_snapshot what)
{
    say(r, (struct trib_control){.kind = TRIB_CONTROL_STORE_SNAPSHOT,
                                 .store_snapshot = {0, what}});
}

static inline void join_and_open(const struct rig *rig, struct rank *r)
{
    join(rig, 0, r);
    hear(r, TRIB_CONTROL_STORE_JOINED);
    say(r, (struct trib_control){.kind = TRIB_CONTROL_STORE_OPEN,
                                 .store_open = {"x", TRIB_I32, 1, "sum"}});
    hear(r, TRIB_CONTROL_STORE_VECTOR);
}

static inline void make_folder(struct rig *rig)
{
    const char *tmp = getenv("TMPDIR");

    atomic_store(&keep_ms, LONG_MS);
    snprintf(rig->folder, sizeof(rig->folder), "%.300s/snapshots.XXXXXX",
             tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(rig->folder));
}

/* Push once, and save version 1. */
static inline void begin_saved(struct rig *rig, struct rank *r)
{
    make_folder(rig);
    rig_open(rig, 1);
    join_and_open(rig, r);
    say_push(r, TRIB_CONTROL_PUSH, 1);
    say_order(r, TRIB_CONTROL_SNAPSHOT_TAKE);
    hear(r, TRIB_CONTROL_STORE_DONE);
}

static inline void shut_down(const struct rig *rig)
{
    store_job_drain(rig->job);
    store_job_end(rig->job, "a shutdown");
    ends(rig, "a shutdown");
}

static inline void end_saved(struct rig *rig)
{
    const struct archive_key all = {owner, "ana", NULL};

    store_job_end(rig->job, "the end");
    while (!store_job_reap(rig->job))
        usleep(1000);
    archive_drop(rig->archive, &all);
    rig_close(rig);
    assert_int_equal(rmdir(rig->folder), 0);
}

static inline bool is_busy(const struct rig *rig)
{
    struct store_keeper *keeper = rig->job->keeper;

    pthread_mutex_lock(&keeper->mutex);
    const bool busy = keeper->busy;
    pthread_mutex_unlock(&keeper->mutex);
    return busy;
}

/* Wait until the snapshot on disk has a version. */
static inline void await_version(const struct rig *rig, uint64_t version)
{
    const uint64_t until = trib_deadline_ms(tribtest_patience_ms());

    while (archive_version(rig->archive, &key) != version + 1) {
        assert_false(trib_deadline_passed(until));
        usleep(1000);
    }
}

#endif
