/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Internals of the decorators. A decorator is a transport whose ops forward to an inner
 * transport, except those that it replaces. So decorators stack, and work over every
 * backend.
 */
#ifndef TRANSPORT_DECORATORS_DECORATOR_H
#define TRANSPORT_DECORATORS_DECORATOR_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "transport/decorators/decorators.h"

#define TRIB_DELAY_SLOTS 1024u

/* A registered region and its address: corrupt needs the source bytes of a write. */
struct decorator_region {
    const struct trib_region *region;
    const uint8_t *ptr;
    struct decorator_region *next;
};

struct delayed {
    uint64_t due;
    struct trib_event event;
};

struct counters {
    uint64_t posted, posted_bytes;
    uint64_t refused; /* writes that failed with back-pressure */
    uint64_t arrived, arrived_bytes;
    uint64_t done, lost;
    uint64_t polls, empty_polls;
    /* atomic, since a thread may wait while another one polls */
    _Atomic uint64_t waits;
};

/* One struct for all decorators; each uses its own part. */
struct decorator {
    struct trib_transport base;
    /* forwarders, with the decorator's functions in place */
    struct trib_transport_ops ops;
    struct trib_transport *inner;
    const struct trib_log *log;
    struct trib_error *err;
    int self;
    uint64_t writes; /* drop, repeat, corrupt, kill: writes posted so far */
    uint64_t nth;
    uint64_t least; /* corrupt: shorter writes are not counted */
    int signal_number;
    /* corrupt */
    struct decorator_region *regions;
    /* the corrupted copy that was sent; lives as long as the transport */
    uint8_t *spoilt;
    struct trib_region *spoilt_region;
    /* delay */
    uint64_t delay_ns;
    struct delayed *held;
    uint32_t held_head, held_tail;
    _Atomic uint64_t next_due; /* of the first held event; UINT64_MAX: none */
    /* trace */
    struct counters count;
};

static inline struct decorator *decorator_of(struct trib_transport *t)
{
    return (struct decorator *)t;
}

static inline struct trib_transport *inner_of(struct trib_transport *t)
{
    return decorator_of(t)->inner;
}

/** trib_decorator_close - close the inner transport, then free the decorator. */
void trib_decorator_close(struct trib_transport *t);

/* The decorators' install functions; see struct trib_decorator. */
trib_status_t trib_decorate_corrupt(const struct trib_transport_opts *opts,
                                    struct decorator *w);
trib_status_t trib_decorate_delay(const struct trib_transport_opts *opts,
                                  struct decorator *w);
trib_status_t trib_decorate_drop(const struct trib_transport_opts *opts,
                                 struct decorator *w);
trib_status_t trib_decorate_kill(const struct trib_transport_opts *opts,
                                 struct decorator *w);
trib_status_t trib_decorate_repeat(const struct trib_transport_opts *opts,
                                   struct decorator *w);
trib_status_t trib_decorate_trace(const struct trib_transport_opts *opts,
                                  struct decorator *w);

#endif
