/* SPDX-License-Identifier: BSD-3-Clause */
/* The inside of the folder of snapshots, for the files that work on it. */
#ifndef TRIBD_ARCHIVE_PARTS_H
#define TRIBD_ARCHIVE_PARTS_H

#include <pthread.h>

#include "tribd/archive.h"

#define ARCHIVE_SUFFIX ".snapshot"
#define ARCHIVE_PART ".part"

enum {
    ARCHIVE_NAME_BYTES = 40, /* "0000000000000007.snapshot.part" */
};

/* A file that was found whole, or was written here. */
struct archive_file {
    uint64_t number; /* its name */
    uint64_t bytes;
    struct trib_snapshot_about about;
};

struct archive {
    int folder_fd;
    char folder[512];
    const struct trib_log *log;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t wake; /* a task was given */
    pthread_cond_t ended; /* a task is done */

    /* under mutex */
    uint64_t disk, user_disk;
    struct archive_file *files; /* [room] */
    uint32_t n, room;
    uint64_t last_number;
    uint64_t other_bytes; /* of files that are not in the list */
    uint8_t (*users)[TRIB_SNAPSHOT_OWNER_BYTES]; /* [n_users] owners of stores here */
    uint32_t n_users;
    struct archive_task *first, *last;
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

/** archive_check_room - errors: TRIB_ERR_NO_RESOURCE: a file of `n` bytes is more than
 * the limits allow. */
trib_status_t archive_check_room(const struct archive *a, const char *user, uint64_t n,
                                 struct trib_error *err);

/** archive_expire - remove the snapshots that nobody can use any more. */
void archive_expire(struct archive *a);

#endif
