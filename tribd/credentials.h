/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whom tribd takes: its method, key and list of users, which may be changed while it
 * runs. Each connection holds the one by which it began, until it ends. The server's
 * thread alone.
 */
#ifndef TRIBD_CREDENTIALS_H
#define TRIBD_CREDENTIALS_H

#include "agg/protocol/auth.h"
#include "tribd/tribd_settings.h"

struct who {
    struct trib_auth *auth;
    int held;
};

/** who_open - as the settings have it, held once; errors: TRIB_ERR_CONFIG, in err. */
trib_status_t who_open(const struct settings *settings, struct trib_error *err,
                       struct who **out);

struct who *who_hold(struct who *who);

/** who_drop - NULL is allowed; the last one frees it. */
void who_drop(struct who *who);

#endif
