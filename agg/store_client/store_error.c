/* SPDX-License-Identifier: BSD-3-Clause */
/* The message of a store's last failed call. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "agg/store_client/rank_store.h"

trib_status_t trib_store_fail(struct trib_store *store, trib_status_t status,
                              const char *fmt, ...)
{
    char text[sizeof(store->err.text)];
    va_list args;

    assert(status != TRIB_OK);
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    trib_error_clear(&store->err);
    return trib_fail(&store->err, status, "%s", text);
}

const char *trib_store_error(const trib_store_t *store)
{
    return store ? trib_error_text(&store->err) : "no store";
}
