/* SPDX-License-Identifier: BSD-3-Clause */
/* The subject of a snapshot, without its elements. */
#ifndef AGG_STORE_SNAPSHOT_ABOUT_H
#define AGG_STORE_SNAPSHOT_ABOUT_H

#include <stdbool.h>
#include <stdint.h>

enum {
    TRIB_SNAPSHOT_OWNER_BYTES = 32,
    TRIB_SNAPSHOT_TEXT_BYTES = 68, /* a name with its zero, padded */
};

/* A snapshot says which key owns its vector, and when it was taken. */
struct trib_snapshot_about {
    uint8_t owner[TRIB_SNAPSHOT_OWNER_BYTES]; /* the key that its ranks have */
    bool lasting; /* later runs have that key, too */
    int64_t taken_s; /* seconds since 1970 */
    char user[TRIB_SNAPSHOT_TEXT_BYTES];
    char job[TRIB_SNAPSHOT_TEXT_BYTES]; /* for people */
    char name[TRIB_SNAPSHOT_TEXT_BYTES]; /* of the vector */
    uint64_t version;
};

#endif
