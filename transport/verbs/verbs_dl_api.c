/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs: loading the libraries. A test replaces this file with its own.
 */
#include "transport/verbs/verbs_dl_api.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/library.h"
#include "base/memlock.h"
#include "base/numa.h"
#include "base/rdma_counters.h"
#include "transport/common/net_addr.h"

#define SYMBOL(call) {.name = #call, .at = offsetof(struct trib_verbs_api, call)},

/* clang-format off */
static const struct trib_symbol ibverbs[] = {
    TRIB_VERBS_CALLS(SYMBOL)
    {.name = "ibv_reg_mr_iova",
     .at = offsetof(struct trib_verbs_api, ibv_reg_mr_iova),
     .optional = true},
    {.name = "ibv_reg_mr_iova2",
     .at = offsetof(struct trib_verbs_api, ibv_reg_mr_iova2),
     .optional = true},
    {.name = "ibv_reg_dmabuf_mr",
     .at = offsetof(struct trib_verbs_api, ibv_reg_dmabuf_mr),
     .optional = true},
    {.name = "ibv_is_fork_initialized",
     .at = offsetof(struct trib_verbs_api, ibv_is_fork_initialized),
     .optional = true},
    {.name = "_ibv_query_gid_table",
     .at = offsetof(struct trib_verbs_api, _ibv_query_gid_table),
     .optional = true},
};
/* clang-format on */

static const struct trib_symbol rdmacm[] = {TRIB_RDMACM_CALLS(SYMBOL)};

bool trib_verbs_present(void)
{
    DIR *dir = opendir("/sys/class/infiniband");
    const struct dirent *entry = NULL;

    if (!dir)
        return access("/sys/class/net", F_OK) != 0; /* without /sys, assume that there
                                                     * may be one */
    while ((entry = readdir(dir)) && entry->d_name[0] == '.')
        continue;
    closedir(dir);
    return entry != NULL;
}

static bool read_counters(const char *device, int port, struct trib_rdma_counters *out)
{
    return trib_rdma_counters_read("", device, port, out);
}

/* Read what the administrator set for a RoCE port. */
static int default_tos(const char *device, int port)
{
    char path[160], text[16], *end;

    snprintf(path, sizeof(path),
             "/sys/kernel/config/rdma_cm/%.63s/ports/%d/default_roce_tos", device,
             port);
    if (!trib_file_line("", path, text, sizeof(text)))
        return -1;
    const long tos = strtol(text, &end, 0);
    return end == text || tos < 0 || tos > UINT8_MAX ? -1 : (int)tos;
}

static int distance(const struct ibv_device *device)
{
    return trib_numa_distance("", trib_numa_node("", device->ibdev_path));
}

bool trib_verbs_load(struct trib_verbs_api *api, char *why, size_t bytes)
{
    memset(api, 0, sizeof(*api));
    api->own_addresses = trib_net_own;
    api->memlock = trib_memlock_read;
    api->default_tos = default_tos;
    api->distance = distance;
    api->counters = read_counters;
    if (!trib_library_open("libibverbs.so.1", ibverbs,
                           sizeof(ibverbs) / sizeof(ibverbs[0]), api, why, bytes))
        return false;
    if (!trib_library_open("librdmacm.so.1", rdmacm, sizeof(rdmacm) / sizeof(rdmacm[0]),
                           api, api->no_rdmacm, sizeof(api->no_rdmacm)))
        api->rdma_create_event_channel = NULL;
    return true;
}
