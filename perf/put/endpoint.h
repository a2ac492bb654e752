/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One side of `trib-perf put`: its transport, its memory, and what has happened in the
 * phase that runs.
 *
 * The memory is a source and a target of equal size. Timed phases write all to the
 * first place of the target, as the tools of the field do; a verification has slots.
 */
#ifndef PERF_PUT_ENDPOINT_H
#define PERF_PUT_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/config.h"
#include "base/error.h"
#include "base/log.h"
#include "base/secret.h"
#include "base/sockets.h"
#include "perf/put/wire.h"
#include "transport/transport.h"

struct perf_progress;

#define PUT_SLOTS 8 /* of a verification, where memory allows */
#define PUT_SIZE_MAX ((size_t)64 << 30)
#define PUT_DEPTH_MAX 4096

/* The purpose of a write is in the upper two bits of its immediate, above a number. */
enum put_word { PUT_DATA, PUT_GO, PUT_CONFIRM };

struct put_endpoint {
    bool server;
    const struct trib_config *cfg; /* outlives the side */
    const struct trib_secret *secret; /* the same on both sides, armed; NULL: there is
                                       * none */
    const struct trib_log *log;
    struct trib_error err;
    struct put_wire wire;
    struct put_hello me, other;
    struct put_setup setup;

    struct trib_transport *t;
    struct trib_region *region;
    struct trib_remote *remote;
    uint8_t *memory; /* [2 * setup.area]: source, target */

    struct put_phase phase;
    uint64_t number; /* of the phase: writes of earlier ones may still become done */
    size_t stride; /* from slot to slot */
    uint64_t slots;
    uint64_t posted, done; /* own writes */
    uint64_t arrived; /* the other side's data */
    uint64_t confirms;
    bool went;
    uint64_t wrong; /* bytes, in this phase */

    unsigned empty; /* polls without an event */
    uint64_t idle_since, look_at;
    struct perf_progress *progress; /* of the client; may be NULL */
};

void put_endpoint_init(struct put_endpoint *endpoint, bool server,
                       const struct trib_config *cfg, const struct trib_log *log);

/** put_endpoint_hello - over a connected socket, which becomes the side's. */
trib_status_t put_endpoint_hello(struct put_endpoint *endpoint, int fd, const char *who,
                             uint64_t deadline);

/** put_area - bytes of source or target for sizes up to `largest`. */
uint64_t put_area(size_t largest);

/**
 * put_endpoint_open - open the transport of side->setup and reach the other side.
 *
 * The client has filled in its setup; the server is sent it.
 * errors   those of the transport; TRIB_ERR_PROTOCOL for a setup that cannot be
 */
trib_status_t put_endpoint_open(struct put_endpoint *endpoint);

/** put_endpoint_close - leave; where the side has failed, tell the other why. */
void put_endpoint_close(struct put_endpoint *endpoint);

/** put_endpoint_begin - forget the last phase; before the other side may write. */
trib_status_t put_endpoint_begin(struct put_endpoint *endpoint,
                                 const struct put_phase *phase);

/**
 * put_endpoint_post - one write, if the transport takes it now.
 *
 * slot     where data come from and go to
 * number   of the data; arrives with the word
 * signal   wants to be counted in side->done
 * returns  TRIB_ERR_NO_RESOURCE: step, then try again
 */
trib_status_t put_endpoint_post(struct put_endpoint *endpoint, enum put_word word,
                                uint64_t slot, uint64_t number, bool signal);

/** put_endpoint_write - put_endpoint_post, again and again until it is taken. */
trib_status_t put_endpoint_write(struct put_endpoint *endpoint, enum put_word word,
                                 uint64_t slot, uint64_t number, bool signal);

/**
 * put_endpoint_step - take what has happened; else spin, yield or sleep a little.
 *
 * squeezed a write waits for room, of which no event tells: do not sleep
 * errors   TRIB_ERR_PEER_LOST; TRIB_ERR_TIMEOUT: nothing for timeout_ms;
 *          TRIB_ERR_PROTOCOL: a write that was not due
 */
trib_status_t put_endpoint_step(struct put_endpoint *endpoint, bool squeezed);

/** put_endpoint_flush - until all own writes are done; the last one was signalled. */
trib_status_t put_endpoint_flush(struct put_endpoint *endpoint);

/** put_endpoint_fill - the bytes of all slots of a round of a verification. */
void put_endpoint_fill(struct put_endpoint *endpoint, uint64_t round);

#endif
