/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the functions that create communicators. */
#ifndef API_API_H
#define API_API_H

struct trib_comm;

/** trib_api_join_service - register a communicator with the configured service.
 *
 * All ranks already have the communicator. A failure fails the communicator. */
void trib_api_join_service(struct trib_comm *comm);

#endif
