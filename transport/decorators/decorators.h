/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decorators: transports around another transport, which trace it or inject faults.
 */
#ifndef TRANSPORT_DECORATORS_DECORATORS_H
#define TRANSPORT_DECORATORS_DECORATORS_H

#include "transport/transport.h"

struct decorator;

struct trib_decorator {
    const char *name;
    const char *detail; /* one line for trib-info */
    /* Reads opts->params, which is the decorator's own text, and replaces functions of
     * `w`, which forwards all calls. */
    trib_status_t (*install)(const struct trib_transport_opts *opts,
                             struct decorator *w);
};

/** trib_decorators - all, an entry without a name at the end. */
extern const struct trib_decorator trib_decorators[];

/** trib_decorate - put a decorator around `inner`; *out owns it. On error inner is
 * untouched, and where the parameters are only looked at it may be NULL. */
trib_status_t trib_decorate(const struct trib_decorator *decorator,
                            const struct trib_transport_opts *opts,
                            struct trib_transport *inner, struct trib_transport **out);

#endif
