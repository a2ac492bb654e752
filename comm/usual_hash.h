/* SPDX-License-Identifier: BSD-3-Clause */
/* The hash of state that most ranks have. */
#ifndef COMM_USUAL_HASH_H
#define COMM_USUAL_HASH_H

#include <stdint.h>

#include <tributary/status.h>

/** trib_usual_hash - which of n hashes, by rank, most ranks have; of several, that of
 * the lowest rank. TRIB_ERR_NO_MEMORY. */
trib_status_t trib_usual_hash(const uint64_t *all, int n, uint64_t *usual_out);

#endif
