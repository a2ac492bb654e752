/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A binary ring of the newest events. Recording is one clock read and one 32-byte
 * store; formatting happens when a person asks. One thread records.
 */
#ifndef BASE_TRACE_H
#define BASE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <tributary/status.h>

#include "base/time.h"

/* X(name, text): the lanes of a rank in a dump, one for each stage. Threads that encode
 * ahead have lanes behind these, one each. */
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
 * X(name, text, phase, lane): phase as in Chrome's trace format, "B" begins and "E"
 * ends a span, "i" is a moment, "C" is a counter. The end of a span is the row behind
 * its begin.
 */
#define TRIB_TRACE_MAP(X) \
    X(OP_BEGIN, "operation", "B", OPERATION) \
    X(OP_END, "operation", "E", OPERATION) \
    X(ENCODE_BEGIN, "encode", "B", ENCODE) \
    X(ENCODE_END, "encode", "E", ENCODE) \
    X(AHEAD_BEGIN, "encode ahead", "B", AHEAD) /* peer: number of the thread */ \
    X(AHEAD_END, "encode ahead", "E", AHEAD) \
    X(SEND_BEGIN, "send", "B", SEND) /* given to the transport */ \
    X(SEND_END, "send", "E", SEND) \
    X(REDUCE_BEGIN, "reduce", "B", REDUCE) \
    X(REDUCE_END, "reduce", "E", REDUCE) \
    X(DECODE_BEGIN, "decode", "B", DECODE) \
    X(DECODE_END, "decode", "E", DECODE) \
    X(WAIT_BEGIN, "wait", "B", WAIT) \
    X(WAIT_END, "wait", "E", WAIT) \
    X(UNDER_WAY, "frames under way", "C", OPERATION) /* not yet taken by peers */ \
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
    uint32_t chunk; /* chunk; of an operation, the number of its plan's name, or 0 */
    uint32_t seq;
    uint64_t value; /* bytes, or what the kind counts */
};

_Static_assert(sizeof(struct trib_trace_event) == 32, "two events a cache line");

struct trib_trace {
    struct trib_trace_event *events;
    uint64_t mask;  /* capacity - 1 */
    uint64_t count; /* recorded since creation; the newest capacity of them are kept */
    bool waiting;   /* a wait has begun, which the next event ends */
    uint32_t under_way; /* frames, as last recorded */
    char **names;   /* [n_names] of plans */
    uint32_t n_names;
};

/**
 * trib_trace_create - room for at least n events; n == 0 makes a trace that records
 * nothing.
 *
 * errors   TRIB_ERR_NO_MEMORY, TRIB_ERR_OVERFLOW
 */
trib_status_t trib_trace_create(struct trib_trace *trace, size_t n);
void trib_trace_destroy(struct trib_trace *trace);

/** trib_trace_add - record an event with the time given. */
static inline void trib_trace_add(struct trib_trace *trace,
                                  const struct trib_trace_event *event)
{
    if (trace->events)
        trace->events[trace->count++ & trace->mask] = *event;
}

/**
 * trib_trace_name - the number of a plan's name, from 1 on, for events of its
 * operations.
 *
 * name     printable ASCII; copied, as the trace outlives plans
 * returns  0 where tracing is off, or there is no memory
 */
uint32_t trib_trace_name(struct trib_trace *trace, const char *name);

/** trib_trace_moment - record an event that happens now, and before it the end of a
 * wait; tracing is on. */
void trib_trace_moment(struct trib_trace *trace, enum trib_trace_kind kind, int peer,
                       uint32_t chunk, uint64_t value);

/** trib_trace_span - record a span that began at `begin_ns` and ends now, and before it
 * the end of a wait; tracing is on. */
void trib_trace_span(struct trib_trace *trace, enum trib_trace_kind begin,
                     uint64_t begin_ns, const struct trib_trace_event *what);

/** trib_trace_clock - the time, for a later trib_trace_span; 0 where tracing is off. */
static inline uint64_t trib_trace_clock(const struct trib_trace *trace)
{
    return trace->events ? trib_now_ns() : 0;
}

/** trib_trace_now - record an event that happens now; costs a branch when tracing is
 * off. */
static inline void trib_trace_now(struct trib_trace *trace, enum trib_trace_kind kind,
                                  int peer, uint32_t chunk, uint64_t value)
{
    if (trace->events)
        trib_trace_moment(trace, kind, peer, chunk, value);
}

/** trib_trace_wait - nothing can be done now: a wait begins, unless one has. The next
 * event of trib_trace_now ends it. */
static inline void trib_trace_wait(struct trib_trace *trace)
{
    if (trace->events && !trace->waiting) {
        trib_trace_moment(trace, TRIB_TRACE_WAIT_BEGIN, -1, 0, 0);
        trace->waiting = true;
    }
}

/* A dump names the rank whose events it has, and the clock of its times. */
struct trib_trace_owner {
    int process; /* number of the process in the dump: a rank */
    const char *host;
    const char *part; /* which communicator of the rank; "": its first one */
    int64_t ahead_ns; /* this clock is so far ahead of that of rank 0, which the times
                       * of the dump are of */
    uint64_t within_ns; /* by which ahead_ns may be off; UINT64_MAX: it is not known */
};

/**
 * trib_trace_dump - the events as Chrome trace JSON (chrome://tracing, Perfetto).
 *
 * Each event has a line, behind a first line and before a last one, so that dumps of
 * several ranks can be put together line by line. Spans whose begin is no longer kept
 * are left out; those that have not ended end with the last event.
 * errors   TRIB_ERR_SYSTEM if the file cannot be written
 */
trib_status_t trib_trace_dump(const struct trib_trace *trace,
                              const struct trib_trace_owner *owner, FILE *file);

#endif
