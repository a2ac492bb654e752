/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process between ranks and a tribd that cuts each connection after some bytes, at
 * another place each time.
 */
#ifndef TESTS_HARNESS_CUTTING_PROXY_H
#define TESTS_HARNESS_CUTTING_PROXY_H

#include <sys/types.h>

/** cutting_proxy_start - pass on to this port of 127.0.0.1, from *port_out. */
pid_t cutting_proxy_start(int port, int *port_out);

/** cutting_proxy_end - end it. */
void cutting_proxy_end(pid_t pid);

#endif
