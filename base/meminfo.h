/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory that this host has free.
 */
#ifndef BASE_MEMINFO_H
#define BASE_MEMINFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/status.h>

struct trib_error;

/**
 * trib_meminfo_free - bytes that processes may still take: what the kernel can give or get
 * back, and swap. Limits of a control group are not known here.
 *
 * root     "", or the folder in which /proc/meminfo is looked for
 * returns  false where the kernel does not say
 */
bool trib_meminfo_free(const char *root, uint64_t *bytes_out);

/**
 * trib_meminfo_check - has this host `bytes` free now? Asked from 64 MiB on: it takes 30 us.
 *
 * The kernel promises memory that it does not have, and ends processes when they touch it.
 *
 * errors   TRIB_ERR_NO_MEMORY; TRIB_OK where the kernel does not say
 */
trib_status_t trib_meminfo_check(size_t bytes, struct trib_error *err);

#endif
