/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/hostlist.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define DIGITS_MAX 9
#define BRACKETS_MAX 8 /* brackets per name; limits the recursion of expand */

struct expansion {
    char name[TRIB_HOSTNAME_BYTES];
    size_t max;
    size_t n;
    trib_hostlist_fn fn;
    void *arg;
    const char *why; /* NULL: no error so far */
};

struct range {
    uint32_t low;
    uint32_t high;
    int width; /* digits of low, leading zeros included */
};

static bool is_name(char c)
{
    return c > ' ' && c < 127 && !strchr("[],=\"#\\", c);
}

bool trib_hostname_ok(const char *name)
{
    size_t n = 0;

    while (n < TRIB_HOSTNAME_BYTES && name[n] && is_name(name[n]))
        n++;
    return n > 0 && n < TRIB_HOSTNAME_BYTES && !name[n];
}

/* Parse digits; return NULL if there are none or too many. */
static const char *read_number(const char *p, uint32_t *out)
{
    size_t digits = strspn(p, "0123456789");

    if (digits == 0 || digits > DIGITS_MAX)
        return NULL;
    *out = 0;
    for (size_t i = 0; i < digits; i++)
        *out = *out * 10 + (uint32_t)(p[i] - '0');
    return p + digits;
}

/* Parse "01-16" or "20", up to the ',' or ']' after it. */
static const char *read_range(const char *p, struct range *out)
{
    const char *end = read_number(p, &out->low);

    if (!end)
        return NULL;
    out->width = (int)(end - p);
    out->high = out->low;
    if (*end == '-')
        end = read_number(end + 1, &out->high);
    return end && (*end == ',' || *end == ']') && out->low <= out->high ? end : NULL;
}

static void emit(struct expansion *e, size_t len)
{
    if (len == 0) {
        e->why = "has an empty name";
    } else if (e->n == e->max) {
        e->why = "has too many names";
    } else {
        e->name[len] = '\0';
        e->n++;
        e->fn(e->arg, e->name);
    }
}

/* Expand the rest of an item after the first `len` bytes of the name. Each iteration of
 * each loop emits at least one name, so `max` bounds the total work. */
static void expand(struct expansion *e, size_t len, const char *p, int brackets)
{
    while (is_name(*p) && len + 1 < sizeof(e->name))
        e->name[len++] = *p++;
    if (*p == '\0' || *p == ',') {
        emit(e, len);
        return;
    }
    if (*p != '[' || brackets == BRACKETS_MAX) {
        e->why = is_name(*p) ? "has a name of more than 64 characters"
                 : *p == '[' ? "has a name with more than 8 brackets"
                 : *p == ']' ? "has a ] without its ["
                             : "has an invalid character";
        return;
    }
    const char *rest = strchr(p, ']');
    if (!rest) {
        e->why = "has a [ without its ]";
        return;
    }
    do {
        struct range range;
        p = read_range(p + 1, &range);
        if (!p) {
            e->why = "has no numbers such as [01-16,20] between its brackets";
            return;
        }
        for (uint32_t i = range.low; i <= range.high && !e->why; i++) {
            int digits = snprintf(e->name + len, sizeof(e->name) - len, "%0*u",
                                  range.width, (unsigned)i);
            if (len + (size_t)digits >= sizeof(e->name))
                e->why = "has a name of more than 64 characters";
            else
                expand(e, len + (size_t)digits, rest + 1, brackets + 1);
        }
    } while (*p == ',' && !e->why);
}

/* Return the comma after an item, outside brackets; NULL: last item. */
static const char *next_item(const char *p)
{
    bool inside = false;

    for (; *p && (inside || *p != ','); p++)
        inside = *p == '[' || (inside && *p != ']');
    return *p ? p : NULL;
}

const char *trib_hostlist_each(const char *list, size_t max, trib_hostlist_fn fn,
                               void *arg)
{
    struct expansion e = {.max = max, .fn = fn, .arg = arg};

    for (const char *comma; !e.why; list = comma + 1) {
        comma = next_item(list);
        expand(&e, 0, list, 0);
        if (!comma)
            break;
    }
    return e.why;
}
