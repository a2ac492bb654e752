/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file of a snapshot: one vector of a store, whole, with the state of its rule, its
 * version, and the number of the last push of each rank, so that none is applied twice.
 *
 *     +------+--------------------+-------+----------------------+
 *     | head | clock [ranks]      | value | state of the rule    |
 *     +------+--------------------+-------+----------------------+
 *
 * Numbers and elements are as the host has them, and the head says in which order their
 * bytes are; another host refuses them. Head and body have a digest each, so that what
 * is cut short or changed is refused.
 *
 * Pure functions on bytes.
 */
#ifndef AGG_STORE_STORE_SNAPSHOT_H
#define AGG_STORE_STORE_SNAPSHOT_H

#include "agg/store/snapshot_about.h"
#include "agg/store/store_image.h"

enum {
    TRIB_SNAPSHOT_FORMAT = 1,
    TRIB_SNAPSHOT_HEAD_BYTES = 504,
};

struct trib_snapshot {
    struct trib_snapshot_about about;
    uint64_t file_bytes;
    struct trib_store_image image; /* points into the bytes, but `rule` */
    char rule[TRIB_STORE_RULE_TEXT_MAX + 4];
};

/** trib_snapshot_bytes - length of the file of an image. */
uint64_t trib_snapshot_bytes(const struct trib_store_image *image);

/**
 * trib_snapshot_copy - write the file but for its digests.
 *
 * about    without name and version, which are the image's
 * walk     has just begun when the image was made, and holds the last elements behind
 *          the copy; NULL: nothing changes meanwhile
 * out      [trib_snapshot_bytes]
 */
void trib_snapshot_copy(const struct trib_store_image *image,
                        const struct trib_snapshot_about *about,
                        struct trib_store_walk *walk, uint8_t *out);

/** trib_snapshot_seal - add the digests. */
void trib_snapshot_seal(uint8_t *bytes, uint64_t n);

/**
 * trib_snapshot_head - read the head alone.
 *
 * bytes    at least TRIB_SNAPSHOT_HEAD_BYTES
 * file_bytes length of the file
 * errors   TRIB_ERR_MISMATCH: what is wrong with it, as a clause in err
 */
trib_status_t trib_snapshot_head(const uint8_t *bytes, uint64_t file_bytes,
                                 struct trib_error *err, struct trib_snapshot *out);

/**
 * trib_snapshot_read - read and check all of a file.
 *
 * bytes    stay while `out` is used
 * errors   as trib_snapshot_head
 */
trib_status_t trib_snapshot_read(const uint8_t *bytes, uint64_t n,
                                 struct trib_error *err, struct trib_snapshot *out);

#endif
