/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of a training whose ranks go on each in its own time: the first rank that has
 * taken its steps tells the others, which take no more. Else a slow rank would go on
 * alone.
 */
#ifndef TRAIN_PROGRAM_TRAIN_UNTIL_H
#define TRAIN_PROGRAM_TRAIN_UNTIL_H

#include <stdbool.h>

#include <tributary.h>

struct train_until {
    trib_comm_t *comm;
    int ranks;
    char *words; /* [ranks] that others send, and the one that this rank sends */
    trib_request_t **got, **sent; /* [ranks] NULL: the rank itself */
};

/** train_until_open, train_until_close - on all ranks: close tells the others, and
 * waits for what they tell; it does nothing where open was not called. The sentence of
 * an error is the communicator's. */
trib_status_t train_until_open(struct train_until *until, trib_comm_t *comm);
trib_status_t train_until_close(struct train_until *until);

/** train_until_over - true once a rank has ended; false where open was not called. */
bool train_until_over(const struct train_until *until);

#endif
