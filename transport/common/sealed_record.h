/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Encrypted records. One side of a connection encrypts the bytes that it writes and
 * adds a tag. The tag proves to the other side that the bytes and their order are
 * unchanged.
 *
 *     | magic u32 | bytes u32 | that many bytes, encrypted | tag 16 |
 *
 * Each direction of each connection has its own key, derived from the job's secret,
 * both nonces of the connection, and the side that writes. The nonce of a record is its
 * number under this key, from 0 on. The number is not sent: a record that is repeated,
 * dropped or reordered fails the tag check. The tag also covers the first eight bytes.
 * After TRIB_RECORDS_PER_KEY records, both sides derive the next key and restart at 0.
 *
 * Only one thread at a time may use a direction. No function blocks or allocates.
 */
#ifndef TRANSPORT_COMMON_SEALED_RECORD_H
#define TRANSPORT_COMMON_SEALED_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/status.h>

#include "base/proof.h"

struct trib_error;

#define TRIB_RECORD_MAGIC UINT32_C(0x53627254) /* "TrbS" */
#define TRIB_RECORD_TAG 16
#define TRIB_RECORD_STATE 512 /* bytes of libsodium's state for an AES key */
/* This many records of 64 KiB under one key are far below the limit of AES-GCM. */
#define TRIB_RECORDS_PER_KEY (UINT64_C(1) << 22)

struct trib_record_head {
    uint32_t magic;
    uint32_t len;
};
_Static_assert(sizeof(struct trib_record_head) == 8, "no padding");

/* Overhead of a record in bytes. */
#define TRIB_RECORD_MORE (sizeof(struct trib_record_head) + TRIB_RECORD_TAG)

/* One direction of a connection. If zeroed, it has no key. */
struct trib_records {
    _Alignas(16) uint8_t aes[TRIB_RECORD_STATE];
    uint8_t key[TRIB_PROOF_BYTES];
    const struct trib_sodium *sodium; /* NULL: no key */
    uint64_t number; /* of the next record under this key */
    bool is_aes;
};

/** trib_record_has_aes - return true if libsodium can use this CPU's AES
 * instructions. */
bool trib_record_has_aes(const struct trib_secret *secret);

/**
 * trib_record_check - check that the prerequisites of records are met.
 *
 * secret   the job's; NULL or not set: none
 * errors   TRIB_ERR_CONFIG: the job has no secret, or this host has no libsodium
 */
trib_status_t trib_record_check(const struct trib_secret *secret,
                                struct trib_error *err);

/**
 * trib_record_begin - derive the key of a direction, starting at record 0.
 *
 * secret   the job's, armed; outlives the direction
 * about    the statement that both sides proved on this connection; its nonces are
 *          unique
 * writer   the side that writes in this direction
 * aes      both sides support AES256-GCM; else XChaCha20-Poly1305 is used
 */
void trib_record_begin(struct trib_records *s, const struct trib_secret *secret,
                       const struct trib_proof *about, enum trib_proof_side writer,
                       bool aes);

/**
 * trib_record_close - encrypt n bytes in place and turn them into a record.
 *
 * record   holds n bytes after its first 8, and room for n + TRIB_RECORD_MORE
 * returns  the length of the record
 */
size_t trib_record_close(struct trib_records *s, uint8_t *record, size_t n);

/**
 * trib_record_open - decrypt a record.
 *
 * record   complete, as its first 8 bytes say
 * out      room for the decrypted bytes. After a failure its content must not be used
 * returns  false: this is not the next record that the other side wrote
 */
bool trib_record_open(struct trib_records *s, const uint8_t *record, uint8_t *out);

/** trib_record_wipe - erase the key. */
void trib_record_wipe(struct trib_records *s);

#endif
