/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When ranks are lost: which ones.
 */
#ifndef TRIBUTARY_ELASTIC_H
#define TRIBUTARY_ELASTIC_H

#include <tributary/coll.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * trib_comm_lost - which ranks are lost, as numbers.
 *
 * A rank is lost that has died, was stopped for stop_timeout_ms, cannot be reached any
 * more, or has left by trib_free_comm while the others went on. The answer is what this
 * rank knows now: by itself about ranks that it has exchanged data with, and from the
 * rank that told it of the failure. Of several that are lost at once it may know some
 * at first, and more at the next call. Looks, and never blocks; a loss that it finds
 * ends the communicator, as any call does. A rank that finds its own number was counted
 * as lost by another one, having been stopped itself.
 * ranks    [cap] receives the lowest of them, by their numbers in comm; NULL if cap is
 *          0
 * n_out    how many there are; may be more than cap
 * thread   the communicator's
 * errors   TRIB_ERR_INVALID: n_out or ranks is NULL, cap is negative
 */
TRIB_API trib_status_t trib_comm_lost(trib_comm_t *comm, int *ranks, int cap,
                                      int *n_out);

#ifdef __cplusplus
}
#endif

#endif
