/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The billboard: memory by which each rank of a host shows a value to all others at
 * once.
 *
 * It lies in the arena of rank 0, after the blocks, and all ranks map it. Each rank has
 * two entries that it alone writes and all others read: one store replaces a frame to
 * each peer. A rank fills its two entries alternately. Each turn is an operation: every
 * rank fills one of its entries and reads one entry of every other rank:
 *
 *   billboard = | a byte for each rank: it sleeps | rank 0 | rank 1 | …
 *   rank r = | entry of even turns | entry of odd turns |
 *   entry = | frame, short payload, core, turn (64) | longer payload (192) |
 *
 * Two entries suffice without credits. A rank fills its entry of turn n + 2 after it
 * has read every entry of turn n + 1. Each owner of those had read all entries of turn
 * n before it filled its own entry of turn n + 1.
 *
 * The entries lie next to each other, not in the arenas of their ranks, so that they
 * occupy few pages. Ranks that share a core poll them right after a context switch,
 * when the TLB is cold.
 */
#ifndef PIPELINE_LINK_BILLBOARD_H
#define PIPELINE_LINK_BILLBOARD_H

#include "pipeline/link/link.h"

enum {
    TRIB_BILLBOARD_PAYLOAD = 192,
    TRIB_BILLBOARD_ENTRY = sizeof(struct trib_entry) + TRIB_BILLBOARD_PAYLOAD,
};

/* Return the offset of the entries of rank 0. */
static inline size_t trib_billboard_entries(int size)
{
    return ((size_t)size + 63) / 64 * 64;
}

/** trib_billboard_bytes - return the size of a billboard of `size` ranks. */
static inline size_t trib_billboard_bytes(int size)
{
    return (trib_billboard_entries(size) + (size_t)size * 2 * TRIB_BILLBOARD_ENTRY +
            4095) /
           4096 * 4096;
}

/** trib_billboard_entry - return a rank's entry of a turn, filled or not. */
static inline struct trib_entry *trib_billboard_entry(const struct trib_arena *a,
                                                      int rank, uint32_t turn)
{
    const size_t place = (size_t)rank * 2 + (turn & 1);

    return (struct trib_entry *)(void *)(a->billboard +
                                         trib_billboard_entries(a->size) +
                                         place * TRIB_BILLBOARD_ENTRY);
}

/** trib_billboard_payload - return the address of `bytes` bytes of payload in an
 * entry. */
static inline uint8_t *trib_billboard_payload(struct trib_entry *entry, size_t bytes)
{
    return bytes <= TRIB_ENTRY_PAYLOAD ? entry->payload : (uint8_t *)(entry + 1);
}

/** trib_billboard_is_filled - return true if the entry is filled for the turn. A
 * misbehaving owner may still write to it. */
static inline bool trib_billboard_is_filled(const struct trib_entry *entry,
                                            uint32_t turn)
{
    return atomic_load_explicit(&entry->position, memory_order_acquire) == turn;
}

/** trib_billboard_core - return the core, plus 1, on which a rank filled an entry; 0:
 * unknown. A hint: the entry may have been refilled since. */
static inline uint32_t trib_billboard_core(const struct trib_entry *entry)
{
    return __atomic_load_n(&entry->place, __ATOMIC_RELAXED);
}

/** trib_billboard_publish - publish the contents of this rank's entry of a turn. */
static inline void trib_billboard_publish(struct trib_entry *entry, uint32_t turn,
                                          uint32_t core)
{
    __atomic_store_n(&entry->place, core, __ATOMIC_RELAXED);
    atomic_store_explicit(&entry->position, turn, memory_order_release);
}

/* Return the byte that says whether a rank sleeps. */
static inline _Atomic uint8_t *trib_billboard_sleeper(const struct trib_arena *a,
                                                      int rank)
{
    return (_Atomic uint8_t *)(void *)a->billboard + rank;
}

/** trib_billboard_set_asleep - declare whether this rank sleeps and must be woken. */
static inline void trib_billboard_set_asleep(const struct trib_arena *a, bool asleep)
{
    atomic_store(trib_billboard_sleeper(a, a->self), asleep);
}

/** trib_billboard_wake - wake all sleeping ranks.
 *
 * One line tells which ranks sleep: with 8 ranks, calling the transport's `wake` for
 * each peer took 4.2 µs instead of 3.5. */
static inline void trib_billboard_wake(const struct trib_arena *a)
{
    for (int p = 0; p < a->size; p++)
        if (atomic_load_explicit(trib_billboard_sleeper(a, p), memory_order_relaxed) &&
            p != a->self)
            a->transport->ops->wake(a->transport, p);
}

#endif
