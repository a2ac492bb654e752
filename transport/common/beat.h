/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The datagram of a heartbeat, 40 bytes. Its seal is a MAC under the job's secret that
 * also covers the key in the receiver's address: no other process can ask or answer.
 * Without a secret, a digest replaces the MAC: it excludes other jobs, but not an
 * attacker.
 */
#ifndef TRANSPORT_COMMON_BEAT_H
#define TRANSPORT_COMMON_BEAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/digest.h"
#include "base/secret.h"

#define HEARTBEAT_MAGIC UINT32_C(0x51627254) /* "TrbQ"; changes with the layout */

enum { BEAT_SEAL_BYTES = 16 };

enum heartbeat_kind {
    HEARTBEAT_ASK = 1,
    HEARTBEAT_ANSWER = 2,
    HEARTBEAT_CONTINUES = 3, /* the sender's job has continued without the receiver */
};

struct beat {
    uint32_t magic;
    uint32_t kind;
    int32_t from;
    int32_t to;
    uint64_t number; /* of the question; its answer repeats it */
    uint8_t seal[BEAT_SEAL_BYTES];
};
_Static_assert(sizeof(struct beat) == 40, "no padding");

/**
 * trib_beat_seal - write the seal of a heartbeat to out.
 *
 * key      of the receiver; for an answer, of its sender
 * secret   the job's; NULL or not set: none
 */
static inline void trib_beat_seal(const struct beat *b, uint64_t key,
                                  const struct trib_secret *secret,
                                  uint8_t out[BEAT_SEAL_BYTES])
{
    struct {
        uint8_t beat[offsetof(struct beat, seal)];
        uint64_t key;
    } all = {.key = key};
    uint8_t mac[TRIB_PROOF_BYTES] = {0};

    memcpy(all.beat, b, sizeof(all.beat));
    if (secret && secret->is_set) {
        trib_secret_mac(secret, "heartbeat", &all, sizeof(all), mac);
    } else {
        uint64_t digest = trib_digest_seeded(all.beat, sizeof(all.beat), key);
        memcpy(mac, &digest, sizeof(digest));
    }
    memcpy(out, mac, BEAT_SEAL_BYTES);
}

/** trib_beat_is_sealed - return true if the seal is valid. */
static inline bool trib_beat_is_sealed(const struct beat *b, uint64_t key,
                                       const struct trib_secret *secret)
{
    uint8_t right[BEAT_SEAL_BYTES];

    trib_beat_seal(b, key, secret, right);
    return secret && secret->is_set
               ? secret->sodium.equal(right, b->seal, BEAT_SEAL_BYTES) == 0
               : memcmp(right, b->seal, BEAT_SEAL_BYTES) == 0;
}

#endif
