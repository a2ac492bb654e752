/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Jobs that accept newcomers: the first ranks of the job of a test are members, the
 * others join later. The address is in memory that all of them share.
 */
#ifndef TESTS_COMM_GROWING_H
#define TESTS_COMM_GROWING_H

#include <sys/mman.h>

#include "tests/harness/ranks.h"

struct growing_board {
    _Atomic int open; /* number of listeners whose text is available */
    char text[TRIB_ROOT_TEXT_MAX];
    _Atomic int more[4]; /* for the test */
};

static inline struct growing_board *growing_board(void)
{
    void *b = mmap(NULL, sizeof(struct growing_board), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return b == MAP_FAILED ? NULL : b;
}

/* Connect the members, before or without the newcomers. */
static inline void growing_init(struct ranks_self *self, const char *root, int members)
{
    self->opts.root = root;
    self->opts.ranks = members;
    ranks_ok(self, trib_init(&self->opts, &self->comm));
}

static inline trib_listener_t *growing_listen(struct ranks_self *self,
                                              trib_comm_t *comm,
                                              struct growing_board *b)
{
    trib_listener_t *l;

    ranks_ok(self, trib_listener_open(comm, "localhost", &l));
    snprintf(b->text, sizeof(b->text), "%s", trib_listener_text(l));
    atomic_fetch_add(&b->open, 1);
    return l;
}

/* Wait for a listener, and for its text. */
static inline void growing_find(struct growing_board *b, char text[TRIB_ROOT_TEXT_MAX])
{
    while (!atomic_load(&b->open))
        usleep(500);
    snprintf(text, TRIB_ROOT_TEXT_MAX, "%s", b->text);
}

static inline trib_status_t growing_join(struct ranks_self *self,
                                         struct growing_board *b)
{
    char text[TRIB_ROOT_TEXT_MAX];

    growing_find(b, text);
    return trib_join(text, &self->opts, &self->comm);
}

#endif
