/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Segments: anonymous memory files (memfd) that other processes on this host map.
 *
 * A segment has no name in any file system: peers open /proc/PID/fd/N of its owner. If
 * access is denied, they request the segment from its owner
 * (transport/common/handout.h). The kernel frees a segment with its last mapping,
 * however the processes end. Its size is sealed, so no peer can truncate it while it is
 * mapped (SIGBUS). Processes that do not trust each other always request it
 * (transport/common/guard.h).
 *
 *     base                      base + len         map_len
 *     | data, zero at first ... | trailer, 1 page  |
 *
 * The trailer holds a random key that proves that descriptor N of PID is still this
 * segment. Threads of the owner's process share the owner's mapping. They find it by
 * that key in a table of the process that counts its users
 * (transport/common/own_memory.h). Equal addresses let ThreadSanitizer see all
 * accesses, and the memory outlives an owner that closes first.
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
    int fd; /* of the owner; -1 if attached */
    struct trib_segment_trailer *trailer;
    bool counted; /* this is the owner's mapping: its last user unmaps it */
};

/* Identifies a segment for peers, together with the owner's process; sent inside
 * blobs. */
struct trib_segment_id {
    uint64_t key;
    uint64_t map_len;
    int32_t fd;
    uint32_t handout; /* of trib_handout_name; 0: none */
};

/**
 * trib_segment_owner - return this process as peers find it in /proc.
 *
 * errors   TRIB_ERR_UNSUPPORTED: /proc cannot be read
 */
trib_status_t trib_segment_owner(struct trib_process *out, struct trib_error *err);

/**
 * trib_segment_create - create a segment of at least len zero bytes.
 *
 * From 2 MiB on, base is aligned to 2 MiB and len is a multiple of it, so that the
 * kernel may use huge pages. Memory is allocated on first touch: a caller that will
 * touch all of it first calls trib_meminfo_check.
 *
 * errors   TRIB_ERR_OVERFLOW, TRIB_ERR_NO_MEMORY (address space), TRIB_ERR_SYSTEM (open
 *          files, memfd)
 */
trib_status_t trib_segment_create(size_t len, struct trib_segment *out,
                                  struct trib_error *err);

/**
 * trib_segment_check - check that ulimit -f lets this process create such a segment.
 *
 * errors   TRIB_ERR_SYSTEM, TRIB_ERR_OVERFLOW
 */
trib_status_t trib_segment_check(size_t len, struct trib_error *err);

/** trib_segment_id - return the id by which peers find a segment created here. */
struct trib_segment_id trib_segment_id(const struct trib_segment *seg);

/**
 * trib_segment_attach - map a segment that process `owner` created.
 *
 * self     the calling process; equals `owner` if ranks are threads
 * errors   TRIB_ERR_PEER_LOST (the process ended), TRIB_ERR_INVALID (no longer this
 *          segment), TRIB_ERR_UNSUPPORTED (access denied; the message gives the reason)
 */
trib_status_t trib_segment_attach(const struct trib_segment_id *id,
                                  const struct trib_process *owner,
                                  const struct trib_process *self,
                                  struct trib_segment *out, struct trib_error *err);

/**
 * trib_segment_adopt - map a descriptor handed over by an untrusted process.
 *
 * It must be a memfd of ordinary pages, of the announced size, with its size sealed.
 * The other process may change its content at any moment.
 *
 * fd       remains the caller's; pid is for messages
 * errors   TRIB_ERR_INVALID: something else (the message says what); TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_segment_adopt(const struct trib_segment_id *id, int fd, int pid,
                                 struct trib_segment *out, struct trib_error *err);

/**
 * trib_segment_reach - check that this process may open the segment. Errors as attach.
 *
 * If its owner must be asked, the owner then finds trib_handout_asked true.
 */
trib_status_t trib_segment_reach(const struct trib_segment_id *id, int pid,
                                 struct trib_error *err);

/** trib_segment_abandoned - return true if the owner released an attached segment. */
bool trib_segment_abandoned(const struct trib_segment *seg);

/**
 * trib_segment_release - undo create or attach. No-op the second time.
 *
 * in_child  a forked child frees its copy: the parent's references remain
 */
void trib_segment_release(struct trib_segment *seg, bool in_child);

#endif
