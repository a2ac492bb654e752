/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Binary ring buffer of the newest events. Recording costs one clock read and one
 * 32-byte store; formatting happens on request. One thread records.
 */
#ifndef BASE_TRACE_H
#define BASE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <tributary/status.h>

#include "base/time.h"

/* X(name, text): tracks of a rank in a dump, one per stage. Threads that encode ahead
 * have one track each, after these. */
/* clang-format off */
#define TRIB_TRACE_LANE_MAP(X) \
    X(OPERATION, "operation") \
    X(ENCODE, "encode") \
    X(SEND, "send") \
    X(RECEIVE, "receive") \
    X(REDUCE, "reduce") \
    X(DECODE, "decode") \
    X(WAIT, "wait") \
    X(AHEAD, "encode ahead")

/*
 * X(name, text, phase, lane): phase as in Chrome's trace format: "B" begins and "E"
 * ends a span, "i" is an instant, "C" is a counter. The end of a span is the row after
 * its begin.
 */
#define TRIB_TRACE_MAP(X) \
    X(OP_BEGIN, "operation", "B", OPERATION) \
    X(OP_END, "operation", "E", OPERATION) \
    X(ENCODE_BEGIN, "encode", "B", ENCODE) \
    X(ENCODE_END, "encode", "E", ENCODE) \
    X(AHEAD_BEGIN, "encode ahead", "B", AHEAD) /* peer: index of the thread */ \
    X(AHEAD_END, "encode ahead", "E", AHEAD) \
    X(SEND_BEGIN, "send", "B", SEND) /* passed to the transport */ \
    X(SEND_END, "send", "E", SEND) \
    X(REDUCE_BEGIN, "reduce", "B", REDUCE) \
    X(REDUCE_END, "reduce", "E", REDUCE) \
    X(DECODE_BEGIN, "decode", "B", DECODE) \
    X(DECODE_END, "decode", "E", DECODE) \
    X(WAIT_BEGIN, "wait", "B", WAIT) \
    X(WAIT_END, "wait", "E", WAIT) \
    X(UNDER_WAY, "frames under way", "C", OPERATION) /* not yet consumed by peers */ \
    X(ARRIVED, "arrived", "i", RECEIVE) \
    X(PEER_LOST, "peer lost", "i", OPERATION)
/* clang-format on */

enum trib_trace_lane {
#define TRIB_TRACE_ENUM(name, text) TRIB_TRACE_LANE_##name,
    TRIB_TRACE_LANE_MAP(TRIB_TRACE_ENUM)
#undef TRIB_TRACE_ENUM
        TRIB_TRACE_LANES,
};

enum trib_trace_kind {
#define TRIB_TRACE_ENUM(name, text, phase, lane) TRIB_TRACE_##name,
    TRIB_TRACE_MAP(TRIB_TRACE_ENUM)
#undef TRIB_TRACE_ENUM
        TRIB_TRACE_KINDS,
};

struct trib_trace_event {
    uint64_t time_ns;
    uint32_t kind;
    int32_t peer;   /* -1: none */
    uint32_t chunk; /* chunk; for an operation, the number of its plan's name, or 0 */
    uint32_t seq;
    uint64_t value; /* bytes, or the value counted by the kind */
};

_Static_assert(sizeof(struct trib_trace_event) == 32, "two events a cache line");

struct trib_trace {
    struct trib_trace_event *events;
    uint64_t mask;  /* capacity - 1 */
    uint64_t count; /* recorded since creation; the newest `capacity` are kept */
    bool waiting;   /* a wait has begun; the next event ends it */
    uint32_t under_way; /* frames in flight, as last recorded */
    char **names;   /* [n_names] plan names */
    uint32_t n_names;
};

/**
 * trib_trace_create - allocate room for at least n events; n == 0: record nothing.
 *
 * errors   TRIB_ERR_NO_MEMORY, TRIB_ERR_OVERFLOW
 */
trib_status_t trib_trace_create(struct trib_trace *trace, size_t n);
void trib_trace_destroy(struct trib_trace *trace);

/** trib_trace_add - record an event with the given time. */
static inline void trib_trace_add(struct trib_trace *trace,
                                  const struct trib_trace_event *event)
{
    if (trace->events)
        trace->events[trace->count++ & trace->mask] = *event;
}

/**
 * trib_trace_name - return the number of a plan's name, from 1, for events of its
 * operations.
 *
 * name     printable ASCII; copied, as the trace outlives plans
 * returns  0 if tracing is off, or out of memory
 */
uint32_t trib_trace_name(struct trib_trace *trace, const char *name);

/** trib_trace_moment - record an event that happens now, after ending a pending wait;
 * tracing must be on. */
void trib_trace_moment(struct trib_trace *trace, enum trib_trace_kind kind, int peer,
                       uint32_t chunk, uint64_t value);

/** trib_trace_span - record a span from `begin_ns` to now, after ending a pending wait;
 * tracing must be on. */
void trib_trace_span(struct trib_trace *trace, enum trib_trace_kind begin,
                     uint64_t begin_ns, const struct trib_trace_event *what);

/** trib_trace_clock - return the time for a later trib_trace_span; 0 if tracing is
 * off. */
static inline uint64_t trib_trace_clock(const struct trib_trace *trace)
{
    return trace->events ? trib_now_ns() : 0;
}

/** trib_trace_now - record an event that happens now; costs one branch if tracing is
 * off. */
static inline void trib_trace_now(struct trib_trace *trace, enum trib_trace_kind kind,
                                  int peer, uint32_t chunk, uint64_t value)
{
    if (trace->events)
        trib_trace_moment(trace, kind, peer, chunk, value);
}

/** trib_trace_wait - begin a wait, unless one is pending; the next trib_trace_now ends
 * it. */
static inline void trib_trace_wait(struct trib_trace *trace)
{
    if (trace->events && !trace->waiting) {
        trib_trace_moment(trace, TRIB_TRACE_WAIT_BEGIN, -1, 0, 0);
        trace->waiting = true;
    }
}

/* Identity of the recording rank, and alignment of its clock, for a dump. */
struct trib_trace_owner {
    int process; /* process number in the dump: the rank */
    const char *host;
    const char *part; /* communicator of the rank; "": its first one */
    int64_t ahead_ns; /* offset of this clock to rank 0's, which the dump uses */
    uint64_t within_ns; /* error bound of ahead_ns; UINT64_MAX: unknown */
};

/**
 * trib_trace_dump - write the events as Chrome trace JSON (chrome://tracing, Perfetto).
 *
 * Events are written one per line between a first and a last line, so that dumps of
 * several ranks can be merged line by line. Spans whose begin is no longer kept are
 * omitted; unfinished spans end with the last event.
 * errors   TRIB_ERR_SYSTEM if the file cannot be written
 */
trib_status_t trib_trace_dump(const struct trib_trace *trace,
                              const struct trib_trace_owner *owner, FILE *file);

#endif
