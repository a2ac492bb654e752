/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Launchers: mpirun, mpiexec and srun know rank and size of what they start.
 *
 * They are asked for that, and to pass one text from rank 0 to all: where its TCP store
 * is. Everything after is boot/tcp/tcp_boot.c, which knows how to name a rank that has
 * died.
 */
#ifndef BOOT_LAUNCHER_H
#define BOOT_LAUNCHER_H

#include <stdbool.h>
#include <stddef.h>

#include "boot/boot.h"

#include <tributary/status.h>

#define TRIB_LAUNCH_RANKS_MAX 65536 /* the limit of TRIB_SIZE */
#define TRIB_LAUNCH_ROOT_BYTES 1024 /* "host,address,…:port" with its zero */

/* The place of a process that a launcher has started. */
struct trib_launch {
    int rank;
    int size; /* 0: only meet() can find out */
    char root[TRIB_LAUNCH_ROOT_BYTES]; /* "": only meet() can find out */
    struct trib_secret secret; /* secret of the job, made by rank 0; may be unset */
    int hold; /* on rank 0, a socket that keeps the root's port for it; else -1 */
    bool stays; /* after meet(): the launcher is still to be told that this process
                 * ends */
};

struct trib_launcher {
    const char *name;
    const char *detail;
    /* Has it started this process? Looks at the environment alone, as look() does. */
    bool (*here)(void);
    trib_status_t (*look)(struct trib_launch *out, struct trib_error *err);
    /*
     * Find out size and root, together with all other ranks; after look(). Takes at
     * most boot_timeout_ms. May be called once in the life of a process.
     */
    trib_status_t (*meet)(const struct trib_boot_opts *opts,
                          struct trib_launch *launch);
    /*
     * Tell the launcher that this process ends; takes at most 2 s. MPI in the same
     * process talks to the same launcher: had it been told at once, MPI_Init would find
     * nobody. NULL where nothing is to be told.
     */
    void (*leave)(void);
};

/** trib_launchers - all launchers in order of preference, NULL at the end. */
extern const struct trib_launcher *const trib_launchers[];

/**
 * trib_launch_complete - fill in what opts lacks of rank, size and root.
 *
 * opts     rank -1, size 0, root NULL or "": not given. What is given stays as it is.
 *          root then points into *launch. Without a launcher a process is alone where
 *          nothing is given
 * thread   any
 * errors   TRIB_ERR_CONFIG, TRIB_ERR_BOOT, TRIB_ERR_SYSTEM, TRIB_ERR_UNSUPPORTED: this
 *          build cannot talk to the launcher
 */
trib_status_t trib_launch_complete(struct trib_boot_opts *opts,
                                   struct trib_launch *launch);

/** trib_launch_release - after the boot is open, or has failed to. */
void trib_launch_release(struct trib_launch *launch);

/** trib_launch_note - let settings that nobody gave show what the launcher says. */
void trib_launch_note(struct trib_config *cfg);

/* For launchers ------------------------------------------------------------------- */

/** trib_launch_number - an environment variable as a number from 0 to max. */
trib_status_t trib_launch_number(const char *variable, int max, int *out,
                                 struct trib_error *err);

/**
 * trib_launch_hold - a socket that keeps a free port of this host for rank 0.
 *
 * ip       the address of this host; NULL: all
 * port_in_out  0: any free port; receives the one that is kept
 * returns  a descriptor, -1 with errno; rank 0 may listen at the port while it is open
 */
int trib_launch_hold(const uint8_t ip[16], int *port_in_out);

/** trib_launch_offer - on rank 0, take a free port of this host: root and hold. The
 * root is the text to pass on, until trib_launch_strip. */
trib_status_t trib_launch_offer(struct trib_launch *launch, struct trib_error *err);

/**
 * trib_launch_root_text - this host and a port of it as a root: its name, then its
 * addresses; behind '#' the job's secret, where this host can use one.
 *
 * hosts    in the place of name and addresses; "": these
 * secret   unless it is not set; NULL: a new one
 * text     receives at most `bytes` bytes; what does not fit is left out
 */
void trib_launch_root_text(const char *hosts, int port,
                           const struct trib_secret *secret, char *text, size_t bytes);

/** trib_launch_publish - the part of trib_launch_offer that makes the text. */
trib_status_t trib_launch_publish(struct trib_launch *launch, int port,
                                  struct trib_error *err);

/** trib_launch_strip - remove the parts for trib_launch_accept alone, so that a root
 * without the secret remains. */
void trib_launch_strip(struct trib_launch *launch);

/**
 * trib_launch_accept - on other ranks, what rank 0 has offered.
 *
 * from     the launcher's name, for the error: `text` may be anything
 */
trib_status_t trib_launch_accept(struct trib_launch *launch, const char *text,
                                 const char *from, struct trib_error *err);

#endif
