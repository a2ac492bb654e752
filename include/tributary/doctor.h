/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests the needs of a cluster one by one, and names the cure for each that is not met.
 */
#ifndef TRIBUTARY_DOCTOR_H
#define TRIBUTARY_DOCTOR_H

#include <tributary/comm.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum trib_verdict {
    TRIB_VERDICT_OK,
    TRIB_VERDICT_WARN, /* works, but not well, or not everywhere */
    TRIB_VERDICT_FAIL,
} trib_verdict_t;

/* One check. Strings live as long as the call. */
typedef struct trib_finding {
    trib_verdict_t verdict;
    const char *where; /* "host3", "rank 0 (host0) → rank 1 (host1)"; "": everywhere */
    const char *topic; /* "memlock", "tcp", … */
    const char *text;  /* what was found; what is wrong with it */
    const char *cure;  /* "" where there is none to tell */
} trib_finding_t;

typedef void (*trib_finding_fn)(void *arg, const trib_finding_t *finding);

typedef struct trib_doctor_opts {
    size_t size;             /* sizeof(trib_doctor_opts_t) */
    const trib_opts_t *join; /* who takes part, as for trib_init; NULL: all defaults */
    const char *folder; /* with a copy of a host's /sys, /proc and /dev, to be
                         * looked at instead of this one's; NULL or "": this host */
} trib_doctor_opts_t;

#define TRIB_DOCTOR_OPTS_INIT {sizeof(trib_doctor_opts_t), NULL, NULL}

/**
 * trib_doctor - look at this host and, where there are several ranks, at all of them.
 *
 * A rank alone looks at its host: devices, links, libraries, limits. Several ranks look
 * at each host, compare versions, settings and clocks, and each pair writes to each
 * other over every transport that both have, little and much at once.
 *
 * fn       called on rank 0 for the findings of all ranks; on the others only where the
 *          ranks cannot meet, for their own
 * worst_out the greatest verdict, the same on all ranks that have met; may be NULL
 * thread   any; blocks. Each pair has some seconds, so it takes seconds a rank at most
 * errors   TRIB_ERR_INVALID, TRIB_ERR_NO_MEMORY: nothing could be looked at. What is
 *          wrong with the cluster is a finding and no error
 */
TRIB_API trib_status_t trib_doctor(const trib_doctor_opts_t *opts, trib_finding_fn fn,
                                   void *arg, trib_verdict_t *worst_out);

#ifdef __cplusplus
}
#endif

#endif
