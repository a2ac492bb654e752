/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The folder of snapshots: what is in it, within which limits, and a thread that writes
 * and reads there, so that no store waits for a disk.
 *
 * A snapshot is written beside the one that it replaces, synchronised, and renamed: a
 * tribd that is killed at any moment leaves the old one or the new one. Files that are
 * damaged, cut short or foreign are named in the log, and stay as they are. Those whose
 * key no later run has are removed once this tribd has run for ARCHIVE_ORPHAN_S without
 * a store that uses them: the time of day counts for nothing, as it may be wrong.
 *
 * Some threads write and read. Users take turns for them, and the stores of a user;
 * the last thread that is free takes what is small, or of a user without another one.
 */
#ifndef TRIBD_ARCHIVE_H
#define TRIBD_ARCHIVE_H

#include "agg/metrics/metrics.h"
#include "agg/store/snapshot_about.h"
#include "base/error.h"

enum {
    ARCHIVE_ORPHAN_S = 7 * 86400,
    ARCHIVE_ROWS_MOST = 1024, /* snapshots that archive_view describes */
};

struct archive;
struct trib_log;
struct trib_quota;
struct trib_snapshot;

/* The subject of a snapshot: three things that must all be the same. */
struct archive_key {
    const uint8_t *owner; /* [TRIB_SNAPSHOT_OWNER_BYTES] */
    const char *user;
    const char *name; /* of the vector; NULL: all of that owner */
};

/* One thing to do. It is the caller's again once archive_is_done says so. */
struct archive_task {
    struct archive_task *next;
    bool writes; /* true: `bytes` go to disk, unsealed; false: they come from there */
    struct archive_key key;
    uint8_t *bytes; /* allocated; the caller frees them */
    uint64_t n;
    struct trib_quota *quota; /* memory of what is read is taken from it, and is the
                               * caller's to give back */
    int wake_fd; /* an eventfd that is written to at the end */
    struct trib_snapshot *snapshot; /* receives what is read; unused by a write */
    struct trib_error err; /* status 0: it went well */
    uint64_t took_ns; /* time on a thread of the archive */
    bool noted; /* the file is in the list */
    bool done; /* archive_is_done */
};

/* Most bytes on the disk, and files, of all snapshots and of one user's. 0: half of
 * what is free for all; no limit of bytes for a user, and half of the files, but all of
 * them for those who come by a method that names no users. */
struct archive_limits {
    uint64_t disk, user_disk;
    uint32_t files, user_files;
};

/**
 * archive_open - look into a folder, and start the threads.
 *
 * errors   TRIB_ERR_CONFIG: there is no such folder, it is not to be written, or others
 *          could change what is in it
 */
trib_status_t archive_open(const char *folder, const struct archive_limits *limits,
                           const struct trib_log *log, struct trib_error *err,
                           struct archive **out);

/** archive_close - end the threads after the tasks under way; NULL is allowed. */
void archive_close(struct archive *archive);

/** archive_limit - other limits, from now on. */
void archive_limit(struct archive *archive, const struct archive_limits *limits);

/** archive_written_mt - bytes that have gone to the disk so far. */
uint64_t archive_written_mt(const struct archive *archive);

/** archive_failed_mt - count a snapshot that could not even be given. */
void archive_failed_mt(struct archive *archive);

/** archive_give - have it done. */
void archive_give(struct archive *archive, struct archive_task *task);

/** archive_is_done - true if a task that was given is done. */
bool archive_is_done(struct archive *archive, const struct archive_task *task);

/** archive_wait - wait until a task that was given is done. */
void archive_wait(struct archive *archive, const struct archive_task *task);

/** archive_version - the version of a snapshot, plus 1; 0: there is none. */
uint64_t archive_version(struct archive *archive, const struct archive_key *key);

/** archive_describe - append to a sentence which vectors have which versions. */
void archive_describe(struct archive *archive, const struct archive_key *key,
                      char *text, size_t bytes);

/**
 * archive_use - note that a store has come that uses the snapshots of an owner, or that
 * one has gone.
 *
 * returns  false: no memory to note it
 */
bool archive_use(struct archive *archive, const uint8_t *owner, bool uses);

/** archive_drop - remove the snapshots of an owner. */
void archive_drop(struct archive *archive, const struct archive_key *key);

/**
 * archive_forget - remove snapshots by the word of an operator.
 *
 * what     "JOB", or "JOB VECTOR", as archive_view shows them
 * say      receives a sentence
 * returns  false: there are none
 */
bool archive_forget(struct archive *archive, const char *what, char *say, size_t bytes);

/** archive_view - what there is, for metrics; rows are allocated by malloc. */
void archive_view(struct archive *archive, struct trib_snapshots_view *out);

#endif
