/* SPDX-License-Identifier: BSD-3-Clause */
#include "perf/put/endpoint.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <tributary.h>

#include "base/addresses.h"
#include "base/host.h"
#include "base/time.h"
#include "tools/common/launch.h"
#include "transport/open.h"

enum {
    EVENTS = 16,
    POLLS_PER_CLOCK = 32,
    CHECK_NS = 50000000, /* interval of checking the stream */
    SLEEP_AFTER_NS = 3000000, /* as in pipeline/engine/engine_wait.c */
    SLEEP_US = 500,
};

#define LINE ((size_t)64)
#define AREA_WISH ((uint64_t)16 << 20) /* maximum when there are several slots */
#define NUMBER_BITS 30
#define NUMBER_MASK ((UINT32_C(1) << NUMBER_BITS) - 1)
#define TOKEN_BITS 40
#define TOKEN_MASK ((UINT64_C(1) << TOKEN_BITS) - 1)

/* --- begin and end --- */

void put_endpoint_init(struct put_endpoint *endpoint, bool server,
                       const struct trib_config *cfg, const struct trib_log *log)
{
    memset(endpoint, 0, sizeof(*endpoint));
    endpoint->server = server;
    endpoint->cfg = cfg;
    endpoint->log = log;
    endpoint->wire.fd = -1;
    snprintf(endpoint->me.version, sizeof(endpoint->me.version), "%s", trib_version());
    if (!trib_host_name(endpoint->me.host))
        snprintf(endpoint->me.host, sizeof(endpoint->me.host), "unknown");
}

trib_status_t put_endpoint_hello(struct put_endpoint *endpoint, int fd, const char *who,
                                 uint64_t deadline)
{
    put_wire_open(&endpoint->wire, fd, who, &endpoint->err);
    return put_wire_hello(&endpoint->wire, endpoint->server, &endpoint->me,
                          &endpoint->other, deadline);
}

/* Size of a slot, plus a guard line after it that must not change. */
static size_t stride_of(size_t bytes)
{
    return (bytes + LINE - 1) / LINE * LINE + LINE;
}

uint64_t put_area(size_t largest)
{
    uint64_t one = stride_of(largest);
    uint64_t all = PUT_SLOTS * one;

    return all <= AREA_WISH ? all : one > AREA_WISH ? one : AREA_WISH;
}

static uint64_t deadline_of(const struct put_endpoint *endpoint)
{
    return trib_limit_deadline(endpoint->cfg->timeout_ms);
}

static trib_status_t agree(struct put_endpoint *endpoint)
{
    struct put_setup *setup = &endpoint->setup;
    uint64_t deadline = deadline_of(endpoint);

    if (!endpoint->server)
        return put_wire_send(&endpoint->wire, PUT_SETUP, setup, sizeof(*setup),
                             deadline);
    trib_status_t status =
        put_wire_receive(&endpoint->wire, PUT_SETUP, setup, sizeof(*setup), deadline);
    if (status != TRIB_OK)
        return status;
    if (memchr(setup->transport, '\0', sizeof(setup->transport)) == NULL ||
        setup->area < stride_of(0) || setup->area > stride_of(PUT_SIZE_MAX))
        return trib_fail(&endpoint->err, TRIB_ERR_PROTOCOL,
                         "%s requests an invalid memory size: %llu bytes",
                         endpoint->wire.who, (unsigned long long)setup->area);
    return TRIB_OK;
}

static trib_status_t open_transport(struct put_endpoint *endpoint,
                                    struct put_place *place)
{
    struct trib_transport_opts opts = {
        .self = endpoint->server,
        .size = 2,
        .params = "",
        .cfg = endpoint->cfg,
        .log = endpoint->log,
        .err = &endpoint->err,
        .secret = endpoint->secret,
    };
    void *memory;
    struct trib_net_met met;

    trib_net_met_by(endpoint->wire.fd, &met);
    opts.met = &met;
    trib_status_t status =
        trib_transport_open(endpoint->setup.transport, &opts, &endpoint->t);

    if (status != TRIB_OK)
        return status;
    const struct trib_transport_ops *ops = endpoint->t->ops;
    memset(place, 0, sizeof(*place));
    status =
        ops->alloc(endpoint->t, 2 * endpoint->setup.area, &memory, &endpoint->region);
    if (status != TRIB_OK)
        return status;
    endpoint->memory = memory;
    memset(memory, 0x5a, endpoint->setup.area); /* not the zero page */
    status = ops->export_region(endpoint->t, endpoint->region, &place->memory);
    return status == TRIB_OK ? ops->address(endpoint->t, &place->address) : status;
}

/* Exchange places; places[] is indexed by peer, and this side's is filled in. */
static trib_status_t swap_places(struct put_endpoint *endpoint,
                                 struct put_place *places)
{
    uint64_t deadline = deadline_of(endpoint);
    struct put_place *there = &places[!endpoint->server];
    trib_status_t status =
        put_wire_send(&endpoint->wire, PUT_PLACE, &places[endpoint->server],
                      sizeof(*there), deadline);

    if (status == TRIB_OK)
        status = put_wire_receive(&endpoint->wire, PUT_PLACE, there, sizeof(*there),
                                  deadline);
    if (status != TRIB_OK)
        return status;
    if (there->address.len > sizeof(there->address.bytes) ||
        there->memory.len > sizeof(there->memory.bytes))
        return trib_fail(&endpoint->err, TRIB_ERR_PROTOCOL,
                         "%s sent an address that is too long", endpoint->wire.who);
    return TRIB_OK;
}

/* Exchange capabilities, so that both transports make the same choices. */
static trib_status_t settle(struct put_endpoint *endpoint,
                            const struct put_place *places)
{
    const struct trib_transport_ops *ops = endpoint->t->ops;
    uint64_t deadline = deadline_of(endpoint);
    const struct trib_address addresses[2] = {places[0].address, places[1].address};
    uint32_t caps[2];
    trib_status_t status = ops->caps(endpoint->t, addresses, &caps[endpoint->server]);

    if (status == TRIB_OK)
        status = put_wire_send(&endpoint->wire, PUT_CAPS, &caps[endpoint->server],
                               sizeof(caps[0]), deadline);
    if (status == TRIB_OK)
        status = put_wire_receive(&endpoint->wire, PUT_CAPS, &caps[!endpoint->server],
                                  sizeof(caps[0]), deadline);
    if (status == TRIB_OK)
        ops->agree(endpoint->t, caps);
    return status;
}

static trib_status_t reach(struct put_endpoint *endpoint, struct put_place *places)
{
    const struct trib_transport_ops *ops = endpoint->t->ops;
    uint64_t deadline = deadline_of(endpoint);
    int peer = !endpoint->server;
    trib_status_t status = swap_places(endpoint, places);

    if (status == TRIB_OK)
        status = settle(endpoint, places);
    if (status == TRIB_OK)
        status = ops->connect(endpoint->t, peer, &places[peer].address);
    if (status == TRIB_OK)
        status = trib_transport_import(endpoint->t, peer, &places[peer].memory,
                                       2 * endpoint->setup.area, &endpoint->remote);
    if (status == TRIB_OK)
        status = put_wire_send(&endpoint->wire, PUT_READY, NULL, 0, deadline);
    return status == TRIB_OK
               ? put_wire_receive(&endpoint->wire, PUT_READY, NULL, 0, deadline)
               : status;
}

trib_status_t put_endpoint_open(struct put_endpoint *endpoint)
{
    struct put_place places[2];
    trib_status_t status = agree(endpoint);

    if (status != TRIB_OK)
        return status;
    if (endpoint->setup.bind <= TOOL_BIND_AUTO)
        (void)tool_bind_rank((enum tool_bind)endpoint->setup.bind, endpoint->server, 2);
    status = open_transport(endpoint, &places[endpoint->server]);
    return status == TRIB_OK ? reach(endpoint, places) : status;
}

void put_endpoint_close(struct put_endpoint *endpoint)
{
    if (endpoint->err.status != TRIB_OK)
        put_wire_fail(&endpoint->wire, trib_error_text(&endpoint->err));
    if (endpoint->remote != NULL)
        endpoint->t->ops->release(endpoint->t, endpoint->remote);
    if (endpoint->region != NULL)
        endpoint->t->ops->dereg(endpoint->t, endpoint->region);
    if (endpoint->t != NULL)
        endpoint->t->ops->close(endpoint->t);
    endpoint->remote = NULL;
    endpoint->region = NULL;
    endpoint->t = NULL;
    put_wire_close(&endpoint->wire);
}

/* --- contents of a verification --- */

static uint64_t mix(uint64_t x)
{
    x ^= x >> 31;
    x *= UINT64_C(0x7fb5d329728ea185);
    x ^= x >> 27;
    x *= UINT64_C(0x81dadef4bc2dd44d);
    return x ^ x >> 33;
}

/* Return eight bytes of write `number` of the server or the client. */
static uint64_t pattern(const struct put_endpoint *endpoint, bool of_server,
                        uint64_t number, uint64_t word)
{
    uint64_t seed = mix(endpoint->phase.bytes * 2 + of_server) + mix(number + 1);

    return mix(seed + word);
}

static size_t word_bytes(size_t bytes, size_t off)
{
    return bytes - off < 8 ? bytes - off : 8;
}

void put_endpoint_fill(struct put_endpoint *endpoint, uint64_t round)
{
    size_t bytes = endpoint->phase.bytes;

    for (uint64_t slot = 0; slot < endpoint->slots; slot++) {
        uint8_t *to = endpoint->memory + slot * endpoint->stride;
        for (size_t off = 0; off < bytes; off += 8) {
            uint64_t word = pattern(endpoint, endpoint->server,
                                    round * endpoint->slots + slot, off / 8);
            memcpy(to + off, &word, word_bytes(bytes, off));
        }
    }
}

/* Compare once, when the write arrived, so that a byte that stays wrong is counted
 * once. */
static void compare(struct put_endpoint *endpoint, uint64_t number)
{
    size_t bytes = endpoint->phase.bytes;
    const uint8_t *have = endpoint->memory + endpoint->setup.area +
                          number % endpoint->slots * endpoint->stride;

    for (size_t off = 0; off < bytes; off += 8) {
        uint64_t word = pattern(endpoint, !endpoint->server, number, off / 8);
        size_t n = word_bytes(bytes, off);
        if (memcmp(have + off, &word, n) == 0)
            continue;
        for (size_t i = 0; i < n; i++)
            endpoint->wrong += have[off + i] != (uint8_t)(word >> 8 * i);
    }
    for (size_t i = bytes; i < endpoint->stride; i++)
        endpoint->wrong += have[i] != 0;
}

/* --- a phase --- */

trib_status_t put_endpoint_begin(struct put_endpoint *endpoint,
                                 const struct put_phase *phase)
{
    if (phase->kind > PUT_VERIFY || phase->bytes > PUT_SIZE_MAX ||
        stride_of(phase->bytes) > endpoint->setup.area || phase->depth < 1 ||
        phase->depth > PUT_DEPTH_MAX || phase->n > TOKEN_MASK / (2 * PUT_SLOTS))
        return trib_fail(&endpoint->err, TRIB_ERR_PROTOCOL,
                         "%s requests an invalid phase: %llu times %llu bytes",
                         endpoint->wire.who, (unsigned long long)phase->n,
                         (unsigned long long)phase->bytes);
    endpoint->phase = *phase;
    endpoint->number++;
    endpoint->stride = stride_of(phase->bytes);
    endpoint->slots = endpoint->setup.area / endpoint->stride;
    if (endpoint->slots > PUT_SLOTS)
        endpoint->slots = PUT_SLOTS;
    endpoint->posted = endpoint->done = endpoint->arrived = endpoint->confirms =
        endpoint->wrong = 0;
    endpoint->went = false;
    endpoint->empty = 0;
    if (phase->kind == PUT_VERIFY)
        memset(endpoint->memory + endpoint->setup.area, 0, endpoint->setup.area);
    return TRIB_OK;
}

trib_status_t put_endpoint_post(struct put_endpoint *endpoint, enum put_word word,
                                uint64_t slot, uint64_t number, bool signal)
{
    size_t off = slot * endpoint->stride;
    struct trib_write w = {
        .local = endpoint->region,
        .local_off = off,
        .remote = endpoint->remote,
        .remote_off = endpoint->setup.area + off,
        .len = word == PUT_DATA ? endpoint->phase.bytes : 0,
        .imm = (uint32_t)word << NUMBER_BITS | ((uint32_t)number & NUMBER_MASK),
        .signal = signal,
        .token = endpoint->number << TOKEN_BITS | (endpoint->posted + 1),
    };
    trib_status_t status = endpoint->t->ops->write(endpoint->t, !endpoint->server, &w);

    if (status == TRIB_OK)
        endpoint->posted++;
    else if (status != TRIB_ERR_NO_RESOURCE && status != TRIB_ERR_PEER_LOST)
        trib_fail(&endpoint->err, status, "a write of %zu bytes to %s failed: %s",
                  w.len, endpoint->wire.who, trib_status_str(status));
    return status;
}

trib_status_t put_endpoint_write(struct put_endpoint *endpoint, enum put_word word,
                                 uint64_t slot, uint64_t number, bool signal)
{
    for (;;) {
        trib_status_t status = put_endpoint_post(endpoint, word, slot, number, signal);
        /* the event says why the peer was lost */
        if (status != TRIB_ERR_NO_RESOURCE && status != TRIB_ERR_PEER_LOST)
            return status;
        status = put_endpoint_step(endpoint, true);
        if (status != TRIB_OK)
            return status;
    }
}

static trib_status_t take_data(struct put_endpoint *endpoint,
                               const struct trib_event *e)
{
    if ((e->imm & NUMBER_MASK) != (endpoint->arrived & NUMBER_MASK) ||
        e->len != endpoint->phase.bytes)
        return trib_fail(&endpoint->err, TRIB_ERR_PROTOCOL,
                         "received write %u of %llu bytes from %s instead of write "
                         "%llu of %llu bytes: the transport %s is faulty",
                         e->imm & NUMBER_MASK, (unsigned long long)e->len,
                         endpoint->wire.who, (unsigned long long)endpoint->arrived,
                         (unsigned long long)endpoint->phase.bytes,
                         endpoint->setup.transport);
    if (endpoint->phase.kind == PUT_VERIFY)
        compare(endpoint, endpoint->arrived);
    endpoint->arrived++;
    return TRIB_OK;
}

static trib_status_t take(struct put_endpoint *endpoint, const struct trib_event *e)
{
    switch (e->kind) {
    case TRIB_EVENT_ARRIVED:
        if (e->imm >> NUMBER_BITS == PUT_DATA)
            return take_data(endpoint, e);
        endpoint->went = true; /* a confirmation only reaches the side that sent
                                * PUT_GO */
        endpoint->confirms += e->imm >> NUMBER_BITS == PUT_CONFIRM;
        return TRIB_OK;
    case TRIB_EVENT_WRITE_DONE:
        if (e->token >> TOKEN_BITS == endpoint->number)
            endpoint->done = e->token & TOKEN_MASK;
        return TRIB_OK;
    case TRIB_EVENT_PEER_LOST:
        /* A side that fails sends the reason before it closes: report that. */
        put_wire_said(&endpoint->wire);
        return trib_fail(&endpoint->err, TRIB_ERR_PEER_LOST, "%s is lost: %s",
                         endpoint->wire.who, e->why);
    }
    return TRIB_OK;
}

static trib_status_t harvest(struct put_endpoint *endpoint, int *n_out)
{
    struct trib_event events[EVENTS];
    trib_status_t status = TRIB_OK;

    *n_out = endpoint->t->ops->poll(endpoint->t, events, EVENTS);
    for (int i = 0; i < *n_out && status == TRIB_OK; i++)
        status = take(endpoint, &events[i]);
    if (*n_out > 0)
        endpoint->empty = 0;
    return status;
}

static trib_status_t check_peer(struct put_endpoint *endpoint, uint64_t now)
{
    if (now < endpoint->check_at)
        return TRIB_OK;
    endpoint->check_at = now + CHECK_NS;
    trib_status_t status = put_wire_check(&endpoint->wire);
    if (status != TRIB_OK ||
        now - endpoint->idle_since < trib_limit_ns(endpoint->cfg->timeout_ms))
        return status;
    return trib_fail(&endpoint->err, TRIB_ERR_TIMEOUT,
                     "received nothing from %s for %d ms (TRIB_TIMEOUT_MS): is it "
                     "stopped, or is the network down?",
                     endpoint->wire.who, endpoint->cfg->timeout_ms);
}

static trib_status_t doze(struct put_endpoint *endpoint)
{
    const struct trib_transport_ops *ops = endpoint->t->ops;
    int n;

    ops->arm(endpoint->t);
    trib_status_t status = harvest(endpoint, &n);
    if (status == TRIB_OK && n == 0)
        ops->wait(endpoint->t, SLEEP_US);
    return status;
}

trib_status_t put_endpoint_step(struct put_endpoint *endpoint, bool squeezed)
{
    int n;
    trib_status_t status = harvest(endpoint, &n);

    if (status != TRIB_OK || n > 0)
        return status;
    if (++endpoint->empty % POLLS_PER_CLOCK != 0) {
        trib_pause();
        return TRIB_OK;
    }
    uint64_t now = trib_now_ns();
    if (endpoint->empty == POLLS_PER_CLOCK) {
        endpoint->idle_since = now;
        endpoint->check_at = now + CHECK_NS;
    }
    status = check_peer(endpoint, now);
    uint64_t idle = now - endpoint->idle_since;
    if (status != TRIB_OK || idle < (uint64_t)endpoint->cfg->spin_us * 1000)
        return status;
    /* From now on, each step reads the clock. */
    endpoint->empty = 2 * POLLS_PER_CLOCK - 1;
    if (!squeezed && idle >= SLEEP_AFTER_NS)
        return doze(endpoint);
    sched_yield();
    return TRIB_OK;
}

trib_status_t put_endpoint_flush(struct put_endpoint *endpoint)
{
    trib_status_t status = TRIB_OK;

    while (status == TRIB_OK && endpoint->done < endpoint->posted)
        status = put_endpoint_step(endpoint, false);
    return status;
}
