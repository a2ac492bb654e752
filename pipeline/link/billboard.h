/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The billboard: memory by which the ranks of a host show something to all others at
 * once.
 *
 * It lies in the arena of rank 0, behind the blocks, and all ranks map it. Each rank
 * has two entries there that it alone writes and all others read: one store in place of
 * a frame for each peer. A rank fills them by turns. Each turn is an operation in which
 * every rank fills one of its entries and reads one of each other rank:
 *
 *   billboard = | a byte for each rank: it sleeps | rank 0 | rank 1 | …
 *   rank r = | entry of even turns | entry of odd turns |
 *   entry = | frame, short payload, core, turn (64) | longer payload (192) |
 *
 * Two entries suffice without any credit. A rank fills that of turn n + 2 when it has
 * read the entries of turn n + 1 of all others, and each of those had read all of turn
 * n before it filled its own of turn n + 1.
 *
 * The entries are beside each other, and not in the arenas of their ranks, so that they
 * take few pages: ranks that share a core look for them right after a switch, when the
 * core has forgotten where pages are.
 */
#ifndef PIPELINE_LINK_BILLBOARD_H
#define PIPELINE_LINK_BILLBOARD_H

#include "pipeline/link/link.h"

enum {
    TRIB_BILLBOARD_PAYLOAD = 192,
    TRIB_BILLBOARD_ENTRY = sizeof(struct trib_entry) + TRIB_BILLBOARD_PAYLOAD,
};

/* The offset of the entries of rank 0. */
static inline size_t trib_billboard_entries(int size)
{
    return ((size_t)size + 63) / 64 * 64;
}

/** trib_billboard_bytes - the size of a billboard of so many ranks. */
static inline size_t trib_billboard_bytes(int size)
{
    return (trib_billboard_entries(size) + (size_t)size * 2 * TRIB_BILLBOARD_ENTRY +
            4095) /
           4096 * 4096;
}

/** trib_billboard_entry - a rank's entry of a turn, whether it is filled or not. */
static inline struct trib_entry *trib_billboard_entry(const struct trib_arena *a,
                                                      int rank, uint32_t turn)
{
    const size_t place = (size_t)rank * 2 + (turn & 1);

    return (struct trib_entry *)(void *)(a->billboard +
                                         trib_billboard_entries(a->size) +
                                         place * TRIB_BILLBOARD_ENTRY);
}

/** trib_billboard_payload - the place of `bytes` of payload in an entry. */
static inline uint8_t *trib_billboard_payload(struct trib_entry *entry, size_t bytes)
{
    return bytes <= TRIB_ENTRY_PAYLOAD ? entry->payload : (uint8_t *)(entry + 1);
}

/** trib_billboard_is_filled - true if an entry is filled for a turn. Its owner may go
 * on writing to it, if that is not of this library. */
static inline bool trib_billboard_is_filled(const struct trib_entry *entry,
                                            uint32_t turn)
{
    return atomic_load_explicit(&entry->position, memory_order_acquire) == turn;
}

/** trib_billboard_core - the core, plus 1, on which a rank filled an entry; 0: it did
 * not say. A hint, as the entry may be filled anew. */
static inline uint32_t trib_billboard_core(const struct trib_entry *entry)
{
    return __atomic_load_n(&entry->place, __ATOMIC_RELAXED);
}

/** trib_billboard_publish - show what this rank has put into its entry of a turn. */
static inline void trib_billboard_publish(struct trib_entry *entry, uint32_t turn,
                                          uint32_t core)
{
    __atomic_store_n(&entry->place, core, __ATOMIC_RELAXED);
    atomic_store_explicit(&entry->position, turn, memory_order_release);
}

/* The byte that says whether a rank sleeps. */
static inline _Atomic uint8_t *trib_billboard_sleeper(const struct trib_arena *a,
                                                      int rank)
{
    return (_Atomic uint8_t *)(void *)a->billboard + rank;
}

/** trib_billboard_set_asleep - say whether this rank sleeps, and has to be woken. */
static inline void trib_billboard_set_asleep(const struct trib_arena *a, bool asleep)
{
    atomic_store(trib_billboard_sleeper(a, a->self), asleep);
}

/** trib_billboard_wake - wake the ranks that sleep. */
static inline void trib_billboard_wake(const struct trib_arena *a)
{
    for (int p = 0; p < a->size; p++)
        if (atomic_load_explicit(trib_billboard_sleeper(a, p), memory_order_relaxed) &&
            p != a->self)
            a->transport->ops->wake(a->transport, p);
}

#endif
