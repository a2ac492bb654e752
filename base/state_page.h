/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A page of memory in which a rank says what it does, for those who look from outside:
 * trib-run and trib-info, by trib_ranks_each.
 *
 * It is an anonymous file (memfd) of the process: it ends with it, has no name that a
 * killed job could leave behind, and only those who may look at /proc/PID/fd, the same
 * user and root, can open it. Readers need nothing of the rank, which may be stopped.
 *
 * The writer holds the lock of its communicator. Numbers are words of 8 bytes, each
 * true by itself; texts are true where `guard` is even and the same before and after
 * they were read. A reader trusts nothing: inspect/rank_states.c.
 */
#ifndef BASE_STATE_PAGE_H
#define BASE_STATE_PAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/host.h"

#define TRIB_STATE_PAGE_NAME "tributary-state" /* of the memfd, in /proc/PID/fd */
#define TRIB_STATE_PAGE_MAGIC "TRIBPAGE"
#define TRIB_STATE_PAGE_VERSION 1

enum {
    TRIB_STATE_EXACT = 4, /* one in so many short operations says when it ended, and
                           * what has moved so far */
    TRIB_STATE_ANY = 1, /* trib_state_page.awaits: nothing of a peer's */
    TRIB_STATE_PEER = 2, /* the same: plus the peer's rank */
};

struct trib_state_page {
    /* Set once. */
    char magic[8]; /* written last */
    uint32_t version;
    uint32_t bytes; /* sizeof(struct trib_state_page) */
    int32_t pid, rank, ranks, root_pid;
    uint64_t start; /* of the process, as in struct trib_process */
    uint64_t space;
    char host[TRIB_HOST_BYTES], root_host[TRIB_HOST_BYTES];
    char label[32]; /* as that of the trace file: "3", "3-split0" */

    /* Under the guard: of the operation that `op` names, and of a wait. */
    _Atomic uint32_t guard;
    char coll[24], algorithm[32], plan[64];
    char what[256]; /* what is waited for, or why the communicator has failed */
    char phase[16]; /* of the operation when it waited */
    uint64_t op_bytes;

    /* Numbers. */
    _Alignas(64) _Atomic uint64_t op; /* twice its number, and 1 while it is under
                                       * way */
    _Atomic uint64_t operations, sent, received; /* so far, bytes */
    _Atomic uint64_t left_ns; /* when operation left_op ended, on the clock of
                               * trib_now_ns */
    _Atomic uint64_t left_op; /* twice its number */
    _Atomic uint64_t begun_ns; /* when a long one began */
    _Atomic uint64_t awaits; /* the lower half of `op`, shifted by 32, and an enum of
                              * above; 0: nothing */
    _Atomic uint64_t since_ns; /* when that wait began */
    _Atomic uint64_t looked_ns; /* the newest look of that wait */
    _Atomic uint64_t failed; /* 1: the communicator has */
};

/* The file, and its place in the memory of the rank. */
struct trib_state_file {
    struct trib_state_page *page; /* NULL: there is none */
    int fd;
    ino_t inode;
};

/**
 * trib_state_file_open - make a page of zeros.
 *
 * returns  false where the system refuses: nobody can look then, and nothing else is
 *          different
 */
bool trib_state_file_open(struct trib_state_file *file);

/** trib_state_file_close - the file goes; harmless without one, and in a forked
 * child. */
void trib_state_file_close(struct trib_state_file *file);

/** trib_state_set - a number of the page. */
static inline void trib_state_set(_Atomic uint64_t *field, uint64_t value)
{
    atomic_store_explicit(field, value, memory_order_relaxed);
}

/** trib_state_text - change texts between these two. */
static inline void trib_state_text_begin(struct trib_state_page *page)
{
    const uint32_t guard = atomic_load_explicit(&page->guard, memory_order_relaxed);

    atomic_store_explicit(&page->guard, guard | 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
}

static inline void trib_state_text_end(struct trib_state_page *page)
{
    const uint32_t guard = atomic_load_explicit(&page->guard, memory_order_relaxed);

    atomic_store_explicit(&page->guard, guard + 1, memory_order_release);
}

#endif
