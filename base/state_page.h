/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared page in which a rank publishes its state, for trib-run and trib-info through
 * trib_ranks_each.
 *
 * It is a memfd of the process: it disappears with the process and has no name that a
 * killed job could leave behind. Only users who may open /proc/PID/fd, the same user
 * and root, can read it. Readers need no cooperation from the rank, which may be
 * stopped.
 *
 * The writer holds the lock of its communicator. Numbers are 8-byte words, each
 * consistent by itself. Texts are consistent if `guard` is even and equal before and
 * after they are read. Readers validate everything: inspect/rank_states.c.
 */
#ifndef BASE_STATE_PAGE_H
#define BASE_STATE_PAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/host.h"

#define TRIB_STATE_PAGE_NAME "tributary-state" /* name of the memfd in /proc/PID/fd */
#define TRIB_STATE_PAGE_MAGIC "TRIBPAGE"
#define TRIB_STATE_PAGE_VERSION 2

enum {
    TRIB_STATE_EXACT = 4, /* one in this many short operations records its end time
                           * and the bytes moved */
    TRIB_STATE_ANY = 1, /* trib_state_page.awaits: no particular peer */
    TRIB_STATE_PEER = 2, /* trib_state_page.awaits: add the peer's rank */
};

struct trib_state_page {
    /* Set once. */
    char magic[8]; /* written last */
    uint32_t version;
    uint32_t bytes; /* sizeof(struct trib_state_page) */
    int32_t pid, rank, ranks, root_pid;
    uint64_t start; /* start of the process, as in struct trib_process */
    uint64_t space;
    char host[TRIB_HOST_BYTES], root_host[TRIB_HOST_BYTES];
    char label[32]; /* like the label of the trace file: "3", "3-split0" */

    /* Protected by guard: the operation that `op` names, and a wait. */
    _Atomic uint32_t guard;
    char coll[24], algorithm[32], plan[64];
    char what[256]; /* awaited event, or why the communicator failed */
    char phase[16]; /* phase of the operation when the wait began */
    uint64_t op_bytes;

    /* Numbers. */
    _Alignas(64) _Atomic uint64_t op; /* twice its number, plus 1 while in progress */
    _Atomic uint64_t operations, sent, received; /* totals; bytes */
    _Atomic uint64_t left_ns; /* when operation left_op ended, on the clock of
                               * trib_now_ns */
    _Atomic uint64_t left_op; /* twice its number */
    _Atomic uint64_t begun_ns; /* when a long operation began */
    _Atomic uint64_t awaits; /* the lower half of `op`, shifted by 32, plus an enum
                              * above; 0: none */
    _Atomic uint64_t since_ns; /* start of that wait */
    _Atomic uint64_t polled_ns; /* last poll of that wait */
    _Atomic uint64_t failed; /* 1: the communicator has failed */
    _Atomic uint64_t cache_limit, cache_pinned; /* base/cache_counts.h */
    _Atomic uint64_t cache_hits, cache_misses;
};

/* The file and its mapping in the rank. */
struct trib_state_file {
    struct trib_state_page *page; /* NULL: none */
    int fd;
    ino_t inode;
};

/**
 * trib_state_file_open - create a page of zeros.
 *
 * returns  false if the system rejects it; then the state is not visible, but all else
 *          works
 */
bool trib_state_file_open(struct trib_state_file *file);

/** trib_state_file_close - close the file; harmless if none is open, and in a forked
 * child. */
void trib_state_file_close(struct trib_state_file *file);

/** trib_state_set - store a number in the page. */
static inline void trib_state_set(_Atomic uint64_t *field, uint64_t value)
{
    atomic_store_explicit(field, value, memory_order_relaxed);
}

/** trib_state_text_begin, _end - change texts only between these calls. */
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
