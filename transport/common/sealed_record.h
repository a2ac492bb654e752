/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Records. One side of a connection encrypts what it writes, and adds a tag by which
 * the other side sees that the bytes are those that were written, in the order in which
 * they were.
 *
 *     | magic u32 | bytes u32 | that many bytes, encrypted | tag 16 |
 *
 * Each direction of each connection has a key of its own. The key comes from the job's
 * secret, both nonces of the connection, and the side that writes. The nonce of a
 * record is its number under this key, from 0 on. The number is not sent: a record that
 * is repeated, left out or moved has a wrong tag. The tag covers the first eight bytes,
 * too. After TRIB_RECORDS_PER_KEY records both sides derive the next key, and count
 * from 0 again.
 *
 * One thread at a time uses a direction. Nothing blocks or allocates.
 */
#ifndef TRANSPORT_COMMON_SEALED_RECORD_H
#define TRANSPORT_COMMON_SEALED_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/status.h>

#include "base/secret.h"

struct trib_error;

#define TRIB_RECORD_MAGIC UINT32_C(0x53627254) /* "TrbS" */
#define TRIB_RECORD_TAG 16
#define TRIB_RECORD_STATE 512 /* bytes that libsodium keeps of an AES key */
/* This number of records of 64 KiB under one key is far below the limit of AES-GCM. */
#define TRIB_RECORDS_PER_KEY (UINT64_C(1) << 22)

struct trib_record_head {
    uint32_t magic;
    uint32_t len;
};
_Static_assert(sizeof(struct trib_record_head) == 8, "no padding");

/* Bytes of a record beside those that it carries. */
#define TRIB_RECORD_MORE (sizeof(struct trib_record_head) + TRIB_RECORD_TAG)

/* One direction of a connection. A zeroed one has no key. */
struct trib_records {
    _Alignas(16) uint8_t aes[TRIB_RECORD_STATE];
    uint8_t key[TRIB_PROOF_BYTES];
    const struct trib_sodium *sodium; /* NULL: it has no key */
    uint64_t number; /* of the next record under this key */
    bool is_aes;
};

/** trib_record_has_aes - true if libsodium can use the AES instructions of this CPU. */
bool trib_record_has_aes(const struct trib_secret *secret);

/**
 * trib_record_check - look for what records need.
 *
 * secret   the job's; NULL or not set: there is none
 * errors   TRIB_ERR_CONFIG with a sentence: the job has no secret, or this host no
 *          libsodium
 */
trib_status_t trib_record_check(const struct trib_secret *secret,
                                struct trib_error *err);

/**
 * trib_record_begin - make the key of a direction, which begins with its record 0.
 *
 * secret   the job's, armed; outlives the direction
 * about    what both sides have proved on this connection; its nonces are those of no
 *          other
 * writer   the side that writes in this direction
 * aes      both sides have AES256-GCM; else records are by XChaCha20-Poly1305
 */
void trib_record_begin(struct trib_records *s, const struct trib_secret *secret,
                       const struct trib_proof *about, enum trib_proof_side writer,
                       bool aes);

/**
 * trib_record_close - encrypt n bytes where they lie, and make a record of them.
 *
 * record   has n bytes behind its first 8, and room for n + TRIB_RECORD_MORE
 * returns  the length of the record
 */
size_t trib_record_close(struct trib_records *s, uint8_t *record, size_t n);

/**
 * trib_record_open - decrypt a record.
 *
 * record   all of its bytes are there, as its first 8 say
 * out      room for the bytes that it carries. After a failure its content must not be
 *          used
 * returns  false: this is not the next record that the other side has written
 */
bool trib_record_open(struct trib_records *s, const uint8_t *record, uint8_t *out);

/** trib_record_wipe - forget the key. */
void trib_record_wipe(struct trib_records *s);

#endif
