/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The body of a rank while one rank or one tribd of its job is killed, stopped or
 * started again: steps of several plans, each of them checked. In the end the results
 * of the plan with error feedback add up to its inputs.
 */
#ifndef TESTS_FAULT_SERVED_JOB_H
#define TESTS_FAULT_SERVED_JOB_H

#include "tests/harness/ranks.h"

/* The phase of the job in which the shot is fired. */
enum place {
    AT_MEETING, /* somewhere in trib_init */
    AT_FIRST,   /* in the first operation, but for one rank, which has not come */
    AT_SUMS,    /* in the middle of steps */
    AT_PLANS,   /* all plans are under way, one of them is fed a third */
    AT_LEAVING, /* in trib_free_comm, but for one rank, which has not come */
    PLACES,
};

/* slot->phase of each rank. */
enum {
    JOB_COMES,
    JOB_THERE, /* one rank says so, from where the test counts the delay */
    JOB_FIRED, /* the test says so */
};

struct served_job {
    uint64_t seed;
    enum place place;
    int marker;   /* the rank that says where the job is, and waits there for the
                   * shot */
    bool hit;     /* the marker is it, and waits longer */
    bool returns; /* it is to sum with a service again before it ends */
};

/**
 * served_act - of ranks_job.fn with arg a struct served_job, bare and noisy.
 *
 * Returns 0; slot->begin is when the job ended or had its error, slot->count its
 * status, negated, and slot->text its sentence; where it is TRIB_OK, "longest wait %f
 * s" of those after the shot. A wrong sum, and a service that is not seen again, end
 * the rank: ranks_die.
 */
int served_act(struct ranks_self *self);

#endif
