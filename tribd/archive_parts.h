/* SPDX-License-Identifier: BSD-3-Clause */
/* The inside of the folder of snapshots, for the files that work on it. */
#ifndef TRIBD_ARCHIVE_PARTS_H
#define TRIBD_ARCHIVE_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "tribd/archive.h"

#define ARCHIVE_SUFFIX ".snapshot"
#define ARCHIVE_PART ".part"
#define ARCHIVE_OLDER ".older" /* of a vector that has a newer snapshot */

#define ARCHIVE_NUMBER_MAX (UINT64_MAX >> 1)

enum {
    ARCHIVE_NAME_BYTES = 40, /* "0000000000000007.snapshot.part" */
    ARCHIVE_THREADS = 4,
    ARCHIVE_SMALL_BYTES = 4 << 20, /* a task that the last free thread takes */
    ARCHIVE_TURNS = 64, /* stores whose last turn is known */
    ARCHIVE_FILES_MAX = 65536,
};

/* A file that was found whole, or was written here. */
struct archive_file {
    uint64_t number; /* its name */
    uint64_t bytes;
    uint64_t unused_ns; /* since then no store uses it, unless one does now */
    struct trib_snapshot_about about;
};

struct archive_thread {
    struct archive *archive;
    pthread_t thread;
    struct archive_task *task; /* under way; NULL: none. Under the mutex */
};

/* The last turn of a store. */
struct archive_turn {
    uint64_t number; /* 0: of none */
    uint8_t owner[TRIB_SNAPSHOT_OWNER_BYTES];
    char user[TRIB_SNAPSHOT_TEXT_BYTES];
};

struct archive {
    int folder_fd;
    char folder[512];
    const struct trib_log *log;
    uint64_t block; /* bytes that a file takes at least, and a multiple of it */
    struct archive_thread threads[ARCHIVE_THREADS];
    uint32_t n_threads;
    _Atomic uint64_t written;
    _Atomic uint64_t failures; /* snapshots that were not written */
    pthread_mutex_t mutex;
    pthread_cond_t wake; /* a task was given, or a thread is free */
    pthread_cond_t ended; /* a task is done */

    /* under mutex */
    struct archive_limits limits;
    struct archive_file *files; /* [room] */
    uint32_t n, room;
    uint64_t last_number;
    uint64_t other_bytes; /* on the disk, of files that are not in the list */
    uint32_t n_other;
    uint8_t (*users)[TRIB_SNAPSHOT_OWNER_BYTES]; /* [n_users] owners of stores here */
    uint32_t n_users;
    struct archive_task *first, *last;
    struct archive_turn turns[ARCHIVE_TURNS];
    uint64_t turn; /* the newest number of these */
    bool stop;
};

/** archive_name_file - the name of a file; more: what follows it. */
void archive_name_file(char out[ARCHIVE_NAME_BYTES], uint64_t number, const char *more);

/* The list: under archive->mutex --------------------------------------------------- */

/** archive_is_of - true if a file has this subject. */
bool archive_is_of(const struct archive_file *f, const struct archive_key *key);

/** archive_find - the file of a subject; NULL: there is none. */
struct archive_file *archive_find(const struct archive *a,
                                  const struct archive_key *key);

/** archive_append - a place at the end of the list; NULL: no memory. */
struct archive_file *archive_append(struct archive *a);

/** archive_on_disk - the bytes that a file takes there. */
uint64_t archive_on_disk(const struct archive *a, uint64_t bytes);

/** archive_check_room - errors: TRIB_ERR_NO_RESOURCE: the file that a task of a thread
 * writes is more than the limits allow. */
trib_status_t archive_check_room(const struct archive *a, struct archive_task *task);

/** archive_take_turn - the task that is next, which leaves the queue; NULL: none may
 * begin now. */
struct archive_task *archive_take_turn(struct archive *a);

/* Files ---------------------------------------------------------------------------- */

/**
 * archive_open_file - open a snapshot to read it: a regular file of this user or root.
 *
 * bytes_out    its length; 0 where it is not opened
 * returns      the descriptor; -1, and fault has a clause
 */
int archive_open_file(const struct archive *a, const char *name,
                      struct trib_error *fault, uint64_t *bytes_out);

/**
 * archive_is_attached - true if the folder is still found by its name.
 *
 * false    its file system was unmounted, or another one or folder has its name; err
 *          says so
 */
bool archive_is_attached(const struct archive *a, struct trib_error *err);

/** archive_serve - the loop of a thread; arg: a struct archive_thread. */
void *archive_serve(void *arg);

/** archive_expire - remove the snapshots that nobody can use any more. */
void archive_expire(struct archive *a);

#endif
