/* SPDX-License-Identifier: BSD-3-Clause */
/* Parse the text of a quorum, such as 0.9,deadline=20ms. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "comm/plan/quorum_rule.h"

enum { LONGEST_S = 3600 };

/* Return the nanoseconds of a text such as "20ms"; 0 if invalid. */
static uint64_t time_of(char *text)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    const size_t digits = strspn(text, "0123456789.");
    double ns = 0, n;

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (strcmp(text + digits, units[i].name) == 0)
            ns = units[i].ns;
    text[digits] = '\0';
    if (ns <= 0 || !trib_number_read(text, &n) || !(n * ns >= 1) ||
        n * ns > LONGEST_S * 1e9)
        return 0;
    return (uint64_t)(n * ns);
}

static trib_status_t parse(char *copy, const char *text, struct trib_error *err,
                           struct trib_quorum_rule *out)
{
    static const char key[] = "deadline=";
    char *rest = strchr(copy, ',');

    if (rest)
        *rest++ = '\0';
    if (!trib_number_read(copy, &out->part) || !(out->part > 0 && out->part <= 1))
        return trib_fail(
            err, TRIB_ERR_INVALID,
            "quorum \"%s\": \"%s\" is not a fraction of the ranks: write a number "
            "above 0, at most 1, as in 0.9,deadline=20ms; or all",
            text, copy);
    if (!rest || strncmp(rest, key, sizeof(key) - 1) != 0)
        return trib_fail(
            err, TRIB_ERR_INVALID,
            "quorum \"%s\": the fraction of the ranks must be followed by a deadline, "
            "as in 0.9,deadline=20ms",
            text);
    out->deadline_ns = time_of(rest + sizeof(key) - 1);
    if (!out->deadline_ns)
        return trib_fail(
            err, TRIB_ERR_INVALID,
            "quorum \"%s\": deadline must be a number followed by us, ms or s, above "
            "0, at most %d s",
            text, LONGEST_S);
    return TRIB_OK;
}

trib_status_t trib_quorum_rule_parse(const char *text, struct trib_error *err,
                                     struct trib_quorum_rule *out)
{
    char copy[TRIB_QUORUM_TEXT_MAX];
    locale_t plain;

    *out = (struct trib_quorum_rule){0};
    if (strcmp(text, "all") == 0 || text[0] == '\0')
        return TRIB_OK;
    if (strlen(text) >= sizeof(copy))
        return trib_fail(err, TRIB_ERR_INVALID,
                         "quorum \"%.20s…\" has more than %zu characters", text,
                         sizeof(copy) - 1);
    snprintf(copy, sizeof(copy), "%s", text);
    const locale_t before = trib_number_enter(&plain);
    const trib_status_t st = parse(copy, text, err, out);
    trib_number_leave(plain, before);
    if (st != TRIB_OK)
        *out = (struct trib_quorum_rule){0};
    return st;
}

uint32_t trib_quorum_rule_need(const struct trib_quorum_rule *rule, int ranks)
{
    assert(ranks > 0 && rule->part <= 1);
    return (uint32_t)ceil(rule->part * ranks - 1e-9); /* 0.07 * 100 > 7 as doubles */
}
