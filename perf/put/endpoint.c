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
#include "perf/launch.h"

enum {
    EVENTS = 16,
    POLLS_PER_CLOCK = 32,
    LOOK_NS = 50000000, /* between two looks at the stream */
    SLEEP_AFTER_NS = 3000000, /* as pipeline/engine/engine_wait.c */
    SLEEP_US = 500,
};

#define LINE ((size_t)64)
#define AREA_WISH ((uint64_t)16 << 20) /* for more than one slot */
#define NUMBER_BITS 30
#define NUMBER_MASK ((UINT32_C(1) << NUMBER_BITS) - 1)
#define TOKEN_BITS 40
#define TOKEN_MASK ((UINT64_C(1) << TOKEN_BITS) - 1)

/* --- begin and end --- */

void put_endpoint_init(struct put_endpoint *side, bool server,
                       const struct trib_config *cfg, const struct trib_log *log)
{
    memset(side, 0, sizeof(*side));
    side->server = server;
    side->cfg = cfg;
    side->log = log;
    side->wire.fd = -1;
    snprintf(side->me.version, sizeof(side->me.version), "%s", trib_version());
    if (!trib_host_name(side->me.host))
        snprintf(side->me.host, sizeof(side->me.host), "unknown");
}

trib_status_t put_endpoint_hello(struct put_endpoint *side, int fd, const char *who,
                             uint64_t deadline)
{
    put_wire_open(&side->wire, fd, who, &side->err);
    return put_wire_hello(&side->wire, side->server, &side->me, &side->other, deadline);
}

/* A slot, and a line behind it that nobody may touch. */
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

static uint64_t deadline_of(const struct put_endpoint *side)
{
    return trib_deadline_ms(side->cfg->timeout_ms);
}

static trib_status_t agree(struct put_endpoint *side)
{
    struct put_setup *setup = &side->setup;
    uint64_t deadline = deadline_of(side);

    if (!side->server)
        return put_wire_send(&side->wire, PUT_SETUP, setup, sizeof(*setup), deadline);
    trib_status_t status =
        put_wire_receive(&side->wire, PUT_SETUP, setup, sizeof(*setup), deadline);
    if (status != TRIB_OK)
        return status;
    if (memchr(setup->transport, '\0', sizeof(setup->transport)) == NULL ||
        setup->area < stride_of(0) || setup->area > stride_of(PUT_SIZE_MAX))
        return trib_fail(&side->err, TRIB_ERR_PROTOCOL,
                         "%s asks for what cannot be: %llu bytes of memory",
                         side->wire.who, (unsigned long long)setup->area);
    return TRIB_OK;
}

static trib_status_t open_transport(struct put_endpoint *side, struct put_place *place)
{
    struct trib_transport_opts opts = {
        .self = side->server,
        .size = 2,
        .params = "",
        .cfg = side->cfg,
        .log = side->log,
        .err = &side->err,
        .secret = side->secret,
    };
    void *memory;
    struct trib_net_met met;

    trib_net_met_by(side->wire.fd, &met);
    opts.met = &met;
    trib_status_t status = trib_transport_open(side->setup.transport, &opts, &side->t);

    if (status != TRIB_OK)
        return status;
    const struct trib_transport_ops *ops = side->t->ops;
    memset(place, 0, sizeof(*place));
    status = ops->alloc(side->t, 2 * side->setup.area, &memory, &side->region);
    if (status != TRIB_OK)
        return status;
    side->memory = memory;
    memset(memory, 0x5a, side->setup.area); /* pages of its own, not the zero page */
    status = ops->export_region(side->t, side->region, &place->memory);
    return status == TRIB_OK ? ops->address(side->t, &place->address) : status;
}

/* The places of both sides, by number of peer; mine is there. */
static trib_status_t swap_places(struct put_endpoint *side, struct put_place *places)
{
    uint64_t deadline = deadline_of(side);
    struct put_place *there = &places[!side->server];
    trib_status_t status = put_wire_send(&side->wire, PUT_PLACE, &places[side->server],
                                         sizeof(*there), deadline);

    if (status == TRIB_OK)
        status =
            put_wire_receive(&side->wire, PUT_PLACE, there, sizeof(*there), deadline);
    if (status != TRIB_OK)
        return status;
    if (there->address.len > sizeof(there->address.bytes) ||
        there->memory.len > sizeof(there->memory.bytes))
        return trib_fail(&side->err, TRIB_ERR_PROTOCOL, "%s has an address too long",
                         side->wire.who);
    return TRIB_OK;
}

/* Both sides choose the same, where the transport has a choice. */
static trib_status_t settle(struct put_endpoint *side, const struct put_place *places)
{
    const struct trib_transport_ops *ops = side->t->ops;
    uint64_t deadline = deadline_of(side);
    const struct trib_address addresses[2] = {places[0].address, places[1].address};
    uint32_t caps[2];
    trib_status_t status = ops->caps(side->t, addresses, &caps[side->server]);

    if (status == TRIB_OK)
        status = put_wire_send(&side->wire, PUT_CAPS, &caps[side->server],
                               sizeof(caps[0]), deadline);
    if (status == TRIB_OK)
        status = put_wire_receive(&side->wire, PUT_CAPS, &caps[!side->server],
                                  sizeof(caps[0]), deadline);
    if (status == TRIB_OK)
        ops->agree(side->t, caps);
    return status;
}

static trib_status_t reach(struct put_endpoint *side, struct put_place *places)
{
    const struct trib_transport_ops *ops = side->t->ops;
    uint64_t deadline = deadline_of(side);
    int peer = !side->server;
    trib_status_t status = swap_places(side, places);

    if (status == TRIB_OK)
        status = settle(side, places);
    if (status == TRIB_OK)
        status = ops->connect(side->t, peer, &places[peer].address);
    if (status == TRIB_OK)
        status = trib_transport_import(side->t, peer, &places[peer].memory,
                                       2 * side->setup.area, &side->remote);
    if (status == TRIB_OK)
        status = put_wire_send(&side->wire, PUT_READY, NULL, 0, deadline);
    return status == TRIB_OK
               ? put_wire_receive(&side->wire, PUT_READY, NULL, 0, deadline)
               : status;
}

trib_status_t put_endpoint_open(struct put_endpoint *side)
{
    struct put_place places[2];
    trib_status_t status = agree(side);

    if (status != TRIB_OK)
        return status;
    if (side->setup.bind == PERF_BIND_CORE)
        perf_bind_core(side->server);
    status = open_transport(side, &places[side->server]);
    return status == TRIB_OK ? reach(side, places) : status;
}

void put_endpoint_close(struct put_endpoint *side)
{
    if (side->err.status != TRIB_OK)
        put_wire_fail(&side->wire, trib_error_text(&side->err));
    if (side->remote != NULL)
        side->t->ops->release(side->t, side->remote);
    if (side->region != NULL)
        side->t->ops->dereg(side->t, side->region);
    if (side->t != NULL)
        side->t->ops->close(side->t);
    side->remote = NULL;
    side->region = NULL;
    side->t = NULL;
    put_wire_close(&side->wire);
}

/* --- bytes of a verification --- */

static uint64_t mix(uint64_t x)
{
    x ^= x >> 31;
    x *= UINT64_C(0x7fb5d329728ea185);
    x ^= x >> 27;
    x *= UINT64_C(0x81dadef4bc2dd44d);
    return x ^ x >> 33;
}

/* Eight bytes of the `number`-th write that the server or the client sends. */
static uint64_t pattern(const struct put_endpoint *side, bool of_server,
                        uint64_t number, uint64_t word)
{
    uint64_t seed = mix(side->phase.bytes * 2 + of_server) + mix(number + 1);

    return mix(seed + word);
}

static size_t word_bytes(size_t bytes, size_t off)
{
    return bytes - off < 8 ? bytes - off : 8;
}

void put_endpoint_fill(struct put_endpoint *side, uint64_t round)
{
    size_t bytes = side->phase.bytes;

    for (uint64_t slot = 0; slot < side->slots; slot++) {
        uint8_t *to = side->memory + slot * side->stride;
        for (size_t off = 0; off < bytes; off += 8) {
            uint64_t word =
                pattern(side, side->server, round * side->slots + slot, off / 8);
            memcpy(to + off, &word, word_bytes(bytes, off));
        }
    }
}

/* Once only, so that a byte that stays wrong is counted when its write has arrived. */
static void compare(struct put_endpoint *side, uint64_t number)
{
    size_t bytes = side->phase.bytes;
    const uint8_t *have =
        side->memory + side->setup.area + number % side->slots * side->stride;

    for (size_t off = 0; off < bytes; off += 8) {
        uint64_t word = pattern(side, !side->server, number, off / 8);
        size_t n = word_bytes(bytes, off);
        if (memcmp(have + off, &word, n) == 0)
            continue;
        for (size_t i = 0; i < n; i++)
            side->wrong += have[off + i] != (uint8_t)(word >> 8 * i);
    }
    for (size_t i = bytes; i < side->stride; i++)
        side->wrong += have[i] != 0;
}

/* --- a phase --- */

trib_status_t put_endpoint_begin(struct put_endpoint *side,
                                 const struct put_phase *phase)
{
    if (phase->kind > PUT_VERIFY || phase->bytes > PUT_SIZE_MAX ||
        stride_of(phase->bytes) > side->setup.area || phase->depth < 1 ||
        phase->depth > PUT_DEPTH_MAX || phase->n > TOKEN_MASK / (2 * PUT_SLOTS))
        return trib_fail(&side->err, TRIB_ERR_PROTOCOL,
                         "%s asks for a phase that cannot be: %llu times %llu bytes",
                         side->wire.who, (unsigned long long)phase->n,
                         (unsigned long long)phase->bytes);
    side->phase = *phase;
    side->number++;
    side->stride = stride_of(phase->bytes);
    side->slots = side->setup.area / side->stride;
    if (side->slots > PUT_SLOTS)
        side->slots = PUT_SLOTS;
    side->posted = side->done = side->arrived = side->confirms = side->wrong = 0;
    side->went = false;
    side->empty = 0;
    if (phase->kind == PUT_VERIFY)
        memset(side->memory + side->setup.area, 0, side->setup.area);
    return TRIB_OK;
}

trib_status_t put_endpoint_post(struct put_endpoint *side, enum put_word word,
                                uint64_t slot, uint64_t number, bool signal)
{
    size_t off = slot * side->stride;
    struct trib_write w = {
        .local = side->region,
        .local_off = off,
        .remote = side->remote,
        .remote_off = side->setup.area + off,
        .len = word == PUT_DATA ? side->phase.bytes : 0,
        .imm = (uint32_t)word << NUMBER_BITS | ((uint32_t)number & NUMBER_MASK),
        .signal = signal,
        .token = side->number << TOKEN_BITS | (side->posted + 1),
    };
    trib_status_t status = side->t->ops->write(side->t, !side->server, &w);

    if (status == TRIB_OK)
        side->posted++;
    else if (status != TRIB_ERR_NO_RESOURCE && status != TRIB_ERR_PEER_LOST)
        trib_fail(&side->err, status, "a write of %zu bytes to %s failed: %s", w.len,
                  side->wire.who, trib_status_str(status));
    return status;
}

trib_status_t put_endpoint_write(struct put_endpoint *side, enum put_word word,
                                 uint64_t slot, uint64_t number, bool signal)
{
    for (;;) {
        trib_status_t status = put_endpoint_post(side, word, slot, number, signal);
        /* Why a peer is lost stands in the event. */
        if (status != TRIB_ERR_NO_RESOURCE && status != TRIB_ERR_PEER_LOST)
            return status;
        status = put_endpoint_step(side, true);
        if (status != TRIB_OK)
            return status;
    }
}

static trib_status_t take_data(struct put_endpoint *side, const struct trib_event *e)
{
    if ((e->imm & NUMBER_MASK) != (side->arrived & NUMBER_MASK) ||
        e->len != side->phase.bytes)
        return trib_fail(&side->err, TRIB_ERR_PROTOCOL,
                         "write %u of %llu bytes arrived from %s where write %llu of "
                         "%llu bytes was due: the transport %s is wrong",
                         e->imm & NUMBER_MASK, (unsigned long long)e->len,
                         side->wire.who, (unsigned long long)side->arrived,
                         (unsigned long long)side->phase.bytes, side->setup.transport);
    if (side->phase.kind == PUT_VERIFY)
        compare(side, side->arrived);
    side->arrived++;
    return TRIB_OK;
}

static trib_status_t take(struct put_endpoint *side, const struct trib_event *e)
{
    switch (e->kind) {
    case TRIB_EVENT_ARRIVED:
        if (e->imm >> NUMBER_BITS == PUT_DATA)
            return take_data(side, e);
        side->went = true; /* a confirmation comes to who said it only */
        side->confirms += e->imm >> NUMBER_BITS == PUT_CONFIRM;
        return TRIB_OK;
    case TRIB_EVENT_WRITE_DONE:
        if (e->token >> TOKEN_BITS == side->number)
            side->done = e->token & TOKEN_MASK;
        return TRIB_OK;
    case TRIB_EVENT_PEER_LOST:
        /* A side that fails says why before it leaves: that is the cause. */
        put_wire_said(&side->wire);
        return trib_fail(&side->err, TRIB_ERR_PEER_LOST, "%s is lost: %s",
                         side->wire.who, e->why);
    }
    return TRIB_OK;
}

static trib_status_t harvest(struct put_endpoint *side, int *n_out)
{
    struct trib_event events[EVENTS];
    trib_status_t status = TRIB_OK;

    *n_out = side->t->ops->poll(side->t, events, EVENTS);
    for (int i = 0; i < *n_out && status == TRIB_OK; i++)
        status = take(side, &events[i]);
    if (*n_out > 0)
        side->empty = 0;
    return status;
}

static trib_status_t look(struct put_endpoint *side, uint64_t now)
{
    if (now < side->look_at)
        return TRIB_OK;
    side->look_at = now + LOOK_NS;
    trib_status_t status = put_wire_look(&side->wire);
    if (status != TRIB_OK ||
        now - side->idle_since < (uint64_t)side->cfg->timeout_ms * UINT64_C(1000000))
        return status;
    return trib_fail(&side->err, TRIB_ERR_TIMEOUT,
                     "nothing came from %s for %d ms (TRIB_TIMEOUT_MS): is it stopped, "
                     "or the network down?",
                     side->wire.who, side->cfg->timeout_ms);
}

static trib_status_t doze(struct put_endpoint *side)
{
    const struct trib_transport_ops *ops = side->t->ops;
    int n;

    ops->arm(side->t);
    trib_status_t status = harvest(side, &n);
    if (status == TRIB_OK && n == 0)
        ops->wait(side->t, SLEEP_US);
    return status;
}

trib_status_t put_endpoint_step(struct put_endpoint *side, bool squeezed)
{
    int n;
    trib_status_t status = harvest(side, &n);

    if (status != TRIB_OK || n > 0)
        return status;
    if (++side->empty % POLLS_PER_CLOCK != 0) {
        trib_pause();
        return TRIB_OK;
    }
    uint64_t now = trib_now_ns();
    if (side->empty == POLLS_PER_CLOCK) {
        side->idle_since = now;
        side->look_at = now + LOOK_NS;
    }
    status = look(side, now);
    uint64_t idle = now - side->idle_since;
    if (status != TRIB_OK || idle < (uint64_t)side->cfg->spin_us * 1000)
        return status;
    /* From here on each step looks at the clock. */
    side->empty = 2 * POLLS_PER_CLOCK - 1;
    if (!squeezed && idle >= SLEEP_AFTER_NS)
        return doze(side);
    sched_yield();
    return TRIB_OK;
}

trib_status_t put_endpoint_flush(struct put_endpoint *side)
{
    trib_status_t status = TRIB_OK;

    while (status == TRIB_OK && side->done < side->posted)
        status = put_endpoint_step(side, false);
    return status;
}
