/* SPDX-License-Identifier: BSD-3-Clause */
/* Internals of the snapshot directory, for the files that implement it. */
#ifndef AGG_DAEMON_ARCHIVE_PARTS_H
#define AGG_DAEMON_ARCHIVE_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "agg/daemon/archive.h"

#define ARCHIVE_SUFFIX ".snapshot"
#define ARCHIVE_PART ".part"
#define ARCHIVE_OLDER ".older" /* the vector has a newer snapshot */

#define ARCHIVE_NUMBER_MAX (UINT64_MAX >> 1)

enum {
    ARCHIVE_NAME_BYTES = 40, /* "0000000000000007.snapshot.part" */
    ARCHIVE_THREADS = 4,
    ARCHIVE_SMALL_BYTES = 4 << 20, /* the last free thread accepts such tasks */
    ARCHIVE_TURNS = 64, /* stores whose last turn is remembered */
    ARCHIVE_FILES_MAX = 65536,
    ARCHIVE_RETRY_MS = 60000, /* until a failed deletion is tried again */
};

/* A valid file found at start, or written by this process. */
struct archive_file {
    uint64_t number; /* its file name */
    uint64_t bytes;
    uint64_t unused_ns; /* time since which no store uses it, unless one uses it now */
    struct trib_snapshot_about about;
};

/* A file that is no longer listed, and will be deleted. It uses the disk until then. */
struct archive_gone {
    uint64_t number;
    uint64_t bytes;
    uint64_t removal; /* number of its removal by archive_forget; 0: by another one */
    uint64_t retry_ns; /* earliest next try after a failed deletion; 0: at once */
    bool failed; /* logged */
    bool deleted; /* but the folder is not synchronised yet */
    char user[TRIB_SNAPSHOT_TEXT_BYTES];
};

struct archive_thread {
    struct archive *archive;
    pthread_t thread;
    struct archive_task *task; /* current task; NULL: none. Under mutex */
};

/* Last turn of a store. */
struct archive_turn {
    uint64_t number; /* 0: unused */
    uint8_t owner[TRIB_SNAPSHOT_OWNER_BYTES];
    char user[TRIB_SNAPSHOT_TEXT_BYTES];
};

struct archive {
    int folder_fd;
    char folder[512];
    const struct trib_log *log;
    uint64_t block; /* allocation unit of the file system */
    struct archive_thread threads[ARCHIVE_THREADS];
    uint32_t n_threads; /* to be joined */
    _Atomic uint64_t progress; /* of archive_progress_mt */
    _Atomic uint64_t failures; /* failed snapshots */
    _Atomic int at_disk; /* threads that may wait for the disk */
    _Atomic int apart; /* threads of archive_apart_mt */
    _Atomic bool lost; /* the last snapshots of a store */
    pthread_mutex_t mutex;
    pthread_cond_t wake; /* a task was queued, or a thread is free */
    pthread_cond_t ended; /* a task is done, or a thread has ended */

    /* Under mutex: */
    uint32_t n_running; /* threads */
    struct archive_limits limits;
    struct archive_limits asked; /* by archive_limit; 0: depends on the free space */
    bool measures; /* `asked` does not apply yet: the free space must be measured */
    struct archive_file *files; /* [room] */
    uint32_t n, room;
    struct archive_gone *gone; /* [gone_room], at least n + n_gone */
    uint32_t n_gone, gone_room;
    bool chore; /* a thread measures the free space or deletes a file now */
    uint64_t last_number;
    uint64_t n_removals; /* by archive_forget */
    uint64_t other_bytes; /* disk usage of files not listed */
    uint32_t n_other;
    uint8_t (*users)[TRIB_SNAPSHOT_OWNER_BYTES]; /* [n_users] owners of open stores */
    uint32_t n_users;
    struct archive_task *first, *last;
    struct archive_turn turns[ARCHIVE_TURNS];
    uint64_t turn; /* latest number of a turn */
    bool stop;
};

/** archive_name_file - format a file name; more: text to append. */
void archive_name_file(char out[ARCHIVE_NAME_BYTES], uint64_t number, const char *more);

/* The list; call with archive->mutex held ------------------------------------------ */

/** archive_is_of - return true if a file has this key. */
bool archive_is_of(const struct archive_file *f, const struct archive_key *key);

/** archive_find - return the file of a key; NULL: none. */
struct archive_file *archive_find(const struct archive *a,
                                  const struct archive_key *key);

/** archive_append - append an entry to the list and return it; NULL: out of memory. */
struct archive_file *archive_append(struct archive *a);

/** archive_delete_one - release the mutex and delete a file that is no longer listed,
 * or synchronise the folder after deletions by archive_forget; return false if there is
 * nothing to do. One thread at a time. */
bool archive_delete_one(struct archive *a);

/** archive_measure - release the mutex, measure the free space and set the limits that
 * depend on it; return false if none do. One thread at a time. */
bool archive_measure(struct archive *a);

/** archive_has_deletions - return true if a file is to be deleted, other than one whose
 * deletion failed and is tried again later. */
bool archive_has_deletions(const struct archive *a);

/** archive_retry_deletions - try failed deletions again at once. */
void archive_retry_deletions(struct archive *a);

/** archive_awaits_deletions - return true if a queued write has no room until files are
 * deleted. */
bool archive_awaits_deletions(const struct archive *a, const struct archive_task *task);

/** archive_list_written - list the file that a task has written; false: out of
 * memory. */
bool archive_list_written(struct archive *a, struct archive_task *task,
                          const struct trib_snapshot_about *about);

/** archive_on_disk - return the disk usage of a file of `bytes` bytes. */
uint64_t archive_on_disk(const struct archive *a, uint64_t bytes);

/** archive_check_room - check the limits for a task that has begun; errors:
 * TRIB_ERR_NO_RESOURCE. */
trib_status_t archive_check_room(const struct archive *a, struct archive_task *task);

/** archive_take_turn - dequeue the next task; NULL: none may start now. */
struct archive_task *archive_take_turn(struct archive *a);

/** archive_dequeue - remove a task from the queue. */
void archive_dequeue(struct archive *a, const struct archive_task *task);

/* Files ---------------------------------------------------------------------------- */

/**
 * archive_open_file - open a snapshot for reading; it must be a regular file of this
 * user or root.
 *
 * bytes_out    its length; 0 if not opened
 * returns      the descriptor; -1: fault has a clause
 */
int archive_open_file(const struct archive *a, const char *name,
                      struct trib_error *fault, uint64_t *bytes_out);

/** archive_exists - return true if a file has this name. */
bool archive_exists(const struct archive *a, const char *name);

/** archive_rename - rename a file to a name that no other file has; return false and
 * set errno on failure. */
bool archive_rename(const struct archive *a, const char *from, const char *to);

/** archive_serve - main loop of a thread; arg: a struct archive_thread. */
void *archive_serve(void *arg);

/** archive_expire - remove snapshots that no store can use any longer. */
void archive_expire(struct archive *a);

#endif
