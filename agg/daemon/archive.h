/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The directory of snapshots: its contents, its limits, and threads that write and
 * read, so that no store waits for a disk.
 *
 * A snapshot is written to a temporary file, synchronised and renamed over the old one.
 * A tribd killed at any moment leaves the old or the new snapshot. Damaged, truncated
 * and foreign files are logged and left unchanged. Snapshots whose key no later run
 * knows are removed after this tribd has run for ARCHIVE_ORPHAN_S without a store that
 * uses them. The time of day is not used, because it may be wrong. A removed snapshot
 * is forgotten at once, and one of the threads deletes its file.
 *
 * Several threads write and read. Users take turns, and so do the stores of one user.
 * The last free thread only accepts small tasks, or tasks of a user without a running
 * task.
 */
#ifndef AGG_DAEMON_ARCHIVE_H
#define AGG_DAEMON_ARCHIVE_H

#include <stdatomic.h>

#include "agg/metrics/metrics.h"
#include "agg/store/store_snapshot.h"
#include "base/error.h"

enum {
    ARCHIVE_ORPHAN_S = 7 * 86400,
    ARCHIVE_ROWS_MOST = 1024, /* maximum rows of archive_view */
};

struct archive;
struct trib_log;
struct trib_quota;
struct trib_snapshot;

/* Identity of a snapshot; all three members must match. */
struct archive_key {
    const uint8_t *owner; /* [TRIB_SNAPSHOT_OWNER_BYTES] */
    const char *user;
    const char *name; /* name of the vector; NULL: all of that owner */
};

/* A task. The archive owns it until archive_is_done returns true. */
struct archive_task {
    struct archive_task *next;
    bool writes; /* true: write `bytes`, not sealed yet; false: read them */
    struct archive_key key;
    uint8_t *bytes; /* allocated; freed by the caller. Written: only the head is left */
    uint64_t n;
    struct trib_quota *quota; /* charged for `bytes`; the caller returns it */
    int wake_fd; /* eventfd written at the end */
    const char *job; /* of a write, for archive_forget; or NULL */
    const _Atomic bool *ended; /* set once no rank waits for it; or NULL */
    struct trib_snapshot *snapshot; /* receives the result of a read */
    struct trib_error err; /* status 0: success */
    uint64_t took_ns; /* time on an archive thread */
    uint64_t number; /* of the file that it writes, if it is admitted */
    bool prepared; /* archive_prepare has queued it, and archive_give has not */
    bool is_new; /* it gets a new file, and replaces no listed one */
    bool admitted; /* there is room for the file, which counts from now on */
    bool noted; /* the file is listed */
    bool last; /* a write that is tried again alone if the disk is full */
    bool alone; /* no other file is written meanwhile */
    bool again; /* it goes back to the queue, to be written alone */
    uint64_t removal; /* archive_forget removes the file once it is written; 0: none */
    bool done; /* archive_is_done */
};

/* Limits on bytes on disk and on files, in total and per user. 0 means for all users:
 * half of the free space; for one user: no byte limit, and half of the files, or all of
 * them if the authentication method has no user names. */
struct archive_limits {
    uint64_t disk, user_disk;
    uint32_t files, user_files;
};

/**
 * archive_open - open a directory and start the threads.
 *
 * errors   TRIB_ERR_CONFIG: the directory does not exist, is not writable, or can be
 *          changed by others
 */
trib_status_t archive_open(const char *folder, const struct archive_limits *limits,
                           const struct trib_log *log, struct trib_error *err,
                           struct archive **out);

/** archive_stop - finish queued tasks and deletions, and end the threads. Return false
 * if archive_progress_mt did not grow for stall_ms (0: no limit). Threads then still
 * use the archive, which must not be closed. */
bool archive_stop(struct archive *archive, int stall_ms);

/** archive_close - finish queued tasks and end the threads, or NULL; return false after
 * archive_lost_mt. */
bool archive_close(struct archive *archive);

/** archive_lost_mt - note that the last snapshots of a store could not be written. */
void archive_lost_mt(struct archive *archive);

/** archive_limit - change the limits. Those that depend on the free space change once a
 * thread of the archive has measured it. */
void archive_limit(struct archive *archive, const struct archive_limits *limits);

/** archive_progress_mt - return a number that grows while files are written, refused,
 * read or deleted. */
uint64_t archive_progress_mt(const struct archive *archive);

/** archive_apart_mt - count threads (1: begin, -1: end) that work on snapshots without
 * the disk, or pause. */
void archive_apart_mt(struct archive *archive, int change);

/** archive_is_apart_mt - return true if there are such threads, and no snapshot waits
 * for the disk: it does not hang. */
bool archive_is_apart_mt(const struct archive *archive);

/** archive_is_writing - return true if a snapshot that has room is being written, or,
 * with `queued`, a task is queued. */
bool archive_is_writing(struct archive *archive, bool queued);

/** archive_failed_mt - count a snapshot that failed before it became a task. */
void archive_failed_mt(struct archive *archive);

/**
 * archive_make_room - allocate `bytes` of a task, charged to its quota.
 *
 * what     uses them, for the message
 * errors   TRIB_ERR_NO_RESOURCE, TRIB_ERR_NO_MEMORY
 */
trib_status_t archive_make_room(struct archive_task *task, uint64_t n, const char *what,
                                struct trib_error *err);

/** archive_prepare - queue a write whose bytes are not complete yet, so that
 * archive_forget can see it. archive_give or archive_discard follows. */
void archive_prepare(struct archive *archive, struct archive_task *task);

/** archive_give - queue a task, or complete the bytes of a prepared one. */
void archive_give(struct archive *archive, struct archive_task *task);

/** archive_discard - complete a task of an ended store without working on it; it may be
 * prepared, but not given. */
void archive_discard(struct archive *archive, struct archive_task *task);

/** archive_is_done - return true if a queued task is done. */
bool archive_is_done(struct archive *archive, const struct archive_task *task);

/** archive_wait - wait until a queued task is done. */
void archive_wait(struct archive *archive, const struct archive_task *task);

/** archive_version - return the version of a snapshot, plus 1; 0: none. */
uint64_t archive_version(struct archive *archive, const struct archive_key *key);

/** archive_describe - append the vectors and versions of an owner to a message. */
void archive_describe(struct archive *archive, const struct archive_key *key,
                      char *text, size_t bytes);

/**
 * archive_use - note that a store which uses the snapshots of an owner opens or closes.
 *
 * returns  false: out of memory
 */
bool archive_use(struct archive *archive, const uint8_t *owner, bool uses);

/** archive_drop - remove the snapshots of an owner. */
void archive_drop(struct archive *archive, const struct archive_key *key);

/**
 * archive_forget - remove snapshots on request of an operator, also those that are
 * being copied or written for stores that have ended. Other stores may write new ones.
 *
 * what     "JOB", "USER/JOB", or one of these and " VECTOR", as shown by archive_view
 * say      receives a message
 * removal_out  for archive_is_deleted; 0: nothing was removed
 * returns  false: there are none, or JOB has snapshots of several users
 */
bool archive_forget(struct archive *archive, const char *what, char *say, size_t bytes,
                    uint64_t *removal_out);

/** archive_is_deleted - return true if the files of a removal by archive_forget are
 * deleted, and stay so after a power loss. */
bool archive_is_deleted(struct archive *archive, uint64_t removal);

/** archive_view - list the snapshots for metrics; rows are allocated with malloc. */
void archive_view(struct archive *archive, struct trib_snapshots_view *out);

#endif
