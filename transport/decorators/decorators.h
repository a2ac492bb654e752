/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decorators: transports that wrap another transport to trace it or to inject faults.
 */
#ifndef TRANSPORT_DECORATORS_DECORATORS_H
#define TRANSPORT_DECORATORS_DECORATORS_H

#include "transport/open.h"

struct decorator;

struct trib_decorator {
    const char *name;
    const char *detail; /* one line for trib-info */
    /* Parse opts->params, the decorator's own text, and replace functions of `w`, which
     * forwards all calls. */
    trib_status_t (*install)(const struct trib_transport_opts *opts,
                             struct decorator *w);
};

/** trib_decorators - all decorators; the last row has no name. */
extern const struct trib_decorator trib_decorators[];

/** trib_decorate - wrap `inner` in a decorator; *out owns `inner`. On error inner is
 * unchanged. `inner` may be NULL if the parameters are only validated. */
trib_status_t trib_decorate(const struct trib_decorator *decorator,
                            const struct trib_transport_opts *opts,
                            struct trib_transport *inner, struct trib_transport **out);

#endif
