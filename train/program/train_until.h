/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ends a training whose ranks run at their own pace: the first rank that has taken its
 * steps notifies the others, which then stop. Otherwise a slow rank would continue
 * alone.
 */
#ifndef TRAIN_PROGRAM_TRAIN_UNTIL_H
#define TRAIN_PROGRAM_TRAIN_UNTIL_H

#include <stdbool.h>

#include <tributary.h>

struct train_until {
    trib_comm_t *comm;
    int ranks;
    char *words; /* [ranks] received from each rank; the local entry is sent */
    trib_request_t **got, **sent; /* [ranks] NULL for this rank */
};

/** train_until_open, train_until_close - on all ranks: close notifies the other ranks
 * and waits for their notices. It does nothing without open. The communicator has the
 * error message. */
trib_status_t train_until_open(struct train_until *until, trib_comm_t *comm);
trib_status_t train_until_close(struct train_until *until);

/** train_until_over - return true once a rank has finished; false without open. */
bool train_until_over(const struct train_until *until);

#endif
