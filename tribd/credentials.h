/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The method, the key and the list of users by which tribd admits jobs. They may change
 * while it runs: a connection keeps those with which it began. For the server's thread
 * alone.
 */
#ifndef TRIBD_CREDENTIALS_H
#define TRIBD_CREDENTIALS_H

#include "agg/protocol/auth.h"
#include "base/log.h"
#include "tribd/tribd_settings.h"

struct credentials {
    struct trib_auth *auth;
    int held;
};

/** credentials_open - read them as the settings say, with one reference; errors:
 * TRIB_ERR_CONFIG, in err. */
trib_status_t credentials_open(const struct settings *settings, struct trib_error *err,
                       struct credentials **out);

/**
 * credentials_warn - log a warning if these credentials refuse jobs that the settings
 * seem to admit.
 *
 * before   credentials that these replace, or NULL
 */
void credentials_warn(const struct credentials *credentials,
                      const struct credentials *before, const struct settings *settings,
                      const struct trib_log *log);

struct credentials *credentials_hold(struct credentials *credentials);

/** credentials_release - NULL is allowed; the last one frees it. */
void credentials_release(struct credentials *credentials);

#endif
