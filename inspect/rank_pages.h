/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Find and read other processes' rank pages (base/state_page.h). Their contents are
 * untrusted.
 */
#ifndef INSPECT_RANK_PAGES_H
#define INSPECT_RANK_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/info.h>

#include "base/state_page.h"

enum {
    TRIB_RANK_PAGES_MOST = 16384, /* of all processes: pages are compared pairwise */
    TRIB_RANK_PAGES_OF_USER = 4096, /* of one user; keeps other users' pages visible */
    TRIB_RANK_RANKS_MOST = 1 << 24, /* a page with more ranks is invalid */
};

/* A consistent snapshot of a page; strings are terminated and printable. */
struct trib_rank_page {
    int pid; /* as seen in /proc */
    uid_t user; /* of the process; a page cannot claim another user's job */
    ino_t inode; /* of the file */
    bool stopped;
    bool chosen;
    struct trib_state_page page;
    char part[32];
    uint64_t now; /* ns, when it was read */
    bool waits; /* page.what, page.phase and page.since_ns are current */
    int peer; /* the rank it waits for, or -1 */
    double age_s; /* as in trib_rank_state_t */
    bool at_most;
    char text[512];
    char cache[128]; /* as in trib_rank_state_t */
};

struct trib_rank_pages {
    struct trib_rank_page *list;
    size_t n, room;
};

/**
 * trib_rank_page_read - read a page from its file.
 *
 * returns  false if the file is no page, has another version or is invalid
 */
bool trib_rank_page_read(int fd, struct trib_rank_page *out);

/** trib_rank_pages_of - add a process's own pages; false: out of memory. */
bool trib_rank_pages_of(int pid, struct trib_rank_pages *pages);

/** trib_rank_same_job - return true if both have one user and claim the same job. */
bool trib_rank_same_job(const struct trib_rank_page *a, const struct trib_rank_page *b);

/** trib_rank_page_judge - set `waits` and fields derived from it, except the text. */
void trib_rank_page_judge(struct trib_rank_page *p);

/** trib_rank_page_text - set the texts that describe the rank and its cache. */
void trib_rank_page_text(struct trib_rank_page *p);

#endif
