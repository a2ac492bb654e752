/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Simulated hosts, one per rank: namespaces for network, host name, IPC and mounts, and
 * a link with a given rate to one switch. They end with this process.
 */
#ifndef TRAIN_PROGRAM_HOSTS_H
#define TRAIN_PROGRAM_HOSTS_H

#include <stdbool.h>
#include <stddef.h>

struct hosts;

/** hosts_refused - return true if this machine cannot simulate hosts; why: an error
 * message. */
bool hosts_refused(char *why, size_t bytes);

/**
 * hosts_open - create n hosts whose links have this rate in both directions, such as
 * "1gbit".
 *
 * Sets TRIB_KEY to a new key, unless it is set.
 *
 * owner    the caller: hosts_close
 * errors   -1 after an error message on standard error
 */
int hosts_open(int n, const char *rate, struct hosts **hosts_out);

/** hosts_enter - move this process into a host; the process must have one thread. -1
 * after an error message. */
int hosts_enter(const struct hosts *hosts, int host);

/** hosts_address - return the address of a host. */
void hosts_address(int host, char *text, size_t bytes);

/** hosts_root - return the ranks' rendezvous address, on host 0. */
const char *hosts_root(void);

void hosts_close(struct hosts *hosts);

/**
 * hosts_be_alone - move this process and its future children into an isolated network
 * with only loopback.
 *
 * returns  false: not permitted; the network is unchanged
 */
bool hosts_be_alone(void);

#endif
