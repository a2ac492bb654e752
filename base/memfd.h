/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Anonymous files in memory (memfd) of a fixed size.
 */
#ifndef BASE_MEMFD_H
#define BASE_MEMFD_H

#include <stddef.h>

#include <tributary/status.h>

struct trib_error;

/**
 * trib_memfd_create - create a file of `bytes` zeros with a sealed size, so no process
 * can truncate it under its mappings.
 *
 * name     name shown in /proc/PID/fd
 * fd_out   above 2; the caller closes it
 * thread   any
 * errors   TRIB_ERR_SYSTEM: no free descriptor, ulimit -f below bytes, or rejected by
 *          the kernel; the message names the call, the errno and the cure
 */
trib_status_t trib_memfd_create(const char *name, size_t bytes, int *fd_out,
                                struct trib_error *err);

/**
 * trib_memfd_check - check that ulimit -f permits such a file.
 *
 * Beyond the limit the kernel also sends SIGXFSZ, which kills the program.
 *
 * errors   TRIB_ERR_SYSTEM with a message
 */
trib_status_t trib_memfd_check(size_t bytes, struct trib_error *err);

#endif
