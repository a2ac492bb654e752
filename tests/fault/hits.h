/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks of a sweep that are killed or stopped: by the test, some time after all have
 * begun, or by themselves, at a look within a call. hits_drive runs a job to its end,
 * hits_judge says whether the others have ended well, and alike.
 */
#ifndef TESTS_FAULT_HITS_H
#define TESTS_FAULT_HITS_H

#include "tests/harness/ranks.h"

enum { HITS_RANKS = 5, HITS_STOP_MS = 400, HITS_TEXT = 500 };

struct hit {
    int signal; /* 0: none */
    int delay_ms; /* of the test, from when all have begun */
    int look; /* the victim raises it itself at that look; 0: not */
};

struct hits {
    struct hit of[HITS_RANKS];
};

/** hits_below - the next number of a stream of the test, below n. */
unsigned hits_below(unsigned n);

/** hits_aim - a hit by the test within 40 ms, or at one of the first `looks`. */
struct hit hits_aim(int signal_number, unsigned looks);

static inline bool hits_is_victim(const struct hits *h, int rank)
{
    return h->of[rank].signal != 0;
}

/** hits_look - the rank looks once more; the call may be its last. */
void hits_look(const struct hits *h, int rank, int *looks);

/**
 * hits_drive - let a job run, hit its victims, and wait for the others.
 *
 * The phase of a rank's slot becomes 1 when it has begun, and 2 of all when all victims
 * were hit. Victims that live end with the others.
 * first    ranks of which all must have begun
 */
void hits_drive(struct ranks *r, const struct hits *h, int first);

/** hits_judge - all but the victims have ended well, and with the same slot->count;
 * `what` says what kind of job it was. */
void hits_judge(const struct ranks *r, const struct hits *h, const char *what);

/** hits_service - settings of the service of all jobs; "": there is none. */
const char *hits_service(void);

/** hits_with_service - call fn(transport) beside a tribd, or skip the test. */
void hits_with_service(void (*fn)(const char *transport), const char *transport);

#endif
