/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/auto/auto_params.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "transport/params.h"

static trib_status_t parse_own(const char *text, struct auto_params *out,
                               struct trib_error *err)
{
    const struct trib_param params[] = {
        {.name = "near", .max = sizeof(out->near), .text = out->near},
        {.name = "far", .max = sizeof(out->far), .text = out->far},
        {.name = "ranks_per_host",
         .min = 1,
         .max = 65536,
         .value = &out->ranks_per_host},
        {.name = "port", .min = 0, .max = 65535, .value = &out->port},
        {.name = "ports", .min = 1, .max = 65535, .value = &out->ports},
        {.name = "net", .max = sizeof(out->net), .text = out->net, .list = true},
    };

    return trib_params_parse(TRIB_AUTO, text, params,
                             sizeof(params) / sizeof(params[0]), err);
}

/* Have a candidate check the parameters that are passed on to it. */
static trib_status_t check_passed(const struct trib_candidate *row, const char *text,
                                  const struct trib_transport_opts *opts)
{
    struct trib_transport_opts part = *opts;
    struct trib_transport *t = NULL;
    char check[AUTO_PASSED_BYTES + 1];

    snprintf(check, sizeof(check), "%c%s", TRIB_PARAMS_CHECK, text);
    part.params = check;
    return row->ops->open(&part, &t);
}

trib_status_t trib_auto_params_parse(const struct trib_candidate *rows,
                                     const struct trib_transport_opts *opts,
                                     struct auto_params *out)
{
    char text[AUTO_PASSED_BYTES];

    *out = (struct auto_params){.ports = 1000};
    if (strlen(opts->params) >= sizeof(text))
        return trib_fail(opts->err, TRIB_ERR_CONFIG,
                         "auto: more than %d characters of parameters",
                         AUTO_PASSED_BYTES - 1);
    memcpy(text, opts->params, strlen(opts->params) + 1);
    for (int i = 0; rows[i].ops; i++) {
        assert(i < AUTO_INNERS);
        if (rows[i].passed)
            trib_params_split(text, rows[i].passed, out->passed[i], sizeof(text));
    }
    trib_status_t status = parse_own(text, out, opts->err);
    for (int i = 0; rows[i].ops && (status == TRIB_OK || status == TRIB_INPROGRESS);
         i++) {
        trib_status_t one = out->passed[i][0]
                                ? check_passed(&rows[i], out->passed[i], opts)
                                : TRIB_INPROGRESS;
        if (one != TRIB_INPROGRESS)
            status = one;
    }
    return status;
}
