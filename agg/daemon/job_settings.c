/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/daemon/job_settings.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "agg/daemon/aggregator.h"
#include "base/text.h"
#include "transport/open.h"

/* Timeout for a stopped peer, unless TRIB_STOP_TIMEOUT_MS is set. Its resources here
 * must be free within 5 s, even on a busy host that notices the stop late. */
enum { STOP_MS = 2000 };

/* Accept only plain backend names that are on the list. Decorators and parameters are
 * for tests and trusted ranks, and only listed backends withstand a hostile peer or are
 * the operator's responsibility. */
static trib_status_t check_transport(const char *text, size_t len,
                                     const char *transports, struct trib_error *err)
{
    char name[32];
    bool plain = len > 0;

    for (size_t i = 0; i < len; i++)
        plain &= (text[i] >= 'a' && text[i] <= 'z') || text[i] == '_';
    if (!plain)
        return trib_fail(err, TRIB_ERR_CONFIG,
                         "transport %.*s has decorators or parameters, which a service "
                         "does not accept from a job",
                         (int)(len < 60 ? len : 60), text);
    snprintf(name, sizeof(name), "%.*s", (int)len, text);
    if (len < sizeof(name) && trib_guard_lists(transports, name))
        return TRIB_OK;
    return trib_fail(
        err, TRIB_ERR_CONFIG,
        "transport %s is not allowed for jobs: the setting transports of this tribd "
        "allows %s",
        name, transports);
}

const char *job_settings_transports(const char *transports)
{
    return transports ? transports : AGGREGATOR_TRANSPORTS;
}

/* Return true for a transport that jobs may use, even if missing in this build. */
static bool known(const char *name)
{
    const struct trib_transport_ops *ops = trib_transport_find(name);

    return trib_text_is_auto(name) || (ops && trib_transport_links(ops)) ||
           trib_transport_absent(name);
}

bool job_settings_check_transports(const char *list, struct trib_error *err)
{
    char copy[sizeof(((struct aggregator *)0)->transports)], *rest;

    assert(list);
    if (strlen(list) >= sizeof(copy) || !list[strspn(list, ", ")])
        return trib_fail(
                   err, TRIB_ERR_CONFIG,
                   "transports is %s, so no job could use this service; the default is "
                   "%s",
                   list[0] ? "too long, or only commas" : "empty",
                   AGGREGATOR_TRANSPORTS) == TRIB_OK;
    snprintf(copy, sizeof(copy), "%s", list);
    for (char *name = strtok_r(copy, ", ", &rest); name;
         name = strtok_r(NULL, ", ", &rest)) {
        if (!known(name))
            return trib_fail(
                       err, TRIB_ERR_CONFIG,
                       "transports: %s is not available to jobs; use auto, shm, tcp, "
                       "verbs or ucx",
                       name) == TRIB_OK;
    }
    return true;
}

/* If this process sets TRIB_TRANSPORT, the job's transport is not used. */
bool job_settings_allow(const char *settings, const char *transports,
                        struct trib_error *err)
{
    const char *own = trib_config_environment("TRIB_TRANSPORT");

    if (own && own[0] && !trib_text_is_auto(own))
        return true;
    for (; *settings; settings += strspn(settings, " ")) {
        const size_t len = strcspn(settings, " ");
        if (strncmp(settings, "transport=", 10) == 0 &&
            check_transport(settings + 10, len - 10,
                            job_settings_transports(transports), err) != TRIB_OK)
            return false;
        settings += len;
    }
    return true;
}

/* Return true if the word is a single "name=…" of a setting that all ranks must
 * share. */
static bool takes_setting(const char *word, size_t len)
{
    const char *equals = memchr(word, '=', len);

    return equals && !memchr(word, ';', len) &&
           trib_config_is_same(word, (size_t)(equals - word));
}

/* Parse "key=SECRET " before the settings: ranks and aggregators authenticate with
 * it. */
static trib_status_t load_secret(struct aggregator *agg, const char **text,
                                 struct trib_error *err)
{
    const size_t digits = TRIB_SECRET_TEXT - 1;
    char why[160];

    if (strncmp(*text, "key=", 4) != 0)
        return TRIB_OK;
    if (strcspn(*text + 4, " ") != digits ||
        !trib_secret_parse(*text + 4, digits, &agg->secret))
        return trib_fail(err, TRIB_ERR_PROTOCOL, "the job's key is not a valid secret");
    if (!trib_secret_arm(&agg->secret, why, sizeof(why)))
        return trib_fail(
            err, TRIB_ERR_CONFIG,
            "this service cannot use the secret of the job's ranks: %s; install "
            "libsodium23",
            why);
    *text += 4 + digits;
    *text += strspn(*text, " ");
    return TRIB_OK;
}

/*
 * Load "transport=tcp algorithm=auto codec=…": the ranks' transport, unless this
 * service sets its own, and the settings that all ranks must share. Other settings are
 * local to this service.
 */
trib_status_t job_settings_load(struct aggregator *agg, const char *text,
                                struct trib_error *err)
{
    char list[TRIB_CONTROL_SETTINGS_MAX + 64], own[TRIB_CONFIG_TEXT_BYTES];
    size_t at = 0;

    trib_status_t st = load_secret(agg, &text, err);
    if (st == TRIB_OK)
        st = trib_config_load(&agg->cfg, NULL, &agg->log, err);
    if (st != TRIB_OK)
        return st;
    snprintf(own, sizeof(own), "%s", agg->cfg.transport);
    if (!job_settings_allow(text, agg->transports, err))
        return TRIB_ERR_CONFIG;
    while (*text) {
        const size_t len = strcspn(text, " ");
        const bool transport = strncmp(text, "transport=", 10) == 0;
        if (len && !transport && !takes_setting(text, len))
            return trib_fail(
                err, TRIB_ERR_CONFIG,
                "a service does not accept the setting \"%.*s\" from a job",
                (int)(len < 60 ? len : 60), text);
        if (len && at + len + 2 < sizeof(list) &&
            !(transport && !trib_text_is_auto(own)) &&
            strncmp(text, "service=", 8) != 0) {
            memcpy(list + at, text, len);
            at += len;
            list[at++] = ';';
        }
        text += len + strspn(text + len, " ");
    }
    list[at] = 0;
    st = trib_config_load(&agg->cfg, list, &agg->log, err);
    /* The slot count depends on the chunk size. If a job does not set it, use this
     * service's value, and mark it as explicit so that the wireup does not enlarge
     * it. */
    agg->cfg.origin[TRIB_CONFIG_ROW_chunk] = TRIB_ORIGIN_API;
    if (agg->cfg.origin[TRIB_CONFIG_ROW_stop_timeout_ms] == TRIB_ORIGIN_DEFAULT)
        agg->cfg.stop_timeout_ms = STOP_MS;
    return st;
}

/* Bind data ports to the networks of `listen`, unless this service's TRIB_TRANSPORT
 * sets net=. */
void job_settings_bind_to(struct aggregator *agg, const char *net)
{
    char text[TRIB_CONFIG_TEXT_BYTES], name[32], *transport = agg->cfg.transport;
    const size_t len = strcspn(transport, ":");
    struct trib_error err = {0};

    snprintf(name, sizeof(name), "%.*s", (int)len, transport);
    const struct trib_transport_ops *ops = trib_transport_find(name);
    if (!net || !net[0] || !ops || !ops->nets || strchr(transport, '+') ||
        strstr(transport, "net="))
        return;
    const int bytes = snprintf(text, sizeof(text), "%s%snet=%s,all_devices=1",
                               transport, transport[len] ? "," : ":", net);
    if (bytes >= (int)sizeof(text))
        return;
    /* Addresses of RDMA devices need not be in the networks of `listen`. Transports
     * without such devices have no such parameter. */
    if (trib_transport_check(text, &err) != TRIB_OK)
        text[bytes - (int)strlen(",all_devices=1")] = '\0';
    memcpy(transport, text, sizeof(text));
}
