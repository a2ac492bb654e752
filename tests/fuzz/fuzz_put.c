/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes from the other side of trib-perf put: they result in a status and a
 * terminated error message, and phases stay within the memory. The first byte selects
 * the side that sends first.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "base/time.h"
#include "perf/put/endpoint.h"
#include "tests/fuzz/reach.h"

#define AREA 8192
#define STREAM_MAX 16384 /* capacity of a socket pair */

unsigned fuzz_reached; /* phases that have begun */

static trib_status_t hear_phase(struct put_endpoint *endpoint, uint64_t deadline)
{
    struct put_phase phase;
    enum put_kind kind = PUT_FAIL;
    trib_status_t status =
        put_wire_receive_any(&endpoint->wire, &kind, &phase, deadline);

    if (status != TRIB_OK || kind == PUT_END)
        return status == TRIB_OK ? TRIB_ERR_ABORTED : status;
    need(kind == PUT_PHASE);
    status = put_endpoint_begin(endpoint, &phase);
    if (status != TRIB_OK)
        return status;
    fuzz_reached++;
    need(endpoint->slots >= 1 && endpoint->slots <= PUT_SLOTS);
    need(endpoint->slots * endpoint->stride <= AREA && phase.bytes < endpoint->stride);
    return status;
}

static void converse(struct put_endpoint *endpoint, int fd)
{
    uint64_t deadline = trib_deadline_ms(5000);
    trib_status_t status = put_endpoint_hello(endpoint, fd, "fuzz", deadline);

    if (status == TRIB_OK) {
        need(strlen(endpoint->other.version) < sizeof(endpoint->other.version));
        need(strlen(endpoint->other.host) < sizeof(endpoint->other.host));
    }
    while (status == TRIB_OK) {
        status = put_wire_said(&endpoint->wire);
        if (status == TRIB_OK)
            status = hear_phase(endpoint, deadline);
    }
    need(memchr(endpoint->err.text, 0, sizeof(endpoint->err.text)) != NULL);
    put_wire_close(&endpoint->wire);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t memory[2 * AREA];
    struct trib_config cfg = {.timeout_ms = 1000};
    struct put_endpoint endpoint;
    int fds[2];

    if (size < 1 || size > STREAM_MAX)
        return 0;
    need(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
    need(write(fds[1], data + 1, size - 1) == (ssize_t)size - 1);
    shutdown(fds[1], SHUT_WR);
    put_endpoint_init(&endpoint, data[0] & 1, &cfg, NULL);
    snprintf(endpoint.me.version, sizeof(endpoint.me.version),
             "0.1.0"); /* the version in the corpus */
    endpoint.setup.area = AREA;
    endpoint.memory = memory;
    converse(&endpoint, fds[0]);
    close(fds[1]);
    return 0;
}
