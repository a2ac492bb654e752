/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sums out of registered memory, over transports that access peers by writes: nothing
 * is copied, and the caller may reuse the buffers as soon as the call returns.
 */
#ifndef TESTS_COMM_PLACED_H
#define TESTS_COMM_PLACED_H

#include "tests/harness/ranks.h"

struct placed {
    const char *algorithm;
    size_t count;   /* floats */
    bool alloc;     /* from trib_alloc; otherwise registered */
    bool in_place;
    bool near;         /* some peers are within load/store reach: they copy */
    bool unregistered; /* send is not registered, recv is */
    bool plain; /* neither: no memory is registered */
    int warm; /* rounds after which a transport uses memory in place */
};

/** placed_run - a ranks_fn; arg is a struct placed. */
int placed_run(struct ranks_self *self);

/** placed_all - run all kinds of memory and placement with the transport and ranks of a
 * job; return the number of failures. */
int placed_all(struct ranks_job job);

#endif
