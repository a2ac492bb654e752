/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events of memory that this process unmaps, moves or empties: munmap, mremap, brk,
 * mmap over it, and MADV_DONTNEED, MADV_FREE and MADV_REMOVE of madvise.
 *
 * The kernel's userfaultfd reports them, for private anonymous memory only. No page is
 * ever write-protected, so no access faults. A thread reads the events; until then the
 * call that unmaps does not return.
 *
 * The thread takes the lock before it reads. So whoever holds the lock must not wait
 * for a call that may unmap, which includes malloc and free. `gone` must not call them
 * either.
 *
 * A forked child has no watch; it can start its own. A child that was made without
 * handlers of pthread_atfork (_Fork, vfork) keeps the descriptor, so the watch of all
 * memory ends before the descriptor is closed: memory that is still watched could not
 * be unmapped while such a child lives.
 */
#ifndef BASE_MAP_WATCH_H
#define BASE_MAP_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Called with the lock held, before the call that unmaps [begin, end) returns. */
typedef void trib_map_gone(uintptr_t begin, uintptr_t end);

/**
 * trib_map_watch_start - start the watch of this process, or use it once more.
 *
 * gone     the same function at each call; NULL: this user watches nothing
 * returns  NULL, or a clause that says why there is no watch
 * thread   any, without the lock
 */
const char *trib_map_watch_start(trib_map_gone *gone);

/** trib_map_watch_stop - end a use; thread: any, without the lock. */
void trib_map_watch_stop(void);

/**
 * trib_map_watch_add - watch the pages of a range from now on, until they are unmapped
 * or dropped.
 *
 * returns  NULL, or a clause that says why they cannot be watched
 * thread   any, without the lock
 */
const char *trib_map_watch_add(const void *ptr, size_t len);

/** trib_map_watch_drop - end the watch of the pages of a range. The last stop ends the
 * watch of all others, wherever mremap has moved them. Call with the lock held. */
void trib_map_watch_drop(const void *ptr, size_t len);

void trib_map_lock(void);
void trib_map_unlock(void);

/** trib_map_is_changing - return true if watched memory may have been unmapped without
 * a call of `gone` yet. Call with the lock held. */
bool trib_map_is_changing(void);

#endif
