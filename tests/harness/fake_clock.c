/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fabric's clock. With virtual_time it stands still while a completion queue is
 * busy: from a post or a completion until a poll finds it empty. When no queue is busy
 * and no message is pending, it jumps to the next time at which a request is due.
 *
 * A thread that neither polls nor posts may leave its queue busy. After stall_ms
 * without a change the clock advances anyway; the order of events then depends on the
 * machine.
 */
#include <errno.h>

#include "base/time.h"
#include "tests/harness/fake_hub.h"

enum { START_S = 1, STALL_MS = 20 };

void fake_clock_reset(void)
{
    fake_hub->clock = START_S * UINT64_C(1000000000);
}

uint64_t fake_now(void)
{
    return fake_opts.virtual_time ? fake_hub->clock : trib_now_ns();
}

uint64_t fake_verbs_time(void)
{
    fake_lock();
    const uint64_t ns = fake_now();
    fake_unlock();
    return ns;
}

/* Return the next time of all processes. */
static uint64_t next_due(void)
{
    uint64_t due = UINT64_MAX;

    for (int i = 0; i < fake_hub->n_processes; i++) {
        const struct fake_process *p = &fake_hub->processes[i];
        if (!p->ended && p->next_due && p->next_due < due)
            due = p->next_due;
    }
    return due;
}

static bool has_stalled(void)
{
    const uint64_t ms = fake_opts.stall_ms ? fake_opts.stall_ms : STALL_MS;

    return trib_now_ns() - fake_hub->changed_at > ms * UINT64_C(1000000);
}

void fake_clock_try(void)
{
    if (!fake_opts.virtual_time)
        return;
    if ((fake_hub->busy || fake_hub->under_way) && !has_stalled())
        return;
    const uint64_t due = next_due();
    if (due == UINT64_MAX)
        return;
    if (due > fake_hub->clock) {
        fake_hub->clock = due;
        fake_hub->changed_at = trib_now_ns();
    }
    for (int i = 0; i < fake_hub->n_processes; i++)
        if (i != fake_self() && fake_hub->processes[i].next_due <= due)
            fake_wake(i);
    if (fake_hub->processes[fake_self()].next_due <= due)
        (void)fake_queues_run();
}

void fake_clock_busy(bool *is_busy, bool busy)
{
    if (*is_busy == busy)
        return;
    *is_busy = busy;
    fake_hub->busy += busy ? 1 : -1;
    fake_hub->processes[fake_self()].busy += busy ? 1 : -1;
    if (fake_opts.virtual_time)
        fake_hub->changed_at = trib_now_ns();
}

void fake_clock_ended(struct fake_process *p)
{
    fake_hub->busy -= p->busy;
    p->busy = 0;
    for (uint32_t row = p->inbox.head; row; row = fake_message(row)->next)
        fake_hub->under_way--;
    p->inbox = (struct fake_list){0};
}
