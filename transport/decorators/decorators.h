/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decorators: transports around another transport, which trace it or inject faults.
 */
#ifndef TRANSPORT_DECORATORS_DECORATORS_H
#define TRANSPORT_DECORATORS_DECORATORS_H

#include "transport/transport.h"

/*
 * decorate   put a decorator around `inner`; *out owns it. On error inner is untouched.
 *        opts->params is the decorator's own text.
 */
struct trib_decorator {
    const char *name;
    const char *detail; /* one line for trib-info */
    trib_status_t (*decorate)(const struct trib_transport_opts *opts,
                              struct trib_transport *inner,
                              struct trib_transport **out);
};

/** trib_decorators - all, an entry without a name at the end. */
extern const struct trib_decorator trib_decorators[];

#endif
