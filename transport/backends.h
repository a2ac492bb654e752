/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ops tables that files other than transport.c refer to by name.
 */
#ifndef TRANSPORT_BACKENDS_H
#define TRANSPORT_BACKENDS_H

#include "transport/ops.h"

extern const struct trib_transport_ops trib_auto_ops;
extern const struct trib_transport_ops trib_shm_ops;
extern const struct trib_transport_ops trib_loop_ops;
extern const struct trib_transport_ops trib_multirail_ops;
extern const struct trib_transport_ops trib_tcp_ops;
extern const struct trib_transport_ops trib_verbs_ops; /* if HAVE_VERBS is 1 */
extern const struct trib_transport_ops trib_ucx_ops; /* if HAVE_UCX is 1 */

/* A backend that "auto" may choose. */
struct trib_candidate {
    const struct trib_transport_ops *ops;
    uint8_t id; /* number on the wire, 1 to 15; never reused */
    bool maps; /* reaches only peers on the same host, by load and store */
    bool ports; /* accepts port=N,ports=N */
    bool watch; /* accepts watch=N: watch peers on this host through /proc */
    bool cheap; /* registering memory is free and fails only when memory runs out */
    const char *more; /* extra parameters, such as ",depth=8"; NULL for none */
    /* parameters of "auto" that are passed on to this backend; ends with NULL, or NULL
     * for none. Their values may be lists */
    const char *const *passed;
};

/** trib_candidates - all candidates in order of cost; the last row has no ops. */
extern const struct trib_candidate trib_candidates[];

#endif
