/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs: the libraries. Alone in its file, so that a test can put its own in its place.
 */
#include "transport/verbs_api.h"

#include "base/library.h"
#include "base/memlock.h"
#include "transport/net.h"

#define SYMBOL(call) {.name = #call, .at = offsetof(struct trib_verbs_api, call)},

/* clang-format off */
static const struct trib_symbol ibverbs[] = {
    TRIB_VERBS_CALLS(SYMBOL)
    {.name = "ibv_reg_dmabuf_mr",
     .at = offsetof(struct trib_verbs_api, ibv_reg_dmabuf_mr),
     .optional = true},
    {.name = "ibv_is_fork_initialized",
     .at = offsetof(struct trib_verbs_api, ibv_is_fork_initialized),
     .optional = true},
};
/* clang-format on */

static const struct trib_symbol rdmacm[] = {TRIB_RDMACM_CALLS(SYMBOL)};

bool trib_verbs_load(struct trib_verbs_api *api, char *why, size_t bytes)
{
    api->own_addresses = trib_net_own;
    api->memlock = trib_memlock_read;
    return trib_library_open("libibverbs.so.1", ibverbs,
                             sizeof(ibverbs) / sizeof(ibverbs[0]), api, why, bytes) &&
           trib_library_open("librdmacm.so.1", rdmacm,
                             sizeof(rdmacm) / sizeof(rdmacm[0]), api, why, bytes);
}
