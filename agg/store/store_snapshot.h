/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Snapshot file format: one complete vector of a store with its rule state, its
 * version, and each rank's last push number, so that no push is applied twice.
 *
 *     +------+--------------------+-------+----------------------+
 *     | head | clock [ranks]      | value | state of the rule    |
 *     +------+--------------------+-------+----------------------+
 *
 * Numbers and elements are in the host's byte order, which the head records; hosts of
 * another byte order refuse the file. Head and body each have a digest, so truncated or
 * modified files are refused.
 *
 * Pure functions on bytes.
 */
#ifndef AGG_STORE_STORE_SNAPSHOT_H
#define AGG_STORE_STORE_SNAPSHOT_H

#include "agg/store/store_image.h"

enum {
    TRIB_SNAPSHOT_FORMAT = 1,
    TRIB_SNAPSHOT_HEAD_BYTES = 504,
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
    uint64_t number; /* of the file that it was written to; 0: unknown */
};

struct trib_snapshot {
    struct trib_snapshot_about about;
    uint64_t file_bytes;
    struct trib_store_image image; /* points into the bytes, except `rule` */
    char rule[TRIB_STORE_RULE_TEXT_MAX + 4];
};

/** trib_snapshot_bytes - return the file length of an image. */
uint64_t trib_snapshot_bytes(const struct trib_store_image *image);

/**
 * trib_snapshot_copy - write the file, except its digests.
 *
 * about    metadata; name and version come from the image
 * walk     just begun when the image was made; locks the last stripe at return. NULL:
 *          the vector does not change during the copy
 * out      [trib_snapshot_bytes]
 */
void trib_snapshot_copy(const struct trib_store_image *image,
                        const struct trib_snapshot_about *about,
                        struct trib_store_walk *walk, uint8_t *out);

/** trib_snapshot_set_number - set the number of the file, before trib_snapshot_seal. */
void trib_snapshot_set_number(uint8_t *bytes, uint64_t number);

/** trib_snapshot_seal - add the digests. */
void trib_snapshot_seal(uint8_t *bytes, uint64_t n);

/**
 * trib_snapshot_head - read and validate the head only.
 *
 * bytes    at least TRIB_SNAPSHOT_HEAD_BYTES
 * file_bytes  length of the file
 * errors   TRIB_ERR_MISMATCH: err has the fault as a clause
 */
trib_status_t trib_snapshot_head(const uint8_t *bytes, uint64_t file_bytes,
                                 struct trib_error *err, struct trib_snapshot *out);

/**
 * trib_snapshot_read - read and validate a whole file.
 *
 * bytes    must outlive `out`
 * errors   as trib_snapshot_head
 */
trib_status_t trib_snapshot_read(const uint8_t *bytes, uint64_t n,
                                 struct trib_error *err, struct trib_snapshot *out);

#endif
