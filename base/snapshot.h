/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading memory that other processes may write to at any time, whatever they promised.
 *
 * What is checked must be what is used: so it is copied once, and the copy is checked
 * and used. A plain copy is not enough, as a compiler may read the original again in
 * place of the copy.
 */
#ifndef BASE_SNAPSHOT_H
#define BASE_SNAPSHOT_H

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

/** trib_snapshot - copy `bytes` of such memory, each once; they may be of different
 * times. */
static inline void trib_snapshot(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
    atomic_signal_fence(memory_order_seq_cst); /* now the original may be another one */
}

#endif
