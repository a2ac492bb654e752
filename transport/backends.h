/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ops tables that other files than the one list in transport.c name.
 */
#ifndef TRANSPORT_BACKENDS_H
#define TRANSPORT_BACKENDS_H

#include "transport/transport.h"

extern const struct trib_transport_ops trib_auto_ops;
extern const struct trib_transport_ops trib_shm_ops;
extern const struct trib_transport_ops trib_loop_ops;
extern const struct trib_transport_ops trib_multirail_ops;
extern const struct trib_transport_ops trib_tcp_ops;
extern const struct trib_transport_ops trib_verbs_ops; /* if HAVE_VERBS is 1 */
extern const struct trib_transport_ops trib_ucx_ops; /* if HAVE_UCX is 1 */

/* A backend from which "auto" chooses. */
struct trib_candidate {
    const struct trib_transport_ops *ops;
    uint8_t id; /* number on the wire, 1 to 15; never reused */
    bool maps; /* reaches peers of the same host only, by load and store */
    bool ports; /* takes port=N,ports=N */
    bool watch; /* takes watch=N: look for peers of this host in /proc */
    bool cheap; /* registering memory costs nothing, and fails only without memory */
    const char *more; /* further parameters, such as ",depth=8"; NULL for none */
};

/** trib_candidates - all candidates in order of cost, a row without ops at the end. */
extern const struct trib_candidate trib_candidates[];

#endif
