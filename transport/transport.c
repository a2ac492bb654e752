/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/transport.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/text.h"
#include "build-config.h"
#include "transport/backends.h"
#include "transport/decorators.h"

#define TEXT_MAX 256
#define NAMES_MAX 16

const struct trib_transport_ops *const trib_transports[] = {
    &trib_shm_ops,
    &trib_tcp_ops,
#if HAVE_VERBS
    &trib_verbs_ops,
#endif
    &trib_loop_ops,
    NULL,
};

void *trib_no_map(struct trib_transport *t, const struct trib_remote *remote)
{
    (void)t;
    (void)remote;
    return NULL;
}

void trib_no_arm(struct trib_transport *t)
{
    (void)t;
}

void trib_no_wait(struct trib_transport *t, int timeout_us)
{
    int us = timeout_us < 50 ? timeout_us : 50;
    struct timespec ts = {0, us * 1000L};

    (void)t;
    if (us > 0)
        nanosleep(&ts, NULL);
}

void trib_no_wake(struct trib_transport *t, int peer)
{
    (void)t;
    (void)peer;
}

/* Cuts one part off "name:params+name:params" and returns what follows. */
static char *cut_part(char *text, char **params_out)
{
    char *rest = strchr(text, '+');

    if (rest)
        *rest++ = '\0';
    char *colon = strchr(text, ':');
    if (colon)
        *colon++ = '\0';
    *params_out = colon ? colon : text + strlen(text);
    return rest;
}

static trib_status_t unknown(struct trib_error *err, const char *what, const char *name,
                             const char *const *names, size_t n)
{
    const char *nearest = trib_text_nearest(name, names, n);
    char list[128] = "";

    if (!HAVE_VERBS && strcmp(name, "verbs") == 0)
        return trib_fail(err, TRIB_ERR_UNSUPPORTED,
                         "this build of Tributary is without verbs: install libibverbs-dev "
                         "and librdmacm-dev and build it again, or use tcp");
    if (nearest)
        return trib_fail(err, TRIB_ERR_CONFIG,
                         "no %s is called \"%s\"; is \"%s\" meant?", what, name,
                         nearest);
    for (size_t i = 0; i < n; i++) {
        strncat(list, i ? ", " : "", sizeof(list) - strlen(list) - 1);
        strncat(list, names[i], sizeof(list) - strlen(list) - 1);
    }
    return trib_fail(err, TRIB_ERR_CONFIG, "no %s is called \"%s\"; there are %s", what,
                     name, list);
}

/* The first that opens. The sentence of the last that did not stays if none does. */
static trib_status_t open_auto(const struct trib_transport_opts *opts,
                               struct trib_transport **out)
{
    trib_status_t status = TRIB_ERR_UNSUPPORTED;

    if (opts->params[0])
        return trib_fail(opts->err, TRIB_ERR_CONFIG,
                         "auto takes no parameters, not \"%s\"", opts->params);
    for (size_t i = 0; trib_transports[i]; i++) {
        trib_error_clear(opts->err);
        status = trib_transports[i]->open(opts, out);
        if (status == TRIB_OK)
            break;
    }
    return status;
}

static trib_status_t open_backend(const char *name,
                                  const struct trib_transport_opts *opts,
                                  struct trib_transport **out)
{
    const char *names[NAMES_MAX] = {"auto"};
    size_t n = 1;

    if (strcmp(name, "auto") == 0)
        return open_auto(opts, out);
    for (size_t i = 0; trib_transports[i]; i++) {
        if (strcmp(name, trib_transports[i]->name) == 0)
            return trib_transports[i]->open(opts, out);
        if (n < NAMES_MAX)
            names[n++] = trib_transports[i]->name;
    }
    return unknown(opts->err, "transport", name, names, n);
}

static trib_status_t wrap(const char *name, const struct trib_transport_opts *opts,
                          struct trib_transport *inner, struct trib_transport **out)
{
    const char *names[NAMES_MAX];
    size_t n = 0;

    for (const struct trib_decorator *d = trib_decorators; d->name; d++) {
        if (strcmp(name, d->name) == 0)
            return d->wrap(opts, inner, out);
        if (n < NAMES_MAX)
            names[n++] = d->name;
    }
    return unknown(opts->err, "transport decorator", name, names, n);
}

trib_status_t trib_transport_open(const char *text,
                                  const struct trib_transport_opts *opts,
                                  struct trib_transport **out)
{
    struct trib_transport_opts part = *opts;
    struct trib_transport *t = NULL;
    char copy[TEXT_MAX];
    char *params;
    size_t len = strlen(text);

    if (opts->size < 1 || opts->self < 0 || opts->self >= opts->size)
        return trib_fail(opts->err, TRIB_ERR_INVALID, "peer %d of %d cannot be",
                         opts->self, opts->size);
    if (len >= sizeof(copy))
        return trib_fail(opts->err, TRIB_ERR_CONFIG,
                         "the transport text has %zu characters, at most %d are read",
                         len, TEXT_MAX - 1);
    memcpy(copy, text, len + 1);

    char *name = copy;
    char *rest = cut_part(name, &params);
    part.params = params;
    trib_status_t status = open_backend(name, &part, &t);
    while (status == TRIB_OK && rest) {
        name = rest;
        rest = cut_part(name, &params);
        part.params = params;
        status = wrap(name, &part, t, &t);
    }
    if (status != TRIB_OK) {
        if (t)
            t->ops->close(t);
        return status;
    }
    *out = t;
    return TRIB_OK;
}
