/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that peers may reach, from trib_alloc and trib_register.
 */
#ifndef PIPELINE_LINK_REGISTERED_H
#define PIPELINE_LINK_REGISTERED_H

#include "pipeline/link/link.h"

struct trib_memory {
    uint8_t *ptr;
    size_t bytes;
    struct trib_region *region;
    struct trib_blob blob;
    bool allocated; /* allocated by the library; else registered by the caller */
    bool borrowed;  /* for one operation: trib_memory_borrow */
    bool closed;    /* peers do not write to it */
    bool copied;    /* the transport cannot write from it: data goes through slots */
};

/* A few entries, searched from the newest. */
struct trib_memories {
    struct trib_transport *transport;
    struct trib_memory *list;
    size_t n;
    size_t capacity;
    size_t allocated_bytes;
};

trib_status_t trib_memory_alloc(struct trib_memories *m, size_t bytes, void **ptr_out);
trib_status_t trib_memory_register(struct trib_memories *m, void *ptr, size_t bytes);

trib_status_t trib_memory_register_dmabuf(struct trib_memories *m,
                                          const struct trib_dmabuf *d);

/**
 * trib_memory_remove - free or deregister the memory that begins at ptr.
 *
 * in_use   a peer may still read it. If false, its pages are freed at once, even if
 *          peers have them mapped
 * errors   TRIB_ERR_INVALID: no memory of this kind begins there
 */
trib_status_t trib_memory_remove(struct trib_memories *m, void *ptr, bool allocated,
                                 bool in_use);
/* A part of a vector in registered memory: vector byte v is at region byte origin +
 * v. */
struct trib_place {
    const struct trib_region *region; /* NULL: the part is in no region */
    int64_t origin;
};

/**
 * trib_memory_borrow - register the caller's memory for one operation, if that is free
 * of cost and the memory is not registered.
 *
 * written  peers may write to it
 * returns  the region, or NULL: nothing was registered
 */
struct trib_region *trib_memory_borrow(struct trib_memories *m, uint8_t *ptr,
                                       size_t bytes, bool written);

/** trib_memory_give_back - end a borrow; broken: the operation has failed. */
void trib_memory_give_back(struct trib_memories *m, struct trib_region *region,
                           bool broken);

/* Memory of one message. */
struct trib_hold {
    struct trib_place place; /* vector byte 0 is the first one */
    struct trib_region *borrowed; /* NULL: it stays registered */
};

/**
 * trib_memory_hold - find the registration of a message's memory, or borrow the memory
 * until trib_memory_let_go. Operations do not find that registration.
 *
 * ref      peers may write to the memory: the reference for them; NULL: they may not
 * returns  false: nothing is registered
 */
bool trib_memory_hold(struct trib_memories *m, uint8_t *ptr, size_t bytes,
                      struct trib_ref *ref, struct trib_hold *out);

/** trib_memory_let_go - end a hold, if it is one; broken: peers may still write. */
void trib_memory_let_go(struct trib_memories *m, struct trib_hold *hold, bool broken);

/** trib_memory_remove_all - remove all memory at the end; late peers may still read
 * it. */
void trib_memory_remove_all(struct trib_memories *m);

/** trib_memory_place - return the place from which vector bytes [lo, hi) are written;
 * ptr is the address of byte lo. */
struct trib_place trib_memory_place(const struct trib_memories *m, const void *ptr,
                                    size_t lo, size_t hi);

/** trib_memory_copy - stop writing from this region; its data goes through slots. */
void trib_memory_copy(struct trib_memories *m, const struct trib_region *region);

/**
 * trib_memory_ref - make the reference by which peers reach the part [lo, hi) of a
 * vector.
 *
 * ptr      address of vector byte lo
 * mapped   by load and store; else by writes
 * out      blob.len 0 if peers cannot reach it
 */
void trib_memory_ref(const struct trib_memories *m, const void *ptr, size_t lo,
                     size_t hi, bool mapped, struct trib_ref *out);

#endif
