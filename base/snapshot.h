/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading memory that other processes may modify at any time.
 *
 * Data must be checked and used from the same copy: copy once, then check and use the
 * copy. A plain copy is not enough, as the compiler may read the original again.
 */
#ifndef BASE_SNAPSHOT_H
#define BASE_SNAPSHOT_H

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

/** trib_snapshot - copy `bytes` of such memory, each byte once; the copy need not be
 * consistent. */
static inline void trib_snapshot(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
    atomic_signal_fence(memory_order_seq_cst); /* the compiler must not reread the
                                                * original */
}

#endif
