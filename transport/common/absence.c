/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/common/absence.h"

#include <assert.h>

#include "base/time.h"

#define MS UINT64_C(1000000)

enum {
    LEAST_MS = 875, /* a thread of a busy machine waits for less */
    RECENT_LEAST_MS = 2000,
    RECENT_MOST_MS = 10000,
    STEPS = 8, /* ticks in the shortest absence: a stop may seem one of these longer */
};

void trib_absence_begin(struct trib_absence *a, int stop_timeout_ms)
{
    const uint64_t limit = trib_limit_ns(stop_timeout_ms);
    /* Peers count from the last time that they heard this process, which is earlier. */
    const uint64_t most = limit == TRIB_NEVER ? TRIB_NEVER : limit - limit / 8;

    assert(stop_timeout_ms >= 0);
    *a = (struct trib_absence){.recent_ns = limit};
    a->gaps[TRIB_ABSENCE_DOUBTFUL].least_ns = most;
    a->gaps[TRIB_ABSENCE_CERTAIN].least_ns =
        most > LEAST_MS * MS ? most : LEAST_MS * MS;
    if (a->recent_ns < RECENT_LEAST_MS * MS)
        a->recent_ns = RECENT_LEAST_MS * MS;
    if (a->recent_ns > RECENT_MOST_MS * MS)
        a->recent_ns = RECENT_MOST_MS * MS;
    atomic_store(&a->ticked, trib_boot_ns());
}

static uint64_t least_ns(const struct trib_absence *a)
{
    return a->gaps[TRIB_ABSENCE_DOUBTFUL].least_ns;
}

uint64_t trib_absence_step_ns(const struct trib_absence *a)
{
    return least_ns(a) == TRIB_NEVER ? TRIB_NEVER : least_ns(a) / STEPS;
}

/* The gap that ends now is noted once, by whoever comes first. */
void trib_absence_tick(struct trib_absence *a)
{
    const uint64_t now = trib_boot_ns();
    const uint64_t before = atomic_exchange(&a->ticked, now);

    for (int k = 0; k < TRIB_ABSENCE_KINDS; k++) {
        struct trib_gap *gap = &a->gaps[k];
        if (now <= before || now - before < gap->least_ns)
            continue;
        atomic_store(&gap->ns, now - before);
        atomic_store(&gap->returned, now);
    }
}

uint64_t trib_absence_recent(struct trib_absence *a, enum trib_absence_kind kind)
{
    const uint64_t now = trib_boot_ns(), ticked = atomic_load(&a->ticked);
    struct trib_gap *gap = &a->gaps[kind];

    if (now > ticked && now - ticked >= least_ns(a))
        trib_absence_tick(a);
    const uint64_t returned = atomic_load(&gap->returned);
    if (returned != gap->seen) {
        gap->seen = returned;
        gap->seen_at = now;
    }
    return gap->seen && now - gap->seen_at < a->recent_ns ? atomic_load(&gap->ns) : 0;
}
