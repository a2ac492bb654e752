/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/payload/chunk_parts.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "base/time.h"
#include "base/workers.h"

static void wake_engine(void *arg)
{
    struct trib_engine *e = arg;

    e->transport->ops->wake(e->transport, e->rank);
}

/* Return the number of cores that this thread, and those that it starts, may use. With
 * more threads than its quota, the kernel would stop all of them for a while. */
static uint32_t cores_allowed(const struct trib_engine *e)
{
    cpu_set_t allowed;
    /* The kernel rejects a set that is smaller than its own: a large machine. */
    const uint32_t cores = sched_getaffinity(0, sizeof(allowed), &allowed) == 0
                               ? (uint32_t)CPU_COUNT(&allowed)
                               : TRIB_WORKERS_MAX + 1;

    return e->quota && e->quota < cores ? e->quota : cores;
}

trib_status_t trib_parts_workers(struct trib_engine *e)
{
    const uint32_t threads = (uint32_t)e->cfg->encode_threads;
    const bool spin = !e->oversubscribed && cores_allowed(e) > threads;
    const struct trib_workers_opts opts = {.threads = threads,
                                           .cells = threads * TRIB_WORKERS_CELLS,
                                           .spin_us =
                                               spin ? (uint32_t)e->cfg->spin_us : 0,
                                           .name = "trib-worker",
                                           .wake = wake_engine,
                                           .arg = e};

    assert(threads > 0);
    if (e->workers)
        return TRIB_OK;
    errno = trib_workers_create(&opts, &e->workers);
    if (!errno)
        return TRIB_OK;
    return trib_fail(e->err, TRIB_ERR_SYSTEM,
                     "cannot start %u worker threads: %m (lower TRIB_ENCODE_THREADS)",
                     threads);
}

/* Return true if the run has chunks that are worth it. */
static bool has_large_chunks(const struct trib_run *run)
{
    const struct trib_run_desc *d = &run->desc;

    return !run->is_aggregator && !d->codec && !d->pairs &&
           d->piece * d->element >= TRIB_PARTS_CHUNK &&
           d->total * d->element >= TRIB_PARTS_CHUNK;
}

trib_status_t trib_parts_prepare(struct trib_engine *e, const struct trib_run *run)
{
    if (e->cfg->encode_threads == 0 || e->oversubscribed || !has_large_chunks(run) ||
        cores_allowed(e) < 2)
        return TRIB_OK;
    trib_status_t st = trib_parts_workers(e);
    e->splits = st == TRIB_OK;
    return st;
}

bool trib_parts_is_used(const struct trib_engine *e, const struct trib_run *run)
{
    return e->splits && has_large_chunks(run);
}

struct split {
    void (*work)(const void *arg, size_t first, size_t n);
    const void *arg;
    size_t n;
    size_t step;
};

static void run_part(void *arg, uint32_t part)
{
    const struct split *s = arg;
    const size_t first = part * s->step, rest = s->n - first;

    assert(first < s->n);
    s->work(s->arg, first, rest < s->step ? rest : s->step);
}

/* Return true if workers will have done more of a chunk than it costs to wake them, or
 * will poll when the next one comes. */
static bool worth_waking(const struct trib_engine *e, size_t bytes)
{
    return bytes >= TRIB_PARTS_WAKE || trib_now_ns() < e->parts_until;
}

void trib_parts_run(struct trib_engine *e, size_t n, size_t element,
                    void (*work)(const void *arg, size_t first, size_t n),
                    const void *arg)
{
    struct split s = {work, arg, n, TRIB_PARTS_BYTES / element};
    const uint32_t parts = (uint32_t)((n + s.step - 1) / s.step);

    assert(trib_parts_wanted(e, n * element) && s.step >= 2 && s.step % 2 == 0);
    if (trib_workers_asleep(e->workers) && !worth_waking(e, n * element)) {
        work(arg, 0, n);
    } else {
        e->stats.splits++;
        e->stats.parts_shared += trib_workers_split(e->workers, parts, run_part, &s);
    }
    e->parts_until = trib_now_ns() + (uint64_t)e->cfg->spin_us * 1000;
}

struct copy {
    uint8_t *dst;
    const uint8_t *src;
    void (*stream)(void *dst, const void *src, size_t bytes); /* NULL: memcpy */
};

static void copy_part(const void *arg, size_t first, size_t n)
{
    const struct copy *c = arg;

    if (c->stream)
        c->stream(c->dst + first, c->src + first, n);
    else
        memcpy(c->dst + first, c->src + first, n);
}

void trib_parts_copy(struct trib_engine *e, void *dst, const void *src, size_t bytes)
{
    if (!trib_parts_wanted(e, bytes)) {
        memcpy(dst, src, bytes);
        return;
    }
    trib_parts_run(e, bytes, 1, copy_part, &(struct copy){.dst = dst, .src = src});
}

void trib_parts_copy_stream(struct trib_engine *e, void *dst, const void *src,
                            size_t bytes)
{
    if (!trib_parts_wanted(e, bytes)) {
        e->kernels->copy_stream(dst, src, bytes);
        return;
    }
    trib_parts_run(e, bytes, 1, copy_part,
                   &(struct copy){dst, src, e->kernels->copy_stream});
}
