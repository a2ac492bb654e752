/* SPDX-License-Identifier: BSD-3-Clause */
/* The weights and limits of users and jobs, read from the settings. */
#ifndef TRIBD_QUOTAS_H
#define TRIBD_QUOTAS_H

#include "agg/jobs/jobs.h"
#include "tribd/tribd_settings.h"

#define QUOTAS_USERS_MAX (SETTINGS_TEXT_BYTES / 4) /* "a:1," */

struct quota_user {
    char name[TRIB_JOB_NAME_BYTES];
    uint32_t weight;
};

struct quotas {
    struct trib_jobs_limits user, job;
    struct trib_jobs_limits unnamed; /* limits of all who come by a method that names no
                                      * users */
    struct quota_user users[QUOTAS_USERS_MAX];
    int n_users;
};

/** quotas_read - errors TRIB_ERR_CONFIG: which entry of `weights` is wrong, and how. */
trib_status_t quotas_read(const struct settings *settings, struct trib_error *err,
                          struct quotas *out);

/** quotas_is_unnamed - true for the name of all who come by a method that names no
 * users. */
bool quotas_is_unnamed(const char *user);

/** quotas_apply - replace the limits of the table; jobs that ask later are measured by
 * them. */
void quotas_apply(const struct quotas *quotas, struct trib_jobs *jobs);

#endif
