/* SPDX-License-Identifier: BSD-3-Clause */
/* Weights and limits of users and jobs, from the settings. */
#ifndef AGG_DAEMON_QUOTAS_H
#define AGG_DAEMON_QUOTAS_H

#include "agg/daemon/tribd_settings.h"
#include "agg/jobs/jobs.h"

#define QUOTAS_USERS_MAX (SETTINGS_TEXT_BYTES / 4) /* "a:1," */

struct quota_user {
    char name[TRIB_JOB_NAME_BYTES];
    uint32_t weight;
};

struct quotas {
    struct trib_jobs_limits user, job;
    struct trib_jobs_limits unnamed; /* for methods without user names */
    struct quota_user users[QUOTAS_USERS_MAX];
    int n_users;
};

/** quotas_read - read them from the settings; TRIB_ERR_CONFIG: the invalid entry of
 * `weights`, and why. */
trib_status_t quotas_read(const struct settings *settings, struct trib_error *err,
                          struct quotas *out);

/** quotas_is_unnamed - return true for the pseudo user of a method without user
 * names. */
bool quotas_is_unnamed(const char *user);

/** quotas_apply - replace the limits of the table; they apply to later and to queued
 * jobs. */
void quotas_apply(const struct quotas *quotas, struct trib_jobs *jobs);

#endif
