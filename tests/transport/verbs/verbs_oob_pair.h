/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two transports "verbs" that connect out of band, by GIDs.
 */
#ifndef TESTS_TRANSPORT_VERBS_VERBS_OOB_PAIR_H
#define TESTS_TRANSPORT_VERBS_VERBS_OOB_PAIR_H

#include "tests/transport/verbs/verbs_pair.h"
#include "transport/verbs/verbs.h"

#define BY_GID ALONE ",connect=gid"

static inline struct verbs *inside(struct pair *pair, int side)
{
    return (struct verbs *)pair->t[side];
}

/* Side 0 connects, and an empty write gets there. */
static inline void connects(struct pair *pair, const struct trib_address *address)
{
    struct trib_write w = {.imm = 9};

    trib_error_clear(&pair->err);
    assert_status(pair->t[0]->ops->connect(pair->t[0], 1, address), TRIB_OK);
    assert_status(pair->t[0]->ops->write(pair->t[0], 1, &w), TRIB_OK);
    expect_arrival(pair, 1, 9, 0);
}

#endif
