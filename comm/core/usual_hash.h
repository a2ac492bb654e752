/* SPDX-License-Identifier: BSD-3-Clause */
/* The most frequent hash of state among ranks. */
#ifndef COMM_CORE_USUAL_HASH_H
#define COMM_CORE_USUAL_HASH_H

#include <stdint.h>

#include <tributary/status.h>

/** trib_usual_hash - return the most frequent of n hashes, given by rank; of a tie, the
 * lowest rank's. TRIB_ERR_NO_MEMORY. */
trib_status_t trib_usual_hash(const uint64_t *all, int n, uint64_t *usual_out);

#endif
