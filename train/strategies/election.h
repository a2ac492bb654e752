/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Leader elections in a communicator. The rank with the lowest loss wins and broadcasts
 * its parameters. An election may overlap with steps; it starts and ends at the same
 * steps on all ranks.
 */
#ifndef TRAIN_STRATEGIES_ELECTION_H
#define TRAIN_STRATEGIES_ELECTION_H

#include <stdbool.h>
#include <stdint.h>

#include <tributary/request.h>

struct trib_trainer;
struct trib_train_election;

/* A loss and its rank, the element type of TRIB_MINLOC (trib_op_t). */
struct trib_train_vote {
    double loss;
    int64_t rank;
};

struct trib_train_election {
    trib_comm_t *comm; /* NULL: no elections */
    uint64_t period; /* steps between elections */
    uint64_t late; /* steps until an election ends; below the period */
    float *leader; /* [count] the leader's parameters at its election */
    /* [count] during an election: this rank's parameters, then the leader's */
    float *candidate;
    /* Not bool, because a checkpoint may contain any byte. */
    unsigned char elected; /* leader is valid */
    unsigned char follows; /* the leader is another rank */
    struct trib_train_vote vote;
    /* pending requests of the current election, or NULL */
    trib_request_t *votes, *parameters;
    uint64_t held, led; /* elections held, and elections won by this rank */
};

/**
 * trib_train_election_open - allocate the buffers of elections in comm.
 *
 * owner    the caller: trib_train_election_close, also after an error
 */
trib_status_t trib_train_election_open(struct trib_trainer *t, trib_comm_t *comm,
                                       uint64_t period, uint64_t late,
                                       struct trib_train_election *e);
void trib_train_election_close(struct trib_trainer *t, struct trib_train_election *e);

/**
 * trib_train_election_step - advance the election at the end of step `number`.
 *
 * x, loss  this rank's parameters and mean loss, used if an election starts
 * ended    set to true if an election has ended in this call: e->leader is new
 */
trib_status_t trib_train_election_step(struct trib_trainer *t,
                                       struct trib_train_election *e, uint64_t number,
                                       const float *x, double loss, bool *ended);

/** trib_train_election_finish - wait for a pending election; *ended as above. */
trib_status_t trib_train_election_finish(struct trib_trainer *t,
                                         struct trib_train_election *e, bool *ended);

#endif
