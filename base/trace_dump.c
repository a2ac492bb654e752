/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Write traces as Chrome JSON. A span is one event with a duration, so a ring that has
 * lost the begin of a span leaves nothing unbalanced.
 */
#include <inttypes.h>
#include <string.h>

#include "base/trace.h"

enum { THREADS = 64 }; /* tracks of threads that encode ahead */

static const struct {
    const char *text;
    char phase;
    uint8_t lane;
} kinds[TRIB_TRACE_KINDS] = {
#define KIND(name, text, phase, lane) {text, phase[0], TRIB_TRACE_LANE_##lane},
    TRIB_TRACE_MAP(KIND)
#undef KIND
};

static const char *const lanes[TRIB_TRACE_LANES] = {
#define LANE(name, text) text,
    TRIB_TRACE_LANE_MAP(LANE)
#undef LANE
};

struct dump {
    const struct trib_trace *trace;
    const struct trib_trace_owner *owner;
    FILE *file;
    unsigned first_lane; /* index of track 0 among all tracks of the process */
    bool any; /* a line has been written */
    uint64_t last_ns; /* time of the newest event */
    bool used[TRIB_TRACE_LANES + THREADS];
    const struct trib_trace_event *open[TRIB_TRACE_KINDS]; /* begins without an end */
};

/* Return the track range of a communicator: those of one rank share its process. */
static unsigned lane_range(const char *part)
{
    unsigned hash = 2166136261u;

    for (const char *c = part; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619u;
    return *part ? (1 + hash % 65521) * (TRIB_TRACE_LANES + THREADS) : 0;
}

static unsigned lane_of(const struct trib_trace_event *e)
{
    const unsigned lane = kinds[e->kind].lane;

    return lane == TRIB_TRACE_LANE_AHEAD ? lane + (unsigned)e->peer % THREADS : lane;
}

static void text_out(struct dump *d, const char *text)
{
    for (const char *c = text; *c; c++)
        if ((unsigned char)*c >= ' ')
            fprintf(d->file, "%s%c", *c == '"' || *c == '\\' ? "\\" : "", *c);
}

static void line_begin(struct dump *d)
{
    fputs(d->any ? ",\n" : "\n", d->file);
    d->any = true;
}

static void time_out(struct dump *d, const char *key, uint64_t ns)
{
    fprintf(d->file, "\"%s\":%" PRIu64 ".%03u,", key, ns / 1000, (unsigned)(ns % 1000));
}

/* Convert to the clock of rank 0; times before its zero are clamped. */
static uint64_t aligned(const struct dump *d, uint64_t ns)
{
    const int64_t at = (int64_t)ns - d->owner->ahead_ns;

    return at > 0 ? (uint64_t)at : 0;
}

static void event_begin(struct dump *d, const struct trib_trace_event *e, char phase)
{
    const unsigned lane = lane_of(e);

    d->used[lane] = true;
    line_begin(d);
    fprintf(d->file, "{\"name\":\"%s\",\"ph\":\"%c\",\"pid\":%d,\"tid\":%u,",
            kinds[e->kind].text, phase, d->owner->process, d->first_lane + lane);
    time_out(d, "ts", aligned(d, e->time_ns));
}

static void name_out(struct dump *d, const struct trib_trace_event *e)
{
    if (e->kind != TRIB_TRACE_OP_BEGIN || e->chunk == 0 || e->chunk > d->trace->n_names)
        return;
    fputs(",\"plan\":\"", d->file);
    text_out(d, d->trace->names[e->chunk - 1]);
    fputs("\"", d->file);
}

/* end NULL: the span is unfinished */
static void span_out(struct dump *d, const struct trib_trace_event *begin,
                     const struct trib_trace_event *end)
{
    const uint64_t until = end ? end->time_ns : d->last_ns;

    event_begin(d, begin, 'X');
    time_out(d, "dur", until > begin->time_ns ? until - begin->time_ns : 0);
    fprintf(d->file,
            "\"args\":{\"peer\":%" PRId32 ",\"chunk\":%" PRIu32 ",\"seq\":%" PRIu32
            ",\"value\":%" PRIu64 ",\"end_value\":%" PRIu64,
            begin->peer, begin->chunk, begin->seq, begin->value,
            end ? end->value : begin->value);
    name_out(d, begin);
    fputs(end ? "}}" : ",\"ended\":false}}", d->file);
}

static void moment_out(struct dump *d, const struct trib_trace_event *e)
{
    event_begin(d, e, 'i');
    fprintf(d->file,
            "\"s\":\"t\",\"args\":{\"peer\":%" PRId32 ",\"chunk\":%" PRIu32
            ",\"seq\":%" PRIu32 ",\"value\":%" PRIu64 "}}",
            e->peer, e->chunk, e->seq, e->value);
}

static void counter_out(struct dump *d, const struct trib_trace_event *e)
{
    event_begin(d, e, 'C');
    fprintf(d->file, "\"args\":{\"frames\":%" PRIu64 "}}", e->value);
}

static void event_out(struct dump *d, const struct trib_trace_event *e)
{
    switch (kinds[e->kind].phase) {
    case 'B':
        d->open[e->kind] = e;
        return;
    case 'E':
        if (d->open[e->kind - 1])
            span_out(d, d->open[e->kind - 1], e);
        d->open[e->kind - 1] = NULL;
        return;
    case 'C':
        counter_out(d, e);
        return;
    default:
        moment_out(d, e);
    }
}

static void meta_begin(struct dump *d, const char *what, unsigned lane)
{
    line_begin(d);
    fprintf(d->file, "{\"name\":\"%s\",\"ph\":\"M\",\"pid\":%d,\"tid\":%u,\"args\":{",
            what, d->owner->process, lane);
}

static void process_out(struct dump *d)
{
    const struct trib_trace_owner *o = d->owner;
    const int64_t us = o->ahead_ns / 1000;

    meta_begin(d, "process_name", d->first_lane);
    fprintf(d->file, "\"name\":\"rank %d (", o->process);
    text_out(d, o->host);
    fputs(")\"}}", d->file);
    meta_begin(d, "process_sort_index", d->first_lane);
    fprintf(d->file, "\"sort_index\":%d}}", o->process);
    meta_begin(d, "process_labels", d->first_lane);
    if (o->within_ns == UINT64_MAX)
        fputs("\"labels\":\"own clock, not aligned\"}}", d->file);
    else
        fprintf(d->file,
                "\"labels\":\"clock %+" PRId64 " us, within %" PRIu64 " us\"}}", us,
                (o->within_ns + 999) / 1000);
}

static void lanes_out(struct dump *d)
{
    for (unsigned i = 0; i < sizeof(d->used) / sizeof(*d->used); i++) {
        const bool ahead = i >= TRIB_TRACE_LANE_AHEAD;
        if (!d->used[i])
            continue;
        meta_begin(d, "thread_name", d->first_lane + i);
        fputs("\"name\":\"", d->file);
        if (*d->owner->part) {
            text_out(d, d->owner->part);
            fputs(": ", d->file);
        }
        fputs(lanes[ahead ? TRIB_TRACE_LANE_AHEAD : i], d->file);
        if (ahead)
            fprintf(d->file, " %u", i - TRIB_TRACE_LANE_AHEAD + 1);
        fputs("\"}}", d->file);
        meta_begin(d, "thread_sort_index", d->first_lane + i);
        fprintf(d->file, "\"sort_index\":%u}}", d->first_lane + i);
    }
}

trib_status_t trib_trace_dump(const struct trib_trace *trace,
                              const struct trib_trace_owner *owner, FILE *file)
{
    const uint64_t capacity = trace->events ? trace->mask + 1 : 0;
    const uint64_t first = trace->count > capacity ? trace->count - capacity : 0;
    struct dump d = {.trace = trace,
                     .owner = owner,
                     .file = file,
                     .first_lane = lane_range(owner->part)};

    fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", file);
    process_out(&d);
    for (uint64_t i = first; i < trace->count; i++)
        if (trace->events[i & trace->mask].time_ns > d.last_ns)
            d.last_ns = trace->events[i & trace->mask].time_ns;
    for (uint64_t i = first; i < trace->count; i++)
        event_out(&d, &trace->events[i & trace->mask]);
    for (int kind = 0; kind < TRIB_TRACE_KINDS; kind++)
        if (d.open[kind])
            span_out(&d, d.open[kind], NULL);
    lanes_out(&d);
    fputs("\n]}\n", file);
    return fflush(file) || ferror(file) ? TRIB_ERR_SYSTEM : TRIB_OK;
}
