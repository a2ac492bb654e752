/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plans of unnamed calls, and requests kept for reuse.
 */
#ifndef COMM_CALLS_REQUESTS_H
#define COMM_CALLS_REQUESTS_H

#include <stdbool.h>

#include <tributary/status.h>

struct trib_comm;
struct trib_plan;
struct trib_plan_key;

/** trib_plan_make_for_call - create the plan of an unnamed call from the settings.
 *
 * own      run by the communicator's own engine */
trib_status_t trib_plan_make_for_call(struct trib_comm *comm,
                                      const struct trib_plan_key *key, bool own,
                                      struct trib_plan **plan_out);

/** trib_requests_clear - destroy the requests kept for reuse. */
void trib_requests_clear(struct trib_comm *comm);

#endif
