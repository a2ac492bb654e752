/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

locale_t trib_number_enter(locale_t *plain_out)
{
    *plain_out = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return *plain_out ? uselocale(*plain_out) : (locale_t)0;
}

void trib_number_leave(locale_t plain, locale_t before)
{
    if (!plain)
        return;
    uselocale(before);
    freelocale(plain);
}

bool trib_number_read(const char *text, double *value_out)
{
    char *end;

    if (text[0] == '\0' || text[strspn(text, "0123456789.eE-")] != '\0')
        return false;
    *value_out = strtod(text, &end);
    return *end == '\0';
}

bool trib_number_take(const char *text, double *value_out)
{
    locale_t plain;
    const locale_t before = trib_number_enter(&plain);
    const bool ok = trib_number_read(text, value_out);

    trib_number_leave(plain, before);
    return ok;
}

void trib_number_print(char *out, size_t bytes, double v)
{
    if (v == floor(v) && fabs(v) < 1e15) {
        snprintf(out, bytes, "%.0f", v);
        return;
    }
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(out, bytes, "%.*g", digits, v);
        if (strtod(out, NULL) == v)
            break;
    }
    char *plus = strchr(out, '+'); /* "1e+20" becomes "1e20" */
    if (plus)
        memmove(plus, plus + 1, strlen(plus));
}
