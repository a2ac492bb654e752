/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/keyed_text.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"

enum { NAMES = 16 };

struct parsing {
    const struct trib_keyed_family *family;
    const char *text;
    struct trib_error *err;
    struct trib_keyed_text *out;
    struct trib_keyed_key keys[TRIB_KEYED_KEYS];
    int n_keys; /* number of indices */
};

/* Fail with the nearest name, or all names. `none` is the phrase, such as "there is
 * no". */
static trib_status_t fail_name(const struct parsing *p, const char *none,
                               const char *name, const char *const *names, size_t n)
{
    const char *nearest = trib_text_nearest(name, names, n);
    char all[160] = "";

    for (size_t i = 0; i < n && !nearest; i++)
        trib_text_append(all, sizeof(all), "%s%s", i ? ", " : "", names[i]);
    return trib_fail(p->err, TRIB_ERR_INVALID, "%s \"%s\": %s \"%s\"%s%s%s",
                     p->family->what, p->text, none, name,
                     nearest ? "; did you mean \"" : ", only ", nearest ? nearest : all,
                     nearest ? "\"?" : "");
}

static trib_status_t parse_name(struct parsing *p, const char *name)
{
    const char *names[NAMES];
    int n = 0;

    while ((names[n] = p->family->name(n))) {
        if (strcmp(names[n], name) == 0) {
            p->out->name = n;
            p->n_keys = p->family->keys(n, p->keys);
            assert(p->n_keys <= TRIB_KEYED_KEYS);
            return TRIB_OK;
        }
        n++;
        assert(n < NAMES);
    }
    return fail_name(p, "there is no", name, names, (size_t)n);
}

static trib_status_t fail_no_keys(const struct parsing *p)
{
    struct trib_keyed_key keys[TRIB_KEYED_KEYS];
    char all[160] = "";
    const char *name;

    for (int i = 0; (name = p->family->name(i)); i++)
        if (p->family->keys(i, keys) > 0)
            trib_text_append(all, sizeof(all), "%s%s", all[0] ? ", " : "", name);
    return trib_fail(p->err, TRIB_ERR_INVALID,
                     "%s \"%s\": %s has no parameters, only %s have", p->family->what,
                     p->text, p->family->name(p->out->name), all);
}

static trib_status_t fail_key(const struct parsing *p, const char *key)
{
    const char *names[TRIB_KEYED_KEYS];
    char none[80];
    size_t n = 0;

    for (int k = 0; k < p->n_keys; k++)
        if (p->keys[k].name)
            names[n++] = p->keys[k].name;
    if (n == 0)
        return fail_no_keys(p);
    snprintf(none, sizeof(none), "%s has no parameter", p->family->name(p->out->name));
    return fail_name(p, none, key, names, n);
}

static bool read_word(const char *const *words, const char *text, double *out)
{
    for (int i = 0; words[i]; i++) {
        *out = i;
        if (strcmp(words[i], text) == 0)
            return true;
    }
    return false;
}

static bool read_value(const struct trib_keyed_key *key, const char *text, double *out)
{
    if (key->words && read_word(key->words, text, out)) {
        if (key->highest > 0)
            *out = -1 - *out;
        return true;
    }
    if (key->words && key->highest <= 0)
        return false;
    return trib_number_read(text, out) && *out >= key->lowest && *out <= key->highest &&
           (!key->whole || *out == floor(*out));
}

static trib_status_t parse_key(struct parsing *p, char *key)
{
    char *value = strchr(key, '=');
    int k = 0;

    if (value)
        *value++ = '\0';
    while (k < p->n_keys && !(p->keys[k].name && strcmp(p->keys[k].name, key) == 0))
        k++;
    if (k == p->n_keys)
        return fail_key(p, key);
    if (!value)
        return trib_fail(p->err, TRIB_ERR_INVALID, "%s \"%s\": %s has no value",
                         p->family->what, p->text, key);
    if (p->out->given & 1u << k)
        return trib_fail(p->err, TRIB_ERR_INVALID, "%s \"%s\": %s is given twice",
                         p->family->what, p->text, key);
    p->out->given |= 1u << k;
    if (read_value(&p->keys[k], value, &p->out->value[k]))
        return TRIB_OK;
    return trib_fail(p->err, TRIB_ERR_INVALID, "%s \"%s\": %s is \"%s\", it must be %s",
                     p->family->what, p->text, key, value, p->keys[k].must);
}

static trib_status_t parse(struct parsing *p)
{
    char copy[TRIB_KEYED_BYTES];
    const size_t len = strnlen(p->text, sizeof(copy));

    assert(p->family->most < sizeof(copy));
    if (len > p->family->most)
        return trib_fail(p->err, TRIB_ERR_INVALID,
                         "%s \"%.40s...\" has more than %zu characters",
                         p->family->what, p->text, p->family->most);
    memcpy(copy, p->text, len + 1);
    char *at = strchr(copy, ':');
    if (at)
        *at++ = '\0';
    trib_status_t st = parse_name(p, copy);
    while (st == TRIB_OK && at) {
        char *comma = strchr(at, ',');
        if (comma)
            *comma++ = '\0';
        st = parse_key(p, at);
        at = comma;
    }
    return st;
}

trib_status_t trib_keyed_parse(const struct trib_keyed_family *family, const char *text,
                               struct trib_error *err, struct trib_keyed_text *out)
{
    struct parsing p = {.family = family, .text = text, .err = err, .out = out};
    locale_t plain;

    *out = (struct trib_keyed_text){.name = 0};
    const locale_t before = trib_number_enter(&plain);
    const trib_status_t st = parse(&p);
    trib_number_leave(plain, before);
    return st;
}
