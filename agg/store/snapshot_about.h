/* SPDX-License-Identifier: BSD-3-Clause */
/* Metadata of a snapshot. */
#ifndef AGG_STORE_SNAPSHOT_ABOUT_H
#define AGG_STORE_SNAPSHOT_ABOUT_H

#include <stdbool.h>
#include <stdint.h>

enum {
    TRIB_SNAPSHOT_OWNER_BYTES = 32,
    TRIB_SNAPSHOT_TEXT_BYTES = 68, /* a name with its NUL, padded */
};

/* Owner, origin and time of a snapshot. */
struct trib_snapshot_about {
    uint8_t owner[TRIB_SNAPSHOT_OWNER_BYTES]; /* key known to the job's ranks */
    bool lasting; /* later runs know the key too */
    int64_t taken_s; /* seconds since 1970 */
    char user[TRIB_SNAPSHOT_TEXT_BYTES];
    char job[TRIB_SNAPSHOT_TEXT_BYTES]; /* for display */
    char name[TRIB_SNAPSHOT_TEXT_BYTES]; /* name of the vector */
    uint64_t version;
};

#endif
