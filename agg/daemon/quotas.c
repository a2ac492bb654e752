/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/daemon/quotas.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agg/protocol/auth.h"
#include "base/error.h"

/* "ana:3" */
static bool parse_user(char *text, struct quota_user *out)
{
    char *colon = strrchr(text, ':'), *end;

    if (!colon || colon == text || colon - text >= TRIB_JOB_NAME_BYTES ||
        !isdigit((unsigned char)colon[1]))
        return false;
    const unsigned long weight = strtoul(colon + 1, &end, 10);
    if (*end || weight < 1 || weight > TRIB_JOB_WEIGHT_MAX)
        return false;
    *out = (struct quota_user){.weight = (uint32_t)weight};
    memcpy(out->name, text, (size_t)(colon - text));
    return trib_jobs_name_ok(out->name);
}

static bool is_named(const struct quotas *q, const char *name)
{
    for (int i = 0; i < q->n_users; i++)
        if (strcmp(q->users[i].name, name) == 0)
            return true;
    return false;
}

static trib_status_t read_weights(const char *text, struct trib_error *err,
                                  struct quotas *q)
{
    char list[SETTINGS_TEXT_BYTES], *rest;

    snprintf(list, sizeof(list), "%s", text);
    for (char *word = strtok_r(list, ", ", &rest); word;
         word = strtok_r(NULL, ", ", &rest)) {
        assert(q->n_users < (int)(sizeof(q->users) / sizeof(q->users[0])));
        struct quota_user *user = &q->users[q->n_users];
        if (!parse_user(word, user))
            return trib_fail(
                err, TRIB_ERR_CONFIG,
                "weights: \"%s\" is not user:weight, with a weight of 1 to %d", word,
                TRIB_JOB_WEIGHT_MAX);
        if (is_named(q, user->name))
            return trib_fail(err, TRIB_ERR_CONFIG, "weights: user %s is named twice",
                             user->name);
        q->n_users++;
    }
    return TRIB_OK;
}

trib_status_t quotas_read(const struct settings *settings, struct trib_error *err,
                          struct quotas *out)
{
    memset(out, 0, sizeof(*out));
    out->unnamed =
        (struct trib_jobs_limits){.slots = settings->user_slots,
                                  .jobs = settings->user_jobs,
                                  .queued = settings->user_queue,
                                  .bytes = (uint64_t)settings->user_memory << 20};
    out->user = out->unnamed;
    if (!out->user.jobs)
        out->user.jobs = (settings->jobs + 1) / 2;
    if (!out->user.queued)
        out->user.queued = (settings->queue + 3) / 4;
    out->job = (struct trib_jobs_limits){.slots = settings->job_slots,
                                         .bytes = (uint64_t)settings->job_memory << 20};
    return read_weights(settings->weights, err, out);
}

bool quotas_is_unnamed(const char *user)
{
    return strcmp(user, trib_auth_name(TRIB_AUTH_KEY)) == 0 ||
           strcmp(user, trib_auth_name(TRIB_AUTH_NONE)) == 0;
}

/* trib_jobs_user can only fail with too many users, which quotas_read excludes. */
void quotas_apply(const struct quotas *quotas, struct trib_jobs *jobs)
{
    const struct trib_jobs_limits *unnamed = &quotas->unnamed;

    trib_jobs_limit(jobs, &quotas->user, &quotas->job);
    (void)trib_jobs_user(jobs, trib_auth_name(TRIB_AUTH_KEY), 1, unnamed, NULL);
    (void)trib_jobs_user(jobs, trib_auth_name(TRIB_AUTH_NONE), 1, unnamed, NULL);
    for (int i = 0; i < quotas->n_users; i++)
        (void)trib_jobs_user(
            jobs, quotas->users[i].name, quotas->users[i].weight,
            quotas_is_unnamed(quotas->users[i].name) ? unnamed : NULL, NULL);
}
