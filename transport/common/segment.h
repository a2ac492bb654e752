/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Segments: anonymous files in memory (memfd) that other processes of this host map.
 *
 * A segment has no name in any file system: peers open /proc/PID/fd/N of its owner, or
 * where they may not, ask its owner for it (transport/common/handout.h), and the kernel
 * frees it with its last mapping, however the processes end. Its size is sealed, so no
 * peer can cut it short under our feet (SIGBUS). Between processes that do not trust
 * each other it is asked for, always (transport/common/guard.h).
 *
 *     base                      base + len         map_len
 *     | data, zero at first ... | trailer, 1 page  |
 *
 * The trailer carries a random key that proves that descriptor N of PID is still this
 * segment. Threads of the owner's process share the owner's own mapping, which they
 * find by that key, and which is counted, in a table of the process
 * (transport/common/own_memory.h): equal addresses for all is what lets ThreadSanitizer
 * see their accesses, and the memory outlives an owner that goes first.
 */
#ifndef TRANSPORT_COMMON_SEGMENT_H
#define TRANSPORT_COMMON_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/status.h>

struct trib_error;
struct trib_process;

struct trib_segment_trailer;

struct trib_segment {
    uint8_t *base;
    size_t len; /* data bytes, a multiple of 4096 */
    size_t map_len; /* data and trailer */
    uint64_t key;
    int fd; /* of the owner; -1 where attached */
    struct trib_segment_trailer *trailer;
    bool counted; /* this mapping is the owner's own: the last user unmaps it */
};

/* The name of a segment for peers, besides the owner's process; carried inside
 * blobs. */
struct trib_segment_id {
    uint64_t key;
    uint64_t map_len;
    int32_t fd;
    uint32_t handout; /* of trib_handout_name; 0: none */
};

/**
 * trib_segment_owner - this process, as its peers will look for it in /proc.
 *
 * errors   TRIB_ERR_UNSUPPORTED: /proc does not tell
 */
trib_status_t trib_segment_owner(struct trib_process *out, struct trib_error *err);

/**
 * trib_segment_create - a new segment of at least len zero bytes.
 *
 * From 2 MiB on, base is aligned to 2 MiB and len a multiple of it, so that the kernel
 * may use huge pages. Memory is taken when it is touched: who will touch all of it asks
 * trib_meminfo_check first.
 *
 * errors   TRIB_ERR_OVERFLOW, TRIB_ERR_NO_MEMORY (of addresses), TRIB_ERR_SYSTEM (open
 *          files, memfd)
 */
trib_status_t trib_segment_create(size_t len, struct trib_segment *out,
                                  struct trib_error *err);

/**
 * trib_segment_check - does ulimit -f of this process let it create such a segment?
 *
 * errors   TRIB_ERR_SYSTEM, TRIB_ERR_OVERFLOW
 */
trib_status_t trib_segment_check(size_t len, struct trib_error *err);

/** trib_segment_id - how peers find a segment that was created here. */
struct trib_segment_id trib_segment_id(const struct trib_segment *seg);

/**
 * trib_segment_attach - map a segment that process `owner` created.
 *
 * self     the calling process: the same as `owner` when ranks are threads
 * errors   TRIB_ERR_PEER_LOST (process gone), TRIB_ERR_INVALID (not this segment any
 *          more), TRIB_ERR_UNSUPPORTED (access refused; the sentence says why)
 */
trib_status_t trib_segment_attach(const struct trib_segment_id *id,
                                  const struct trib_process *owner,
                                  const struct trib_process *self,
                                  struct trib_segment *out, struct trib_error *err);

/**
 * trib_segment_adopt - map a descriptor that a process has handed over which is not
 * trusted.
 *
 * It must be a memfd of ordinary pages, of the promised size, that nobody can make
 * shorter or longer; its memory stays what the other process makes of it at any moment.
 *
 * fd       stays the caller's; pid is for sentences
 * errors   TRIB_ERR_INVALID: it is something else (the sentence says what);
 *          TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_segment_adopt(const struct trib_segment_id *id, int fd, int pid,
                                 struct trib_segment *out, struct trib_error *err);

/**
 * trib_segment_reach - may this process open it? Errors as those of attach.
 *
 * Its owner may have to be asked for it: it then finds trib_handout_asked true.
 */
trib_status_t trib_segment_reach(const struct trib_segment_id *id, int pid,
                                 struct trib_error *err);

/** trib_segment_abandoned - has its owner released it? Of one that is attached. */
bool trib_segment_abandoned(const struct trib_segment *seg);

/**
 * trib_segment_release - undo create or attach. Does nothing the second time.
 *
 * in_child  a forked child gives up its copy: the parent's references stay
 */
void trib_segment_release(struct trib_segment *seg, bool in_child);

#endif
