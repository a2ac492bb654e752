/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/life/clock.h"

#include <assert.h>
#include <time.h>

#include "base/time.h"
#include "comm/core/communicator.h"
#include "comm/plan/exchange.h"
#include "comm/plan/plan.h"
#include "comm/plan/plan_make.h"

enum {
    ROUNDS = 16,
    LATE_MS_MAX = 200,
};

struct trib_clock trib_clock_between(const struct trib_clock_round *ours,
                                     const struct trib_clock_round *first, size_t n)
{
    int64_t least = INT64_MIN, most = INT64_MAX;

    assert(n > 0);
    for (size_t i = 0; i < n; i++) {
        const int64_t low = (int64_t)(ours[i].came_ns - first[i].left_ns);
        const int64_t high = (int64_t)(ours[i].left_ns - first[i].came_ns);
        least = low > least ? low : least;
        most = high < most ? high : most;
    }
    if (least <= 0 && most >= 0)
        return (struct trib_clock){
            .within_ns = (uint64_t)(most > -least ? most : -least), .known = true};
    const int64_t width = most > least ? most - least : least - most;
    return (struct trib_clock){.ahead_ns = least + (most - least) / 2,
                               .within_ns = (uint64_t)(width + 1) / 2,
                               .known = true};
}

/* Rank 0 enters every second barrier last. The others leave such a barrier as soon as
 * its message arrives, which bounds their clocks from above. In the other barriers rank
 * 0 waits, which bounds the clocks from below. */
static void come_late(uint64_t took_ns)
{
    const uint64_t most = (uint64_t)LATE_MS_MAX * 1000000u;
    const uint64_t ns = 2 * took_ns < most ? 2 * took_ns : most;

    (void)nanosleep(&(struct timespec){.tv_sec = (time_t)(ns / 1000000000u),
                                       .tv_nsec = (long)(ns % 1000000000u)},
                    NULL);
}

static trib_status_t take_rounds(struct trib_comm *comm,
                                 struct trib_clock_round *rounds)
{
    trib_desc_t desc = TRIB_DESC_INIT;
    struct trib_plan *plan;

    desc.dtype = TRIB_I8;
    trib_status_t st = trib_plan_make(comm, TRIB_BARRIER, &desc, true, &plan);
    for (int i = 0; st == TRIB_OK && i < ROUNDS; i++) {
        if (i % 2 && comm->engine.rank == 0)
            come_late(rounds[i - 1].left_ns - rounds[i - 1].came_ns);
        rounds[i].came_ns = trib_now_ns();
        st = trib_plan_run(plan, NULL, NULL);
        rounds[i].left_ns = trib_now_ns();
    }
    trib_plan_destroy(plan);
    return st;
}

trib_status_t trib_clock_measure(struct trib_comm *comm)
{
    struct trib_clock_round ours[ROUNDS], first[ROUNDS];

    if (!comm->any_traces)
        return TRIB_OK;
    comm->rank_clock.known = true;
    if (comm->engine.size == 1)
        return TRIB_OK;
    trib_status_t st = take_rounds(comm, ours);
    if (st != TRIB_OK)
        return st;
    for (int i = 0; i < ROUNDS; i++)
        first[i] = ours[i];
    st = trib_comm_broadcast(comm, 0, sizeof(first), first);
    if (st == TRIB_OK && comm->engine.rank > 0)
        comm->rank_clock = trib_clock_between(ours, first, ROUNDS);
    return st;
}
