/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/common/absence.h"

#include <assert.h>

#include "base/time.h"

#define MS UINT64_C(1000000)

enum {
    LEAST_MS = 875, /* even a busy machine delays a thread less */
    RECENT_LEAST_MS = 2000,
    RECENT_MOST_MS = 10000,
    STEPS = 8, /* ticks per shortest absence: a stop may appear longer by one of them */
};

void trib_absence_begin(struct trib_absence *a, int stop_timeout_ms)
{
    const uint64_t limit = trib_limit_ns(stop_timeout_ms);
    /* Peers count from the last message that they received, which is earlier. */
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

/* Any thread may find a gap; the exchange makes sure that only one records it. */
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

    assert(kind < TRIB_ABSENCE_KINDS);
    if (now > ticked && now - ticked >= least_ns(a))
        trib_absence_tick(a);
    const uint64_t returned = atomic_load(&gap->returned);
    if (returned != gap->seen) {
        gap->seen = returned;
        gap->seen_at = now;
    }
    return gap->seen && now - gap->seen_at < a->recent_ns ? atomic_load(&gap->ns) : 0;
}
