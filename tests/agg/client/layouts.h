/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lay out aggregators from the texts of a test.
 */
#ifndef TESTS_AGG_CLIENT_LAYOUTS_H
#define TESTS_AGG_CLIENT_LAYOUTS_H

#include "tests/harness/tribtest.h"

#include "agg/client/agg_tree.h"
#include "base/error.h"
#include "base/log.h"
#include "tests/harness/group_text.h"

enum { RANKS_MOST = 8, TEXT_BYTES = 1024 };

struct heard {
    char text[TEXT_BYTES];
};

static inline void hear(void *arg, trib_log_level_t level, const char *line)
{
    struct heard *h = arg;

    (void)level;
    snprintf(h->text, sizeof(h->text), "%s", line);
}

static inline trib_status_t lay(const char *service, const char *racks,
                                const char *ranks, struct trib_error *err,
                                struct heard *heard, struct trib_tree_layout *out)
{
    struct trib_config cfg = {0};
    struct trib_log log;
    const char *hosts[RANKS_MOST];
    char text[TEXT_BYTES];

    snprintf(text, sizeof(text), "%s", ranks);
    snprintf(cfg.service, sizeof(cfg.service), "%s", service);
    snprintf(cfg.racks, sizeof(cfg.racks), "%s", racks);
    heard->text[0] = '\0';
    trib_log_init(&log, TRIB_LOG_WARN, hear, heard);
    const int n = group_text_split(text, hosts);
    return trib_tree_layout_make(&cfg, hosts, n, &log, err, out);
}

#endif
