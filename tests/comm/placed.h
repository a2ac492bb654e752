/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sums out of registered memory, over transports that reach peers by writes: nothing is
 * copied, and the buffers are the caller's again as soon as the call returns.
 */
#ifndef TESTS_COMM_PLACED_H
#define TESTS_COMM_PLACED_H

#include "tests/harness/ranks.h"

struct placed {
    const char *algorithm;
    size_t count;   /* floats */
    bool alloc;     /* of trib_alloc; else registered */
    bool in_place;
    bool near;         /* some peers are within load/store reach: they copy */
    bool unregistered; /* send is not registered, recv is */
    bool plain; /* neither of both: no memory is registered */
};

/** placed_run - of ranks_fn; arg is a struct placed. */
int placed_run(struct ranks_self *self);

/** placed_all - all kinds of memory and placement, with a job's transport and ranks;
 * how many failed. */
int placed_all(struct ranks_job job);

#endif
