/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Layout of a control segment: the ABI between the ranks of a host.
 *
 * Each transport owns one control segment: a header, then one ring per peer, into which
 * that peer writes its notifications. The "owner" is the process that made the segment.
 *
 * The ring is not Concurrency Kit's, for three reasons. Each entry carries its sequence
 * number, so a notification moves one cache line instead of two (entry and tail). The
 * consumer never reads a variable that is rewritten for every entry. And
 * ThreadSanitizer understands C11 atomics.
 *
 *     producer: entry[tail % n] = {len, imm}; seq = ++tail   (release)
 *     consumer: entry[head % n].seq == head + 1 ?            (acquire)
 *               ++head; ring.head = head                     (release)
 *
 * The producer may write entry[tail % n] if tail - ring.head < n. It caches ring.head
 * and reads the shared value only if the cached one says "full".
 */
#ifndef TRANSPORT_SHM_SHM_LAYOUT_H
#define TRANSPORT_SHM_SHM_LAYOUT_H

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define TRIB_SHM_MAGIC UINT64_C(0x6c6f72746e6f6373)
#define TRIB_SHM_VERSION 4u

/* Alignment of variables written by different processes: two cache lines, because
 * hardware prefetches lines in pairs. */
#define TRIB_SHM_LINE_PAIR 128

enum trib_shm_state {
    TRIB_SHM_ALIVE = 1,
    TRIB_SHM_CLOSED = 2,
};

/* Values of `left` in a ring. */
enum trib_shm_left {
    TRIB_SHM_HERE = 0,
    TRIB_SHM_LEFT = 1, /* the owner disconnected from this peer */
    TRIB_SHM_GAVE_UP = 2, /* the owner declared this peer lost */
};

/* Values of `sleeping`: how to wake the owner. */
enum trib_shm_sleep {
    TRIB_SHM_AWAKE = 0,
    TRIB_SHM_ON_FUTEX = 1, /* on `doorbell` */
    /* on a byte through its pipe, together with other descriptors */
    TRIB_SHM_ON_PIPE = 2,
};

struct trib_shm_header {
    uint64_t magic;
    uint32_t version;
    uint32_t size; /* number of peers, hence of rings */
    uint32_t ring_slots; /* a power of two */
    uint32_t self; /* the owner's number */

    /* Written once, by the owner: enum trib_shm_state. */
    alignas(TRIB_SHM_LINE_PAIR) _Atomic uint32_t state;
    /* Incremented when a peer attaches; the owner then checks which rings are in
     * use. */
    alignas(TRIB_SHM_LINE_PAIR) _Atomic uint32_t attached;
    /* enum trib_shm_sleep, set while the owner sleeps or is about to. The peer that
     * swaps it to 0 wakes the owner. */
    alignas(TRIB_SHM_LINE_PAIR) _Atomic uint32_t sleeping;
    _Atomic int32_t pipe; /* the owner's descriptor of the write end; -1: none */
    /* The futex on which the owner sleeps; counts up. */
    alignas(TRIB_SHM_LINE_PAIR) _Atomic uint32_t doorbell;
};

struct trib_shm_entry {
    uint64_t len;
    uint32_t imm;
    _Atomic uint32_t seq; /* 1 + the entry's number; written last */
};

struct trib_shm_ring {
    /* written by the owner: entries consumed */
    alignas(TRIB_SHM_LINE_PAIR) _Atomic uint32_t head;
    /* set by the peer once it maps this ring */
    alignas(TRIB_SHM_LINE_PAIR) _Atomic uint32_t attached;
    /* Written by the owner: enum trib_shm_left. Once set, the peer writes nothing
     * more. */
    alignas(TRIB_SHM_LINE_PAIR) _Atomic uint32_t left;
    alignas(TRIB_SHM_LINE_PAIR) struct trib_shm_entry entries[];
};

static_assert(sizeof(struct trib_shm_entry) == 16, "four entries per cache line");
static_assert(offsetof(struct trib_shm_entry, seq) == 12, "entry layout");
static_assert(sizeof(struct trib_shm_header) == 5 * TRIB_SHM_LINE_PAIR,
              "header layout");
static_assert(offsetof(struct trib_shm_header, state) == 128, "header layout");
static_assert(offsetof(struct trib_shm_header, sleeping) == 384, "header layout");
static_assert(offsetof(struct trib_shm_header, pipe) == 388, "header layout");
static_assert(offsetof(struct trib_shm_header, doorbell) == 512, "header layout");
static_assert(offsetof(struct trib_shm_ring, entries) == 384, "ring layout");
static_assert(ATOMIC_INT_LOCK_FREE == 2, "atomics must work between processes");

#define TRIB_SHM_RING_SLOTS_MIN 8u
#define TRIB_SHM_RING_SLOTS_MAX (1u << 20)

/* Bytes from one ring to the next. From 8 slots on, a multiple of the ring's alignment.
 * Never a multiple of 4096, which would map all rings to the same cache sets. */
static inline size_t trib_shm_ring_stride(uint32_t ring_slots)
{
    return offsetof(struct trib_shm_ring, entries) +
           (size_t)ring_slots * sizeof(struct trib_shm_entry);
}

static inline size_t trib_shm_control_len(uint32_t size, uint32_t ring_slots)
{
    return sizeof(struct trib_shm_header) + size * trib_shm_ring_stride(ring_slots);
}

static inline struct trib_shm_ring *trib_shm_ring_at(struct trib_shm_header *header,
                                                     uint32_t peer, uint32_t ring_slots)
{
    return (struct trib_shm_ring *)((uint8_t *)(header + 1) +
                                    peer * trib_shm_ring_stride(ring_slots));
}

/* The address of a transport. */
struct trib_shm_address {
    uint32_t magic;
    uint32_t version;
    uint64_t boot; /* struct trib_process */
    uint64_t space;
    uint64_t start;
    int32_t pid;
    int32_t fd; /* struct trib_segment_id of the control segment */
    uint64_t key;
    uint64_t map_len;
    uint32_t handout; /* trib_handout_name; 0: none */
    uint32_t reserved;
};

enum trib_shm_export_kind {
    TRIB_SHM_MAPPABLE = 1, /* part of a segment */
    TRIB_SHM_FOREIGN = 2, /* any memory of the owner, reached by process_vm_writev */
};

/* The blob of an exported region. */
struct trib_shm_export {
    uint32_t magic;
    uint32_t kind;
    int32_t pid;
    int32_t fd;
    /* of the segment; FOREIGN: in trib_own_memory, for the owner's own threads */
    uint64_t key;
    uint64_t map_len;
    uint64_t off; /* of the region within its segment */
    /* FOREIGN: in the owner's process; 0: the owner allows no such access */
    uint64_t addr;
    uint64_t len;
};

#define TRIB_SHM_ADDRESS_MAGIC 0x41727473u
#define TRIB_SHM_EXPORT_MAGIC 0x45727473u

static_assert(sizeof(struct trib_shm_address) == 64, "address");
static_assert(sizeof(struct trib_shm_export) == 56, "region blob");

#endif
