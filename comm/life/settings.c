/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Settings with symbolic values: codecs, algorithms, transports, vector instructions.
 */
#include "comm/life/settings.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/config_report.h"
#include "base/text.h"
#include "comm/core/communicator.h"
#include "comm/members/wireup.h"
#include "comm/plan/auto_choice.h"
#include "comm/plan/plan_schedule.h"
#include "comm/plan/quorum_rule.h"
#include "pipeline/payload/check.h"
#include "transport/open.h"

static trib_status_t check_codec(const struct trib_config *cfg, struct trib_error *err)
{
    struct trib_codec *codec;

    if (strcmp(cfg->codec, "none") == 0)
        return TRIB_OK;
    if (trib_auto_wanted(cfg->codec) && cfg->deterministic)
        return trib_fail(err, TRIB_ERR_CONFIG,
                         "TRIB_CODEC=%s: it chooses by measured time, which "
                         "TRIB_DETERMINISTIC forbids: name a codec",
                         cfg->codec);
    if (trib_auto_wanted(cfg->codec)) {
        struct trib_auto_choice choice;
        return trib_auto_parse(cfg->codec, err, &choice);
    }
    trib_status_t st = trib_codec_create(cfg->codec, NULL, err, &codec);
    if (st == TRIB_OK)
        trib_codec_destroy(codec);
    return st;
}

static trib_status_t check_feedback(const struct trib_config *cfg,
                                    struct trib_error *err)
{
    struct trib_codec *codec;
    struct trib_feedback_rule rule;
    trib_status_t st = trib_feedback_parse(cfg->feedback, err, &rule);

    /* check_codec reports an invalid codec. With codec none the feedback applies to
     * plans with their own codec. */
    if (st != TRIB_OK || strcmp(cfg->codec, "none") == 0 ||
        trib_auto_wanted(cfg->codec) ||
        trib_codec_create(cfg->codec, NULL, NULL, &codec) != TRIB_OK)
        return st;
    if (!(trib_codec_info(codec)->flags & TRIB_CODEC_IDENTITY))
        st = trib_feedback_fit(&rule, codec, err);
    trib_codec_destroy(codec);
    return st;
}

static trib_status_t check_quorum(const struct trib_config *cfg, struct trib_error *err)
{
    struct trib_quorum_rule rule;

    return trib_quorum_rule_parse(cfg->quorum, err, &rule);
}

static trib_status_t check_check(const struct trib_config *cfg, struct trib_error *err)
{
    struct trib_check check;

    return trib_check_parse(cfg->check, err, &check);
}

static trib_status_t check_algorithm(const struct trib_config *cfg,
                                     struct trib_error *err)
{
    return trib_text_is_auto(cfg->algorithm)
               ? TRIB_OK
               : trib_settings_algorithm(cfg->algorithm, err);
}

static trib_status_t check_transport(const struct trib_config *cfg,
                                     struct trib_error *err)
{
    return trib_transport_check(cfg->transport, err);
}

static trib_status_t check_cpu(const struct trib_config *cfg, struct trib_error *err)
{
    const struct trib_kernels *kernels;

    return trib_settings_kernels(cfg, &kernels, err);
}

static const struct {
    int row;
    const char *variable;
    trib_status_t (*check)(const struct trib_config *cfg, struct trib_error *err);
} checks[] = {
    {TRIB_CONFIG_ROW_codec, "TRIB_CODEC", check_codec},
    {TRIB_CONFIG_ROW_feedback, "TRIB_FEEDBACK", check_feedback},
    {TRIB_CONFIG_ROW_quorum, "TRIB_QUORUM", check_quorum},
    {TRIB_CONFIG_ROW_check, "TRIB_CHECK", check_check},
    {TRIB_CONFIG_ROW_algorithm, "TRIB_ALGORITHM", check_algorithm},
    {TRIB_CONFIG_ROW_transport, NULL, check_transport},
    {TRIB_CONFIG_ROW_cpu, NULL, check_cpu},
};

bool trib_settings_check(const struct trib_config *cfg,
                         struct trib_config_faults *faults)
{
    bool well = faults->other[0] == '\0';

    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        struct trib_error err = {0};
        char *sentence = faults->row[checks[i].row];
        if (!sentence[0] && checks[i].check(cfg, &err) != TRIB_OK)
            snprintf(sentence, TRIB_CONFIG_FAULT_BYTES, "%s", trib_error_text(&err));
    }
    for (int i = 0; i < TRIB_CONFIG_ROWS; i++)
        well &= faults->row[i][0] == '\0';
    return well;
}

trib_status_t trib_settings_refuse(const struct trib_config *cfg,
                                   struct trib_error *err)
{
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        struct trib_error why = {0};
        if (!checks[i].variable || checks[i].check(cfg, &why) == TRIB_OK)
            continue;
        const char *text = trib_error_text(&why);
        const bool named = strncmp(text, "TRIB_", strlen("TRIB_")) == 0;
        return trib_fail(err, TRIB_ERR_CONFIG, "%s%s%s",
                         named ? "" : checks[i].variable, named ? "" : ": ", text);
    }
    return TRIB_OK;
}
