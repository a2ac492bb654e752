/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *text;
    const char *phase;
} kinds[TRIB_TRACE_KINDS] = {
#define KIND(name, text, phase) {text, phase},
    TRIB_TRACE_MAP(KIND)
#undef KIND
};

trib_status_t trib_trace_create(struct trib_trace *trace, size_t n, int rank)
{
    size_t capacity = 1;

    *trace = (struct trib_trace){.rank = rank};
    if (n == 0)
        return TRIB_OK;
    if (n > SIZE_MAX / (2 * sizeof(*trace->events)))
        return TRIB_ERR_OVERFLOW;
    while (capacity < n)
        capacity *= 2;
    trace->events = calloc(capacity, sizeof(*trace->events));
    if (!trace->events)
        return TRIB_ERR_NO_MEMORY;
    trace->mask = capacity - 1;
    return TRIB_OK;
}

void trib_trace_destroy(struct trib_trace *trace)
{
    for (uint32_t i = 0; i < trace->n_names; i++)
        free(trace->names[i]);
    free(trace->names);
    free(trace->events);
    *trace = (struct trib_trace){0};
}

uint32_t trib_trace_name(struct trib_trace *trace, const char *name)
{
    for (uint32_t i = 0; i < trace->n_names; i++)
        if (strcmp(trace->names[i], name) == 0)
            return i + 1;
    char *copy = trace->events ? strdup(name) : NULL;
    char **names =
        copy ? realloc(trace->names, (trace->n_names + 1) * sizeof(char *)) : NULL;
    if (!names) {
        free(copy);
        return 0;
    }
    trace->names = names;
    names[trace->n_names++] = copy;
    return trace->n_names;
}

void trib_trace_moment(struct trib_trace *trace, enum trib_trace_kind kind, int peer,
                       uint32_t chunk, uint64_t value)
{
    struct trib_trace_event e = {.time_ns = trib_now_ns(), .peer = -1};

    if (trace->waiting) {
        trace->waiting = false;
        e.kind = TRIB_TRACE_WAIT_END;
        e.seq = (uint32_t)trace->count;
        trib_trace_add(trace, &e);
    }
    e.kind = kind;
    e.peer = peer;
    e.chunk = chunk;
    e.seq = (uint32_t)trace->count;
    e.value = value;
    trib_trace_add(trace, &e);
}

/* The name of an operation's plan, as JSON. */
static void dump_name(const struct trib_trace *trace, const struct trib_trace_event *e,
                      FILE *file)
{
    const bool operation =
        e->kind == TRIB_TRACE_OP_BEGIN || e->kind == TRIB_TRACE_OP_END;

    if (!operation || e->chunk == 0 || e->chunk > trace->n_names)
        return;
    fputs(",\"plan\":\"", file);
    for (const char *c = trace->names[e->chunk - 1]; *c; c++)
        fprintf(file, "%s%c", *c == '"' || *c == '\\' ? "\\" : "", *c);
    fputs("\"", file);
}

static void dump_event(const struct trib_trace *trace, const struct trib_trace_event *e,
                       FILE *file)
{
    const char *text = e->kind < TRIB_TRACE_KINDS ? kinds[e->kind].text : "?";
    const char *phase = e->kind < TRIB_TRACE_KINDS ? kinds[e->kind].phase : "i";
    bool ahead = e->kind == TRIB_TRACE_AHEAD_BEGIN || e->kind == TRIB_TRACE_AHEAD_END;
    int thread = ahead ? e->peer + 1 : 0;

    fprintf(file,
            "{\"name\":\"%s\",\"ph\":\"%s\",%s\"ts\":%" PRIu64 ".%03u,\"pid\":%d,"
            "\"tid\":%d,\"args\":{\"peer\":%" PRId32 ",\"chunk\":%" PRIu32
            ",\"seq\":%" PRIu32 ",\"value\":%" PRIu64,
            text, phase, phase[0] == 'i' ? "\"s\":\"t\"," : "", e->time_ns / 1000,
            (unsigned)(e->time_ns % 1000), trace->rank, thread, e->peer, e->chunk,
            e->seq, e->value);
    dump_name(trace, e, file);
    fputs("}}", file);
}

trib_status_t trib_trace_dump(const struct trib_trace *trace, FILE *file)
{
    uint64_t capacity = trace->events ? trace->mask + 1 : 0;
    uint64_t first = trace->count > capacity ? trace->count - capacity : 0;

    fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", file);
    for (uint64_t i = first; i < trace->count; i++) {
        fputs(i == first ? "\n" : ",\n", file);
        dump_event(trace, &trace->events[i & trace->mask], file);
    }
    fputs("\n]}\n", file);
    return fflush(file) || ferror(file) ? TRIB_ERR_SYSTEM : TRIB_OK;
}
