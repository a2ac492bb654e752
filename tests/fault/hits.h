/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks of a sweep that are killed or stopped: by the test, some time after all have
 * begun, or by themselves, at a poll within a call. hits_drive runs a job to its end;
 * hits_judge checks that the other ranks ended without error and agree.
 */
#ifndef TESTS_FAULT_HITS_H
#define TESTS_FAULT_HITS_H

#include "tests/harness/ranks.h"

enum { HITS_RANKS = 5, HITS_STOP_MS = 400, HITS_TEXT = 500 };

struct hit {
    int signal; /* 0: none */
    int delay_ms; /* delay of a hit by the test, after all have begun */
    int look; /* the victim raises it itself at that poll; 0: the test does */
};

struct hits {
    struct hit of[HITS_RANKS];
};

/** hits_below - return the next number below n of a random stream of the test. */
unsigned hits_below(unsigned n);

/** hits_aim - return a hit by the test within 40 ms, or at one of the first `looks`
 * polls. */
struct hit hits_aim(int signal_number, unsigned looks);

static inline bool hits_is_victim(const struct hits *h, int rank)
{
    return h->of[rank].signal != 0;
}

/** hits_look - count a poll of the rank; the call may be its last. */
void hits_look(const struct hits *h, int rank, int *looks);

/**
 * hits_drive - run a job, hit its victims, and wait for the others.
 *
 * The phase of a rank's slot becomes 1 when it has begun, and 2 on all ranks when all
 * victims were hit. Victims that are still alive end with the others.
 * first    ranks that must all have begun
 */
void hits_drive(struct ranks *r, const struct hits *h, int first);

/** hits_judge - check that all but the victims ended without error, with the same
 * slot->count; `what` describes the job. */
void hits_judge(const struct ranks *r, const struct hits *h, const char *what);

/** hits_service - return settings of the service of all jobs; "": there is none. */
const char *hits_service(void);

/** hits_with_service - call fn(transport) while a tribd runs, or skip the test. */
void hits_with_service(void (*fn)(const char *transport), const char *transport);

#endif
