/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A proxy process between ranks and tribd that cuts each connection after some bytes,
 * at a different position each time.
 */
#ifndef TESTS_HARNESS_CUTTING_PROXY_H
#define TESTS_HARNESS_CUTTING_PROXY_H

#include <stddef.h>
#include <sys/types.h>

/** cutting_proxy_start - forward connections from *port_out to `port` of 127.0.0.1. */
pid_t cutting_proxy_start(int port, int *port_out);

/** cutting_proxy_start_at - the same; connections are cut after these numbers of bytes,
 * in turn. */
pid_t cutting_proxy_start_at(int port, const size_t *limits, size_t n_limits,
                             int *port_out);

/** cutting_proxy_end - end the proxy. */
void cutting_proxy_end(pid_t pid);

#endif
