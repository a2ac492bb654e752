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

/*
 * X(name, text, phase): phase as in Chrome's trace format, "B" begins and "E" ends a
 * span, "i" is a moment. A begin and its end have the same text.
 */
/* clang-format off */
#define TRIB_TRACE_MAP(X) \
    X(OP_BEGIN, "operation", "B") \
    X(OP_END, "operation", "E") \
    X(ENCODE_BEGIN, "encode", "B") \
    X(ENCODE_END, "encode", "E") \
    X(AHEAD_BEGIN, "encode ahead", "B") /* peer: which of the threads that do */ \
    X(AHEAD_END, "encode ahead", "E") \
    X(REDUCE_BEGIN, "reduce", "B") \
    X(REDUCE_END, "reduce", "E") \
    X(DECODE_BEGIN, "decode", "B") \
    X(DECODE_END, "decode", "E") \
    X(WAIT_BEGIN, "wait", "B") \
    X(WAIT_END, "wait", "E") \
    X(POST, "post", "i") \
    X(ARRIVED, "arrived", "i") \
    X(PEER_LOST, "peer lost", "i")
/* clang-format on */

enum trib_trace_kind {
#define TRIB_TRACE_ENUM(name, text, phase) TRIB_TRACE_##name,
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
    int rank;       /* becomes the process number of the dump */
    bool waiting;   /* a wait has begun, which the next event ends */
    char **names;   /* [n_names] of plans */
    uint32_t n_names;
};

/**
 * trib_trace_create - room for at least n events; n == 0 makes a trace that records
 * nothing.
 *
 * errors   TRIB_ERR_NO_MEMORY, TRIB_ERR_OVERFLOW
 */
trib_status_t trib_trace_create(struct trib_trace *trace, size_t n, int rank);
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

/**
 * trib_trace_dump - the events as Chrome trace JSON (chrome://tracing, Perfetto).
 *
 * errors   TRIB_ERR_SYSTEM if the file cannot be written
 */
trib_status_t trib_trace_dump(const struct trib_trace *trace, FILE *file);

#endif
