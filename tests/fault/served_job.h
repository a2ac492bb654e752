/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The body of a rank while one rank or one tribd of its job is killed, stopped or
 * restarted: steps of several plans, each of them checked. At the end, the results of
 * the plan with error feedback add up to its inputs.
 */
#ifndef TESTS_FAULT_SERVED_JOB_H
#define TESTS_FAULT_SERVED_JOB_H

#include "tests/harness/ranks.h"

/* The phase of the job during which the fault occurs. */
enum place {
    AT_MEETING, /* somewhere in trib_init */
    AT_FIRST,   /* in the first operation, except for one rank, which has not started
                 * it */
    AT_SUMS,    /* during steps */
    AT_PLANS,   /* all plans are running, one of them has been fed a third */
    AT_LEAVING, /* in trib_free_comm, except for one rank, which has not called it */
    PLACES,
};

/* slot->phase of each rank. */
enum {
    JOB_COMES,
    JOB_THERE, /* one rank reports it; the test counts the delay from there */
    JOB_FIRED, /* set by the test */
};

struct served_job {
    uint64_t seed;
    enum place place;
    int marker;   /* the rank that reports the place of the job and waits there for the
                   * fault */
    bool hit;     /* the marker is the victim, and waits longer */
    bool returns; /* the job must sum with a service again before it ends */
};

/**
 * served_act - ranks_job.fn with a struct served_job as arg; the job is bare and noisy.
 *
 * Return 0. slot->begin is the time at which the job ended or failed, slot->count its
 * negated status, and slot->text its error message; for TRIB_OK, the text is "longest
 * wait %f s" after the fault. A wrong sum, or a service that does not sum again, ends
 * the rank: ranks_die.
 */
int served_act(struct ranks_self *self);

#endif
