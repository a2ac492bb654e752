/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/protocol/auth_methods.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"

const struct trib_auth_method_ops *const trib_auth_methods[TRIB_AUTH_METHODS] = {
    &trib_auth_munge,
    &trib_auth_key,
    &trib_auth_none,
};

const char *trib_auth_name(enum trib_auth_method method)
{
    for (size_t i = 0; i < TRIB_AUTH_METHODS; i++)
        if (trib_auth_methods[i]->number == method)
            return trib_auth_methods[i]->name;
    return "unknown";
}

const char *trib_auth_offered(unsigned offer, char *text, size_t bytes)
{
    assert(bytes > 0);
    text[0] = '\0';
    for (size_t i = 0; i < TRIB_AUTH_METHODS; i++)
        if (offer & 1u << trib_auth_methods[i]->number)
            trib_text_append(text, bytes, "%s%s", text[0] ? ", " : "",
                             trib_auth_methods[i]->name);
    return text[0] ? text : "methods newer than this version";
}

const struct trib_auth_method_ops trib_auth_none = {
    .name = "none",
    .number = TRIB_AUTH_NONE,
};

/* Choice of methods ---------------------------------------------------------------- */

static trib_status_t open_one(struct trib_auth *auth,
                              const struct trib_auth_method_ops *method,
                              const struct trib_auth_opts *opts, struct trib_error *err)
{
    trib_status_t status = TRIB_OK;

    assert(!(auth->offer & 1u << method->number)); /* opened once */
    if (method->proves && !auth->crypt)
        status = trib_crypt_open(err, &auth->crypt);
    if (status == TRIB_OK && method->open)
        status = method->open(auth, opts, err);
    if (status == TRIB_OK)
        auth->offer |= 1u << method->number;
    return status;
}

/* Open every available method that proves something. A configuration error in one
 * method is reported even if another method works. */
static trib_status_t open_auto(struct trib_auth *auth,
                               const struct trib_auth_opts *opts,
                               struct trib_error *err)
{
    char why[512] = "";

    for (size_t i = 0; i < TRIB_AUTH_METHODS; i++) {
        struct trib_error one = {.status = TRIB_OK};
        if (!trib_auth_methods[i]->proves)
            continue;
        trib_status_t status = open_one(auth, trib_auth_methods[i], opts, &one);
        if (status != TRIB_OK && status != TRIB_ERR_UNSUPPORTED)
            return trib_fail(err, status, "%s", trib_error_text(&one));
        if (status != TRIB_OK)
            trib_text_append(why, sizeof(why), "%s%s", why[0] ? "; or: " : "",
                             trib_error_text(&one));
    }
    if (auth->offer)
        return TRIB_OK;
    return trib_fail(err, TRIB_ERR_CONFIG, "no authentication method is available: %s",
                     why);
}

static trib_status_t open_named(struct trib_auth *auth,
                                const struct trib_auth_opts *opts,
                                struct trib_error *err)
{
    const char *names[TRIB_AUTH_METHODS + 1] = {TRIB_AUTO};

    for (size_t i = 0; i < TRIB_AUTH_METHODS; i++) {
        names[i + 1] = trib_auth_methods[i]->name;
        if (strcmp(opts->method, names[i + 1]))
            continue;
        trib_status_t status = open_one(auth, trib_auth_methods[i], opts, err);
        return status == TRIB_ERR_UNSUPPORTED ? TRIB_ERR_CONFIG : status;
    }
    const char *near = trib_text_nearest(opts->method, names, TRIB_AUTH_METHODS + 1);
    return trib_fail(
        err, TRIB_ERR_CONFIG,
        "unknown authentication method \"%.32s\"%s%s%s: use auto, munge, key or none",
        opts->method, near ? ", did you mean \"" : "", near ? near : "",
        near ? "\"?" : "");
}

static bool copy_users(struct trib_auth *auth, const struct trib_auth_opts *opts)
{
    if (opts->n_users == 0)
        return true;
    auth->users = calloc(opts->n_users, sizeof(*auth->users));
    if (!auth->users)
        return false;
    memcpy(auth->users, opts->users, opts->n_users * sizeof(*auth->users));
    auth->n_users = opts->n_users;
    return true;
}

trib_status_t trib_auth_open(const struct trib_auth_opts *opts, struct trib_error *err,
                             struct trib_auth **out)
{
    struct trib_auth *auth = calloc(1, sizeof(*auth));

    assert(opts->method && (opts->users || !opts->n_users));
    if (!auth || !copy_users(auth, opts)) {
        trib_auth_free(auth);
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "out of memory in agg");
    }
    trib_status_t status = trib_text_is_auto(opts->method)
                               ? open_auto(auth, opts, err)
                               : open_named(auth, opts, err);
    if (status != TRIB_OK) {
        trib_auth_free(auth);
        return status;
    }
    *out = auth;
    return TRIB_OK;
}

bool trib_auth_takes(const struct trib_auth *auth, enum trib_auth_method method)
{
    return auth->offer & 1u << method;
}

void trib_auth_free(struct trib_auth *auth)
{
    if (!auth)
        return;
    for (size_t i = 0; i < TRIB_AUTH_METHODS; i++)
        if (trib_auth_methods[i]->close)
            trib_auth_methods[i]->close(auth);
    trib_crypt_free(auth->crypt);
    free(auth->users);
    free(auth);
}
