/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One side of `trib-perf put`: its transport, its memory, and the events of the current
 * phase.
 *
 * The memory is a source and a target of equal size. Timed phases always write to the
 * start of the target, as other benchmarks do; a verification uses slots.
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

#define PUT_SLOTS 8 /* of a verification, if memory allows */
#define PUT_SIZE_MAX ((size_t)64 << 30)
#define PUT_DEPTH_MAX 4096

/* The upper two bits of an immediate are the purpose of a write, the others are a
 * number. */
enum put_word { PUT_DATA, PUT_GO, PUT_CONFIRM };

struct put_endpoint {
    bool server;
    const struct trib_config *cfg; /* must outlive the endpoint */
    const struct trib_secret *secret; /* same on both sides, armed; NULL: none */
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
    uint64_t number; /* of the phase; writes of earlier phases may still complete */
    size_t stride; /* distance of slots */
    uint64_t slots;
    uint64_t posted, done; /* this side's writes */
    uint64_t arrived; /* writes of data from the other side */
    uint64_t confirms;
    bool went;
    uint64_t wrong; /* wrong bytes in this phase */

    unsigned empty; /* polls in a row without an event */
    uint64_t idle_since, check_at;
    struct perf_progress *progress; /* on the client; may be NULL */
};

void put_endpoint_init(struct put_endpoint *endpoint, bool server,
                       const struct trib_config *cfg, const struct trib_log *log);

/** put_endpoint_hello - exchange hellos over a connected socket; takes ownership of
 * fd. */
trib_status_t put_endpoint_hello(struct put_endpoint *endpoint, int fd, const char *who,
                                 uint64_t deadline);

/** put_area - return the bytes of source or target for sizes up to `largest`. */
uint64_t put_area(size_t largest);

/**
 * put_endpoint_open - open the transport of endpoint->setup and connect to the other
 * side.
 *
 * The client must have filled in setup; the server receives it.
 * errors   as of the transport; TRIB_ERR_PROTOCOL: invalid setup
 */
trib_status_t put_endpoint_open(struct put_endpoint *endpoint);

/** put_endpoint_close - close the endpoint. If it has failed, send the reason to the
 * other side. */
void put_endpoint_close(struct put_endpoint *endpoint);

/** put_endpoint_begin - reset the counters, before the other side may write. */
trib_status_t put_endpoint_begin(struct put_endpoint *endpoint,
                                 const struct put_phase *phase);

/**
 * put_endpoint_post - post one write, if the transport accepts it now.
 *
 * slot     source and target of the data
 * number   number in the immediate
 * signal   count its completion in endpoint->done
 * returns  TRIB_ERR_NO_RESOURCE: call put_endpoint_step, then retry
 */
trib_status_t put_endpoint_post(struct put_endpoint *endpoint, enum put_word word,
                                uint64_t slot, uint64_t number, bool signal);

/** put_endpoint_write - call put_endpoint_post until the transport accepts the
 * write. */
trib_status_t put_endpoint_write(struct put_endpoint *endpoint, enum put_word word,
                                 uint64_t slot, uint64_t number, bool signal);

/**
 * put_endpoint_step - handle events, or else spin, yield or sleep shortly.
 *
 * squeezed a write waits for room, and no event will report it: do not sleep
 * errors   TRIB_ERR_PEER_LOST; TRIB_ERR_TIMEOUT: no event for timeout_ms;
 *          TRIB_ERR_PROTOCOL: an unexpected write
 */
trib_status_t put_endpoint_step(struct put_endpoint *endpoint, bool squeezed);

/** put_endpoint_flush - wait until this side's writes are done; the last must be
 * signalled. */
trib_status_t put_endpoint_flush(struct put_endpoint *endpoint);

/** put_endpoint_fill - fill all slots for a round of a verification. */
void put_endpoint_fill(struct put_endpoint *endpoint, uint64_t round);

#endif
