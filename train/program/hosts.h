/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each rank as a host of its own: namespaces for network, host name, IPC and mounts,
 * and a link of a given rate to one switch. All of it ends with this process.
 */
#ifndef TRAIN_PROGRAM_HOSTS_H
#define TRAIN_PROGRAM_HOSTS_H

#include <stdbool.h>
#include <stddef.h>

struct hosts;

/** hosts_refused - true if this machine cannot have such hosts; why: a sentence. */
bool hosts_refused(char *why, size_t bytes);

/**
 * hosts_open - make n hosts, whose links have this rate, such as "1gbit", both ways.
 *
 * The secret of their jobs goes into TRIB_KEY, unless there is one.
 * owner    the caller: hosts_close
 * errors   -1 after a sentence on standard error
 */
int hosts_open(int n, const char *rate, struct hosts **hosts_out);

/** hosts_enter - become a process of a host; this process has one thread. -1 after a
 * sentence. */
int hosts_enter(const struct hosts *hosts, int host);

/** hosts_address - the address of a host among them. */
void hosts_address(int host, char *text, size_t bytes);

/** hosts_root - where their ranks meet: at host 0. */
const char *hosts_root(void);

void hosts_close(struct hosts *hosts);

/**
 * hosts_be_alone - move this process, and those that it forks from here on, into a
 * network of their own, which has loopback and which nobody else reaches.
 *
 * returns  false: this machine does not let it, and all is as before
 */
bool hosts_be_alone(void);

#endif
