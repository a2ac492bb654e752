/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of this process that its threads reach by pointer, if they are ranks.
 *
 * A rank learns about a peer's memory from a blob that passed through other processes,
 * even if the peer is a thread of this process. So a blob holds no address, but a
 * random key into this table. A key that is not in the table never becomes a pointer.
 *
 * There is one table per process, since there is one address space. A forked child has
 * a copy.
 *
 * Threads: any thread may call.
 */
#ifndef TRANSPORT_COMMON_OWN_MEMORY_H
#define TRANSPORT_COMMON_OWN_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/status.h>

struct trib_error;

/** trib_own_memory_key - draw a random key. errors: TRIB_ERR_SYSTEM */
trib_status_t trib_own_memory_key(uint64_t *out, struct trib_error *err);

/**
 * trib_own_memory_add - add `len` bytes at ptr, with one user; the memory outlives its
 * entry.
 *
 * errors   TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_own_memory_add(uint64_t key, void *ptr, size_t len,
                                  struct trib_error *err);

/** trib_own_memory_find - return the memory's address; NULL if the table has no memory
 * of this key and length. */
void *trib_own_memory_find(uint64_t key, uint64_t len);

/** trib_own_memory_join - same, and add a user. */
void *trib_own_memory_join(uint64_t key, uint64_t len);

/** trib_own_memory_leave - remove a user. Return true if it was the last: the entry is
 * removed, and the caller may free the memory. Return false for an unknown key. */
bool trib_own_memory_leave(uint64_t key);

#endif
