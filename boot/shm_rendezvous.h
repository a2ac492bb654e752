/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rendezvous: shared memory on which the ranks of one host meet.
 *
 * A memfd of fixed, sealed size: a head and one slot for each rank, written by that
 * rank alone. Ranks may meet on it again and again; each time is a *generation*,
 * numbered from 1, and within it exchanges are numbered from 1. Both together are a
 * ticket.
 *
 * Functions are lock-free and never wait; boot/local.c waits and watches.
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

/* A mapping of a rendezvous; each thread or process may have its own. */
struct trib_rendezvous {
    struct trib_rendezvous_head *head;
    size_t bytes;
    int ranks;
    char release[TRIB_RELEASE_BYTES]; /* of who made it; empty if that is too old to
                                       * say so */
};

/* One rank's contribution to one exchange. */
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

/** trib_rendezvous_create - a new rendezvous; *fd_out keeps it alive. TRIB_ERR_SYSTEM
 * with a sentence. */
trib_status_t trib_rendezvous_create(int ranks, int *fd_out,
                                     struct trib_rendezvous *out,
                                     struct trib_error *err);

/**
 * trib_rendezvous_map - map the rendezvous behind a descriptor, which stays the
 * caller's.
 *
 * key      of trib_rendezvous_key; 0: any rendezvous will do
 * returns  as trib_rendezvous_open
 */
trib_status_t trib_rendezvous_map(int fd, uint64_t key, struct trib_rendezvous *out);

/**
 * trib_rendezvous_open - map the rendezvous that another process keeps.
 *
 * path     such as "/proc/4711/fd/5"
 * key      of trib_rendezvous_key; 0: any rendezvous will do
 * returns  TRIB_ERR_SYSTEM (see errno): cannot be opened; TRIB_ERR_PROTOCOL: is no
 * rendezvous; TRIB_ERR_UNSUPPORTED: a rendezvous of the release out->release, whose
 * layout is another. out->ranks is what it was made for
 */
trib_status_t trib_rendezvous_open(const char *path, uint64_t key,
                                   struct trib_rendezvous *out);

/** trib_rendezvous_key - the random number that tells a rendezvous from all others. */
uint64_t trib_rendezvous_key(const struct trib_rendezvous *rendezvous);

/** trib_rendezvous_secret - the secret of the ranks that meet on it; every process that
 * maps the rendezvous may know it. */
void trib_rendezvous_secret(const struct trib_rendezvous *rendezvous,
                            struct trib_secret *out);

/** trib_rendezvous_close - unmap. */
void trib_rendezvous_close(struct trib_rendezvous *rendezvous);

/** trib_rendezvous_announce - the process that is to become `rank`. */
void trib_rendezvous_announce(struct trib_rendezvous *rendezvous, int rank, int pid);

/**
 * trib_rendezvous_join - take a rank's slot for the next generation.
 *
 * returns  TRIB_ERR_MISMATCH if a living process has it; `holder` then names that
 */
trib_status_t trib_rendezvous_join(struct trib_rendezvous *rendezvous, int rank,
                              uint32_t *generation_out, struct trib_process *holder);

/** trib_rendezvous_leave - give the slot back: nothing more comes in this
 * generation. */
void trib_rendezvous_leave(struct trib_rendezvous *rendezvous, int rank,
                           uint32_t generation);

enum trib_rendezvous_presence {
    TRIB_PRESENCE_NONE, /* nobody has joined; *out is the announced process, if any */
    TRIB_PRESENCE_JOINED, /* *out has joined */
    TRIB_PRESENCE_LEFT, /* *out was here in this generation and has left */
};

/** trib_rendezvous_presence - the state of `rank` in this generation, and its
 * process. */
enum trib_rendezvous_presence trib_rendezvous_presence(
    const struct trib_rendezvous *rendezvous, int rank, uint32_t generation,
    struct trib_process *out);

/** trib_rendezvous_put - publish a contribution (release). */
void trib_rendezvous_put(struct trib_rendezvous *rendezvous, int rank, uint64_t ticket,
                    const struct trib_rendezvous_entry *entry);

/** trib_rendezvous_has - has `rank` published for this ticket (acquire)? */
bool trib_rendezvous_has(const struct trib_rendezvous *rendezvous, int rank,
                         uint64_t ticket);

/** trib_rendezvous_get - copy it; false if it is not there, or no more. */
bool trib_rendezvous_get(const struct trib_rendezvous *rendezvous, int rank,
                         uint64_t ticket, struct trib_rendezvous_entry *out);

/**
 * trib_rendezvous_fail - end this generation with an error for all.
 *
 * The first failure stands. A caller reads back what stands with
 * trib_rendezvous_failure.
 */
void trib_rendezvous_fail(struct trib_rendezvous *rendezvous, uint32_t generation,
                      trib_status_t status, const char *text);

/** trib_rendezvous_failure - TRIB_OK, or the error of this generation and its
 * sentence. */
trib_status_t trib_rendezvous_failure(const struct trib_rendezvous *rendezvous,
                                      uint32_t generation,
                                      char text[TRIB_RENDEZVOUS_TEXT]);

#endif
