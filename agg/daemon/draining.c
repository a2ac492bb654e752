/* SPDX-License-Identifier: BSD-3-Clause */
/* Shutdown: jobs disconnect, and stores write their last snapshots. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "agg/daemon/server_parts.h"
#include "agg/daemon/systemd.h"
#include "base/time.h"

enum {
    EXTEND_S = 30, /* time requested from systemd beyond drain_ms, and per extension
                    * while snapshots are written */
    EXTEND_EACH_MS = 2000,
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

static bool has_stores(const struct server *s)
{
    for (int i = 0; i < s->n_clients; i++)
        if (s->clients[i]->store)
            return true;
    return false;
}

/* Request more time while snapshots make progress; a hung disk gets none. */
static void extend(struct server *s)
{
    char text[64];

    if (!s->drained || !s->archive || !has_stores(s) ||
        !trib_deadline_passed(s->extend_at))
        return;
    const uint64_t written = archive_written_mt(s->archive) + 1;
    s->extend_at = trib_deadline_ms(EXTEND_EACH_MS);
    if (written == s->extended_for)
        return;
    s->extended_for = written;
    snprintf(text, sizeof(text), "EXTEND_TIMEOUT_USEC=%d", EXTEND_S * 1000000);
    systemd_notify(text);
}

void drain_step(struct server *s)
{
    end_when_due(s);
    extend(s);
}
