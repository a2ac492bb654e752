/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/verbs/verbs_iova.h"

#include <assert.h>
#include <unistd.h>

#define HUGE ((size_t)2 << 20)

uint64_t trib_verbs_iova(const void *ptr, size_t len)
{
    const long page = sysconf(_SC_PAGESIZE);
    const size_t unit = len >= HUGE || page <= 0 ? HUGE : (size_t)page;

    assert(ptr && len > 0);
    return (uintptr_t)ptr % unit;
}

struct ibv_mr *trib_verbs_reg_mr(const struct trib_verbs_api *api, struct ibv_pd *pd,
                                 void *ptr, size_t len, int access, uint64_t *iova_out)
{
    *iova_out = trib_verbs_iova(ptr, len);
    if ((access & VERBS_RELAXED_ORDERING) && api->ibv_reg_mr_iova2)
        return api->ibv_reg_mr_iova2(pd, ptr, len, *iova_out, (unsigned)access);
    access &= ~VERBS_RELAXED_ORDERING;
    if (api->ibv_reg_mr_iova)
        return api->ibv_reg_mr_iova(pd, ptr, len, *iova_out, access);
    *iova_out = (uintptr_t)ptr;
    return api->ibv_reg_mr(pd, ptr, len, access);
}
