/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The board: shared memory on which the ranks of one host meet.
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

#include <tributary/status.h>

#define TRIB_BOARD_RANKS_MAX 65536
#define TRIB_BOARD_TEXT 512

struct trib_board_head;

/* A mapping of a board; each thread or process may have its own. */
struct trib_board {
    struct trib_board_head *head;
    size_t bytes;
    int ranks;
};

/* One rank's contribution to one exchange. */
struct trib_board_note {
    char phase[TRIB_BOOT_PHASE_MAX];
    uint32_t bytes;
    uint8_t blob[TRIB_BOOT_BLOB_MAX];
};

static inline uint64_t trib_ticket(uint32_t generation, uint32_t exchange)
{
    return (uint64_t)generation << 32 | exchange;
}

/** trib_board_create - a new board; *fd_out keeps it alive. TRIB_ERR_SYSTEM with a
 * sentence.
 */
trib_status_t trib_board_create(int ranks, int *fd_out, struct trib_board *out,
                                struct trib_error *err);

/**
 * trib_board_map - map the board behind a descriptor, which stays the caller's.
 *
 * key      of trib_board_key; 0: any board will do
 * returns  as trib_board_open
 */
trib_status_t trib_board_map(int fd, uint64_t key, struct trib_board *out);

/**
 * trib_board_open - map the board that another process keeps.
 *
 * path     such as "/proc/4711/fd/5"
 * key      of trib_board_key; 0: any board will do
 * returns  TRIB_ERR_SYSTEM (see errno): cannot be opened; TRIB_ERR_PROTOCOL: is no
 * board, or of another version. out->ranks is what it was made for
 */
trib_status_t trib_board_open(const char *path, uint64_t key, struct trib_board *out);

/** trib_board_key - the random number that tells a board from all others. */
uint64_t trib_board_key(const struct trib_board *board);

/** trib_board_secret - of the ranks that meet on it; whoever maps the board may know
 * it. */
void trib_board_secret(const struct trib_board *board, struct trib_secret *out);

/** trib_board_close - unmap. */
void trib_board_close(struct trib_board *board);

/** trib_board_announce - the process that is to become `rank`. */
void trib_board_announce(struct trib_board *board, int rank, int pid);

/**
 * trib_board_join - take a rank's slot for the next generation.
 *
 * returns  TRIB_ERR_MISMATCH if a living process has it; `holder` then names that
 */
trib_status_t trib_board_join(struct trib_board *board, int rank,
                              uint32_t *generation_out, struct trib_process *holder);

/** trib_board_leave - give the slot back: nothing more comes in this generation. */
void trib_board_leave(struct trib_board *board, int rank, uint32_t generation);

enum trib_board_seat {
    TRIB_SEAT_EMPTY, /* nobody has joined; *out is the announced process, if any */
    TRIB_SEAT_TAKEN, /* *out has joined */
    TRIB_SEAT_LEFT, /* *out was here in this generation and has left */
};

/** trib_board_seat - who is `rank` in this generation? */
enum trib_board_seat trib_board_seat(const struct trib_board *board, int rank,
                                     uint32_t generation, struct trib_process *out);

/** trib_board_put - publish a contribution (release). */
void trib_board_put(struct trib_board *board, int rank, uint64_t ticket,
                    const struct trib_board_note *note);

/** trib_board_has - has `rank` published for this ticket (acquire)? */
bool trib_board_has(const struct trib_board *board, int rank, uint64_t ticket);

/** trib_board_get - copy it; false if it is not there, or no more. */
bool trib_board_get(const struct trib_board *board, int rank, uint64_t ticket,
                    struct trib_board_note *out);

/**
 * trib_board_blame - end this generation with an error for all.
 *
 * The first blame stands. Whoever blames reads back what stands with trib_board_blamed.
 */
void trib_board_blame(struct trib_board *board, uint32_t generation,
                      trib_status_t status, const char *text);

/** trib_board_blamed - TRIB_OK, or the error of this generation and its sentence. */
trib_status_t trib_board_blamed(const struct trib_board *board, uint32_t generation,
                                char text[TRIB_BOARD_TEXT]);

#endif
