/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sweep: the client requests one size after the other, and the server follows.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "perf/common/progress.h"
#include "perf/common/samples.h"
#include "perf/put/put.h"

#define AUTO_SECONDS 0.5
#define AUTO_LEAST 20
#define LATENCY_MOST 100000
#define STREAM_MOST 2000000
#define CHECK_ROUNDS 3
#define WARM_SECONDS 5e-3 /* minimum duration of a stream to estimate a rate from */

static uint64_t deadline_of(const struct put_endpoint *endpoint)
{
    return trib_limit_deadline(endpoint->cfg->timeout_ms);
}

/* Results of a phase; a server only fills in its counters. */
struct measured {
    double *seconds; /* of a ping-pong */
    double took; /* of a stream */
    double cpu_s;
};

static trib_status_t run(struct put_endpoint *endpoint, struct measured *m)
{
    double before = perf_cpu_seconds();
    trib_status_t status = TRIB_OK;

    switch ((enum put_phase_kind)endpoint->phase.kind) {
    case PUT_PINGPONG:
        status = put_pingpong(endpoint, endpoint->phase.n, m->seconds);
        break;
    case PUT_STREAM:
        status = put_stream(endpoint, endpoint->phase.n, &m->took);
        break;
    case PUT_VERIFY:
        status = put_verify(endpoint, endpoint->phase.n);
        break;
    }
    m->cpu_s = perf_cpu_seconds() - before;
    return status;
}

/* --- server --- */

static trib_status_t obey(struct put_endpoint *endpoint, const struct put_phase *phase)
{
    struct measured m = {0};
    trib_status_t status = put_endpoint_begin(endpoint, phase);

    if (status == TRIB_OK)
        status =
            put_wire_send(&endpoint->wire, PUT_READY, NULL, 0, deadline_of(endpoint));
    if (status == TRIB_OK)
        status = run(endpoint, &m);
    if (status != TRIB_OK)
        return status;
    struct put_outcome outcome = {.cpu_s = m.cpu_s, .wrong = endpoint->wrong};
    return put_wire_send(&endpoint->wire, PUT_RESULT, &outcome, sizeof(outcome),
                         deadline_of(endpoint));
}

trib_status_t put_serve(struct put_endpoint *endpoint)
{
    for (;;) {
        struct put_phase phase;
        enum put_kind kind;
        trib_status_t status =
            put_wire_receive_any(&endpoint->wire, &kind, &phase, deadline_of(endpoint));
        if (status != TRIB_OK || kind == PUT_END)
            return status;
        status = obey(endpoint, &phase);
        if (status != TRIB_OK)
            return status;
    }
}

/* --- client --- */

/* Run one phase on both sides. Add the wrong bytes and the processor time of both. */
static trib_status_t command(struct put_endpoint *endpoint,
                             const struct put_phase *phase, struct measured *m,
                             double *wrong)
{
    struct put_outcome there;
    trib_status_t status = put_endpoint_begin(endpoint, phase);

    if (status == TRIB_OK)
        status = put_wire_send(&endpoint->wire, PUT_PHASE, phase, sizeof(*phase),
                               deadline_of(endpoint));
    if (status == TRIB_OK)
        status = put_wire_receive(&endpoint->wire, PUT_READY, NULL, 0,
                                  deadline_of(endpoint));
    if (status == TRIB_OK)
        status = run(endpoint, m);
    if (status == TRIB_OK)
        status = put_wire_receive(&endpoint->wire, PUT_RESULT, &there, sizeof(there),
                                  deadline_of(endpoint));
    if (status != TRIB_OK)
        return status;
    m->cpu_s += there.cpu_s;
    *wrong += (double)endpoint->wrong + (double)there.wrong;
    return TRIB_OK;
}

static uint64_t as_many(double seconds_each, double most)
{
    double n = AUTO_SECONDS / fmax(seconds_each, 1e-9);
    return (uint64_t)fmin(fmax(n, AUTO_LEAST), most);
}

static trib_status_t pingpong(struct put_endpoint *endpoint, struct put_phase phase,
                              struct perf_summary *us, double *wrong)
{
    struct measured m = {.seconds = calloc(phase.n, sizeof(double))};

    if (m.seconds == NULL)
        return trib_fail(&endpoint->err, TRIB_ERR_NO_MEMORY,
                         "no memory for %llu samples: lower --iters",
                         (unsigned long long)phase.n);
    trib_status_t status = command(endpoint, &phase, &m, wrong);
    for (uint64_t i = 0; status == TRIB_OK && i < phase.n; i++)
        m.seconds[i] *= 1e6;
    if (status == TRIB_OK)
        perf_summarise(m.seconds, phase.n, us);
    free(m.seconds);
    return status;
}

static trib_status_t latency(struct put_endpoint *endpoint, const struct put_args *args,
                             struct put_phase phase, struct put_result *out)
{
    phase.kind = PUT_PINGPONG;
    phase.n = phase.bytes > (1 << 20) ? 4 : 50;
    trib_status_t status = pingpong(endpoint, phase, &out->us, &out->wrong);
    phase.n = args->iters > 0 ? (uint64_t)args->iters
                              : as_many(2e-6 * out->us.p50, LATENCY_MOST);
    return status == TRIB_OK ? pingpong(endpoint, phase, &out->us, &out->wrong)
                             : status;
}

/* Warm up with more and more writes until the time per write is known. */
static trib_status_t estimate(struct put_endpoint *endpoint, struct put_phase *phase,
                              double *each_out, double *wrong)
{
    struct measured m;

    for (phase->n = phase->depth;; phase->n *= 8) {
        memset(&m, 0, sizeof(m));
        trib_status_t status = command(endpoint, phase, &m, wrong);
        if (status != TRIB_OK)
            return status;
        *each_out = m.took / (double)phase->n;
        if (m.took >= WARM_SECONDS || phase->n * 8 > STREAM_MOST)
            return TRIB_OK;
    }
}

static trib_status_t bandwidth(struct put_endpoint *endpoint,
                               const struct put_args *args, struct put_phase phase,
                               struct put_result *out)
{
    struct measured m = {0};
    double each;

    phase.kind = PUT_STREAM;
    trib_status_t status = estimate(endpoint, &phase, &each, &out->wrong);
    if (status != TRIB_OK)
        return status;
    phase.n = args->iters > 0 ? (uint64_t)args->iters : as_many(each, STREAM_MOST);
    status = command(endpoint, &phase, &m, &out->wrong);
    if (status != TRIB_OK)
        return status;
    double writes = (double)phase.n * (args->bidirectional ? 2 : 1);
    double bytes = writes * (double)phase.bytes;
    out->writes = phase.n;
    out->GBps = 1e-9 * bytes / m.took;
    out->messages_per_s = writes / m.took;
    out->cpu_s_per_GB = bytes > 0 ? m.cpu_s / (1e-9 * bytes) : (double)NAN;
    return TRIB_OK;
}

static trib_status_t verify(struct put_endpoint *endpoint, struct put_phase phase,
                            double *wrong)
{
    struct measured m = {0};

    phase.kind = PUT_VERIFY;
    phase.n = CHECK_ROUNDS;
    return command(endpoint, &phase, &m, wrong);
}

trib_status_t put_measure(struct put_endpoint *endpoint, const struct put_args *args,
                          size_t bytes, struct perf_progress *progress,
                          struct put_result *out)
{
    const struct put_phase phase = {
        .depth = (uint32_t)args->depth,
        .bytes = bytes,
        .bidirectional = args->bidirectional,
    };
    trib_status_t status = TRIB_OK;

    memset(out, 0, sizeof(*out));
    out->bytes = bytes;
    out->cpu_s_per_GB = (double)NAN;
    endpoint->progress = progress;
    if (args->check)
        status = verify(endpoint, phase, &out->wrong);
    if (status == TRIB_OK && args->latency)
        status = latency(endpoint, args, phase, out);
    if (status == TRIB_OK && args->bandwidth)
        status = bandwidth(endpoint, args, phase, out);
    if (status == TRIB_OK && args->check) /* again, after thousands of writes */
        status = verify(endpoint, phase, &out->wrong);
    if (!args->check)
        out->wrong = (double)NAN;
    endpoint->progress = NULL;
    return status;
}
