/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists of the capabilities of this build and machine.
 */
#include "base/config_report.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

#include "base/config.h"
#include "base/cpu.h"
#include "base/meminfo.h"
#include "base/release.h"
#include "boot/boot.h"
#include "boot/launcher.h"
#include "comm/core/comm_setup.h"
#include "comm/core/communicator.h"
#include "comm/life/settings.h"
#include "comm/plan/auto_choice.h"
#include "compress/codec_info.h"
#include "topo/machine.h"
#include "transport/open.h"

const char *trib_version(void)
{
    return trib_release;
}

struct sink {
    trib_item_fn fn;
    void *arg;
};

/* Omitted strings are passed as "", never NULL. */
static void give_item(const struct sink *s, trib_item_t item)
{
    const char **texts[] = {&item.value, &item.detail, &item.origin, &item.unit,
                            &item.fault};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (!*texts[i])
            *texts[i] = "";
    s->fn(s->arg, &item);
}

static void give(const struct sink *s, const char *name, const char *value,
                 const char *detail)
{
    give_item(s, (trib_item_t){.name = name, .value = value, .detail = detail});
}

static void list_transports(const struct sink *s)
{
    struct trib_config cfg;
    struct trib_config_faults faults;
    char devices[1024];

    trib_config_examine(&cfg, NULL, &faults);
    for (int i = 0; trib_transports[i]; i++) {
        trib_transport_devices(trib_transports[i], cfg.transport, devices,
                               sizeof(devices));
        give(s, trib_transports[i]->name, devices, trib_transports[i]->detail);
    }
    for (const struct trib_absent *a = trib_absents; a->name; a++) {
        snprintf(devices, sizeof(devices), "not in this build: %s", a->cure);
        give_item(s, (trib_item_t){.name = a->name, .fault = devices});
    }
}

static void list_algorithms(const struct sink *s)
{
    for (int i = 0; trib_algos[i]; i++) {
        char colls[128] = "";
        for (int c = 0; c < TRIB_COLL_COUNT; c++) {
            size_t n = strlen(colls);
            if (trib_algos[i]->colls >> c & 1)
                snprintf(colls + n, sizeof(colls) - n, "%s%s%s", n ? " " : "",
                         trib_coll_name((trib_coll_t)c),
                         trib_algos[i]->merges && c == TRIB_ALLREDUCE ? "(pairs)" : "");
        }
        give(s, trib_algos[i]->name, colls, trib_algos[i]->detail);
    }
}

static void list_codecs(const struct sink *s)
{
    for (size_t i = 0; i < trib_codecs_count; i++)
        give(s, trib_codecs[i].name, trib_codecs[i].grammar, trib_codecs[i].detail);
}

static void list_boots(const struct sink *s)
{
    for (int i = 0; trib_boots[i]; i++)
        give(s, trib_boots[i]->name, "", trib_boots[i]->detail);
    for (int i = 0; trib_launchers[i]; i++)
        give(s, trib_launchers[i]->name, "", trib_launchers[i]->detail);
}

struct settings {
    const struct sink *sink;
    struct trib_config cfg;
    struct trib_config_faults faults;
    int row; /* the next row */
};

static void give_setting(void *arg, const struct trib_config_item *c)
{
    struct settings *s = arg;
    int row = s->row++;

    give_item(s->sink, (trib_item_t){.name = c->variable,
                                     .value = s->faults.unread[row] ? "" : c->value,
                                     .detail = c->doc,
                                     .origin = c->origin,
                                     .unit = c->unit,
                                     .fault = s->faults.row[row]});
}

static void give_unknown(void *arg, const char *variable, const char *value,
                         const char *text)
{
    const struct settings *s = arg;

    give_item(s->sink, (trib_item_t){.name = variable,
                                     .value = value,
                                     .detail = text,
                                     .origin = "environment"});
}

static void give_file(const struct settings *s)
{
    const char *file = trib_config_variable("TRIB_CONFIG_FILE");

    if (file)
        give_item(s->sink, (trib_item_t){.name = "TRIB_CONFIG_FILE",
                                         .value = file,
                                         .detail = "settings file",
                                         .origin = "environment",
                                         .fault = s->faults.other});
}

static const char *first_fault(const struct trib_config_faults *faults)
{
    for (int i = 0; i < TRIB_CONFIG_ROWS; i++)
        if (faults->row[i][0])
            return faults->row[i];
    return faults->other;
}

static trib_status_t list_config(const struct sink *sink)
{
    struct settings s = {.sink = sink};

    trib_config_examine(&s.cfg, NULL, &s.faults);
    bool well = trib_settings_check(&s.cfg, &s.faults);
    trib_launch_note(&s.cfg);
    trib_config_each(&s.cfg, give_setting, &s);
    give_file(&s);
    trib_config_unknown(give_unknown, &s);
    if (well)
        return TRIB_OK;
    trib_say_error(first_fault(&s.faults));
    return TRIB_ERR_CONFIG;
}

static void list_edge(const struct sink *s, const struct trib_config *cfg, bool mapped,
                      const char *name, const char *detail)
{
    char value[32] = "";

    if (cfg)
        snprintf(value, sizeof(value), "%zu",
                 trib_link_bytes((uint32_t)cfg->window, cfg->chunk, mapped) / 1024);
    give_item(
        s, (trib_item_t){
               .name = name,
               .value = value,
               .detail = cfg ? detail : "unknown: TRIB_CHUNK or TRIB_WINDOW is invalid",
               .unit = cfg ? "KiB" : ""});
}

static void list_free_memory(const struct sink *s)
{
    char value[32] = "", limit[32] = "none", detail[TRIB_CGROUP_FILE_BYTES + 64];
    struct trib_meminfo m;

    trib_meminfo_read("", &m);
    const bool group = trib_meminfo_of_group(&m), known = m.known || group;
    if (known)
        snprintf(value, sizeof(value), "%llu",
                 (unsigned long long)(group ? m.group_left : m.host) / 1024);
    give_item(s, (trib_item_t){.name = "memory free",
                               .value = value,
                               .detail = group ? "of this process's control group, "
                                                 "currently, including swap"
                                         : known
                                             ? "of this host, currently, including swap"
                                             : "unknown: there is no /proc/meminfo",
                               .unit = known ? "KiB" : ""});
    if (m.group.limited) {
        snprintf(limit, sizeof(limit), "%llu",
                 (unsigned long long)m.group.limit / 1024);
        snprintf(detail, sizeof(detail), "of the control group, from %s", m.group.file);
    }
    give_item(s, (trib_item_t){.name = "memory limit",
                               .value = limit,
                               .detail = m.group.limited
                                             ? detail
                                             : "no control group limits this process",
                               .unit = m.group.limited ? "KiB" : ""});
}

/* Only slots grow with the number of peers, so list their maximum. */
static void list_memory(const struct sink *s)
{
    struct trib_config cfg;
    struct trib_config_faults faults;
    const struct trib_config *known = &cfg;

    trib_config_examine(&cfg, NULL, &faults);
    if (faults.unread[TRIB_CONFIG_ROW_chunk] || faults.unread[TRIB_CONFIG_ROW_window])
        known = NULL;
    list_edge(s, known, true, "slots per link", "within a host, maximum on each side");
    list_edge(s, known, false, "to another host", "maximum on each side");
    list_free_memory(s);
}

static void list_cpu(const struct sink *s)
{
    char features[256];

    trib_cpu_features(features, sizeof(features));
    give(s, "vector instructions", features, "found on this CPU");
    give(s, "kernels", trib_kernels_get(TRIB_AUTO)->isa,
         "used unless TRIB_CPU overrides it");
}

static void list_quota(const struct sink *s)
{
    char value[32], detail[TRIB_CGROUP_FILE_BYTES + 96];
    struct trib_cgroup_cpu quota;

    trib_cgroup_read_cpu("", &quota);
    if (quota.cpus <= 0)
        return;
    snprintf(value, sizeof(value), "%.2f", quota.cpus);
    snprintf(detail, sizeof(detail),
             "CPUs on average, allowed by the control group, from %s", quota.file);
    give(s, "cpu quota", value, detail);
}

static void list_topology(const struct sink *s)
{
    struct trib_machine machine;

    trib_machine_read(&machine);
    trib_machine_list(&machine, s->fn, s->arg);
    list_quota(s);
}

trib_status_t trib_list_each(trib_list_t list, trib_item_fn fn, void *arg)
{
    struct sink s = {fn, arg};

    if (!fn)
        return TRIB_ERR_INVALID;
    switch (list) {
    case TRIB_LIST_TRANSPORTS:
        list_transports(&s);
        return TRIB_OK;
    case TRIB_LIST_ALGORITHMS:
        list_algorithms(&s);
        return TRIB_OK;
    case TRIB_LIST_CODECS:
        list_codecs(&s);
        return TRIB_OK;
    case TRIB_LIST_CONFIG:
        return list_config(&s);
    case TRIB_LIST_TOPOLOGY:
        list_topology(&s);
        return TRIB_OK;
    case TRIB_LIST_CPU:
        list_cpu(&s);
        return TRIB_OK;
    case TRIB_LIST_BOOTS:
        list_boots(&s);
        return TRIB_OK;
    case TRIB_LIST_MEMORY:
        list_memory(&s);
        return TRIB_OK;
    }
    return TRIB_ERR_INVALID;
}

trib_status_t trib_codec_check(const char *codec, char *text, size_t bytes)
{
    struct trib_codec *c;
    struct trib_error err = {0};

    if (!codec || !text || !bytes)
        return TRIB_ERR_INVALID;
    if (trib_auto_wanted(codec)) {
        struct trib_auto_choice choice;
        const trib_status_t chosen = trib_auto_parse(codec, &err, &choice);
        snprintf(text, bytes, "%s", chosen == TRIB_OK ? codec : trib_error_text(&err));
        return chosen;
    }
    trib_status_t st = trib_codec_create(codec, NULL, &err, &c);
    snprintf(text, bytes, "%s",
             st == TRIB_OK ? trib_codec_info(c)->text : trib_error_text(&err));
    if (st == TRIB_OK)
        trib_codec_destroy(c);
    return st;
}

static trib_status_t describe(const char *codec, trib_codec_sheet_fn fn, void *arg)
{
    struct trib_codec_description *sheet;
    struct trib_error err = {0};
    struct trib_config cfg;
    struct trib_log quiet; /* trib_init reports unknown settings */

    trib_log_init(&quiet, TRIB_LOG_ERROR, NULL, NULL);
    const bool set = trib_config_load(&cfg, NULL, &quiet, NULL) == TRIB_OK;
    trib_status_t st =
        trib_codec_description_create(codec, set ? cfg.chunk : 65536, &err, &sheet);

    if (st != TRIB_OK) {
        trib_say_error(trib_error_text(&err));
        return st;
    }
    fn(arg, trib_codec_description_get(sheet));
    trib_codec_description_destroy(sheet);
    return TRIB_OK;
}

trib_status_t trib_codec_describe(const char *codec, trib_codec_sheet_fn fn, void *arg)
{
    trib_status_t st = TRIB_OK;

    if (!fn)
        return TRIB_ERR_INVALID;
    if (codec)
        return describe(codec, fn, arg);
    for (size_t i = 0; i < trib_codecs_count && st == TRIB_OK; i++)
        st = describe(trib_codecs[i].name, fn, arg);
    return st;
}

trib_status_t trib_feedback_check(const char *feedback, const char *codec, char *text,
                                  size_t bytes)
{
    struct trib_feedback_rule rule;
    struct trib_codec *c = NULL;
    struct trib_error err = {0};

    if (!feedback || !codec || !text || !bytes)
        return TRIB_ERR_INVALID;
    trib_status_t st = trib_feedback_parse(feedback, &err, &rule);
    if (st == TRIB_OK && trib_auto_wanted(codec))
        st = trib_auto_feedback(feedback, &err);
    else if (st == TRIB_OK)
        st = trib_codec_create(codec, NULL, &err, &c);
    if (st == TRIB_OK && c)
        st = trib_feedback_fit(&rule, c, &err);
    snprintf(text, bytes, "%s", st == TRIB_OK ? rule.text : trib_error_text(&err));
    trib_codec_destroy(c);
    return st;
}
