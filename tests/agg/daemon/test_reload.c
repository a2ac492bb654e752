/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SIGHUP arrives while the settings are being reloaded: they are reloaded once more,
 * unless the service drains. The finished reload is not used after it was freed.
 */
#include "tests/harness/tribtest.h"

#include <string.h>

#include "agg/daemon/server_parts.h"
#include "base/log.h"

static void free_poisoned(void *reload);

#define free(pointer) free_poisoned(pointer)
#include "agg/daemon/reload.c"
#undef free

static struct request_worker_task *queued; /* at the request worker */
static int applied;

static void free_poisoned(void *reload)
{
    if (reload)
        explicit_bzero(reload, sizeof(struct reload));
    free(reload);
}

void request_worker_submit(struct request_worker *worker,
                           struct request_worker_task *task)
{
    (void)worker;
    assert_null(queued);
    queued = task;
}

trib_status_t credentials_open(const struct settings *settings, struct trib_error *err,
                               struct credentials **out)
{
    static int credentials;

    (void)settings;
    (void)err;
    *out = (struct credentials *)(void *)&credentials;
    return TRIB_OK;
}

void credentials_release(struct credentials *credentials)
{
    (void)credentials;
}

void credentials_warn(const struct credentials *credentials,
                      const struct credentials *before, const struct settings *settings,
                      const struct trib_log *log)
{
    (void)credentials;
    (void)before;
    (void)settings;
    (void)log;
}

trib_status_t quotas_read(const struct settings *settings, struct trib_error *err,
                          struct quotas *out)
{
    (void)settings;
    (void)err;
    (void)out;
    return TRIB_OK;
}

void quotas_apply(const struct quotas *quotas, struct trib_jobs *jobs)
{
    (void)quotas;
    (void)jobs;
    applied++;
}

void settings_renew(struct settings *s, const struct settings *from, char *kept,
                    size_t bytes)
{
    (void)s;
    (void)from;
    snprintf(kept, bytes, "%s", "");
}

bool settings_level(const struct settings *s, trib_log_level_t *out)
{
    (void)s;
    *out = TRIB_LOG_ERROR;
    return true;
}

void settings_warn(const struct settings *s, const struct trib_log *log)
{
    (void)s;
    (void)log;
}

struct archive_limits server_disk(const struct settings *t)
{
    (void)t;
    return (struct archive_limits){.disk = 0};
}

void archive_limit(struct archive *archive, const struct archive_limits *limits)
{
    (void)archive;
    (void)limits;
}

void server_publish(struct server *s)
{
    (void)s;
}

void server_warn(const struct server *s)
{
    (void)s;
}

void systemd_notify(const char *state)
{
    (void)state;
}

void systemd_reloading(void)
{
}

static trib_status_t load(void *arg, struct settings *out, struct trib_error *err)
{
    (void)arg;
    (void)out;
    (void)err;
    return TRIB_OK;
}

/* Complete the task at the request worker; false: there is none. */
static bool complete(void)
{
    struct request_worker_task *task = queued;

    queued = NULL;
    if (!task)
        return false;
    task->work(task);
    task->worked = true;
    task->done(task);
    return true;
}

TEST(test_hup_during_a_reload)
{
    const struct server_ear ear = {.load = load};

    for (int drains = 0; drains < 2; drains++) {
        struct server s = {.n_clients = 0};
        trib_log_init(&s.log, TRIB_LOG_ERROR, NULL, NULL);
        applied = 0;
        for (int i = 0; i < 3; i++)
            reload_begin(&s, &ear);
        s.draining = drains;
        assert_true(complete());
        assert_int_equal(complete(), !drains);
        assert_false(complete());
        assert_int_equal(applied, drains ? 0 : 2);
        assert_null(s.reload);
    }
}
