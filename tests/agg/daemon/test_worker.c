/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a worker shares its thread among aggregators. The aggregators are fake: a step of
 * theirs sums a chunk. Their ranks are on other threads, so time is counted in polls of
 * the worker, including idle ones, because it continues while all are dry.
 */
#include "tests/harness/tribtest.h"

#include "agg/daemon/worker.h"
#include "base/time.h"

enum { CHUNK = 65536, STEPS = 40000 };

struct fake {
    struct aggregator aggregator;
    struct trib_comm comm;
    uint64_t window; /* chunks that its ranks send at once; 0: as many as it can sum */
    uint64_t ready;
    uint64_t dry_at; /* the poll at which it ran dry; its ranks send LATENCY polls
                      * later */
    _Atomic uint64_t chunks;
    _Atomic int seen; /* number of times the worker has polled it */
};

enum { LATENCY = 2 };

static _Atomic bool begun;     /* all have started */
static _Atomic uint64_t steps; /* of all aggregators */
static _Atomic uint64_t looks;

bool aggregator_step(struct aggregator *agg)
{
    struct fake *f = (struct fake *)(void *)agg; /* its first member */

    f->seen += f->seen < 2;
    looks++;
    if (f->window && !f->ready && looks - f->dry_at >= LATENCY)
        f->ready = f->window;
    if ((f->window && !f->ready) || !begun || steps >= STEPS)
        return false;
    steps++;
    f->comm.engine.stats.wire_bytes += CHUNK;
    f->chunks++;
    if (f->window && --f->ready == 0)
        f->dry_at = looks;
    return true;
}

/* Unresponsive peers block its disposal until this opens. */
static _Atomic bool gate = true;
static _Atomic int held_up;

void aggregator_dispose(struct aggregator *agg)
{
    const uint64_t end = trib_deadline_ms(tribtest_patience_ms());

    atomic_fetch_add(&held_up, 1);
    while (!atomic_load(&gate) && trib_now_ns() < end)
        sched_yield();
    atomic_store(&agg->state, AGGREGATOR_GONE);
}

void aggregator_metrics_moved(struct aggregator_metrics *w, const struct trib_engine *e,
                              uint64_t now_ns)
{
    (void)w;
    (void)e;
    (void)now_ns;
}

void aggregator_metrics_turn_ends(struct aggregator_metrics *w, struct trib_engine *e,
                                  uint64_t begin_ns, uint64_t end_ns)
{
    (void)w;
    (void)e;
    (void)begin_ns;
    (void)end_ns;
}

static struct fake *join(struct worker *worker, uint32_t weight, uint64_t window)
{
    struct fake *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    f->aggregator.comm = &f->comm;
    f->aggregator.descriptor = -1;
    f->aggregator.weight = weight;
    f->window = f->ready = window;
    trib_drr_set_weight(&f->aggregator.share, weight);
    atomic_store(&f->aggregator.state, AGGREGATOR_RUNS);
    worker_reserve(worker);
    return f;
}

static void leave(struct worker *worker, struct fake *f)
{
    const uint64_t end = trib_deadline_ms(tribtest_patience_ms());

    atomic_store(&f->aggregator.ending, true);
    worker_wake(worker);
    while (atomic_load(&f->aggregator.state) != AGGREGATOR_GONE) {
        assert_true(trib_now_ns() < end);
        sched_yield();
    }
    worker_release(worker);
    free(f);
}

/* Return the ratio of chunks summed by one with three times the weight to chunks summed
 * by the other. */
static double ratio(uint64_t window)
{
    const uint64_t end = trib_deadline_ms(tribtest_patience_ms());
    struct trib_error err = {0};
    struct worker *worker;

    atomic_store(&begun, false);
    atomic_store(&steps, 0);
    assert_status(worker_start(&err, &worker), TRIB_OK);
    struct fake *heavy = join(worker, 768, window), *light = join(worker, 256, window);
    worker_add(worker, &heavy->aggregator);
    worker_add(worker, &light->aggregator);
    while (atomic_load(&heavy->seen) < 2 || atomic_load(&light->seen) < 2)
        sched_yield();
    atomic_store(&begun, true);
    while (atomic_load(&steps) < STEPS) {
        assert_true(trib_now_ns() < end);
        sched_yield();
    }
    const double r = (double)heavy->chunks / (double)light->chunks;
    printf("# windows of %d chunks: %.2f\n", (int)window, r);
    leave(worker, heavy);
    leave(worker, light);
    worker_stop(worker);
    return r;
}

TEST(test_weights)
{
    const double r = ratio(0);
    assert_true(r > 2.7 && r < 3.3);
}

/* An aggregator that has summed all chunks of its ranks gets a turn again as soon as
 * they send more, not only after the other has run dry as well. */
TEST(test_weights_of_those_that_run_dry)
{
    const double r = ratio(8);
    assert_true(r > 1.8 && r < 3.3);
}

/* While aggregators are disposed of and wait for unresponsive peers, the worker keeps
 * stepping the others: counted in chunks, independent of time. */
TEST(test_a_disposal_stops_nobody)
{
    const uint64_t end = trib_deadline_ms(tribtest_patience_ms());
    struct trib_error err = {0};
    struct fake *ends[3], *stays;
    struct worker *worker;

    atomic_store(&begun, false);
    atomic_store(&gate, false);
    atomic_store(&held_up, 0);
    atomic_store(&steps, 0);
    assert_status(worker_start(&err, &worker), TRIB_OK);
    stays = join(worker, 256, 0);
    worker_add(worker, &stays->aggregator);
    for (int i = 0; i < 3; i++) {
        ends[i] = join(worker, 256, 0);
        worker_add(worker, &ends[i]->aggregator);
        atomic_store(&ends[i]->aggregator.ending, true);
    }
    worker_wake(worker);
    while (atomic_load(&held_up) < 3) {
        assert_true(trib_now_ns() < end);
        sched_yield();
    }
    atomic_store(&begun, true);
    while (atomic_load(&stays->chunks) < 1000) {
        assert_true(trib_now_ns() < end);
        sched_yield();
    }
    for (int i = 0; i < 3; i++)
        assert_int_equal(atomic_load(&ends[i]->aggregator.state), AGGREGATOR_RUNS);
    atomic_store(&gate, true);
    for (int i = 0; i < 3; i++)
        leave(worker, ends[i]);
    leave(worker, stays);
    worker_stop(worker);
}
