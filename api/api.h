/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls that make communicators share this. */
#ifndef API_API_H
#define API_API_H

struct trib_comm;

/** trib_api_join_service - have the service that the settings name sum for a
 * communicator that all its ranks have; its failure is one of the communicator. */
void trib_api_join_service(struct trib_comm *comm);

#endif
