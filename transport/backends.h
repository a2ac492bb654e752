/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ops tables of the backends, for the one list in transport.c.
 */
#ifndef TRANSPORT_BACKENDS_H
#define TRANSPORT_BACKENDS_H

#include "transport/transport.h"

extern const struct trib_transport_ops trib_shm_ops;
extern const struct trib_transport_ops trib_loop_ops;
extern const struct trib_transport_ops trib_tcp_ops;
extern const struct trib_transport_ops trib_verbs_ops; /* where HAVE_VERBS is 1 */

#endif
