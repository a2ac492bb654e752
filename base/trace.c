/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/trace.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

trib_status_t trib_trace_create(struct trib_trace *trace, size_t n)
{
    size_t capacity = 1;

    *trace = (struct trib_trace){0};
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

static void end_wait(struct trib_trace *trace, uint64_t now_ns)
{
    const struct trib_trace_event e = {.time_ns = now_ns,
                                       .kind = TRIB_TRACE_WAIT_END,
                                       .peer = -1,
                                       .seq = (uint32_t)trace->count};

    if (!trace->waiting)
        return;
    trace->waiting = false;
    trib_trace_add(trace, &e);
}

void trib_trace_moment(struct trib_trace *trace, enum trib_trace_kind kind, int peer,
                       uint32_t chunk, uint64_t value)
{
    struct trib_trace_event e = {.time_ns = trib_now_ns(),
                                 .kind = kind,
                                 .peer = peer,
                                 .chunk = chunk,
                                 .value = value};

    end_wait(trace, e.time_ns);
    e.seq = (uint32_t)trace->count;
    trib_trace_add(trace, &e);
}

void trib_trace_span(struct trib_trace *trace, enum trib_trace_kind begin,
                     uint64_t begin_ns, const struct trib_trace_event *what)
{
    struct trib_trace_event e = *what;

    assert(begin + 1 < TRIB_TRACE_KINDS && begin_ns);
    end_wait(trace, begin_ns);
    e.time_ns = begin_ns;
    e.kind = begin;
    e.seq = (uint32_t)trace->count;
    trib_trace_add(trace, &e);
    e.time_ns = trib_now_ns();
    e.kind = begin + 1;
    e.seq = (uint32_t)trace->count;
    trib_trace_add(trace, &e);
}
