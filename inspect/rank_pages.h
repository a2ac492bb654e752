/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pages of ranks (base/state_page.h), found and read from outside. All that is in them
 * may be a lie.
 */
#ifndef INSPECT_RANK_PAGES_H
#define INSPECT_RANK_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/info.h>

#include "base/state_page.h"

enum {
    TRIB_RANK_PAGES_MOST = 16384, /* of all processes: each is compared with each */
    TRIB_RANK_PAGES_OF_USER = 4096, /* of one user's processes: others' stay visible */
    TRIB_RANK_RANKS_MOST = 1 << 24, /* a larger number of ranks is a lie */
};

/* A page, read at one time, with texts that end and are plain. */
struct trib_rank_page {
    int pid; /* as /proc shows it */
    uid_t user; /* of the process; a page cannot claim the job of another user */
    ino_t inode; /* of the file */
    bool stopped;
    bool chosen;
    struct trib_state_page page;
    char part[32];
    uint64_t now; /* ns, when it was read */
    bool waits; /* page.what, page.phase and page.since_ns are of this moment */
    int peer; /* that is waited for, or -1 */
    double age_s; /* as in trib_rank_state_t */
    bool at_most;
    char text[512];
};

struct trib_rank_pages {
    struct trib_rank_page *list;
    size_t n, room;
};

/**
 * trib_rank_page_read - read a page from its file.
 *
 * returns  false if it is none, of another version, or not valid
 */
bool trib_rank_page_read(int fd, struct trib_rank_page *out);

/** trib_rank_pages_of - add those of a process that are its own; false: no memory. */
bool trib_rank_pages_of(int pid, struct trib_rank_pages *pages);

/** trib_rank_same_job - whether both are of one user, and say that they are of one job.
 */
bool trib_rank_same_job(const struct trib_rank_page *a, const struct trib_rank_page *b);

/** trib_rank_page_judge - set `waits` and what follows, but for the text, from what the
 * page says. */
void trib_rank_page_judge(struct trib_rank_page *p);

/** trib_rank_page_text - set the sentence. */
void trib_rank_page_text(struct trib_rank_page *p);

#endif
