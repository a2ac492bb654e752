/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/open.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/error.h"
#include "base/text.h"
#include "build-config.h"
#include "transport/backends.h"
#include "transport/decorators/decorators.h"
#include "transport/params.h"

#define TEXT_MAX 256
#define NAMES_MAX 16

#if HAVE_VERBS
#define VERBS(X) X(verbs)
#else
#define VERBS(X)
#endif
#if HAVE_UCX
#define UCX(X) X(ucx)
#else
#define UCX(X)
#endif

/* Transports, in display order. */
/* clang-format off */
#define TRANSPORTS(X) \
    X(auto) \
    X(shm) \
    X(tcp) \
    VERBS(X) \
    UCX(X) \
    X(multirail) \
    X(loop)
/* clang-format on */

#define DECLARE(name) extern const struct trib_transport_ops trib_##name##_ops;
TRANSPORTS(DECLARE)

#define ROW(name) &trib_##name##_ops,
const struct trib_transport_ops *const trib_transports[] = {TRANSPORTS(ROW) NULL};

const struct trib_absent trib_absents[] = {
#if !HAVE_VERBS
    {"verbs", "install libibverbs-dev and librdmacm-dev and rebuild"},
#endif
#if !HAVE_UCX
    {"ucx", "install libucx-dev and rebuild"},
#endif
    {NULL, NULL},
};

const char *trib_transport_absent(const char *name)
{
    const struct trib_absent *a = trib_absents;

    while (a->name && strcmp(a->name, name) != 0)
        a++;
    return a->cure;
}

#if HAVE_VERBS
static const char *const passed_to_verbs[] = {
    "device",        "rails",     "gid",   "roce",        "connect",
    "traffic_class", "sl",        "pkey",  "hop_limit",   "ack_timeout",
    "retry_count",   "rnr_retry", "qps",   "all_devices", "depth",
    "receives",      "reconnect", "cache", NULL};
#endif

/* Candidates for "auto", in order of cost. */
const struct trib_candidate trib_candidates[] = {
    {.ops = &trib_shm_ops, .id = 1, .maps = true},
#if HAVE_VERBS
    /* If a peer does not answer within 4 s, "auto" uses another backend. */
    {.ops = &trib_verbs_ops,
     .id = 2,
     .ports = true,
     .watch = true,
     .more = ",reach_ms=4000",
     .passed = passed_to_verbs},
#endif
    {.ops = &trib_tcp_ops, .id = 3, .ports = true, .watch = true, .cheap = true},
    {.ops = NULL},
};

/* Cut the first part off "name:params+name:params" and return the rest. */
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
    const char *cure = trib_transport_absent(name);
    char list[128] = "";

    if (cure)
        return trib_fail(err, TRIB_ERR_UNSUPPORTED,
                         "this build of Tributary lacks %s: %s, or use tcp", name,
                         cure);
    if (nearest)
        return trib_fail(err, TRIB_ERR_CONFIG,
                         "no %s is called \"%s\"; did you mean \"%s\"?", what, name,
                         nearest);
    for (size_t i = 0; i < n; i++) {
        strncat(list, i ? ", " : "", sizeof(list) - strlen(list) - 1);
        strncat(list, names[i], sizeof(list) - strlen(list) - 1);
    }
    return trib_fail(err, TRIB_ERR_CONFIG, "no %s is called \"%s\"; available: %s",
                     what, name, list);
}

const struct trib_transport_ops *trib_transport_find(const char *name)
{
    size_t i = 0;

    while (trib_transports[i] && strcmp(trib_transports[i]->name, name) != 0)
        i++;
    return trib_transports[i];
}

static trib_status_t find_backend(const char *name, struct trib_error *err,
                                  const struct trib_transport_ops **out)
{
    const char *names[NAMES_MAX];
    size_t n = 0;

    *out = trib_transport_find(name);
    if (*out)
        return TRIB_OK;
    for (; trib_transports[n] && n < NAMES_MAX; n++)
        names[n] = trib_transports[n]->name;
    return unknown(err, "transport", name, names, n);
}

static trib_status_t find_decorator(const char *name, struct trib_error *err,
                                    const struct trib_decorator **out)
{
    const char *names[NAMES_MAX];
    size_t n = 0;

    for (const struct trib_decorator *d = trib_decorators; d->name; d++) {
        *out = d;
        if (strcmp(name, d->name) == 0)
            return TRIB_OK;
        if (n < NAMES_MAX)
            names[n++] = d->name;
    }
    return unknown(err, "transport decorator", name, names, n);
}

static trib_status_t open_backend(const char *name,
                                  const struct trib_transport_opts *opts,
                                  struct trib_transport **out)
{
    const struct trib_transport_ops *ops;
    struct trib_transport_opts with = *opts;
    trib_status_t status = find_backend(name, opts->err, &ops);

    with.candidates = trib_candidates;
    if (status == TRIB_OK && ops->bare && opts->cfg && opts->cfg->seal)
        return trib_fail(
            opts->err, TRIB_ERR_CONFIG,
            "TRIB_SEAL=1: %s cannot encrypt its traffic; use tcp, or auto, which then "
            "uses tcp between hosts, or unset TRIB_SEAL",
            name);
    return status == TRIB_OK ? ops->open(&with, out) : status;
}

static trib_status_t decorate(const char *name, const struct trib_transport_opts *opts,
                              struct trib_transport *inner, struct trib_transport **out)
{
    const struct trib_decorator *decorator = NULL;
    trib_status_t status = find_decorator(name, opts->err, &decorator);

    return status == TRIB_OK ? trib_decorate(decorator, opts, inner, out) : status;
}

static trib_status_t copy_text(const char *text, struct trib_error *err,
                               char copy[TEXT_MAX])
{
    size_t len = strlen(text);

    if (len >= TEXT_MAX)
        return trib_fail(err, TRIB_ERR_CONFIG,
                         "the transport text has %zu characters, but the limit is %d",
                         len, TEXT_MAX - 1);
    if (strchr(text, TRIB_PARAMS_CHECK))
        return trib_fail(err, TRIB_ERR_CONFIG,
                         "the transport text contains the control character \\%03o",
                         TRIB_PARAMS_CHECK);
    memcpy(copy, text, len + 1);
    return TRIB_OK;
}

/* Validate parameters only: open() parses them first and stops at TRIB_PARAMS_CHECK. */
static trib_status_t check_params(const char *name, bool decorator,
                                  struct trib_transport_opts *opts, const char *params)
{
    struct trib_transport *t = NULL;
    char text[TEXT_MAX + 1];

    snprintf(text, sizeof(text), "%c%s", TRIB_PARAMS_CHECK, params);
    opts->params = text;
    trib_status_t status =
        decorator ? decorate(name, opts, NULL, &t) : open_backend(name, opts, &t);
    assert(status != TRIB_OK && !t);
    return status == TRIB_INPROGRESS ? TRIB_OK : status;
}

/* Keep of the parameters of "auto" those that it passes on to a backend. */
static void keep_passed(const struct trib_transport_ops *ops, char *params,
                        char passed[TEXT_MAX])
{
    static const char *const net[] = {"net", NULL};
    const struct trib_candidate *row = trib_candidates;
    char nets[TEXT_MAX];

    passed[0] = '\0';
    while (row->ops && row->ops != ops)
        row++;
    if (row->ops && row->passed)
        trib_params_split(params, row->passed, passed, TEXT_MAX);
    if (!row->ops || !row->ports)
        return;
    trib_params_split(params, net, nets, sizeof(nets));
    trib_text_append(passed, TEXT_MAX, "%s%s", *passed && *nets ? "," : "", nets);
}

void trib_transport_devices(const struct trib_transport_ops *ops, const char *transport,
                            char *text, size_t bytes)
{
    char copy[TEXT_MAX], passed[TEXT_MAX] = "";
    char *params = passed;

    if (copy_text(transport, NULL, copy) == TRIB_OK) {
        (void)cut_part(copy, &params);
        if (strcmp(copy, trib_auto_ops.name) == 0)
            keep_passed(ops, params, passed);
        if (strcmp(copy, ops->name) != 0)
            params = passed;
    }
    ops->devices(params, text, bytes);
}

trib_status_t trib_transport_check(const char *text, struct trib_error *err)
{
    struct trib_transport_opts opts = {.size = 1, .err = err};
    char copy[TEXT_MAX];
    char *params;
    trib_status_t status = copy_text(text, err, copy);

    if (status != TRIB_OK)
        return status;
    char *rest = cut_part(copy, &params);
    status = check_params(copy, false, &opts, params);
    while (status == TRIB_OK && rest) {
        char *name = rest;
        rest = cut_part(name, &params);
        status = check_params(name, true, &opts, params);
    }
    return status;
}

trib_status_t trib_transport_open(const char *text,
                                  const struct trib_transport_opts *opts,
                                  struct trib_transport **out)
{
    struct trib_transport_opts part = *opts;
    struct trib_transport *t = NULL;
    char copy[TEXT_MAX];
    char *params;

    if (opts->size < 1 || opts->self < 0 || opts->self >= opts->size)
        return trib_fail(opts->err, TRIB_ERR_INVALID, "invalid peer number %d of %d",
                         opts->self, opts->size);
    trib_status_t status = copy_text(text, opts->err, copy);
    if (status != TRIB_OK)
        return status;

    char *name = copy;
    char *rest = cut_part(name, &params);
    part.params = params;
    status = open_backend(name, &part, &t);
    while (status == TRIB_OK && rest) {
        name = rest;
        rest = cut_part(name, &params);
        part.params = params;
        status = decorate(name, &part, t, &t);
    }
    if (status != TRIB_OK) {
        if (t)
            t->ops->close(t);
        return status;
    }
    t->err = opts->err;
    *out = t;
    return TRIB_OK;
}
