/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Create a plan that keeps a copy of the caller's description, for recreating the plan
 * in another communicator.
 */
#ifndef COMM_CALLS_PLAN_CREATE_H
#define COMM_CALLS_PLAN_CREATE_H

#include "comm/core/communicator.h"

enum { TRIB_ASKED_TEXTS = 5 };

struct trib_plan_asked {
    trib_coll_t coll;
    bool has_blocks; /* counts or offsets were given; they are not kept */
    trib_desc_t desc; /* strings point into texts; buffers and blocks are NULL */
    char texts[];
};

/** trib_asked_list_texts - list the strings of a description, in a fixed order. */
static inline void trib_asked_list_texts(const trib_desc_t *d,
                                         const char *texts[TRIB_ASKED_TEXTS])
{
    texts[0] = d->codec;
    texts[1] = d->feedback;
    texts[2] = d->algorithm;
    texts[3] = d->quorum;
    texts[4] = d->name;
}

static inline void trib_asked_set_texts(trib_desc_t *d,
                                        const char *const texts[TRIB_ASKED_TEXTS])
{
    d->codec = texts[0];
    d->feedback = texts[1];
    d->algorithm = texts[2];
    d->quorum = texts[3];
    d->name = texts[4];
}

/** trib_plan_make_asked - create a plan, with scales if the description has them, that
 * keeps its description. */
trib_status_t trib_plan_make_asked(struct trib_comm *comm, trib_coll_t coll,
                                   const trib_desc_t *desc,
                                   struct trib_plan **plan_out);

#endif
