/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "base/plain.h"

trib_status_t trib_fail(struct trib_error *err, trib_status_t status, const char *fmt,
                        ...)
{
    if (!err || err->status != TRIB_OK)
        return status;

    int saved_errno = errno;
    va_list args;
    err->status = status;
    char text[sizeof(err->text)];
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    (void)trib_plain(text, err->text, sizeof(err->text));
    errno = saved_errno;
    return status;
}

void trib_error_clear(struct trib_error *err)
{
    if (!err)
        return;
    err->status = TRIB_OK;
    err->text[0] = '\0';
}

const char *trib_error_text(const struct trib_error *err)
{
    return err->text[0] ? err->text : trib_status_str(err->status);
}

trib_status_t trib_status_of_peer(int64_t number)
{
    static const trib_status_t known[] = {
#define STATUS_KNOWN(name, value, scope, text) TRIB_##name,
        TRIB_STATUS_MAP(STATUS_KNOWN)
#undef STATUS_KNOWN
    };

    for (size_t i = 0; number <= 0 && i < sizeof(known) / sizeof(known[0]); i++)
        if (known[i] == number)
            return known[i];
    return TRIB_ERR_PROTOCOL;
}
