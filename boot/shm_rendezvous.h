/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rendezvous: shared memory for the boot of the ranks of one host.
 *
 * It is a memfd of fixed, sealed size: a head and one slot per rank, written only by
 * that rank. Ranks may use it repeatedly. Each use is a *generation*, numbered from 1,
 * and exchanges are numbered from 1 within it. Both together form a ticket. Functions
 * are lock-free and never block; boot/local.c waits and monitors.
 */
#ifndef BOOT_SHM_RENDEZVOUS_H
#define BOOT_SHM_RENDEZVOUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "boot/boot.h"
#include "base/process.h"
#include "base/release.h"

#include <tributary/status.h>

#define TRIB_RENDEZVOUS_RANKS_MAX 65536
#define TRIB_RENDEZVOUS_TEXT 512

struct trib_rendezvous_head;

/* Mapping of a rendezvous; each thread or process may have its own. */
struct trib_rendezvous {
    struct trib_rendezvous_head *head;
    size_t bytes;
    int ranks;
    char release[TRIB_RELEASE_BYTES]; /* release of the creator; empty if it predates
                                       * this field */
};

/* Contribution of one rank to one exchange. */
struct trib_rendezvous_entry {
    char release[TRIB_RELEASE_BYTES]; /* trib_release of the rank */
    char phase[TRIB_BOOT_PHASE_MAX];
    uint32_t bytes;
    uint8_t blob[TRIB_BOOT_BLOB_MAX];
};

static inline uint64_t trib_ticket(uint32_t generation, uint32_t exchange)
{
    return (uint64_t)generation << 32 | exchange;
}

/** trib_rendezvous_create - create a rendezvous; *fd_out keeps it alive. Errors:
 * TRIB_ERR_SYSTEM with a message. */
trib_status_t trib_rendezvous_create(int ranks, int *fd_out,
                                     struct trib_rendezvous *out,
                                     struct trib_error *err);

/**
 * trib_rendezvous_map - map the rendezvous of a descriptor, which the caller keeps.
 *
 * key      from trib_rendezvous_key; 0: accept any rendezvous
 * returns  as trib_rendezvous_open
 */
trib_status_t trib_rendezvous_map(int fd, uint64_t key, struct trib_rendezvous *out);

/**
 * trib_rendezvous_open - map a rendezvous kept by another process.
 *
 * path     such as "/proc/4711/fd/5"
 * key      from trib_rendezvous_key; 0: accept any rendezvous
 * returns  TRIB_ERR_SYSTEM (see errno): cannot be opened; TRIB_ERR_PROTOCOL: not a
 *          rendezvous; TRIB_ERR_UNSUPPORTED: layout of another release, out->release.
 *          out->ranks is the number of ranks it was made for
 */
trib_status_t trib_rendezvous_open(const char *path, uint64_t key,
                                   struct trib_rendezvous *out);

/** trib_rendezvous_key - return the random number that identifies a rendezvous. */
uint64_t trib_rendezvous_key(const struct trib_rendezvous *rendezvous);

/** trib_rendezvous_secret - read the job's secret; every process that maps the
 * rendezvous may know it. */
void trib_rendezvous_secret(const struct trib_rendezvous *rendezvous,
                            struct trib_secret *out);

/** trib_rendezvous_close - unmap. */
void trib_rendezvous_close(struct trib_rendezvous *rendezvous);

/** trib_rendezvous_announce - record the process that is to become `rank`. */
void trib_rendezvous_announce(struct trib_rendezvous *rendezvous, int rank, int pid);

/**
 * trib_rendezvous_join - take a rank's slot for the next generation.
 *
 * returns  TRIB_ERR_MISMATCH if a live process holds the slot; `holder` then names it
 */
trib_status_t trib_rendezvous_join(struct trib_rendezvous *rendezvous, int rank,
                              uint32_t *generation_out, struct trib_process *holder);

/** trib_rendezvous_leave - release the slot; the rank contributes nothing more in this
 * generation. */
void trib_rendezvous_leave(struct trib_rendezvous *rendezvous, int rank,
                           uint32_t generation);

enum trib_rendezvous_presence {
    TRIB_PRESENCE_NONE, /* not joined; *out is the announced process, if any */
    TRIB_PRESENCE_JOINED, /* *out has joined */
    TRIB_PRESENCE_LEFT, /* *out joined in this generation and has left */
};

/** trib_rendezvous_presence - return the state of `rank` in this generation, and its
 * process. */
enum trib_rendezvous_presence trib_rendezvous_presence(
    const struct trib_rendezvous *rendezvous, int rank, uint32_t generation,
    struct trib_process *out);

/** trib_rendezvous_put - publish a contribution (release). */
void trib_rendezvous_put(struct trib_rendezvous *rendezvous, int rank, uint64_t ticket,
                    const struct trib_rendezvous_entry *entry);

/** trib_rendezvous_has - return true if `rank` has published for this ticket
 * (acquire). */
bool trib_rendezvous_has(const struct trib_rendezvous *rendezvous, int rank,
                         uint64_t ticket);

/** trib_rendezvous_get - copy a contribution; false if not published, or
 * overwritten. */
bool trib_rendezvous_get(const struct trib_rendezvous *rendezvous, int rank,
                         uint64_t ticket, struct trib_rendezvous_entry *out);

/**
 * trib_rendezvous_fail - fail this generation on all ranks. The first failure is kept;
 * callers read it back with trib_rendezvous_failure.
 */
void trib_rendezvous_fail(struct trib_rendezvous *rendezvous, uint32_t generation,
                      trib_status_t status, const char *text);

/** trib_rendezvous_failure - return TRIB_OK, or the error of this generation and its
 * message. */
trib_status_t trib_rendezvous_failure(const struct trib_rendezvous *rendezvous,
                                      uint32_t generation,
                                      char text[TRIB_RENDEZVOUS_TEXT]);

#endif
