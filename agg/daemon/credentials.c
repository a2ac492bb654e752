/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/daemon/credentials.h"

#include <assert.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"

enum { USERS_MAX = 256 };

static trib_status_t find_users(const char *names, uid_t *users, size_t *n_out,
                                struct trib_error *err)
{
    char list[SETTINGS_TEXT_BYTES], *rest;

    *n_out = 0;
    snprintf(list, sizeof(list), "%s", names);
    for (char *name = strtok_r(list, ", ", &rest); name;
         name = strtok_r(NULL, ", ", &rest)) {
        const struct passwd *user = getpwnam(name);
        if (!user)
            return trib_fail(err, TRIB_ERR_CONFIG, "users: user %s does not exist",
                             name);
        if (*n_out == USERS_MAX)
            return trib_fail(err, TRIB_ERR_CONFIG, "users: more than %d", USERS_MAX);
        users[(*n_out)++] = user->pw_uid;
    }
    return TRIB_OK;
}

trib_status_t credentials_open(const struct settings *settings, struct trib_error *err,
                       struct credentials **out)
{
    uid_t users[USERS_MAX];
    struct trib_auth_opts opts = {
        .method = settings->auth,
        .key_file = settings->key,
        .previous_key_file = settings->key_previous,
        .users = users,
    };
    struct credentials *credentials = calloc(1, sizeof(*credentials));

    *out = NULL;
    if (!credentials)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "out of memory");
    trib_status_t st = find_users(settings->users, users, &opts.n_users, err);
    if (st == TRIB_OK)
        st = trib_auth_open(&opts, err, &credentials->auth);
    if (st != TRIB_OK) {
        free(credentials);
        return st;
    }
    credentials->held = 1;
    *out = credentials;
    return TRIB_OK;
}

void credentials_warn(const struct credentials *credentials,
                      const struct credentials *before, const struct settings *settings,
                      const struct trib_log *log)
{
    const struct trib_auth *auth = credentials->auth;
    const bool takes_key = trib_auth_takes(auth, TRIB_AUTH_KEY);

    assert(credentials->held > 0);
    if (settings->key_previous[0] && !takes_key)
        trib_log(log, TRIB_LOG_WARN, "tribd",
                 "key_previous has no effect: with auth = %s and key = %s jobs cannot "
                 "authenticate by key",
                 settings->auth, settings->key[0] ? settings->key : "(empty)");
    if (takes_key && trib_auth_repeats_key(auth))
        trib_log(log, TRIB_LOG_WARN, "tribd",
                 "key and key_previous contain the same key, so jobs with the previous "
                 "key are refused: set key_previous to the file of the previous key, "
                 "or clear it");
    if (before && trib_auth_takes(before->auth, TRIB_AUTH_MUNGE) &&
        !trib_auth_takes(auth, TRIB_AUTH_MUNGE) && trib_text_is_auto(settings->auth))
        trib_log(log, TRIB_LOG_WARN, "tribd",
                 "jobs can no longer authenticate by MUNGE because munged did not "
                 "answer: start munged, then send SIGHUP again");
}

struct credentials *credentials_hold(struct credentials *credentials)
{
    assert(credentials->held > 0);
    credentials->held++;
    return credentials;
}

void credentials_release(struct credentials *credentials)
{
    assert(!credentials || credentials->held > 0);
    if (!credentials || --credentials->held)
        return;
    trib_auth_free(credentials->auth);
    free(credentials);
}
