/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Elections of a leader among the ranks of a communicator: the one of the least loss,
 * whose parameters all others then have. An election may go on for some steps while the
 * ranks compute; it begins and ends at the same steps on all ranks.
 */
#ifndef TRAIN_STRATEGIES_ELECTION_H
#define TRAIN_STRATEGIES_ELECTION_H

#include <stdbool.h>
#include <stdint.h>

#include <tributary/request.h>

struct trib_trainer;
struct trib_train_election;

/* A loss with the rank that has it, as trib_op_t says of minloc. */
struct trib_train_vote {
    double loss;
    int64_t rank;
};

struct trib_train_election {
    trib_comm_t *comm; /* NULL: there are none */
    uint64_t period; /* steps between elections */
    uint64_t late; /* steps that one takes; below the period */
    float *leader; /* [count] parameters of the leader when it was elected */
    float *candidate; /* [count] this rank's, then the leader's, while one goes on */
    bool elected; /* leader has been filled */
    bool follows; /* it is another rank's */
    struct trib_train_vote vote;
    trib_request_t *votes, *parameters; /* what goes on, or NULL */
    uint64_t held, led; /* elections, and how many this rank has won */
};

/**
 * trib_train_election_open - memory for elections in comm.
 *
 * owner    the caller: trib_train_election_close, also after an error
 */
trib_status_t trib_train_election_open(struct trib_trainer *t, trib_comm_t *comm,
                                       uint64_t period, uint64_t late,
                                       struct trib_train_election *e);
void trib_train_election_close(struct trib_trainer *t, struct trib_train_election *e);

/**
 * trib_train_election_step - what elections do at the end of step `number`.
 *
 * x, loss  this rank's parameters and mean loss, if one begins
 * ended    true if an election has ended in this call: e->leader is new
 */
trib_status_t trib_train_election_step(struct trib_trainer *t,
                                       struct trib_train_election *e, uint64_t number,
                                       const float *x, double loss, bool *ended);

/** trib_train_election_finish - ends the one that goes on, if any; *ended as above. */
trib_status_t trib_train_election_finish(struct trib_trainer *t,
                                         struct trib_train_election *e, bool *ended);

#endif
