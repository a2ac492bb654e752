/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Method, key and users by which tribd authenticates jobs. They may be reloaded; a
 * connection keeps those with which it started. Server thread only.
 */
#ifndef AGG_DAEMON_CREDENTIALS_H
#define AGG_DAEMON_CREDENTIALS_H

#include "agg/daemon/tribd_settings.h"
#include "agg/protocol/auth.h"
#include "base/log.h"

struct credentials {
    struct trib_auth *auth;
    int held;
};

/** credentials_open - load them from the settings, with one reference; errors:
 * TRIB_ERR_CONFIG. */
trib_status_t credentials_open(const struct settings *settings, struct trib_error *err,
                       struct credentials **out);

/**
 * credentials_warn - log a warning if these credentials refuse jobs that the settings
 * seem to admit.
 *
 * before   replaced credentials, or NULL
 */
void credentials_warn(const struct credentials *credentials,
                      const struct credentials *before, const struct settings *settings,
                      const struct trib_log *log);

struct credentials *credentials_hold(struct credentials *credentials);

/** credentials_release - drop a reference and free the object with the last one; NULL
 * is allowed. */
void credentials_release(struct credentials *credentials);

#endif
