/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks of a cluster's requirements, one by one, with a remedy for each that fails.
 */
#ifndef TRIBUTARY_DOCTOR_H
#define TRIBUTARY_DOCTOR_H

#include <tributary/comm.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum trib_verdict {
    TRIB_VERDICT_OK,
    TRIB_VERDICT_WARN, /* works, but poorly or not everywhere */
    TRIB_VERDICT_FAIL,
} trib_verdict_t;

/* Result of one check. Strings are valid during the callback. */
typedef struct trib_finding {
    trib_verdict_t verdict;
    const char *where; /* "host3", "rank 0 (host0) → rank 1 (host1)"; "": everywhere */
    const char *topic; /* "memlock", "tcp", … */
    const char *text;  /* the observation and, if any, the problem */
    const char *cure;  /* the remedy; "" if there is none */
} trib_finding_t;

typedef void (*trib_finding_fn)(void *arg, const trib_finding_t *finding);

typedef struct trib_doctor_opts {
    size_t size;             /* sizeof(trib_doctor_opts_t) */
    const trib_opts_t *join; /* the ranks, as for trib_init; NULL: all defaults */
    const char *folder; /* a copy of a host's /sys, /proc and /dev to check instead of
                         * this host's; NULL or "": this host */
} trib_doctor_opts_t;

#define TRIB_DOCTOR_OPTS_INIT {sizeof(trib_doctor_opts_t), NULL, NULL}

/**
 * trib_doctor - check this host or, with several ranks, the hosts of all ranks.
 *
 * A single rank checks its host: devices, links, libraries, limits. Several ranks check
 * each host, compare versions, settings and clocks, and test every transport that two
 * ranks share, in both directions, with small and large transfers.
 *
 * fn       called on rank 0 for the findings of all ranks; if the rendezvous fails,
 *          called on every rank for its own findings
 * worst_out the worst verdict, the same on all ranks that have joined; may be NULL
 * thread   any; blocks. The limit for a pair is a few seconds, so the call takes at
 *          most a few seconds per rank
 * errors   TRIB_ERR_INVALID, TRIB_ERR_NO_MEMORY: nothing could be checked. A problem of
 *          the cluster is a finding and not an error
 */
TRIB_API trib_status_t trib_doctor(const trib_doctor_opts_t *opts, trib_finding_fn fn,
                                   void *arg, trib_verdict_t *worst_out);

#ifdef __cplusplus
}
#endif

#endif
