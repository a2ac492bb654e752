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
 * trib_memfd_create - a file of `bytes` zeros whose size is sealed: nobody can take
 * pages away from under those that map it.
 *
 * name     what /proc/PID/fd shows
 * fd_out   above 2; the caller closes it
 * thread   any
 * errors   TRIB_ERR_SYSTEM: no descriptor is left, ulimit -f is lower than bytes, or
 * the kernel refuses; the sentence names the call, the errno and the cure
 */
trib_status_t trib_memfd_create(const char *name, size_t bytes, int *fd_out,
                                struct trib_error *err);

/**
 * trib_memfd_check - may this process make such a file by its ulimit -f?
 *
 * The kernel does not only refuse a larger one: it sends SIGXFSZ, which ends the
 * program.
 *
 * errors   TRIB_ERR_SYSTEM, with a sentence
 */
trib_status_t trib_memfd_check(size_t bytes, struct trib_error *err);

#endif
