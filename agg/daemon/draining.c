/* SPDX-License-Identifier: BSD-3-Clause */
/* Shutdown: jobs disconnect, and stores write their last snapshots. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "agg/daemon/server_parts.h"
#include "agg/daemon/systemd.h"
#include "base/minmax.h"
#include "base/time.h"

enum {
    /* Time requested from systemd beyond drain_ms, and beyond disk_ms per extension
     * while snapshots are written. */
    EXTEND_S = 30,
    EXTEND_EACH_MS = 2000,
    STALL_SAY_MS = 2000, /* time without progress before a warning */
};

/* Announce the stop to systemd and request more time: TimeoutStopSec may be shorter
 * than drain_ms. */
static void say_stopping(const struct server *s)
{
    char text[64];

    snprintf(text, sizeof(text), "STOPPING=1\nEXTEND_TIMEOUT_USEC=%" PRIu64,
             (uint64_t)s->settings.drain_ms * 1000 + (uint64_t)EXTEND_S * 1000000);
    systemd_notify(text);
}

void server_drain(struct server *s, uint32_t uid, uint32_t pid)
{
    assert(!s->draining);
    trib_log(&s->log, TRIB_LOG_INFO, "tribd",
             "draining: %d job%s (by uid %u, process %u)", s->n_clients,
             s->n_clients == 1 ? "" : "s", uid, pid);
    say_stopping(s);
    s->draining = true;
    atomic_store(&s->health.state, HEALTH_DRAINING);
    s->drain_until = trib_deadline_ms((int)s->settings.drain_ms);
    trib_jobs_drain(s->jobs, true);
    for (int i = 0; i < s->n_listeners; i++)
        close(s->listeners[i]);
    s->n_listeners = 0;
    for (int i = 0; i < s->n_clients; i++) {
        if (s->clients[i]->aggregator)
            aggregator_drain(s->clients[i]->aggregator);
        else if (s->clients[i]->store)
            store_job_drain(s->clients[i]->store);
        else
            server_hang_up(s, s->clients[i]);
    }
}

static void end_when_due(struct server *s)
{
    if (!s->draining || s->drained || !trib_deadline_passed(s->drain_until))
        return;
    s->drained = true;
    for (int i = 0; i < s->n_clients; i++)
        if (s->clients[i]->session || s->clients[i]->store)
            server_hang_up(s, s->clients[i]);
}

static int count_stores(const struct server *s)
{
    int n = 0;

    for (int i = 0; i < s->n_clients; i++)
        n += s->clients[i]->store != NULL;
    return n;
}

/* Request more time while snapshots make progress; a hung disk gets none. */
static void extend(struct server *s)
{
    char text[64];

    s->extends = false;
    s->extend_at = trib_deadline_ms(EXTEND_EACH_MS);
    snprintf(text, sizeof(text), "EXTEND_TIMEOUT_USEC=%" PRIu64,
             (uint64_t)s->settings.disk_ms * 1000 + (uint64_t)EXTEND_S * 1000000);
    systemd_notify(text);
}

/* Log once that the disk takes nothing; after disk_ms, abandon the snapshots. */
static void watch_disk(struct server *s, int stores)
{
    const uint32_t limit_ms = s->settings.disk_ms;
    const uint64_t now_ns = trib_now_ns();

    /* Longer intervals of checks mean that this process was stopped. */
    s->stalled_ns +=
        trib_min(now_ns - s->looked_ns, (uint64_t)STALL_SAY_MS * 1000000 / 2);
    s->looked_ns = now_ns;
    const uint64_t stalled_ms = s->stalled_ns / 1000000;
    if (stalled_ms >= STALL_SAY_MS && !s->said_stall)
        trib_log(&s->log, TRIB_LOG_WARN, "tribd",
                 "cannot stop yet: %d store%s for snapshots, but nothing was written "
                 "to or read from %s for %" PRIu64 " s",
                 stores, stores == 1 ? " waits" : "s wait", s->settings.snapshots,
                 stalled_ms / 1000);
    s->said_stall |= stalled_ms >= STALL_SAY_MS;
    s->gave_up = limit_ms && stalled_ms >= limit_ms;
}

/* Wait for the last snapshots, while they are copied, files are written or read, or
 * stores end. */
static void await_snapshots(struct server *s)
{
    const int stores = count_stores(s);

    if (!s->drained || !s->archive || stores == 0)
        return;
    const uint64_t progress = archive_progress_mt(s->archive) - (uint64_t)stores;
    if (!s->looked_ns || progress != s->progress || archive_is_apart_mt(s->archive)) {
        s->progress = progress;
        s->looked_ns = trib_now_ns();
        s->stalled_ns = 0;
        s->said_stall = false;
        s->extends = true;
    }
    if (s->extends && trib_deadline_passed(s->extend_at))
        extend(s);
    watch_disk(s, stores);
}

void drain_step(struct server *s)
{
    end_when_due(s);
    await_snapshots(s);
}

bool drain_end(struct server *s)
{
    if (s->archive)
        extend(s); /* for deletions */
    const bool well =
        !s->gave_up &&
        (!s->archive || archive_stop(s->archive, (int)s->settings.disk_ms));

    if (!well)
        trib_log(
            &s->log, TRIB_LOG_ERROR, "tribd",
            "exiting although %s has not responded for %" PRIu32
            " ms: the last snapshots of %d store%s are lost, earlier ones are kept, "
            "and files to be deleted may remain",
            s->settings.snapshots, (uint32_t)s->settings.disk_ms, count_stores(s),
            count_stores(s) == 1 ? "" : "s");
    return well;
}
