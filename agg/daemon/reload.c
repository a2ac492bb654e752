/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SIGHUP: reload the settings. The request worker looks up users and queries munged,
 * while jobs run with the previous settings.
 */
#include <assert.h>
#include <stdlib.h>

#include "agg/daemon/server_parts.h"
#include "agg/daemon/systemd.h"
#include "base/error.h"

struct reload {
    struct request_worker_task task; /* first: the request worker returns it */
    struct server *server;
    struct settings settings;
    struct quotas quotas;
    trib_status_t status;
    struct trib_error err;
    struct credentials *credentials;
};

static void end(struct server *s, const char *why)
{
    if (why)
        trib_log(&s->log, TRIB_LOG_WARN, "tribd", "the settings are unchanged: %s",
                 why);
    if (s->reload)
        credentials_release(s->reload->credentials);
    free(s->reload);
    s->reload = NULL;
    if (!s->draining)
        systemd_notify("READY=1");
}

/* Apply the settings that can change at run time; they affect later clients. */
static void apply(struct server *s, struct reload *r)
{
    char kept[256];
    struct archive_limits disk;
    trib_log_level_t level;

    assert(r->credentials && !s->draining);
    quotas_apply(&r->quotas, s->jobs);
    server_publish(s); /* applies new weights to running jobs */
    settings_renew(&s->settings, &r->settings, kept, sizeof(kept));
    disk = server_disk(&s->settings);
    if (s->archive)
        archive_limit(s->archive, &disk);
    if (settings_level(&s->settings, &level))
        trib_log_set_level(&s->log, level);
    trib_log(&s->log, TRIB_LOG_INFO, "tribd", "settings reloaded");
    credentials_warn(r->credentials, s->credentials, &s->settings, &s->log);
    settings_warn(&s->settings, &s->log);
    credentials_release(s->credentials);
    s->credentials = r->credentials;
    r->credentials = NULL;
    server_warn(s);
    if (kept[0])
        trib_log(&s->log, TRIB_LOG_WARN, "tribd",
                 "%s: takes effect only after a restart", kept);
}

static void work(struct request_worker_task *task)
{
    struct reload *r = (struct reload *)task;

    r->status = credentials_open(&r->settings, &r->err, &r->credentials);
}

static void done(struct request_worker_task *task)
{
    struct reload *r = (struct reload *)task;
    struct server *s = r->server;
    const bool worked = task->worked && !s->draining;

    assert(s->reload == r);
    if (worked && r->status == TRIB_OK)
        apply(s, r);
    end(s, worked && r->status != TRIB_OK ? trib_error_text(&r->err) : NULL);
    if (worked && s->reload_again) /* SIGHUP came meanwhile. `r` is freed */
        reload_begin(s, s->reload_again);
}

/* Reload all settings or none. */
void reload_begin(struct server *s, const struct server_ear *ear)
{
    struct reload *r;

    s->reload_again = s->reload ? ear : NULL;
    if (s->reload)
        return; /* done() reloads again */
    systemd_reloading();
    s->reload = r = calloc(1, sizeof(*r));
    if (!r) {
        end(s, "out of memory");
        return;
    }
    r->server = s;
    trib_status_t st = ear->load(ear->arg, &r->settings, &r->err);
    if (st == TRIB_OK)
        st = quotas_read(&r->settings, &r->err, &r->quotas);
    if (st != TRIB_OK) {
        end(s, trib_error_text(&r->err));
        return;
    }
    r->task = (struct request_worker_task){.work = work, .done = done};
    request_worker_submit(s->request_worker, &r->task);
}
