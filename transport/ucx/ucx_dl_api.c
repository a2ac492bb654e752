/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx: loading of UCX's libraries at run time.
 */
#include "transport/ucx/ucx_dl_api.h"

#include <string.h>

#include "base/library.h"

#define SYMBOL(call) {.name = #call, .at = offsetof(struct trib_ucx_api, call)},

/* clang-format off */
static const struct trib_symbol ucp[] = {TRIB_UCP_CALLS(SYMBOL)};

static const struct trib_symbol ucs[] = {
    SYMBOL(ucs_status_string)
    SYMBOL(ucs_global_opts_get_value)
    SYMBOL(ucs_global_opts_set_value)
};
/* clang-format on */

static bool open_both(struct trib_ucx_api *api, char *why, size_t bytes)
{
    return trib_library_open("libucp.so.0", ucp, sizeof(ucp) / sizeof(ucp[0]), api, why,
                             bytes) &&
           trib_library_open("libucs.so.0", ucs, sizeof(ucs) / sizeof(ucs[0]), api, why,
                             bytes);
}

/* UCX logs to standard output, which belongs to the program. Errors of peers are
 * reported by this transport. */
static void silence(const struct trib_ucx_api *api)
{
    char level[32] = "";

    if (api->ucs_global_opts_get_value("LOG_LEVEL", level, sizeof(level)) == UCS_OK &&
        strcasecmp(level, "warn") == 0)
        (void)api->ucs_global_opts_set_value("LOG_LEVEL", "fatal");
}

bool trib_ucx_load(struct trib_ucx_api *api, char *why, size_t bytes)
{
    bool opened = open_both(api, why, bytes);

    if (opened)
        silence(api);
    return opened;
}
