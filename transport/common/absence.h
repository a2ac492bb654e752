/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Detect that this process was itself stopped long enough for peers to declare it lost.
 *
 * A process that is stopped, frozen, or suspended with its host does not notice. When
 * it resumes, it finds its connections closed and would declare all other ranks dead.
 * So a thread ticks, and a gap between two ticks is an absence. The clock counts the
 * time of a suspended host (CLOCK_BOOTTIME), as the peers' clocks do. A virtual machine
 * that is paused together with its clocks cannot detect this; there only the peers'
 * abort notice reveals the absence.
 *
 * With a short limit, a gap may also come from a thread that waited for a CPU. Such a
 * gap is doubtful: this process is not blamed for it without other evidence.
 */
#ifndef TRANSPORT_COMMON_ABSENCE_H
#define TRANSPORT_COMMON_ABSENCE_H

#include <stdatomic.h>
#include <stdint.h>

enum trib_absence_kind {
    /* peers may have declared this process lost, or the host is just busy */
    TRIB_ABSENCE_DOUBTFUL,
    TRIB_ABSENCE_CERTAIN, /* longer than a busy host keeps a thread waiting */
    TRIB_ABSENCE_KINDS
};

/* The latest gap of at least `least_ns`. */
struct trib_gap {
    uint64_t least_ns;
    /* end of the gap, by trib_boot_ns, as all times here; 0: no gap yet */
    _Atomic uint64_t returned;
    _Atomic uint64_t ns; /* length of the gap */
    uint64_t seen; /* owner only: `returned` of the last gap that the owner noticed */
    uint64_t seen_at; /* owner only: when the owner noticed that gap */
};

struct trib_absence {
    struct trib_gap gaps[TRIB_ABSENCE_KINDS];
    /* for this long after the owner notices a gap, losses are blamed on it */
    uint64_t recent_ns;
    _Atomic uint64_t ticked;
};

/** trib_absence_begin - start detection; stop_timeout_ms 0: peers never declare a rank
 * lost. */
void trib_absence_begin(struct trib_absence *a, int stop_timeout_ms);

/** trib_absence_tick - call from a thread, at least every trib_absence_step_ns. */
void trib_absence_tick(struct trib_absence *a);

/** trib_absence_step_ns - return the longest interval between two ticks; TRIB_NEVER:
 * any. */
uint64_t trib_absence_step_ns(const struct trib_absence *a);

/**
 * trib_absence_recent - return for how many ns this process was recently away; 0: not
 * at all.
 *
 * "Recently" begins when the owner first checks after the gap: losses found then
 * happened during the gap.
 * kind     DOUBTFUL includes CERTAIN
 * thread   the owner's; the ticking thread need not have run since the gap
 */
uint64_t trib_absence_recent(struct trib_absence *a, enum trib_absence_kind kind);

#endif
