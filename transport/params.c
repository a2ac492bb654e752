/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/params.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"

struct word {
    const char *text;
    size_t len;
};

static trib_status_t unknown_name(const char *owner, struct word name,
                                  const struct trib_param *params, size_t n,
                                  struct trib_error *err)
{
    const char *names[TRIB_PARAMS_MAX] = {NULL};
    char copy[64];

    for (size_t i = 0; i < n; i++)
        names[i] = params[i].name;
    size_t len = name.len < sizeof(copy) ? name.len : sizeof(copy) - 1;
    memcpy(copy, name.text, len);
    copy[len] = '\0';
    const char *nearest = trib_text_nearest(copy, names, n);
    if (n == 0)
        return trib_fail(err, TRIB_ERR_CONFIG, "%s takes no parameters, not \"%s\"",
                         owner, copy);
    return trib_fail(err, TRIB_ERR_CONFIG, "%s has no parameter \"%s\"%s%s%s", owner,
                     copy, nearest ? "; did you mean \"" : "", nearest ? nearest : "",
                     nearest ? "\"?" : "");
}

static trib_status_t set_value(const char *owner, const struct trib_param *param,
                               struct word value, struct trib_error *err)
{
    char digits[24];
    char *end = digits;

    if (!param->value) {
        if (value.len == 0 || value.len >= (size_t)param->max)
            return trib_fail(err, TRIB_ERR_CONFIG, "%s: %s=%.*s is not a name", owner,
                             param->name, (int)(value.len < 64 ? value.len : 64),
                             value.text);
        memcpy(param->text, value.text, value.len);
        param->text[value.len] = '\0';
        return TRIB_OK;
    }

    if (value.len > 0 && value.len < sizeof(digits)) {
        memcpy(digits, value.text, value.len);
        digits[value.len] = '\0';
        errno = 0;
        long long number = strtoll(digits, &end, strncmp(digits, "0x", 2) ? 10 : 16);
        if (*end == '\0' && errno == 0 && number >= param->min &&
            number <= param->max) {
            *param->value = number;
            return TRIB_OK;
        }
    }
    return trib_fail(err, TRIB_ERR_CONFIG,
                     "%s: %s=%.*s is not a whole number from %" PRId64 " to %" PRId64,
                     owner, param->name, (int)(value.len < 64 ? value.len : 64),
                     value.text, param->min, param->max);
}

static trib_status_t parse_one(const char *owner, struct word item,
                               const struct trib_param *params, size_t n,
                               struct trib_error *err)
{
    const char *equals = memchr(item.text, '=', item.len);
    struct word name = {item.text, equals ? (size_t)(equals - item.text) : item.len};

    for (size_t i = 0; i < n; i++) {
        if (strlen(params[i].name) != name.len ||
            memcmp(params[i].name, name.text, name.len) != 0)
            continue;
        if (!equals && !params[i].value)
            return trib_fail(err, TRIB_ERR_CONFIG, "%s: %s needs a name, as in %s=shm",
                             owner, params[i].name, params[i].name);
        if (!equals)
            return trib_fail(
                err, TRIB_ERR_CONFIG, "%s: %s needs a value, as in %s=%" PRId64, owner,
                params[i].name, params[i].name,
                *params[i].value < params[i].min ? params[i].min : *params[i].value);
        return set_value(owner, &params[i],
                         (struct word){equals + 1, item.len - name.len - 1}, err);
    }
    return unknown_name(owner, name, params, n, err);
}

/* Return the length up to the next comma. A list ends before the next "name=". */
static size_t item_len(const char *text, const struct trib_param *params, size_t n)
{
    size_t len = strcspn(text, ",");
    bool list = false;

    for (size_t i = 0; i < n; i++) {
        size_t name = strlen(params[i].name);
        list |= params[i].list && strncmp(text, params[i].name, name) == 0 &&
                text[name] == '=';
    }
    while (list && text[len]) {
        size_t more = strcspn(text + len + 1, ",");
        if (more == 0 || memchr(text + len + 1, '=', more))
            break;
        len += 1 + more;
    }
    return len;
}

void trib_params_split(char *text, const char *const *names, char *out, size_t bytes)
{
    char *rest = text + (*text == TRIB_PARAMS_CHECK);
    size_t kept = (size_t)(rest - text);

    assert(strlen(text) < bytes);
    *out = '\0';
    while (*rest) {
        const size_t name = strcspn(rest, "=,");
        struct trib_param list = {.list = true};
        for (size_t i = 0; names[i]; i++) {
            if (strlen(names[i]) == name && strncmp(rest, names[i], name) == 0)
                list.name = names[i];
        }
        const size_t len = list.name ? item_len(rest, &list, 1) : strcspn(rest, ",");
        const size_t whole = len + (rest[len] == ',');
        if (list.name)
            trib_text_append(out, bytes, "%s%.*s", *out ? "," : "", (int)len, rest);
        else
            memmove(text + kept, rest, whole);
        kept += list.name ? 0 : whole;
        rest += whole;
    }
    if (kept && text[kept - 1] == ',')
        kept--;
    text[kept] = '\0';
}

trib_status_t trib_params_parse(const char *owner, const char *text,
                                const struct trib_param *params, size_t n,
                                struct trib_error *err)
{
    bool check_only = text && *text == TRIB_PARAMS_CHECK;

    assert(n <= TRIB_PARAMS_MAX);
    if (check_only)
        text++;
    while (text && *text) {
        size_t len = item_len(text, params, n);
        trib_status_t status =
            parse_one(owner, (struct word){text, len}, params, n, err);
        if (status != TRIB_OK)
            return status;
        text += len + (text[len] == ',');
    }
    return check_only ? TRIB_INPROGRESS : TRIB_OK;
}
