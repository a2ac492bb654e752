/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of this process that its own threads reach by pointer, where they are ranks.
 *
 * A rank learns where a peer's memory is from a blob, which has come through the hands
 * of others, also where the peer is a thread of the same process. So a blob has no
 * address: it has a random key, under which this table has the memory. What the table
 * does not know becomes no pointer.
 *
 * There is one table for the process, as there is one address space. A forked child has
 * a copy of it.
 *
 * Threads: any may call.
 */
#ifndef TRANSPORT_COMMON_OWN_MEMORY_H
#define TRANSPORT_COMMON_OWN_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/status.h>

struct trib_error;

/** trib_own_memory_key - a random key. errors: TRIB_ERR_SYSTEM */
trib_status_t trib_own_memory_key(uint64_t *out, struct trib_error *err);

/**
 * trib_own_memory_add - `len` bytes at ptr, with one user; they outlive the row.
 *
 * errors   TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_own_memory_add(uint64_t key, void *ptr, size_t len,
                                  struct trib_error *err);

/** trib_own_memory_find - where it is; NULL: this process has no memory of this key
 * that is so long. */
void *trib_own_memory_find(uint64_t key, uint64_t len);

/** trib_own_memory_join - the same, and one user more. */
void *trib_own_memory_join(uint64_t key, uint64_t len);

/** trib_own_memory_leave - one user less; true if that was the last one: the row has
 * gone, and the caller may free the memory. False also for an unknown key. */
bool trib_own_memory_leave(uint64_t key);

#endif
