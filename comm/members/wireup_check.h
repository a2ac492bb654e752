/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The first wireup message and its checks.
 */
#ifndef COMM_MEMBERS_WIREUP_CHECK_H
#define COMM_MEMBERS_WIREUP_CHECK_H

#include <stdint.h>

#include "base/host.h"
#include "base/release.h"
#include "boot/boot.h"
#include "comm/core/communicator.h"
#include "topo/cpus.h"

#define TRIB_WIREUP_VERSION 16

/* The first message: identity of a rank, and the values that all ranks must agree on.
 * magic, version, release and host keep their offsets in every version. */
struct wireup_msg1 {
    uint32_t magic; /* TRIB_FRAME_MAGIC */
    uint32_t version; /* TRIB_WIREUP_VERSION */
    char release[TRIB_RELEASE_BYTES];
    char host[TRIB_HOST_BYTES];
    uint64_t settings;
    uint64_t machine; /* digest of boot id and pid namespace: equal on one host */
    struct trib_cpus cpus; /* cores that this rank may use */
    uint64_t room[2]; /* bytes that this rank can register; [1]: if all are on one
                       * host */
    int32_t pid;
    uint16_t chunk_given; /* TRIB_CHUNK is not the default */
    uint16_t never_maps; /* its transport never has load/store reach */
    uint32_t round_trip_us; /* to rank 0, measured at rendezvous; 0: unknown */
    uint32_t window_given; /* TRIB_WINDOW is not the default */
    uint8_t secret_mark[8]; /* trib_secret_mark */
    struct trib_address address;
    char settings_text[400];
};
_Static_assert(sizeof(struct wireup_msg1) <= TRIB_BOOT_BLOB_MAX,
               "the first message fits a boot blob");

/** trib_wireup_could_not_join - report a rank whose zeros signal a failed join. */
trib_status_t trib_wireup_could_not_join(struct trib_comm *comm, int rank);

/**
 * trib_wireup_check - check that all ranks are compatible with rank 0.
 *
 * all      one message per rank; terminates peers' strings and makes them printable
 * errors   TRIB_ERR_MISMATCH: another release, secret or settings; TRIB_ERR_BOOT: a
 *          rank that could not join. All ranks get the same message.
 */
trib_status_t trib_wireup_check(struct trib_comm *comm, struct wireup_msg1 *all);

/** trib_wireup_difference - find the first setting that differs between texts a and b,
 * both "name=value name=value". Store a's in x and b's in y. */
void trib_wireup_difference(const char *a, const char *b, char *x, char *y,
                            size_t bytes);

#endif
