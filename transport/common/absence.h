/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Was this process itself away for so long that its peers may have given it up?
 *
 * A process that is stopped, frozen, or suspended with its host does not see its own
 * absence: it comes back, finds its connections closed, and would take all others for
 * dead. So a thread ticks, and a gap between two ticks is an absence. The clock counts
 * the time of a suspended host (CLOCK_BOOTTIME), as the peers' clocks do. A virtual
 * machine that is paused together with its clocks cannot see it; there the last word of
 * the peers has to tell.
 *
 * With a short limit a gap may as well be a thread that waited for a processor. Such a
 * gap is doubtful: it is no reason to blame this process unless something else says so.
 */
#ifndef TRANSPORT_COMMON_ABSENCE_H
#define TRANSPORT_COMMON_ABSENCE_H

#include <stdatomic.h>
#include <stdint.h>

enum trib_absence_kind {
    TRIB_ABSENCE_DOUBTFUL, /* peers may have given this process up, or the host is
                            * busy */
    TRIB_ABSENCE_CERTAIN,  /* longer than a busy host lets a thread wait */
    TRIB_ABSENCE_KINDS
};

/* The newest gap of at least a length. */
struct trib_gap {
    uint64_t least_ns;
    _Atomic uint64_t returned; /* by trib_boot_ns, as all moments here; 0: there was
                                * none */
    _Atomic uint64_t ns; /* how long it was */
    uint64_t seen; /* the owner's: `returned` of the gap that it knows */
    uint64_t seen_at; /* the owner's: when it looked first after that */
};

struct trib_absence {
    struct trib_gap gaps[TRIB_ABSENCE_KINDS];
    uint64_t recent_ns; /* so long after its return losses are blamed on an absence */
    _Atomic uint64_t ticked;
};

/** trib_absence_begin - nothing counts before; stop_timeout_ms 0: nobody is given
 * up. */
void trib_absence_begin(struct trib_absence *a, int stop_timeout_ms);

/** trib_absence_tick - by a thread, at least every trib_absence_step_ns. */
void trib_absence_tick(struct trib_absence *a);

/** trib_absence_step_ns - the longest time between two ticks; TRIB_NEVER: any. */
uint64_t trib_absence_step_ns(const struct trib_absence *a);

/**
 * trib_absence_recent - how long this process was away lately, in ns; 0: it was not.
 *
 * Lately begins when the owner looks for the first time after the return: what it finds
 * then has happened meanwhile.
 * kind     DOUBTFUL includes the certain ones
 * thread   the owner's; the thread that ticks need not have run since the return
 */
uint64_t trib_absence_recent(struct trib_absence *a, enum trib_absence_kind kind);

#endif
