/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The phases, for both sides. Each phase ends when this side's writes are done. A
 * transport may hold them back until it is polled, and it is not polled between phases.
 */
#include "perf/put/put.h"

#define LOOKS 1024 /* steps of a stream between two clock reads */
#define SHOW_SECONDS 0.25

/* --- latency --- */

static trib_status_t await_data(struct put_endpoint *endpoint, uint64_t n)
{
    trib_status_t status = TRIB_OK;

    while (status == TRIB_OK && endpoint->arrived < n)
        status = put_endpoint_step(endpoint, false);
    return status;
}

static trib_status_t answer(struct put_endpoint *endpoint, uint64_t n)
{
    trib_status_t status = TRIB_OK;

    for (uint64_t i = 0; i < n && status == TRIB_OK; i++) {
        status = await_data(endpoint, i + 1);
        if (status == TRIB_OK)
            status = put_endpoint_write(endpoint, PUT_DATA, 0, i, i + 1 == n);
    }
    return status;
}

static trib_status_t call(struct put_endpoint *endpoint, uint64_t n, double *seconds)
{
    trib_status_t status = TRIB_OK;
    double before = perf_now(), shown = before;

    for (uint64_t i = 0; i < n && status == TRIB_OK; i++) {
        status = put_endpoint_write(endpoint, PUT_DATA, 0, i, i + 1 == n);
        if (status == TRIB_OK)
            status = await_data(endpoint, i + 1);
        double now = perf_now();
        seconds[i] = (now - before) / 2;
        before = now;
        if (endpoint->progress == NULL || now - shown < SHOW_SECONDS)
            continue;
        perf_progress_show(endpoint->progress, endpoint->phase.bytes, (long)i + 1,
                           (long)n);
        before = shown = perf_now();
    }
    return status;
}

trib_status_t put_pingpong(struct put_endpoint *endpoint, uint64_t n, double *seconds)
{
    trib_status_t status =
        endpoint->server ? answer(endpoint, n) : call(endpoint, n, seconds);

    return status == TRIB_OK ? put_endpoint_flush(endpoint) : status;
}

/* --- bandwidth --- */

/* Post as many writes as depth allows. *full_out: the transport accepts no more now. */
static trib_status_t post_some(struct put_endpoint *endpoint, uint64_t first,
                               uint64_t n, bool *full_out)
{
    uint64_t group = endpoint->phase.depth / 4;

    *full_out = false;
    if (group == 0)
        group = 1;
    /* `first` counts writes before the data: PUT_GO. */
    while (endpoint->posted - first < n &&
           endpoint->posted - endpoint->done < endpoint->phase.depth) {
        uint64_t i = endpoint->posted - first;
        bool signal = i + 1 == n || i % group == group - 1;
        trib_status_t status = put_endpoint_post(endpoint, PUT_DATA, 0, i, signal);
        if (status == TRIB_ERR_NO_RESOURCE || status == TRIB_ERR_PEER_LOST) {
            *full_out = true;
            return TRIB_OK; /* the event says why the peer was lost */
        }
        if (status != TRIB_OK)
            return status;
    }
    return TRIB_OK;
}

static void show(struct put_endpoint *endpoint, uint64_t sent, uint64_t n)
{
    if (endpoint->progress != NULL)
        perf_progress_show(endpoint->progress, endpoint->phase.bytes, (long)sent,
                           (long)n);
}

/* Send and receive until both are complete; the client also waits for the
 * confirmation. */
static trib_status_t move(struct put_endpoint *endpoint, uint64_t send,
                          uint64_t receive)
{
    uint64_t first = endpoint->posted, confirms = endpoint->server ? 0 : 1;
    trib_status_t status = TRIB_OK;

    for (unsigned looks = 1;; looks++) {
        bool full;
        status = post_some(endpoint, first, send, &full);
        if (status == TRIB_OK)
            status = put_endpoint_step(endpoint, full);
        if (status != TRIB_OK)
            return status;
        if (endpoint->posted - first == send && endpoint->arrived == receive &&
            endpoint->confirms == confirms)
            return TRIB_OK;
        if (looks % LOOKS == 0)
            show(endpoint, endpoint->posted - first, send);
    }
}

trib_status_t put_stream(struct put_endpoint *endpoint, uint64_t n, double *took_out)
{
    uint64_t back = endpoint->phase.bidirectional ? n : 0;
    trib_status_t status = TRIB_OK;

    if (endpoint->server) {
        while (status == TRIB_OK && !endpoint->went)
            status = put_endpoint_step(endpoint, false);
        if (status == TRIB_OK)
            status = move(endpoint, back, n);
        if (status == TRIB_OK)
            status = put_endpoint_write(endpoint, PUT_CONFIRM, 0, 0, true);
        return status == TRIB_OK ? put_endpoint_flush(endpoint) : status;
    }
    double start = perf_now();
    status = put_endpoint_write(endpoint, PUT_GO, 0, 0, true);
    if (status == TRIB_OK)
        status = move(endpoint, n, back);
    *took_out = perf_now() - start;
    return status == TRIB_OK ? put_endpoint_flush(endpoint) : status;
}

/* --- verification --- */

static trib_status_t verify_round(struct put_endpoint *endpoint, uint64_t round)
{
    uint64_t first = round * endpoint->slots, end = first + endpoint->slots;
    bool confirmed = false;
    trib_status_t status = TRIB_OK;

    put_endpoint_fill(endpoint, round);
    for (uint64_t i = first; i < end && status == TRIB_OK; i++)
        status = put_endpoint_write(endpoint, PUT_DATA, i - first, i, false);
    /* The other side may write again when it has our confirmation, and we when we have
     * its. */
    while (status == TRIB_OK && (!confirmed || endpoint->confirms <= round)) {
        if (!confirmed && endpoint->arrived >= end) {
            status = put_endpoint_write(endpoint, PUT_CONFIRM, 0, 0, true);
            confirmed = true;
        } else {
            status = put_endpoint_step(endpoint, false);
        }
    }
    return status;
}

trib_status_t put_verify(struct put_endpoint *endpoint, uint64_t rounds)
{
    trib_status_t status = TRIB_OK;

    for (uint64_t round = 0; round < rounds && status == TRIB_OK; round++)
        status = verify_round(endpoint, round);
    return status == TRIB_OK ? put_endpoint_flush(endpoint) : status;
}
