/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who this process is, and whether another process of this host still runs.
 */
#ifndef TRANSPORT_WATCH_H
#define TRANSPORT_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <tributary/status.h>

struct trib_error;

/* The start time tells a process from a later one that was given the same pid. */
struct trib_ident {
    uint64_t boot;  /* of the boot id: the same on one running kernel only */
    uint64_t pidns; /* inode of the pid namespace in which `pid` counts */
    uint64_t start; /* clock ticks since boot, /proc/PID/stat field 22 */
    int32_t pid;
};

enum trib_watch_state {
    TRIB_WATCH_RUNS,
    TRIB_WATCH_STOPPED, /* by a signal; held by a debugger counts as running */
    TRIB_WATCH_DEAD,    /* also: not yet reaped by its parent */
};

/* Looks at one other process; holds up to two descriptors. */
struct trib_watch {
    struct trib_ident who;
    int pidfd;  /* -1 where the kernel or a sandbox has none: stat_fd tells then */
    int stat_fd;
};

/** trib_ident_self - identify the calling process. */
trib_status_t trib_ident_self(struct trib_ident *out, struct trib_error *err);

/** trib_ident_same - do both name one and the same process? */
bool trib_ident_same(const struct trib_ident *a, const struct trib_ident *b);

/**
 * trib_watch_open - begin to watch a process of this host.
 *
 * errors   TRIB_ERR_PEER_LOST when it is gone already
 *          TRIB_ERR_UNSUPPORTED when /proc does not show it
 */
trib_status_t trib_watch_open(struct trib_watch *watch,
                                      const struct trib_ident *who,
                                      struct trib_error *err);

/** trib_watch_close - release the descriptors; harmless when done before. */
void trib_watch_close(struct trib_watch *watch);

/** trib_watch_look - one reading of /proc; a few microseconds. */
enum trib_watch_state trib_watch_look(const struct trib_watch *watch);

#endif
